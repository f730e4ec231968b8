"""Activations stored for the backward pass, and the logits.

After Korthikanti et al. 2022 (arXiv 2205.05198, section 4), restated in tensor sizes so that grouped heads, gated feed-forwards, latent
attention and experts count right: for their GPT shape the sum is their 34 * s * b * h bytes a layer but for two 1-byte dropout masks.
Stored, once each: both norms' inputs, which are the residual stream; queries, keys, values and attention's output; the feed-forward's inner
tensors before its activation function; and the inputs of matrix products that no other operation stores: both norms' outputs, the
activation function's output, the tokens sent to experts. 8- and 4-bit recipes quantise the latter. Where queries, keys and values are one
product, the values keep all of it (`joint_projection_elements`).

Recomputed:

- selective, with stored scores: the scores (Korthikanti et al., section 5).
- selective, with flash attention, which never stores them: what costs no matrix product, norms and activation functions, and latent
  attention's up-projections (DeepSeek-V3, arXiv 2412.19437, section 3.2.3; Megatron Core's recompute modules core_attn, layernorm, moe_act
  and mla_up_proj).
- full: all but each layer's input (Chen et al. 2016, arXiv 1604.06174).

The layer that is being computed holds all of its own activations again, whatever is recomputed.

Left out: dropout masks; uneven load of experts (routing is balanced by a loss or a bias, and layers and micro-batches in flight average out
the rest); offloading to the host's memory but for layers' inputs where the vendor's software does so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.training.model import Experts, Transformer
from service.domain.training.run import RECOMPUTES, Training
from service.engine.training.dtypes import element_bytes, logit_entry_bytes, matmul_input_bytes
from service.engine.training.flops import attention_width, predicted_tokens
from service.engine.training.layouts import Layouts, by_option
from service.engine.training.parameters import block_shares, expert_layer_count

Floats = NDArray[np.float64]
NONE, FULL = RECOMPUTES.index("none"), RECOMPUTES.index("full")
# Of the scores: probabilities before and after dropout, and its mask of a byte (Korthikanti et al. 2022, section 4.1).
SCORE_BYTES = 5.0


@dataclass(frozen=True, slots=True)
class ActivationBytes:
    """Activations of one layer for one token, by recomputation in the order of `RECOMPUTES`.

    Attributes
    ----------
    replicated : tuple of 3 float
        Held by every tensor rank unless sequence parallelism divides them (Korthikanti et al. 2022, section 4.2.2) [B].
    sharded : tuple of 3 float
        Divided over the tensor ranks [B].
    """

    replicated: tuple[float, float, float]
    sharded: tuple[float, float, float]


def layer_activation_bytes(
    model: Transformer, seq_len: float, *, flash: bool, element: float = 2.0, product_input: float = 2.0
) -> ActivationBytes:
    """Stored activations of one layer for one token.

    Parameters
    ----------
    model : Transformer
        Shape.
    seq_len : float
        Tokens of a sequence.
    flash : bool
        Flash attention, which stores no scores.
    element : float
        Size of an element [B].
    product_input : float
        Size of an element of a stored matrix product's input [B].

    Returns
    -------
    ActivationBytes
        [B per token].
    """
    shares = block_shares(model)
    # A block each has the residual stream and a norm's output: of two in a transformer's layer.
    hidden = model.hidden_size * shares.blocks / 2
    projected, latent = mixer_elements(model), shares.attention * attention_elements(model)[1]
    width = shares.attention * attention_output_width(model)
    before, after, sent = feed_forward_elements(model)
    # Flash attention keeps its output as wide as it is, the projection behind it a quantised copy.
    copied = width * product_input if product_input < element else 0.0
    scores = 0.0 if flash else SCORE_BYTES / 2 * element * model.attention_heads * seq_len * shares.attention
    split = element * (projected + before) + product_input * (after + sent) + copied
    if flash:
        again = element * (latent + width + _state_space_elements(model) if model.latent else projected)
        selective = (element * 2 * hidden, again + element * before + product_input * sent)
    else:
        selective = (element * 2 * hidden + product_input * 2 * hidden, split)
    whole = element * 2 * hidden + product_input * 2 * hidden
    return ActivationBytes((whole, selective[0], element * model.hidden_size), (split + scores, selective[1], 0.0))


def mixer_elements(model: Transformer) -> float:
    """Elements for one token of what attention and state-space blocks keep, averaged over all layers [1]."""
    return block_shares(model).attention * attention_elements(model)[0] + _state_space_elements(model)


def _state_space_elements(model: Transformer) -> float:
    """Elements of a token's projection, convolution, recurrence and gated output, averaged over all layers."""
    mixer = model.state_space
    if mixer is None:
        return 0.0
    return mixer.layers / model.layers * (mixer.projected_size + mixer.mixed_size + 2.0 * mixer.inner_size)


def attention_output_width(model: Transformer) -> float:
    """Elements of attention's output for one token [1]."""
    return 1.0 * model.attention_heads * (model.latent.v_head_dim if model.latent else model.head_dim)


def attention_elements(model: Transformer) -> tuple[float, float]:
    """Elements for one token of (queries, keys, values and attention's output, the latents that latent attention projects up)."""
    if model.latent is None:
        return attention_width(model) + 2.0 * model.kv_heads * model.head_dim, 0.0
    compressed = model.latent.q_lora_rank + model.latent.kv_lora_rank + model.latent.qk_rope_head_dim
    # Keys are as wide as queries and values as the output; where queries are not compressed they are kept.
    queries = 0.0 if model.latent.q_lora_rank else attention_width(model) - attention_output_width(model)
    return 2.0 * attention_width(model) + compressed, compressed + queries


