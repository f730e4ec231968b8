"""Memory on the fullest accelerator, by part, vectorised over layouts.

Weights and optimizer states after Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054, section 3); activations after
Korthikanti et al. 2022 (arXiv 2205.05198, section 4), restated in tensor sizes so that grouped heads, gated feed-forwards
and experts count right: for their GPT shape the sum is their 34 * s * b * h bytes, quadratic term apart.
Left out: fragmentation beyond the reserve, and collectives' buffers that frameworks allocate on demand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.model import Model, OtherNetwork, Transformer
from service.domain.run import FROZEN_BASE, RECOMPUTES, Optimizer, Training
from service.engine.flops import adapter_parameters, attention_width
from service.engine.layouts import Layouts
from service.engine.parameters import count_parameters

Floats = NDArray[np.float64]
GIB = 2.0**30

# Bytes a parameter of optimizer state, beside the weights and gradients themselves: (master copy, moments).
# adamw: fp32 master, two fp32 moments (ZeRO, section 3.1). adamw_8bit: fp32 master, two 8-bit moments (Dettmers et al. 2021,
# arXiv 2110.02861). adafactor: fp32 master, factored second moment (Shazeer & Stern 2018, arXiv 1804.04235).
# muon: fp32 master and one fp32 momentum (Liu et al. 2025, arXiv 2502.16982, section 2). sgd: with one fp32 momentum.
OPTIMIZER_BYTES: dict[Optimizer, tuple[float, float]] = {
    "adamw": (4, 8),
    "adamw_8bit": (4, 2),
    "adafactor": (4, 0.1),
    "muon": (4, 4),
    "sgd": (4, 4),
}
# Bytes a weight in 4-bit NormalFloat with double quantisation: 4 bits and 0.127 bits of constants (Dettmers et al. 2023,
# arXiv 2305.14314, section 3).
NF4_BYTES = (4 + 0.127) / 8
# What the framework and the driver take before the first tensor: CUDA context, cuBLAS and NCCL workspaces
# (about 1.3 GiB on one device, arXiv 1910.02054 calls it the residual state), and what fragmentation costs.
RESERVE_BYTES = 1.5 * GIB
FRAGMENTATION_SHARE = 0.03


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on the fullest accelerator, one position a layout; `parts` add up to `total`."""

    parts: dict[str, Floats]

    @property
    def total(self) -> Floats:
        total: Floats = np.sum(np.stack(list(self.parts.values())), axis=0)
        return total


def weight_bytes(training: Training) -> float:
    """Bytes of one weight as the arithmetic reads it; fp8 and fp4 recipes keep a 16-bit copy beside the quantised one."""
    if training.precision in ("fp32", "tf32"):
        return 4.0
    quantised = {"fp8": 1.0, "mxfp8": 1.03, "int8": 1.0, "nvfp4": 0.56, "fp4": 0.5}
    return 2.0 + quantised.get(training.precision, 0.0)


def memory(model: Model, training: Training, layouts: Layouts) -> Memory:
    """What a run takes on its fullest accelerator, in bytes by part."""
    parts = states(model, training, layouts)
    if isinstance(model, OtherNetwork):
        parts["activations"] = other_activations(model, layouts)
    else:
        parts["activations"] = activations(model, training, layouts)
        parts["logits"] = logits(model, layouts, training.seq_len if not training.decoder_seq_len else training.decoder_seq_len)
        parts["buffers"] = buffers(model, layouts)
        if training.method == "rl":
            parts["kv_cache"] = kv_cache(model, training, layouts)
    parts["helpers"] = helpers(model, training, layouts)
    parts["reserve"] = RESERVE_BYTES + FRAGMENTATION_SHARE * np.sum(np.stack(list(parts.values())), axis=0)
    return Memory(parts)


