"""How long one optimizer step takes on a layout, vectorised over layouts.

A step is micro-batches of matrix work at an achieved share of the peak, work bound by memory, the pipeline's bubble, exchanges
over the links and the optimizer's pass over memory. What is achieved of a data sheet is measured (`Utilisation`): one share of
the peak by accelerator family and precision, a few figures shared by all. The rest is arithmetic. Left out: congestion, odd
shapes' kernels, and how well a team tunes its software; they are in the spread of the measured share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.domain.hardware import Accelerator
from service.domain.model import Model, OtherNetwork, Transformer
from service.domain.run import FROZEN_BASE, RECOMPUTES, Cluster, Training
from service.domain.utilisation import Utilisation
from service.engine.flops import attention_width, forward_flops, hardware_flops, training_flops
from service.engine.layouts import Layouts, micro_batches, rounded_batch, stack_depth
from service.engine.memory import (
    NF4_BYTES,
    activation_bytes_per_token,
    element_bytes,
    expert_split,
    key_value_bytes_per_sequence,
    local_adapters,
    local_parameters,
    optimizer_bytes,
    sharded,
    weight_bytes,
)
from service.engine.parameters import expert_layer_count

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Step:
    """Seconds of one step by part, one position a layout. `total` is their sum but for a slower input pipeline."""

    compute: Floats
    memory: Floats
    launch: Floats
    network: Floats
    pipeline: Floats
    input: Floats
    batch: Floats

    @property
    def total(self) -> Floats:
        return np.maximum(self.compute + self.memory + self.launch + self.network + self.pipeline, self.input)

    def bound_by(self, index: int) -> str:
        """The part that decides: the input pipeline where it is slower than the machine, else the largest share."""
        if self.input[index] >= self.total[index]:
            return "input"
        parts = {name: float(getattr(self, name)[index]) for name in ("compute", "memory", "launch", "network", "pipeline")}
        return max(parts, key=lambda name: parts[name])


def peak_flops(accelerator: Accelerator, precision: str) -> float:
    """Dense peak in FLOP/s for the precision. KeyError where the accelerator has none (checked before the engine is called)."""
    return accelerator.peak_tflops[precision] * 1e12


def step(model: Model, training: Training, cluster: Cluster, utilisation: Utilisation, layouts: Layouts) -> Step:
    """Seconds of one optimizer step on every layout."""
    job = _Job(model, training, cluster, utilisation, layouts)
    count = micro_batches(training, layouts)
    slower = 1 + utilisation.straggler_share * np.log2(cluster.nodes)
    compute = slower * count * (_matmul_seconds(job) + _attention_seconds(job))
    traffic = slower * count * (_activation_seconds(job) + _dequantisation_seconds(job))
    exchange = slower * count * (_tensor_seconds(job) + _context_seconds(job) + _expert_seconds(job) + _stage_seconds(job))
    launch = np.maximum(0.0, count * _host_seconds(job) - compute - traffic - exchange)
    stage = compute + traffic + launch + exchange
    bubble = stage * (layouts.pipeline - 1) / (layouts.virtual_pipeline * count)
    reduction = slower * _gradient_seconds(job)
    exposed = np.maximum(reduction - utilisation.overlap_share * stage, reduction * (1 - utilisation.overlap_share))
    batch = rounded_batch(training, layouts)
    return Step(
        compute=compute,
        memory=traffic + _optimizer_seconds(job) + _generation_seconds(job),
        launch=launch,
        network=exchange + exposed,
        pipeline=bubble,
        input=_input_seconds(training, cluster, batch),
        batch=batch,
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """What every part of a step is computed from."""

    model: Model
    training: Training
    cluster: Cluster
    utilisation: Utilisation
    layouts: Layouts

    @property
    def tokens(self) -> Floats:
        """Tokens (or samples) of one micro-batch on one context rank."""
        tokens: Floats = self.layouts.micro_batch * self.training.seq_len / self.layouts.context
        return tokens

    @property
    def layers(self) -> Floats:
        """Layers of the fullest pipeline stage, in whole chunks of its virtual stages."""
        chunks = self.layouts.virtual_pipeline
        layers: Floats = np.ceil(stack_depth(self.model) / (self.layouts.pipeline * chunks)) * chunks
        return layers

    @property
    def nothing(self) -> Floats:
        return np.zeros(len(self.layouts))

    def stage_flops(self, per_token: Floats | float) -> Floats:
        """FLOPs of one micro-batch on one device of the fullest stage, of work that costs `per_token`."""
        flops: Floats = per_token * self.tokens * self.layers / (stack_depth(self.model) * self.layouts.tensor)
        return flops


def _attention_flops(model: Model, training: Training, layouts: Layouts) -> Floats:
    """FLOPs a token of scores and values, recomputation included, as `training.count_full_attention` counts them."""
    again = forward_flops(model, training).attention * (training.update_epochs if training.method == "rl" else 1.0)
    flops: Floats = training_flops(model, training).attention + np.array([0.0, again, again])[layouts.recompute]
    return flops


def _matmul_seconds(job: _Job) -> Floats:
    """Seconds of matrix work of one micro-batch on one pipeline stage; attention's core and sampled text apart.

    A product of an m x k and a k x n matrix reaches a share 1 / (1 + w (1/m + 1/n + 1/k)) of what large ones reach: its
    operands cross the memory bus at that ratio to its arithmetic (Williams et al. 2009, the roofline model).
    """
    peak = peak_flops(job.cluster.accelerator, job.training.precision)
    executed = hardware_flops(job.model, job.training, job.layouts) - training_flops(job.model, job.training).generation
    if isinstance(job.model, OtherNetwork):
        return job.stage_flops(executed) / (peak * (job.utilisation.other_share or job.utilisation.matmul_share))
    seconds: Floats = job.stage_flops(executed - _attention_flops(job.model, job.training, job.layouts)) / (
        peak * job.utilisation.matmul_share
    )
    return seconds * (1 + job.utilisation.half_width * _inverse_widths(job, job.model))


def _inverse_widths(job: _Job, model: Transformer) -> Floats:
    """1/m + 1/n + 1/k of a layer's widest product on one device: tokens, hidden size and its share of the feed-forward."""
    experts = model.experts
    inner = experts.ffn_hidden_size if experts else model.ffn_hidden_size
    # Tokens spread over the experts, but ranks of an expert group pool theirs.
    pooled = np.minimum(1.0, experts.experts_per_token * job.layouts.expert / experts.experts) if experts else 1.0
    split = np.where(job.layouts.expert > 1, 1, job.layouts.tensor)
    inverse: Floats = 1 / (job.tokens * pooled) + 1 / model.hidden_size + split / inner
    return inverse