def feed_forward_elements(model: Transformer) -> tuple[float, float, float]:
    """Elements for one token (before, after) the activation function and (sent) to experts, averaged over routed and dense layers."""
    gate = 2 if model.gated_ffn else 1
    feed_forward = block_shares(model).feed_forward
    if model.experts is None:
        return feed_forward * gate * model.ffn_hidden_size, feed_forward * model.ffn_hidden_size, 0.0
    depth = model.layers + model.decoder_layers
    routed = expert_layer_count(model) / depth
    inner = routed * active_expert_width(model.experts) + (feed_forward - routed) * model.ffn_hidden_size
    return gate * inner, inner, routed * model.experts.experts_per_token * model.hidden_size


def active_expert_width(experts: Experts) -> float:
    """Feed-forward elements of the experts that a token visits, shared ones included [1]."""
    shared = experts.shared_experts * (experts.shared_ffn_hidden_size or experts.ffn_hidden_size)
    return float(experts.experts_per_token * experts.ffn_hidden_size + shared)


def activation_bytes(model: Transformer, training: Training, layouts: Layouts) -> dict[str, Floats]:
    """Activations by what they go with on a stage (`PipelineStage`).

    Each layer's for every micro-batch in flight; once, what the layer being computed has recomputed; with the head, the last norm's input
    and output.

    Returns
    -------
    dict of str to (layouts,) float array
        By the name of a field of `PipelineStage`, or "once" [B].

    References
    ----------
    Korthikanti et al. 2022 (arXiv 2205.05198), sections 4.2.3 and 4.3.
    """
    element = element_bytes(training)
    tokens = layouts.micro_batch * training.seq_len / layouts.context
    split = tokens / layouts.tensor
    whole = split if training.sequence_parallel else tokens
    kept = layer_activation_bytes(
        model, training.seq_len, flash=training.flash_attention, element=element, product_input=matmul_input_bytes(training)
    )
    joint = (layouts.zero_stage != 3) * (element * split)
    beside = joint_projection_elements(model, flash=training.flash_attention)
    replicated, sharded, joined = (by_option(values, layouts.recompute) for values in (kept.replicated, kept.sharded, beside))
    per_layer = whole * replicated + split * sharded + joint * joined
    working = whole * kept.replicated[NONE] + split * kept.sharded[NONE] + joint * beside[NONE] - per_layer
    if training.footprint.offloads_checkpoints:
        # The layer at work and the next one have their inputs on the device.
        working = working + np.where(layouts.recompute == FULL, 2.0, 0.0) * per_layer
        per_layer = np.where(layouts.recompute == FULL, 0.0, per_layer)
    head = (element * 2 * model.hidden_size) * whole
    if not model.decoder_layers:
        return {"in_flight_layers": per_layer, "once": working, "head": head}
    ratio = training.decoder_seq_len / training.seq_len
    cross = element / 2 * split * cross_attention_bytes(model, layouts.recompute, ratio)
    return {"in_flight_layers": per_layer, "decoder": cross - (1 - ratio) * per_layer, "once": working, "head": ratio * head}


def joint_projection_elements(model: Transformer, *, flash: bool) -> tuple[float, float, float]:
    """Elements for one token that values keep as a view of what they were projected in, by recomputation, averaged over all layers.

    Queries, keys and values come from one product, keys and values of latent attention from one. Rotation copies queries and keys; the
    values stay a view, so that the whole product is kept beside the copies. Without rotation all are views of it, counted once.

    Parameters
    ----------
    model : Transformer
        Shape.
    flash : bool
        Flash attention: selective recomputation keeps the projections, but those of latents.

    Returns
    -------
    tuple of 3 floats
        In the order of `RECOMPUTES` [1].

    References
    ----------
    Megatron Core, transformer/attention.py and multi_latent_attention.py: torch.split of the joint projection.
    """
    if model.max_positions or not model.gated_ffn:
        return 0.0, 0.0, 0.0
    if model.latent is not None:
        beside = 1.0 * model.attention_heads * model.latent.qk_nope_head_dim
    else:
        beside = 1.0 * (model.attention_heads + model.kv_heads) * model.head_dim
    beside = beside * block_shares(model).attention
    return beside, beside if flash and model.latent is None else 0.0, 0.0


def cross_attention_bytes(model: Transformer, recompute: NDArray[np.int64], ratio: float) -> Floats:
    """Activations that a decoder layer's cross-attention stores.

    Keys and values of the encoder's tokens, and norm, queries and output of the decoder's.

    Parameters
    ----------
    model : Transformer
        Shape.
    recompute : (layouts,) int array
        Index of `RECOMPUTES`.
    ratio : float
        Tokens of the decoder over those of the encoder [1].

    Returns
    -------
    (layouts,) float array
        With elements of 2 bytes [B per token of the encoder].
    """
    key_value = 2 * model.kv_heads * model.head_dim
    kept = 2.0 * (key_value + ratio * (2 * model.hidden_size + attention_width(model)))
    return np.where(recompute == FULL, 0.0, kept)


def logit_bytes(model: Transformer, training: Training, layouts: Layouts) -> dict[str, Floats]:
    """Logits, which go with the head, divided over tensor and context ranks; with a teacher's own.

    Returns
    -------
    dict of str to (layouts,) float array
        By the name of a field of `PipelineStage` [B].
    """
    rows = predicted_tokens(model, training)
    vocabulary = model.vocab_size
    if isinstance(training.auxiliary_models.teacher, Transformer):
        vocabulary = vocabulary + training.auxiliary_models.teacher.vocab_size
    kept = logit_entry_bytes(training, layouts) * rows * vocabulary
    return {"head": kept * layouts.micro_batch / (layouts.tensor * layouts.context)}
