"""Work bound by memory: traffic of the memory bus besides the products' operands, at the data sheet's rate."""

from __future__ import annotations

import numpy as np

from service.domain.training.model import GenericNetwork, Transformer
from service.domain.training.run import FROZEN_BASE
from service.engine.training.dtypes import element_bytes, matmul_input_bytes, optimizer_bytes, weight_bytes
from service.engine.training.flops import CHUNK_TOKENS, mean_context_tokens, predicted_tokens
from service.engine.training.layouts import rounded_batch
from service.engine.training.memory.activations import attention_output_width
from service.engine.training.memory.memory_use import key_value_bytes_per_sequence
from service.engine.training.parameters import block_shares, expert_layer_count
from service.engine.training.pipeline_stages import expert_ranks
from service.engine.training.sharding import zero_sharded
from service.engine.training.step.workload import FULL, SELECTIVE, Floats, Workload, has_fused_experts, layer_passes

# Reads and writes of an inner element, in units of 16 bit, by an expert's activation function where no kernel fuses it with its bias,
# clamp and gate: about seven operations of two each in fp32.
EAGER_ACTIVATION = 28.0


def activation_seconds(workload: Workload) -> Floats:
    """Norms, rotations, activations and residuals of a stage over the memory bus, each tensor read and written once.

    Forward: two norms (4h), two residuals (6h), queries and keys rotated, the feed-forward's activation; twice that backward. Sequence
    parallelism divides norms and residuals over the tensor ranks too. Quantised products read 16 bit and write a copy for each of their
    inputs.

    Returns
    -------
    (layouts,) float array
        Of one micro-batch [s].

    References
    ----------
    Korthikanti et al. 2022 (arXiv 2205.05198), section 4.2.2.
    """
    model, training = workload.model, workload.training
    assert isinstance(model, Transformer)
    inner, met, shares = feed_forward_width(model), _met_blocks(model), block_shares(model)
    gate = 3.0 if model.gated_ffn else 2.0
    whole = 1.0 if training.sequence_parallel else workload.layouts.tensor
    rotated = shares.attention * 2.0 * model.head_dim * (model.attention_heads + model.kv_heads)
    elements = whole * 5.0 * shares.blocks * model.hidden_size + rotated + gate * inner + _recurrence_elements(model)
    moved = element_bytes(training) * elements * (3 * layer_passes(workload) + _cheap_again(workload))
    inputs = met * model.hidden_size + shares.attention * attention_output_width(model) + inner
    outputs = shares.attention * model.head_dim * (model.attention_heads + 2.0 * model.kv_heads)
    outputs += model.hidden_size * met + inner * (gate - 1)
    if mixer := model.state_space:
        inputs, outputs = inputs + shares.state_space * mixer.inner_size, outputs + shares.state_space * mixer.projected_size
    moved = moved + _quantised_bytes(workload, inputs, outputs)
    return moved * workload.tokens * workload.layers / workload.layouts.tensor / workload.bandwidth


def _quantised_bytes(workload: Workload, inputs: Floats | float, outputs: Floats | float) -> Floats | float:
    """Traffic of one token's quantised copies, of the products' inputs and of their results' gradients [B]."""
    if matmul_input_bytes(workload.training) == element_bytes(workload.training):
        return 0.0
    passes = workload.forward_passes + workload.recompute_passes + workload.backward_passes
    return 4.0 * (inputs * passes + outputs * workload.backward_passes)


def _met_blocks(model: Transformer) -> float:
    """Blocks of a layer with products that every token meets, of its two."""
    blocks = block_shares(model).blocks
    if model.experts is None or model.experts.shared_experts:
        return blocks
    return blocks - expert_layer_count(model) / model.layers


def _recurrence_elements(model: Transformer) -> float:
    """16-bit elements of a token that state-space layers read and write, averaged over all layers."""
    # The kernels of mamba_ssm (state-spaces/mamba, ops/triton/ssd_combined.py) one after the other: the convolution reads and writes what
    # it mixes; values and keys become a chunk's states; keys meet queries, of which fp32 scores are kept; scores, queries, states and
    # values become the output, written with and without the gate; its norm reads output and gate and writes. The states, in fp32, are
    # written, read and written as they are passed on, and read. The backward pass runs all of it again before its own twice as many.
    mixer = model.state_space
    if mixer is None:
        return 0.0
    keys = mixer.groups * mixer.state_size
    states = 4 * 2.0 * mixer.inner_size * mixer.state_size / CHUNK_TOKENS
    forward = 2.0 * mixer.mixed_size + 8.0 * mixer.inner_size + 4.0 * keys + 2 * 2.0 * mixer.groups * CHUNK_TOKENS + states
    return mixer.layers / model.layers * forward * 4 / 3


def routed_traffic_seconds(workload: Workload) -> Floats:
    """Tokens on their way to experts and back, and the experts' activation functions, over the memory bus.

    Each visit's row is written in its expert's order and read again, both before and behind the experts (4h); between the products the
    activation function reads and writes the inner elements. Twice that backward. Quantised products write copies of each input. Kernels
    that fuse activation and quantisation into the grouped products leave the ways alone.

    Returns
    -------
    (layouts,) float array
        Of one micro-batch [s].

    References
    ----------
    MegaBlocks (arXiv 2211.15841), section 5.
    """
    model, training = workload.model, workload.training
    if isinstance(model, GenericNetwork) or model.experts is None:
        return workload.zeros
    experts, gate = model.experts, 3.0 if model.gated_ffn else 2.0
    rows, inner = (model.hidden_size * workload.layouts.expert_tensor).astype(float), float(experts.ffn_hidden_size)
    fused = has_fused_experts(workload)
    eager = EAGER_ACTIVATION if model.biases and not training.fused_experts else 0.0
    between = 0.0 if fused else (gate + eager) * inner
    moved = element_bytes(training) * (4.0 * rows + between) * (3 * layer_passes(workload) + _cheap_again(workload))
    if not fused:
        moved = moved + _quantised_bytes(workload, rows + inner, rows + inner * (gate - 1))
    visits = workload.tokens * experts.experts_per_token / workload.layouts.tensor
    seconds: Floats = moved * visits * workload.layers * (expert_layer_count(model) / model.layers) / workload.bandwidth
    return seconds