def _attention_seconds(job: _Job) -> Floats:
    """Seconds of scores and values of one micro-batch on one stage, at a 16-bit rate whatever the precision of the weights.

    Flash attention leaves out the masked half of a causal square (Dao 2023, arXiv 2307.08691, section 3.1).
    """
    if isinstance(job.model, OtherNetwork):
        return job.nothing
    executed = replace(job.training, count_full_attention=not job.training.flash_attention)
    share = job.utilisation.attention_share or job.utilisation.matmul_share
    return job.stage_flops(_attention_flops(job.model, executed, job.layouts)) / (_sixteen_bit_peak(job) * share)


def _sixteen_bit_peak(job: _Job) -> float:
    peaks = job.cluster.accelerator.peak_tflops
    if job.training.precision in ("fp32", "tf32"):
        return peak_flops(job.cluster.accelerator, job.training.precision)
    return 1e12 * (peaks.get("bf16") or peaks.get("fp16") or peaks[job.training.precision])


def _activation_seconds(job: _Job) -> Floats:
    """Seconds that norms, residuals, activations and logits of one micro-batch take, all of them bound by memory."""
    if isinstance(job.model, OtherNetwork):
        return job.nothing
    tensor = job.layouts.tensor.astype(float)
    kept = activation_bytes_per_token(job.model, np.zeros_like(job.layouts.recompute), tensor, job.training.seq_len, flash=True)
    again = np.where(job.layouts.recompute == RECOMPUTES.index("full"), 4 / 3, 1.0)
    logits = 8.0 * job.model.vocab_size / tensor / job.layouts.pipeline if job.model.kind != "vit" else job.nothing
    moved = job.utilisation.activation_passes * job.tokens * (kept * job.layers * again + logits)
    if not job.training.flash_attention:
        # Fused kernels write scores, probabilities and dropout mask once forward and read them once backward.
        scores = 5.0 * job.model.attention_heads * job.training.seq_len / tensor
        moved += 2 * job.tokens * scores * job.layers * again
    seconds: Floats = moved / (job.cluster.accelerator.memory_bandwidth_gb_per_s * 1e9)
    return seconds


