"""Exchanges between devices, at the data sheets' rates of the links they cross."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.training.model import Transformer
from service.domain.training.run import FROZEN_BASE
from service.engine.training.dtypes import element_bytes
from service.engine.training.flops import attention_width
from service.engine.training.layouts import layer_count
from service.engine.training.parameters import block_shares, expert_layer_count
from service.engine.training.sharding import data_ranks, expert_replicas, local_adapters
from service.engine.training.step.workload import Floats, Workload, collective_passes, layer_passes


@dataclass(frozen=True, slots=True)
class ExchangeTime:
    """One exchange at the data sheets' rates. Every field: (layouts,) float array.

    Attributes
    ----------
    intra_s
        On the fast link inside a node (or pod) [s].
    inter_s
        On the network between nodes [s].
    hops
        log2 of the ranks, for each call: a fixed time each [1].
    """

    intra_s: Floats
    inter_s: Floats
    hops: Floats

    def __add__(self, other: ExchangeTime) -> ExchangeTime:
        return ExchangeTime(self.intra_s + other.intra_s, self.inter_s + other.inter_s, self.hops + other.hops)

    def times(self, factor: Floats | float) -> ExchangeTime:
        """The exchange, a number of times."""
        return ExchangeTime(self.intra_s * factor, self.inter_s * factor, self.hops * factor)


def _exchange(
    workload: Workload, payload: Floats, ranks: Floats | float, side_by_side: Floats | float = 1.0, span: Floats | float | None = None
) -> ExchangeTime:
    """One gather or scatter of `payload` bytes round a ring: (ranks - 1) / ranks of it passes every link."""
    # The group's ring lies on the fast link where its `span` of accelerators does, else on the network cards, of which it uses those of
    # its `side_by_side` members in one node together. A link without a published rate costs nothing.
    across = workload.network_bytes_per_s
    inside = (workload.cluster.accelerator.link_gb_per_s or 0.0) / 2 * 1e9 or across
    beyond = np.minimum(across * side_by_side, inside)
    passing = payload * (ranks - 1) / ranks
    near = (ranks if span is None else span) <= workload.cluster.link_domain
    return ExchangeTime(np.where(near, passing / inside, 0.0), np.where(near, 0.0, passing / beyond), np.log2(ranks))


def tensor_exchange(workload: Workload) -> ExchangeTime:
    """Gathers and scatters of the activations among the tensor ranks, for one micro-batch.

    Returns
    -------
    ExchangeTime
        [s].
    """
    assert isinstance(workload.model, Transformer)
    ranks = workload.layouts.tensor.astype(float)
    one = _exchange(
        workload,
        element_bytes(workload.training) * workload.tokens * workload.model.hidden_size,
        ranks,
        workload.cluster.accelerators_per_node,
    )
    return one.times(_tensor_passes(workload))


def _tensor_passes(workload: Workload) -> Floats:
    """Gathers and scatters of a micro-batch among the tensor ranks."""
    # Four all-reduces a layer, six with full recomputation (Megatron-LM, arXiv 1909.08053, section 3), each a scatter and a gather. Under
    # sequence parallelism the weights' gradients need the inputs of both blocks, which are stored in parts and gathered once more
    # (Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2).
    parts = workload.training.sequence_parallel and workload.training.method not in FROZEN_BASE
    once_more = 2 * workload.backward_passes if parts else 0.0
    passes: Floats = (4 * collective_passes(workload) + once_more) * workload.layers * _gathering_blocks(workload) / 2
    return passes


def _gathering_blocks(workload: Workload) -> float:
    """Blocks of a layer that gather the tensor ranks' tokens, of its two."""
    # Experts take the tokens as sequence parallelism has divided them (`expert_exchange`); shared experts are cut like dense layers.
    model = workload.model
    assert isinstance(model, Transformer)
    blocks = block_shares(model).blocks
    if model.experts is None or model.experts.shared_experts or not workload.training.sequence_parallel:
        return blocks
    return blocks - expert_layer_count(model) / layer_count(model)


