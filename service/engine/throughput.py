"""How long one optimizer step takes on a layout, vectorised over layouts.

A step is micro-batches of matrix work at an achieved share of the peak, the pipeline's bubble, exchanges over the links and
the optimizer's pass over memory. The achieved share is a measured one (`Utilisation`), by accelerator family and precision;
everything else is arithmetic on data-sheet figures. What is left out: congestion, stragglers, kernels' own inefficiencies
at odd shapes; they are in the spread of the measured share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.hardware import Accelerator
from service.domain.model import Model, OtherNetwork
from service.domain.quantity import Range
from service.domain.run import RECOMPUTES, Cluster, Training
from service.engine.flops import TrainingFlops, attention_width, forward_flops, training_flops
from service.engine.layouts import Layouts, micro_batches, rounded_batch, stack_depth
from service.engine.memory import expert_split, local_parameters, weight_bytes
from service.engine.parameters import expert_layer_count

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Utilisation:
    """What an accelerator family achieves at a precision, from measurements.

    `matmul_share`: share of the dense peak that large matrix work reaches. `half_width`: matrix width (elements on one
    device) at which half of that is reached. `link_share`: share of a link's rate that collectives reach. `overlap_share`:
    part of the data-parallel exchange hidden behind the backward pass. `layer_overhead_s`: host and launch time of one
    layer's forward and backward. `spread`: measured over predicted throughput, p10 to p90, p50 near 1.
    """

    matmul_share: float
    half_width: float
    link_share: float
    overlap_share: float
    layer_overhead_s: float
    spread: Range
    source: str
    borrowed: bool = False


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
    flops = training_flops(model, training)
    count = micro_batches(training, layouts)
    tokens = layouts.micro_batch * training.seq_len
    compute = count * _matmul_seconds(model, training, cluster, utilisation, layouts, flops)
    launch = count * utilisation.layer_overhead_s * stack_depth(model) / layouts.pipeline
    exchange = count * (
        _tensor_seconds(model, training, cluster, utilisation, layouts)
        + _context_seconds(model, training, cluster, utilisation, layouts)
        + _expert_seconds(model, cluster, utilisation, layouts, tokens)
    )
    stage = compute + launch + exchange
    bubble = stage * (layouts.pipeline - 1) / (layouts.virtual_pipeline * count)
    reduction = _gradient_seconds(model, training, cluster, utilisation, layouts)
    exposed = np.maximum(reduction - utilisation.overlap_share * stage, reduction * (1 - utilisation.overlap_share))
    batch = rounded_batch(training, layouts)
    return Step(
        compute=compute,
        memory=_optimizer_seconds(model, training, cluster, layouts) + _generation_seconds(model, training, cluster, layouts),
        launch=launch,
        network=exchange + exposed,
        pipeline=bubble,
        input=_input_seconds(training, cluster, batch),
        batch=batch,
    )


def recomputed_share(layouts: Layouts, attention: float, forward: float) -> Floats:
    """Forward passes run again in the backward: all (full), the attention core (selective), none."""
    again = np.array([0.0, attention / forward if forward else 0.0, 1.0])
    return again[layouts.recompute]


def hardware_flops(model: Model, training: Training, layouts: Layouts) -> Floats:
    """FLOPs a token that the machine executes: the model's own and those recomputed."""
    one = forward_flops(model, training)
    flops = training_flops(model, training)
    passes = flops.backward / 2 if flops.backward else one.trained
    executed: Floats = flops.total + recomputed_share(layouts, one.attention, one.trained) * passes
    return executed


def _matmul_seconds(
    model: Model, training: Training, cluster: Cluster, utilisation: Utilisation, layouts: Layouts, flops: TrainingFlops
) -> Floats:
    """Seconds of matrix work of one micro-batch on one pipeline stage, sampled text apart (it is bound by memory)."""
    executed = hardware_flops(model, training, layouts) - flops.generation
    on_device = executed * layouts.micro_batch * training.seq_len / (layouts.tensor * layouts.context * layouts.pipeline)
    width = _matrix_width(model, training, layouts)
    share = utilisation.matmul_share * width / (width + utilisation.half_width)
    uneven = np.ceil(stack_depth(model) / layouts.pipeline) * layouts.pipeline / stack_depth(model)
    seconds: Floats = uneven * on_device / (peak_flops(cluster.accelerator, training.precision) * share)
    return seconds


def _matrix_width(model: Model, training: Training, layouts: Layouts) -> Floats:
    """The width that decides how well a device's matrices fill it: the narrower of hidden size and its share of the feed-forward."""
    if isinstance(model, OtherNetwork):
        return np.full(len(layouts), np.inf)
    inner = model.experts.ffn_hidden_size if model.experts else model.ffn_hidden_size
    tokens = layouts.micro_batch * training.seq_len / layouts.context
    return np.minimum(np.minimum(model.hidden_size, inner / np.minimum(layouts.tensor, 16)), tokens)


def _link_bytes_per_s(cluster: Cluster, ranks: Floats, utilisation: Utilisation) -> Floats:
    """One direction's rate for a group of `ranks` accelerators: the node's link inside it, the network card's beyond."""
    inside = (cluster.accelerator.link_gb_per_s or 0.0) / 2 * 1e9
    across = cluster.internode_gbit_per_s / 8 * 1e9
    rate = np.where(ranks <= cluster.accelerators_per_node, inside or across, across or inside)
    rate_share: Floats = utilisation.link_share * rate
    return rate_share