def local_parameters(model: Model, layouts: Layouts) -> tuple[Floats, Floats]:
    """Weights of the fullest pipeline stage on one tensor rank: (shared by all data ranks, experts on this rank)."""
    if isinstance(model, OtherNetwork):
        return (model.params or 0.0) / (layouts.tensor * layouts.pipeline), np.zeros(len(layouts))
    counts = count_parameters(model)
    depth = model.layers + model.decoder_layers
    per_stage = np.ceil(depth / layouts.pipeline) / depth
    tables = counts.embedding + counts.head
    # The first stage holds the input table, the last the head; without a pipeline one device holds both.
    edge = np.where(layouts.pipeline > 1, max(counts.embedding, counts.head), tables)
    body = counts.total - tables - counts.expert_stored
    dense = (body * per_stage + edge) / layouts.tensor
    return dense, counts.expert_stored * per_stage / expert_split(layouts)


def expert_split(layouts: Layouts) -> Floats:
    """Over how many ranks one set of experts is spread: the expert ranks, or the tensor ranks where those are more."""
    return np.maximum(layouts.expert, layouts.tensor).astype(float)


def states(model: Model, training: Training, layouts: Layouts) -> dict[str, Floats]:
    """Weights, gradients and optimizer states in bytes, sharded by the ZeRO stage over the data and context ranks."""
    dense, experts = local_parameters(model, layouts)
    ranks = (layouts.data * layouts.context).astype(float)
    expert_ranks = np.maximum(ranks * layouts.tensor / expert_split(layouts), 1.0)
    held = weight_bytes(training)

    def sharded(bytes_per_weight: float, from_stage: int) -> Floats:
        split = layouts.zero_stage >= from_stage
        return bytes_per_weight * (dense / np.where(split, ranks, 1.0) + experts / np.where(split, expert_ranks, 1.0))

    if training.method in FROZEN_BASE:
        return adapter_states(model, training, layouts, sharded(NF4_BYTES if training.method == "qlora" else held, 3))
    master, moments = OPTIMIZER_BYTES[training.optimizer]
    master = 0.0 if training.precision in ("fp32", "tf32") else master
    gradient = 4.0 if training.precision in ("fp32", "tf32") else 2.0
    return {"weights": sharded(held, 3), "gradients": sharded(gradient, 2), "optimizer": sharded(master + moments, 1)}


def adapter_states(model: Model, training: Training, layouts: Layouts, base: Floats) -> dict[str, Floats]:
    """Frozen weights, and the adapters with their gradients and optimizer states (16-bit adapters, fp32 master)."""
    adapters = adapter_parameters(model, training.lora_rank) / (layouts.tensor * layouts.pipeline)
    return {
        "weights": base + 2.0 * adapters,
        "gradients": 2.0 * adapters,
        "optimizer": sum(OPTIMIZER_BYTES[training.optimizer]) * adapters,
    }


def activation_bytes_per_token(model: Transformer, recompute: NDArray[np.int64], tensor: Floats, seq_len: float, *, flash: bool) -> Floats:
    """Bytes of one layer's activations for one token on one tensor rank, with sequence parallelism.

    Kept for the backward pass, 2 bytes an element: both norms' inputs and outputs, q, k, v, attention's output, the
    feed-forward's inner tensors, two 1-byte dropout masks counted by Korthikanti et al. left to models that have them.
    Without flash attention the scores add 5 bytes * heads * s, unless recomputed selectively.
    """
    hidden = model.hidden_size
    key_value = 2 * model.kv_heads * model.head_dim if model.latent is None else attention_width(model)
    query_and_output = attention_width(model)
    inner = (3 if model.gated_ffn else 2) * _active_width(model)
    routed = 2 * hidden * model.experts.experts_per_token if model.experts else 0
    kept = 2.0 * (4 * hidden + query_and_output + key_value + inner + routed)
    scores = 0.0 if flash else 5.0 * model.attention_heads * seq_len
    per_layer = np.where(recompute == RECOMPUTES.index("none"), kept + scores, kept)
    return np.where(recompute == RECOMPUTES.index("full"), 2.0 * hidden, per_layer) / tensor


def _active_width(model: Transformer) -> float:
    if model.experts is None:
        return float(model.ffn_hidden_size)
    shared = model.experts.shared_experts * (model.experts.shared_ffn_hidden_size or model.experts.ffn_hidden_size)
    return float(model.experts.experts_per_token * model.experts.ffn_hidden_size + shared)


