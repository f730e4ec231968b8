"""Memory on the fullest accelerator, by part, vectorised over layouts.

Weights and optimizer states after Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054, section 3); activations after
Korthikanti et al. 2022 (arXiv 2205.05198, section 4), restated in tensor sizes so that grouped heads, gated feed-forwards
and experts count right: for their GPT shape the sum is their 34 * s * b * h bytes, quadratic term apart.
Left out: fragmentation beyond the reserve, and collectives' buffers that frameworks allocate on demand. With a pipeline the
parts are those of the first stage, with the last stage's logits on top: up to that much too high, never too low.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.model import Model, OtherNetwork, Transformer
from service.domain.run import FROZEN_BASE, RECOMPUTES, Optimizer, Training
from service.engine.flops import attention_width, expert_adapter_parameters, helper_networks, mean_context, shared_adapter_parameters
from service.engine.layouts import Layouts, micro_batches
from service.engine.parameters import count_parameters, expert_layer_count

Floats = NDArray[np.float64]
GIB = 2.0**30
FULL_WIDTH = ("fp32", "tf32")

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
# Bytes of a weight's quantised copy with its share of the scales: one 8-bit scale for 32 elements in MXFP8 (OCP Microscaling
# Formats 1.0, section 5.2), one for 16 in NVFP4 (NVIDIA Blackwell architecture brief).
QUANTISED_BYTES: dict[str, float] = {"fp8": 1.0, "mxfp8": 1 + 1 / 32, "int8": 1.0, "nvfp4": 0.5 + 1 / 16, "fp4": 0.5}
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
    if training.precision in FULL_WIDTH:
        return 4.0
    return 2.0 + QUANTISED_BYTES.get(training.precision, 0.0)


def element_bytes(training: Training) -> float:
    """Bytes of one element of an activation."""
    return 4.0 if training.precision in FULL_WIDTH else 2.0


def optimizer_bytes(training: Training) -> float:
    """Bytes a trained parameter of optimizer state: moments, and the fp32 master copy where the weights are narrower."""
    master, moments = OPTIMIZER_BYTES[training.optimizer]
    return moments if training.precision in FULL_WIDTH else master + moments


def memory(model: Model, training: Training, layouts: Layouts) -> Memory:
    """What a run takes on its fullest accelerator, in bytes by part."""
    parts = states(model, training, layouts)
    if isinstance(model, OtherNetwork):
        parts["activations"] = other_activations(model, training, layouts)
    else:
        parts["activations"] = activations(model, training, layouts)
        parts["logits"] = logits(model, training, layouts)
        parts["buffers"] = buffers(model, training, layouts)
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
    per_stage = stage_layers(model, layouts) / (model.layers + model.decoder_layers)
    body = counts.total - counts.embedding - counts.head - counts.expert_stored
    dense = body * per_stage / layouts.tensor + local_tables(model, layouts)
    return dense, counts.expert_stored * routed_share(model, layouts) / expert_split(layouts)


def routed_share(model: Transformer, layouts: Layouts) -> Floats:
    """Share of the model's routed layers on the pipeline stage that has most of them."""
    routed = expert_layer_count(model)
    if model.experts is None or not routed:
        return np.zeros(len(layouts))
    on_stage = np.ceil(stage_layers(model, layouts) / model.experts.moe_every)
    share: Floats = np.minimum(on_stage, routed) / routed
    return share


def stage_layers(model: Transformer, layouts: Layouts) -> Floats:
    """Layers of the fullest pipeline stage."""
    return np.ceil((model.layers + model.decoder_layers) / layouts.pipeline)


def local_tables(model: Transformer, layouts: Layouts) -> Floats:
    """Weights of embedding and head on one tensor rank: the first stage holds the one, the last the other; without a pipeline both."""
    counts = count_parameters(model)
    both = counts.embedding + counts.head
    return np.where(layouts.pipeline > 1, max(counts.embedding, counts.head), both) / layouts.tensor


def expert_split(layouts: Layouts) -> Floats:
    """Over how many ranks one set of experts is spread: the expert ranks, or the tensor ranks where those are more."""
    return np.maximum(layouts.expert, layouts.tensor).astype(float)