def _tensor_seconds(model: Model, training: Training, cluster: Cluster, utilisation: Utilisation, layouts: Layouts) -> Floats:
    """Four all-reduces of the activations a layer, six with full recomputation (Megatron-LM, arXiv 1909.08053, section 3)."""
    if isinstance(model, OtherNetwork):
        return np.zeros(len(layouts))
    ranks = layouts.tensor.astype(float)
    payload = 2.0 * layouts.micro_batch * training.seq_len / layouts.context * model.hidden_size
    calls = np.where(layouts.recompute == RECOMPUTES.index("full"), 6, 4) * stack_depth(model) / layouts.pipeline
    seconds: Floats = calls * payload * 2 * (ranks - 1) / ranks / _link_bytes_per_s(cluster, ranks, utilisation)
    return seconds


def _context_seconds(model: Model, training: Training, cluster: Cluster, utilisation: Utilisation, layouts: Layouts) -> Floats:
    """Keys and values round the ring of context ranks, once forward, twice backward (Liu et al. 2023, arXiv 2310.01889, section 3)."""
    if isinstance(model, OtherNetwork):
        return np.zeros(len(layouts))
    ranks = layouts.context.astype(float)
    width = attention_width(model) * model.kv_heads / model.attention_heads
    payload = 2.0 * layouts.micro_batch * training.seq_len * width / layouts.tensor
    calls = 3 * stack_depth(model) / layouts.pipeline
    seconds: Floats = calls * payload * (ranks - 1) / ranks / _link_bytes_per_s(cluster, ranks * layouts.tensor.astype(float), utilisation)
    return seconds


def _expert_seconds(model: Model, cluster: Cluster, utilisation: Utilisation, layouts: Layouts, tokens: NDArray[np.int64]) -> Floats:
    """Dispatch and combine of every routed layer, forward and backward: four all-to-alls (GShard, arXiv 2006.16668, section 3.2)."""
    if isinstance(model, OtherNetwork) or model.experts is None:
        return np.zeros(len(layouts))
    ranks = layouts.expert.astype(float)
    payload = 2.0 * tokens / (layouts.context * layouts.tensor) * model.hidden_size * model.experts.experts_per_token
    calls = 4 * expert_layer_count(model) / layouts.pipeline
    seconds: Floats = calls * payload * (ranks - 1) / ranks / _link_bytes_per_s(cluster, ranks, utilisation)
    return seconds


def _gradient_seconds(model: Model, training: Training, cluster: Cluster, utilisation: Utilisation, layouts: Layouts) -> Floats:
    """Reduce-scatter of gradients and gather of weights over the data ranks; ZeRO 3 gathers weights twice more, every micro-batch."""
    dense, experts = local_parameters(model, layouts)
    ranks = (layouts.data * layouts.context).astype(float)
    # Ranks of a data group sit in one node only when the whole machine is one.
    span: Floats = ranks * layouts.tensor
    trained = 0.0 if training.method in ("lora", "qlora") else 2.0
    gathers = np.where(layouts.zero_stage == 3, 2.0 * micro_batches(training, layouts), 1.0)
    replicas = ranks * layouts.tensor / expert_split(layouts)
    volume = (trained + 2.0 * gathers) * (dense + np.where(replicas > 1, experts, 0.0)) * (ranks - 1) / ranks
    seconds: Floats = volume / _link_bytes_per_s(cluster, span, utilisation)
    return seconds


def _optimizer_seconds(model: Model, training: Training, cluster: Cluster, layouts: Layouts) -> Floats:
    """One pass of the optimizer over its states: read and write 16 bytes a parameter, sharded with the ZeRO stage."""
    dense, experts = local_parameters(model, layouts)
    if training.method in ("lora", "qlora"):
        return np.zeros(len(layouts))
    ranks = np.where(layouts.zero_stage >= 1, layouts.data * layouts.context, 1).astype(float)
    seconds: Floats = 2 * 16.0 * (dense + experts) / ranks / (cluster.accelerator.memory_bandwidth_gb_per_s * 1e9)
    return seconds


def _generation_seconds(model: Model, training: Training, cluster: Cluster, layouts: Layouts) -> Floats:
    """Seconds of sampling a step's answers: each token reads the weights once for the whole batch, and every sequence's keys and values.

    Roofline of memory and matrix work on tensor * pipeline devices a replica (Pope et al. 2022, arXiv 2211.05102, section 2).
    """
    if training.method != "rl" or isinstance(model, OtherNetwork):
        return np.zeros(len(layouts))
    devices = (layouts.tensor * layouts.pipeline * layouts.context).astype(float)
    sequences = rounded_batch(training, layouts) / layouts.data
    dense, experts = local_parameters(model, layouts)
    weights = (dense + experts) * layouts.tensor * layouts.pipeline * min(weight_bytes(training), 2.0)
    key_value = attention_width(model) * model.kv_heads / model.attention_heads * model.layers * 2.0 * training.seq_len / 2
    bandwidth = cluster.accelerator.memory_bandwidth_gb_per_s * 1e9 * devices
    read = (weights + sequences * key_value) / bandwidth
    multiply = sequences * forward_flops(model, training).trained / (peak_flops(cluster.accelerator, training.precision) * devices)
    seconds: Floats = training.response_tokens * np.maximum(read, multiply)
    return seconds


def _input_seconds(training: Training, cluster: Cluster, batch: Floats) -> Floats:
    if training.input_tokens_per_s_per_node is None:
        return np.zeros(len(batch))
    return batch * training.seq_len / (training.input_tokens_per_s_per_node * cluster.nodes)
