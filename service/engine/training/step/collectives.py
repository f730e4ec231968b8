"""Exchanges between devices, at the data sheets' rates of the links they cross."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.training.model import Transformer
from service.domain.training.run import FROZEN_BASE
from service.engine.training.dtypes import element_bytes
from service.engine.training.flops import attention_width
from service.engine.training.layouts import stack_depth
from service.engine.training.memory import data_ranks, expert_replicas, local_adapters
from service.engine.training.parameters import expert_layer_count
from service.engine.training.step.workload import Floats, Workload, collective_passes, sweeps


@dataclass(frozen=True, slots=True)
class Link:
    """One exchange: seconds on the fast link and on the network at their data sheets' rates, and fixed-cost hops of its calls."""

    inside: Floats
    beyond: Floats
    hops: Floats

    def __add__(self, other: Link) -> Link:
        return Link(self.inside + other.inside, self.beyond + other.beyond, self.hops + other.hops)

    def times(self, factor: Floats | float) -> Link:
        return Link(self.inside * factor, self.beyond * factor, self.hops * factor)


def _exchange(
    job: Workload, payload: Floats, ranks: Floats | float, side_by_side: Floats | float = 1.0, span: Floats | float | None = None
) -> Link:
    """One gather or scatter of `payload` bytes round a ring: (ranks - 1) / ranks of it passes every link.

    The group's ring lies on the fast link where its `span` of accelerators does, else on the network cards, of which it uses
    those of its `side_by_side` members in one node together. A link nobody publishes costs nothing. Of several networks each has a row.
    """
    across = job.network_bytes_per_s
    inside = (job.cluster.accelerator.link_gb_per_s or 0.0) / 2 * 1e9 or across
    beyond = np.minimum(across * side_by_side, inside)
    passing = payload * (ranks - 1) / ranks
    near = (ranks if span is None else span) <= job.cluster.link_domain
    return Link(np.where(near, passing / inside, 0.0), np.where(near, 0.0, passing / beyond), np.log2(ranks))


def tensor_link(job: Workload) -> Link:
    """Gathers and scatters of the activations among the tensor ranks."""
    assert isinstance(job.model, Transformer)
    ranks = job.layouts.tensor.astype(float)
    one = _exchange(job, element_bytes(job.training) * job.tokens * job.model.hidden_size, ranks, job.cluster.accelerators_per_node)
    return one.times(_tensor_passes(job))


def _tensor_passes(job: Workload) -> Floats:
    """Gathers and scatters of a micro-batch: four all-reduces a layer, six with full recomputation (Megatron-LM, arXiv 1909.08053,
    section 3), each a scatter and a gather. Under sequence parallelism the weights' gradients ask for the inputs of both blocks,
    which are stored in parts and gathered once more (Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2).
    """
    parts = job.training.sequence_parallel and job.training.method not in FROZEN_BASE
    once_more = 2 * job.backward_passes if parts else 0.0
    passes: Floats = (4 * collective_passes(job) + once_more) * job.layers
    return passes


def exchange_calls(job: Workload) -> Floats:
    """Exchanges that the host launches between the kernels of a micro-batch: those of the tensor ranks, an all-reduce being one call,
    and a send and a receive at each end of a pipeline stage's chunk.
    """
    layouts = job.layouts
    tensor = _tensor_passes(job) / (1 if job.training.sequence_parallel else 2)
    stage = 2 * (job.forward_passes + job.backward_passes) * layouts.virtual_pipeline
    calls: Floats = np.where(layouts.tensor > 1, tensor, 0.0) + np.where(layouts.pipeline > 1, stage, 0.0)
    return calls


def context_link(job: Workload) -> Link:
    """Keys and values round the ring of context ranks, once forward, twice backward (Liu et al. 2023, arXiv 2310.01889, section 3)."""
    assert isinstance(job.model, Transformer)
    ranks = job.layouts.context.astype(float)
    if (ranks == 1).all():
        return Link(job.nothing, job.nothing, job.nothing)
    width = attention_width(job.model) * job.model.kv_heads / job.model.attention_heads
    payload = element_bytes(job.training) * job.layouts.micro_batch * job.training.seq_len * width / job.layouts.tensor
    return _exchange(job, payload, ranks, span=ranks * job.layouts.tensor).times(3 * sweeps(job) * job.layers)