def states(model: Model, training: Training, layouts: Layouts) -> dict[str, Floats]:
    """Weights, gradients and optimizer states in bytes, sharded by the ZeRO stage over the data and context ranks."""
    local = local_parameters(model, layouts)
    if training.method in FROZEN_BASE:
        return adapter_states(model, training, layouts, frozen_weights(model, training, layouts))
    return {
        "weights": weight_bytes(training) * sharded(local, layouts, 3),
        "gradients": element_bytes(training) * sharded(local, layouts, 2),
        "optimizer": optimizer_bytes(training) * sharded(local, layouts, 1),
    }


def sharded(local: tuple[Floats, Floats], layouts: Layouts, from_stage: int) -> Floats:
    """Of (shared, expert) weights on a rank, how many it keeps when ZeRO divides them from that stage on over their replicas."""
    dense, experts = local
    ranks = (layouts.data * layouts.context).astype(float)
    expert_ranks = np.maximum(ranks * layouts.tensor / expert_split(layouts), 1.0)
    split = layouts.zero_stage >= from_stage
    return dense / np.where(split, ranks, 1.0) + experts / np.where(split, expert_ranks, 1.0)


def frozen_weights(model: Model, training: Training, layouts: Layouts) -> Floats:
    """Bytes of the frozen base of LoRA and QLoRA. QLoRA keeps embeddings and head in 16 bit and quantises the layers' matrices alone."""
    dense, experts = local_parameters(model, layouts)
    if training.method != "qlora" or isinstance(model, OtherNetwork):
        held = NF4_BYTES if training.method == "qlora" else weight_bytes(training)
        return held * sharded((dense, experts), layouts, 3)
    tables = local_tables(model, layouts)
    none = np.zeros(len(layouts))
    return NF4_BYTES * sharded((dense - tables, experts), layouts, 3) + 2.0 * sharded((tables, none), layouts, 3)


def adapter_states(model: Model, training: Training, layouts: Layouts, base: Floats) -> dict[str, Floats]:
    """Frozen weights, and the adapters with their gradients and optimizer states (16-bit adapters, fp32 master)."""
    adapters = local_adapters(model, training, layouts)
    element = element_bytes(training)
    return {
        "weights": base + element * sharded(adapters, layouts, 3),
        "gradients": element * sharded(adapters, layouts, 2),
        "optimizer": optimizer_bytes(training) * sharded(adapters, layouts, 1),
    }


def local_adapters(model: Model, training: Training, layouts: Layouts) -> tuple[Floats, Floats]:
    """Adapter weights of the fullest pipeline stage on one tensor rank: (met by every token, those of the experts on this rank)."""
    if isinstance(model, OtherNetwork):
        return np.zeros(len(layouts)), np.zeros(len(layouts))
    per_stage = stage_layers(model, layouts) / (model.layers + model.decoder_layers)
    dense = shared_adapter_parameters(model, training.lora_rank) * per_stage / layouts.tensor
    number = model.experts.experts if model.experts else 0
    experts = number * expert_adapter_parameters(model, training.lora_rank) * routed_share(model, layouts)
    return dense, experts / expert_split(layouts)