def activations(model: Transformer, training: Training, layouts: Layouts) -> Floats:
    """Bytes of activations on the first pipeline stage, which holds the most micro-batches in flight.

    1F1B keeps `pipeline` micro-batches of layers/pipeline layers; interleaving keeps 1 + (p - 1) / (p v) times that
    (Korthikanti et al. 2022, section 4.2.3). Full recomputation adds one layer's working set.
    """
    tokens = layouts.micro_batch * training.seq_len / layouts.context
    tensor = layouts.tensor.astype(float)
    flash = training.flash_attention
    per_layer = activation_bytes_per_token(model, layouts.recompute, tensor, training.seq_len, flash=flash)
    micro_batches = np.ceil(training.global_batch / (layouts.data * layouts.micro_batch))
    in_flight = np.minimum(layouts.pipeline, micro_batches)
    interleaved = np.where(layouts.virtual_pipeline > 1, 1 + (layouts.pipeline - 1) / (layouts.pipeline * layouts.virtual_pipeline), 1.0)
    depth = model.layers + model.decoder_layers * max(training.decoder_seq_len, 1) / training.seq_len
    stored = tokens * per_layer * np.ceil(depth / layouts.pipeline) * in_flight * interleaved
    nothing_recomputed = np.zeros_like(layouts.recompute)
    working = tokens * activation_bytes_per_token(model, nothing_recomputed, tensor, training.seq_len, flash=flash)
    return stored + np.where(layouts.recompute == RECOMPUTES.index("full"), working, 0.0)


def logits(model: Transformer, layouts: Layouts, seq_len: float) -> Floats:
    """Bytes of the last stage's logits: 16 bit, their fp32 copy and its gradient, split over tensor and context ranks."""
    vocabulary = model.vocab_size if model.kind != "vit" else 0
    return 8.0 * layouts.micro_batch * seq_len * vocabulary / (layouts.tensor * layouts.context)


def buffers(model: Transformer, layouts: Layouts) -> Floats:
    """Bytes of 16-bit weights gathered under ZeRO 3: the layer at work, the next one, and the larger table."""
    counts = count_parameters(model)
    layer = (counts.total - counts.embedding - counts.head - counts.expert_stored) / (model.layers + model.decoder_layers)
    dense = (2 * layer + max(counts.head, counts.embedding)) / layouts.tensor
    experts = 2 * counts.expert_stored / model.layers / expert_split(layouts)
    return np.where(layouts.zero_stage == 3, 2.0 * (dense + experts), 0.0)


def kv_cache(model: Transformer, training: Training, layouts: Layouts) -> Floats:
    """Bytes of keys and values while an RL step samples its answers, one micro-batch at a time."""
    if model.latent is not None:
        width = float(model.latent.kv_lora_rank + model.latent.qk_rope_head_dim)
    else:
        width = 2.0 * model.kv_heads * model.head_dim
    return 2.0 * width * model.layers * layouts.micro_batch * training.seq_len / (layouts.tensor * layouts.pipeline)


def helpers(model: Model, training: Training, layouts: Layouts) -> Floats:
    """Bytes of 16-bit weights of teacher, reward model and reference, split as the trained model's weights are."""
    beside = [helper for helper in (training.helpers.teacher, training.helpers.reward_model) if helper is not None]
    if training.helpers.reference:
        beside.append(model)
    total = sum(parameter_total(helper) for helper in beside)
    split = layouts.tensor * layouts.pipeline * np.where(layouts.zero_stage == 3, layouts.data * layouts.context, 1)
    return 2.0 * total / split


def parameter_total(model: Model) -> float:
    """All weights of any network; zero where a network stated only by its FLOPs does not say."""
    return count_parameters(model).total if isinstance(model, Transformer) else model.params or 0.0


def other_activations(model: OtherNetwork, layouts: Layouts) -> Floats:
    """Bytes of a sample's activations times the micro-batch; zero where the preset does not know them (and says so)."""
    return (model.activation_bytes_per_sample or 0.0) * layouts.micro_batch.astype(float)