def expert_link(job: Workload) -> Link:
    """Dispatch and combine of every routed layer, forward and backward: four all-to-alls (GShard, arXiv 2006.16668, section 3.2).

    A token crosses the network once for each other node (or rack, or pod) it visits an expert of, and is handed out there over
    the fast link (DeepSeek-V3, arXiv 2412.19437, section 3.2.2).
    """
    assert isinstance(job.model, Transformer)
    experts = job.model.experts
    if experts is None:
        return Link(job.nothing, job.nothing, job.nothing)
    ranks = job.layouts.expert.astype(float)
    rows = element_bytes(job.training) * job.tokens / job.layouts.tensor * job.model.hidden_size
    domain = np.minimum(ranks, job.cluster.link_domain)
    domains = ranks / domain
    visited = (domains - 1) * (1 - (1 - 1 / domains) ** experts.experts_per_token)
    # A ring of two passes half of its payload.
    across = _exchange(job, 2 * rows * visited, 2.0, span=ranks)
    inside = _exchange(job, rows * experts.experts_per_token, domain)
    one = Link(inside.inside, np.where(domains > 1, across.beyond, 0.0), inside.hops)
    return one.times(2 * collective_passes(job) * expert_layer_count(job.model) / stack_depth(job.model) * job.layers)


def stage_link(job: Workload) -> Link:
    """Activations handed to the next pipeline stage and their gradients back, once a chunk of layers.

    Ranks are laid out tensor, context, data, pipeline, the first next to each other: stages are the farthest apart.
    """
    assert isinstance(job.model, Transformer)
    payload = element_bytes(job.training) * job.tokens * job.model.hidden_size / job.layouts.tensor
    # Two ranks of a ring of two pass half of what one hands to the other.
    one = _exchange(job, 2 * payload, 2.0, span=job.cluster.count)
    calls = (job.forward_passes + job.backward_passes) * job.layouts.virtual_pipeline
    return one.times(np.where(job.layouts.pipeline > 1, calls, 0))


def gradient_link(job: Workload) -> Link:
    """Reduce-scatter of gradients and gather of trained weights over the data ranks.

    Divided gradients (ZeRO 2 and 3) are scattered every micro-batch, and ZeRO 3 gathers all weights twice in each.
    A frozen base is exchanged under ZeRO 3 alone, at the width it is stored in; its adapters are what is trained.
    """
    layouts = job.layouts
    dense, experts = job.local
    frozen = job.training.method in FROZEN_BASE
    trained, trained_experts = local_adapters(job.model, job.training, layouts) if frozen else (dense, experts)
    ranks = data_ranks(layouts)
    # A data group lies within one pipeline stage.
    span: Floats = ranks * layouts.tensor
    batches = job.micro_batches
    width = job.training.footprint.nf4_bytes if job.training.method == "qlora" else element_bytes(job.training)

    def payload(updated: Floats, held: Floats) -> Floats:
        scattered = element_bytes(job.training) * updated
        gathered = np.where(layouts.zero_stage == 3, 2.0 * batches * width * held, scattered)
        return scattered * np.where(layouts.zero_stage >= 2, batches, 1.0) + gathered

    beside = np.maximum(1.0, job.cluster.link_domain / layouts.tensor)
    calls = np.choose(layouts.zero_stage, [2.0, 2.0, 1 + batches, 3 * batches * job.layers])
    shared = _exchange(job, payload(trained, dense), ranks, beside, span)
    one = Link(shared.inside, shared.beyond, shared.hops * calls)
    if isinstance(job.model, Transformer) and job.model.experts:
        # Each expert goes round its own replicas, which are fewer where experts are divided.
        routed = _exchange(job, payload(trained_experts, experts), expert_replicas(layouts), beside, span)
        one = Link(one.inside + routed.inside, one.beyond + routed.beyond, one.hops)
    return one.times(job.backward_passes)