def activation_bytes_per_token(model: Transformer, recompute: NDArray[np.int64], tensor: Floats, seq_len: float, *, flash: bool) -> Floats:
    """Bytes of one layer's activations for one token on one tensor rank, in 16 bit, with sequence parallelism.

    Kept for the backward pass, 2 bytes an element: both norms' inputs and outputs, q, k, v, attention's output, the
    feed-forward's inner tensors; 32 * h for the GPT shape, for Korthikanti et al. count two 1-byte dropout masks besides.
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
    tokens = element_bytes(training) / 2 * layouts.micro_batch * training.seq_len / layouts.context
    tensor = layouts.tensor.astype(float)
    flash = training.flash_attention
    per_layer = activation_bytes_per_token(model, layouts.recompute, tensor, training.seq_len, flash=flash)
    in_flight = np.minimum(layouts.pipeline, micro_batches(training, layouts))
    interleaved = np.where(layouts.virtual_pipeline > 1, 1 + (layouts.pipeline - 1) / (layouts.pipeline * layouts.virtual_pipeline), 1.0)
    on_stage = stage_layers(model, layouts)
    decoders = np.maximum(on_stage - model.layers, 0.0)
    ratio = training.decoder_seq_len / training.seq_len
    cross = decoders * cross_attention_bytes(model, layouts.recompute, ratio) / tensor
    stored: Floats = tokens * (per_layer * (on_stage - decoders + ratio * decoders) + cross) * in_flight * interleaved
    nothing_recomputed = np.zeros_like(layouts.recompute)
    working = tokens * activation_bytes_per_token(model, nothing_recomputed, tensor, training.seq_len, flash=flash)
    return stored + np.where(layouts.recompute == RECOMPUTES.index("full"), working, 0.0)


def cross_attention_bytes(model: Transformer, recompute: NDArray[np.int64], ratio: float) -> Floats:
    """Bytes a token of the encoder that a decoder layer's cross-attention keeps: keys and values of the encoder's tokens, and for
    the decoder's `ratio` times as many its norm, queries and output.
    """
    key_value = 2 * model.kv_heads * model.head_dim
    kept = 2.0 * (key_value + ratio * (2 * model.hidden_size + attention_width(model)))
    return np.where(recompute == RECOMPUTES.index("full"), 0.0, kept)


def logits(model: Transformer, training: Training, layouts: Layouts) -> Floats:
    """Bytes of the last stage's logits: 16 bit, their fp32 copy and its gradient, split over tensor and context ranks.

    A teacher run beside adds its own, 16 bit and fp32. A ViT's are one row an image.
    """
    rows = training.decoder_seq_len if model.decoder_layers else training.seq_len if model.kind != "vit" else 1
    width = 8.0 * model.vocab_size
    if isinstance(training.helpers.teacher, Transformer):
        width += 6.0 * training.helpers.teacher.vocab_size
    return width * layouts.micro_batch * rows / (layouts.tensor * layouts.context)


def buffers(model: Transformer, training: Training, layouts: Layouts) -> Floats:
    """Bytes of weights gathered under ZeRO 3, as wide as activations: the layer at work, the next one, and the larger table."""
    counts = count_parameters(model)
    layer = (counts.total - counts.embedding - counts.head - counts.expert_stored) / (model.layers + model.decoder_layers)
    dense = (2 * layer + max(counts.head, counts.embedding)) / layouts.tensor
    experts = 2 * counts.expert_stored / max(expert_layer_count(model), 1) / expert_split(layouts)
    return np.where(layouts.zero_stage == 3, element_bytes(training) * (dense + experts), 0.0)


def kv_cache(model: Transformer, training: Training, layouts: Layouts) -> Floats:
    """Bytes of keys and values of one micro-batch while an RL step samples its answers: what sampling takes at the least.

    Heads divide over tensor ranks, as far as there are any; a latent cache is whole on each (DeepSeek-V2, section 2.1).
    """
    heads = np.ones(len(layouts)) if model.latent else np.minimum(layouts.tensor, model.kv_heads)
    sequences = layouts.micro_batch / layouts.context
    return sequences * key_value_bytes_per_sequence(model, training.seq_len) / (heads * layouts.pipeline)


def key_value_bytes_per_sequence(model: Transformer, seq_len: float) -> float:
    """Bytes of the 16-bit keys and values that a sequence of `seq_len` tokens leaves for the next one; a window keeps its own tokens."""
    width = 2.0 * model.kv_heads * model.head_dim
    if model.latent is not None:
        width = float(model.latent.kv_lora_rank + model.latent.qk_rope_head_dim)
    return 2.0 * width * model.layers * mean_context(model, seq_len)


def helpers(model: Model, training: Training, layouts: Layouts) -> Floats:
    """Bytes of 16-bit weights of teacher, reward model, reference and a network's own frozen parts, split as the trained weights are."""
    total = np.zeros(len(layouts))
    for helper in helper_networks(model, training):
        total = total + 2.0 * sharded(local_parameters(helper, layouts), layouts, 3)
    if isinstance(model, OtherNetwork):
        frozen = model.frozen_params / (layouts.tensor * layouts.pipeline)
        total = total + 2.0 * sharded((frozen, np.zeros(len(layouts))), layouts, 3)
    return total


def parameter_total(model: Model) -> float:
    """All weights of any network; zero where a network stated only by its FLOPs does not say."""
    return count_parameters(model).total if isinstance(model, Transformer) else model.params or 0.0


def other_activations(model: OtherNetwork, training: Training, layouts: Layouts) -> Floats:
    """Bytes of a sample's activations times the micro-batch; zero where the preset does not know them (and says so)."""
    return element_bytes(training) / 2 * (model.activation_bytes_per_sample or 0.0) * layouts.micro_batch.astype(float)