def _cheap_again(workload: Workload) -> Floats:
    """Forward passes over norms and activation functions that selective recomputation adds under flash attention."""
    selective = (workload.layouts.recompute == SELECTIVE) & workload.training.flash_attention
    return np.where(selective, workload.backward_passes, 0.0)


def score_seconds(workload: Workload) -> Floats:
    """Attention's scores over the memory bus where no flash attention leaves them on the chip.

    Of each score the forward pass writes and reads the product, the softmax and the dropped-out softmax in 16 bit and writes the mask: 13
    bytes; the backward pass reads and writes the three gradients and reads softmax, mask and dropped-out softmax: 19.

    Returns
    -------
    (layouts,) float array
        Of one micro-batch [s].
    """
    assert isinstance(workload.model, Transformer)
    if workload.training.flash_attention:
        return workload.zeros
    backward = workload.backward_passes
    forward = workload.forward_passes + np.where(workload.layouts.recompute > 0, backward, 0.0)
    size = (
        element_bytes(workload.training)
        / 2
        * mean_context_tokens(workload.model, workload.training.seq_len)
        * workload.model.attention_heads
    )
    return (13.0 * forward + 19.0 * backward) * size * workload.tokens * workload.layers / workload.layouts.tensor / workload.bandwidth


def feed_forward_width(model: Transformer) -> float:
    """Inner elements of the feed-forward that every token meets, averaged over dense layers and shared experts of the others [1]."""
    feed_forward = block_shares(model).feed_forward
    if model.experts is None:
        return feed_forward * model.ffn_hidden_size
    experts, routed = model.experts, expert_layer_count(model) / model.layers
    shared = experts.shared_experts * (experts.shared_ffn_hidden_size or experts.ffn_hidden_size)
    return (feed_forward - routed) * model.ffn_hidden_size + routed * shared


def logit_seconds(workload: Workload) -> Floats:
    """Logits and their loss over the memory bus: 16-bit logits, their fp32 copy and its gradient, written and read.

    Returns
    -------
    (layouts,) float array
        Of one micro-batch [s].
    """
    assert isinstance(workload.model, Transformer)
    if workload.model.kind == "vit":
        return workload.zeros
    ratio = predicted_tokens(workload.model, workload.training) / workload.training.seq_len
    moved = 2 * (2.0 + 4.0 + 4.0) * ratio * workload.model.vocab_size * workload.tokens / workload.layouts.tensor
    seconds: Floats = moved * (workload.forward_passes + 2 * workload.backward_passes) / 3 / workload.bandwidth
    return seconds


def optimizer_seconds(workload: Workload) -> Floats:
    """One pass of the optimizer: weights, gradients and states of a rank's shard are read and written once.

    Returns
    -------
    (layouts,) float array
        Of one step [s].
    """
    if workload.training.method in FROZEN_BASE:
        return workload.zeros
    share = zero_sharded(workload.local, workload.layouts, 1)
    moved = workload.backward_passes * 2 * (2 * element_bytes(workload.training) + optimizer_bytes(workload.training)) * share
    seconds: Floats = moved / workload.bandwidth
    return seconds


def dequantisation_seconds(workload: Workload) -> Floats:
    """Dequantisation of QLoRA's 4-bit base to 16 bit: read, write and read again, in every pass over the weights.

    Returns
    -------
    (layouts,) float array
        Of one micro-batch [s].

    References
    ----------
    Dettmers et al. 2023 (arXiv 2305.14314), equation 5.
    """
    if workload.training.method != "qlora":
        return workload.zeros
    passes = np.where(workload.layouts.recompute == FULL, 3.0, 2.0)
    dense, experts = workload.local
    seconds: Floats = passes * (workload.training.footprint.nf4_bytes + 2 * 2.0) * (dense + experts) / workload.bandwidth
    return seconds


def generation_seconds(workload: Workload) -> Floats:
    """Sampling of a step's answers: each token reads the weights once for the whole batch, and every sequence's keys and values.

    Roofline of memory and matrix work on the tensor and context ranks of a replica; pipeline stages wait for each other, because a token
    needs the one before it.

    Returns
    -------
    (layouts,) float array
        Of one step [s].

    References
    ----------
    Pope et al. 2022 (arXiv 2211.05102), section 2.
    """
    model, training, layouts = workload.model, workload.training, workload.layouts
    if training.method != "rl" or isinstance(model, GenericNetwork):
        return workload.zeros
    devices = (layouts.tensor * layouts.context).astype(float)
    sequences = rounded_batch(training, layouts) / layouts.data
    dense, experts = workload.local
    weights = (dense * layouts.tensor + experts * expert_ranks(layouts)) * layouts.pipeline * min(weight_bytes(training), 2.0)
    key_value = key_value_bytes_per_sequence(model, training.seq_len / 2)
    read = (weights + sequences * key_value) / (workload.bandwidth * devices)
    multiply = sequences * workload.forward.trained / (workload.peak * devices)
    seconds: Floats = training.response_tokens * np.maximum(read, multiply)
    return seconds