def exchange_calls(workload: Workload) -> Floats:
    """Exchanges that the host launches between the kernels of a micro-batch.

    Those of the tensor ranks, an all-reduce being one call, and a send and a receive at each end of a pipeline stage's chunk.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    layouts = workload.layouts
    tensor = _tensor_passes(workload) / (1 if workload.training.sequence_parallel else 2)
    stage = 2 * (workload.forward_passes + workload.backward_passes) * layouts.virtual_pipeline
    calls: Floats = np.where(layouts.tensor > 1, tensor, 0.0) + np.where(layouts.pipeline > 1, stage, 0.0)
    return calls


def context_exchange(workload: Workload) -> ExchangeTime:
    """Keys and values round the ring of context ranks, once forward, twice backward, for one micro-batch.

    Returns
    -------
    ExchangeTime
        [s].

    References
    ----------
    Liu et al. 2023 (arXiv 2310.01889), section 3.
    """
    assert isinstance(workload.model, Transformer)
    ranks = workload.layouts.context.astype(float)
    if (ranks == 1).all():
        return ExchangeTime(workload.zeros, workload.zeros, workload.zeros)
    width = attention_width(workload.model) * workload.model.kv_heads / workload.model.attention_heads
    payload = element_bytes(workload.training) * workload.layouts.micro_batch * workload.training.seq_len * width / workload.layouts.tensor
    return _exchange(workload, payload, ranks, span=ranks * workload.layouts.tensor).times(
        3 * layer_passes(workload) * workload.layers * block_shares(workload.model).attention
    )


def expert_exchange(workload: Workload) -> ExchangeTime:
    """Dispatch and combine of every layer with experts, forward and backward, for one micro-batch: four all-to-alls.

    A token crosses the network once for each other node (or rack, or pod) that it visits an expert of, and is handed out there over the
    fast link.

    Returns
    -------
    ExchangeTime
        [s].

    References
    ----------
    GShard (arXiv 2006.16668), section 3.2; DeepSeek-V3 (arXiv 2412.19437), section 3.2.2.
    """
    assert isinstance(workload.model, Transformer)
    experts = workload.model.experts
    if experts is None:
        return ExchangeTime(workload.zeros, workload.zeros, workload.zeros)
    ranks = workload.layouts.expert.astype(float)
    slices = workload.layouts.expert_tensor.astype(float)
    rows = element_bytes(workload.training) * workload.tokens / workload.layouts.tensor * workload.model.hidden_size
    domain = np.clip(workload.cluster.link_domain / slices, 1.0, ranks)
    domains = ranks / domain
    visited = (domains - 1) * (1 - (1 - 1 / domains) ** experts.experts_per_token)
    # A ring of two passes half of its payload.
    across = _exchange(workload, 2 * rows * visited, 2.0, span=ranks * slices)
    inside = _exchange(workload, rows * experts.experts_per_token, domain)
    one = ExchangeTime(inside.intra_s, np.where(domains > 1, across.inter_s, 0.0), inside.hops)
    # Ranks with slices of the same experts gather what came to any of them, and scatter the sum of their results.
    one = one + _exchange(workload, rows * experts.experts_per_token * slices, slices, workload.cluster.accelerators_per_node)
    return one.times(2 * collective_passes(workload) * expert_layer_count(workload.model) / layer_count(workload.model) * workload.layers)


def stage_exchange(workload: Workload) -> ExchangeTime:
    """Activations sent to the next pipeline stage and their gradients back, once a chunk of layers, for one micro-batch.

    Ranks are laid out tensor, context, data, pipeline, the first next to each other: stages are the farthest apart.

    Returns
    -------
    ExchangeTime
        [s].
    """
    assert isinstance(workload.model, Transformer)
    payload = element_bytes(workload.training) * workload.tokens * workload.model.hidden_size / workload.layouts.tensor
    # Two ranks of a ring of two pass half of what one hands to the other.
    one = _exchange(workload, 2 * payload, 2.0, span=workload.cluster.count)
    calls = (workload.forward_passes + workload.backward_passes) * workload.layouts.virtual_pipeline
    return one.times(np.where(workload.layouts.pipeline > 1, calls, 0))


def gradient_exchange(workload: Workload) -> ExchangeTime:
    """Reduce-scatter of gradients and gather of trained weights over the data ranks, for one step.

    Sharded gradients (ZeRO 2 and 3) are scattered every micro-batch, and ZeRO 3 gathers all weights twice in each. A frozen base is
    exchanged under ZeRO 3 alone, at the width it is stored in; its adapters are what is trained.

    Returns
    -------
    ExchangeTime
        [s].
    """
    layouts = workload.layouts
    dense, experts = workload.local
    frozen = workload.training.method in FROZEN_BASE
    trained, trained_experts = local_adapters(workload.model, workload.training, layouts) if frozen else (dense, experts)
    ranks = data_ranks(layouts)
    # A data group lies within one pipeline stage.
    span: Floats = ranks * layouts.tensor
    batches = workload.micro_batches
    width = workload.training.footprint.nf4_bytes if workload.training.method == "qlora" else element_bytes(workload.training)

    def payload(updated: Floats, held: Floats) -> Floats:
        scattered = element_bytes(workload.training) * updated
        gathered = np.where(layouts.zero_stage == 3, 2.0 * batches * width * held, scattered)
        return scattered * np.where(layouts.zero_stage >= 2, batches, 1.0) + gathered

    beside = np.maximum(1.0, workload.cluster.link_domain / layouts.tensor)
    calls = np.choose(layouts.zero_stage, [2.0, 2.0, 1 + batches, 3 * batches * workload.layers])
    shared = _exchange(workload, payload(trained, dense), ranks, beside, span)
    one = ExchangeTime(shared.intra_s, shared.inter_s, shared.hops * calls)
    if isinstance(workload.model, Transformer) and workload.model.experts:
        # Each expert goes round its own replicas, which are fewer where experts are divided.
        routed = _exchange(workload, payload(trained_experts, experts), expert_replicas(layouts), beside, span)
        one = ExchangeTime(one.intra_s + routed.intra_s, one.inter_s + routed.inter_s, one.hops)
    return one.times(workload.backward_passes)