def _host_seconds(job: _Job) -> Floats:
    """Seconds the host takes to launch one micro-batch's kernels; devices wait for it only where they are faster."""
    again = np.where(job.layouts.recompute == RECOMPUTES.index("full"), 4 / 3, 1.0)
    seconds: Floats = job.utilisation.layer_overhead_s * job.layers * again
    return seconds


def _link_bytes_per_s(job: _Job, ranks: Floats, side_by_side: Floats | float = 1.0) -> Floats:
    """One direction's rate for a group of `ranks` accelerators: the fast link inside its domain, network cards beyond.

    `side_by_side`: members of the group in one node, whose cards a ring uses together.
    """
    across = job.cluster.internode_gbit_per_s / 8 * 1e9
    # A link nobody publishes is left out of the sum.
    inside = (job.cluster.accelerator.link_gb_per_s or 0.0) / 2 * 1e9 or across or np.inf
    domain = max(job.cluster.accelerators_per_node, job.utilisation.link_domain)
    beyond = np.minimum(across * side_by_side, inside) if across else inside
    rate: Floats = job.utilisation.link_share * np.where(ranks <= domain, inside, beyond)
    return rate


def _ring_seconds(job: _Job, payload: Floats, ranks: Floats, rate: Floats) -> Floats:
    """One gather or scatter of `payload` bytes round a ring: (ranks - 1) / ranks of it passes every link."""
    seconds: Floats = payload * (ranks - 1) / ranks / rate + np.where(ranks > 1, job.utilisation.collective_latency_s, 0.0)
    return seconds


def _tensor_seconds(job: _Job) -> Floats:
    """Four all-reduces of the activations a layer, six with full recomputation (Megatron-LM, arXiv 1909.08053, section 3)."""
    if isinstance(job.model, OtherNetwork):
        return job.nothing
    ranks = job.layouts.tensor.astype(float)
    rate = _link_bytes_per_s(job, ranks, job.cluster.accelerators_per_node)
    calls = np.where(job.layouts.recompute == RECOMPUTES.index("full"), 6, 4) * job.layers
    return calls * 2 * _ring_seconds(job, 2.0 * job.tokens * job.model.hidden_size, ranks, rate)


def _context_seconds(job: _Job) -> Floats:
    """Keys and values round the ring of context ranks, once forward, twice backward (Liu et al. 2023, arXiv 2310.01889, section 3)."""
    if isinstance(job.model, OtherNetwork):
        return job.nothing
    ranks = job.layouts.context.astype(float)
    width = attention_width(job.model) * job.model.kv_heads / job.model.attention_heads
    payload = 2.0 * job.layouts.micro_batch * job.training.seq_len * width / job.layouts.tensor
    return 3 * job.layers * _ring_seconds(job, payload, ranks, _link_bytes_per_s(job, ranks * job.layouts.tensor))


def _expert_seconds(job: _Job) -> Floats:
    """Dispatch and combine of every routed layer, forward and backward: four all-to-alls (GShard, arXiv 2006.16668, section 3.2)."""
    if isinstance(job.model, OtherNetwork) or job.model.experts is None:
        return job.nothing
    ranks = job.layouts.expert.astype(float)
    payload = 2.0 * job.tokens / job.layouts.tensor * job.model.hidden_size * job.model.experts.experts_per_token
    domain = np.minimum(ranks, max(job.cluster.accelerators_per_node, job.utilisation.link_domain))
    inside = _ring_seconds(job, payload * domain / ranks, domain, _link_bytes_per_s(job, domain))
    beyond = payload * (1 - domain / ranks) / _link_bytes_per_s(job, ranks)
    seconds: Floats = 4 * expert_layer_count(job.model) / job.layouts.pipeline * (inside + beyond)
    return seconds


def _stage_seconds(job: _Job) -> Floats:
    """Activations handed to the next pipeline stage and their gradients back, once a chunk of layers."""
    if isinstance(job.model, OtherNetwork):
        return job.nothing
    payload = 2.0 * job.tokens * job.model.hidden_size / job.layouts.tensor
    rate = _link_bytes_per_s(job, (job.layouts.tensor * job.layouts.pipeline).astype(float))
    one = payload / rate + job.utilisation.collective_latency_s
    return np.where(job.layouts.pipeline > 1, 2 * job.layouts.virtual_pipeline * one, 0.0)


def _gradient_seconds(job: _Job) -> Floats:
    """Reduce-scatter of gradients and gather of trained weights over the data ranks; ZeRO 3 gathers all weights twice, every micro-batch.

    A frozen base is exchanged under ZeRO 3 alone, at the width it is stored in; its adapters are what is trained.
    """
    layouts = job.layouts
    dense, experts = local_parameters(job.model, layouts)
    frozen = job.training.method in FROZEN_BASE
    trained, trained_experts = local_adapters(job.model, job.training, layouts) if frozen else (dense, experts)
    ranks = (layouts.data * layouts.context).astype(float)
    # Ranks of a data group sit in one node only when the whole machine is one.
    span: Floats = ranks * layouts.tensor
    replicas = ranks * layouts.tensor / expert_split(layouts)
    shared_experts = np.where(replicas > 1, 1.0, 0.0)
    width = NF4_BYTES if job.training.method == "qlora" else 2.0
    gathered = width * (dense + shared_experts * experts) * 2.0 * micro_batches(job.training, layouts)
    updated = trained + shared_experts * trained_experts
    payload = 2.0 * updated + np.where(layouts.zero_stage == 3, gathered, 2.0 * updated)
    beside = np.maximum(1.0, job.cluster.accelerators_per_node / layouts.tensor)
    return _ring_seconds(job, payload, ranks, _link_bytes_per_s(job, span, beside))


def _optimizer_seconds(job: _Job) -> Floats:
    """One pass of the optimizer: weights, gradients and its states of a rank's share are read and written once."""
    if job.training.method in FROZEN_BASE:
        return job.nothing
    share = sharded(local_parameters(job.model, job.layouts), job.layouts, 1)
    moved = 2 * (2 * element_bytes(job.training) + optimizer_bytes(job.training)) * share
    seconds: Floats = moved / (job.cluster.accelerator.memory_bandwidth_gb_per_s * 1e9)
    return seconds


def _dequantisation_seconds(job: _Job) -> Floats:
    """Seconds to unfold QLoRA's 4-bit base to 16 bit for one micro-batch: read, write and read again, in every pass over the weights
    (forward, backward, recomputation; Dettmers et al. 2023, arXiv 2305.14314, equation 5).
    """
    if job.training.method != "qlora":
        return job.nothing
    passes = np.where(job.layouts.recompute == RECOMPUTES.index("full"), 3.0, 2.0)
    dense, experts = local_parameters(job.model, job.layouts)
    seconds: Floats = passes * (NF4_BYTES + 2 * 2.0) * (dense + experts) / (job.cluster.accelerator.memory_bandwidth_gb_per_s * 1e9)
    return seconds


def _generation_seconds(job: _Job) -> Floats:
    """Seconds of sampling a step's answers: each token reads the weights once for the whole batch, and every sequence's keys and values.

    Roofline of memory and matrix work (Pope et al. 2022, arXiv 2211.05102, section 2) on the tensor and context ranks of a
    replica; pipeline stages wait for each other, because a token needs the one before it.
    """
    model, training, layouts = job.model, job.training, job.layouts
    if training.method != "rl" or isinstance(model, OtherNetwork):
        return job.nothing
    devices = (layouts.tensor * layouts.context).astype(float)
    sequences = rounded_batch(training, layouts) / layouts.data
    dense, experts = local_parameters(model, layouts)
    weights = (dense * layouts.tensor + experts * expert_split(layouts)) * layouts.pipeline * min(weight_bytes(training), 2.0)
    key_value = key_value_bytes_per_sequence(model, training.seq_len / 2)
    bandwidth = job.cluster.accelerator.memory_bandwidth_gb_per_s * 1e9 * devices
    read = (weights + sequences * key_value) / bandwidth
    multiply = sequences * forward_flops(model, training).trained / (peak_flops(job.cluster.accelerator, training.precision) * devices)
    seconds: Floats = training.response_tokens * np.maximum(read, multiply)
    return seconds


def _input_seconds(training: Training, cluster: Cluster, batch: Floats) -> Floats:
    if training.input_tokens_per_s_per_node is None:
        return np.zeros(len(batch))
    return batch * training.seq_len / (training.input_tokens_per_s_per_node * cluster.nodes)
