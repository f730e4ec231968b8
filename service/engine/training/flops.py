"""Arithmetic of training: FLOPs a token, forward and backward, by training method.

Weights cost 2 FLOPs a token forward (Kaplan et al. 2020, arXiv 2001.08361, section 2.1). Attention scores and values cost 4 * s * heads *
head_dim a token and layer where the full square is counted (Chowdhery et al. 2022, arXiv 2204.02311, appendix B), half of it where the
causal half is. A backward pass costs twice its forward: once for the gradient of the activations, once for that of the weights; frozen
weights need the first alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.training.model import GenericNetwork, Model, StateSpace, Transformer
from service.domain.training.run import FROZEN_BASE, Training
from service.engine.training.adapters import adapter_parameters
from service.engine.training.parameters import attention_layer_count, count_parameters

Floats = NDArray[np.float64]

# Tokens of a chunk of Mamba-2's recurrence (Megatron Core's and mamba_ssm's kernels take 128 or 256).
CHUNK_TOKENS = 128.0
FLOPS_PER_PETAFLOP_S_DAY = 1e15 * 86400


@dataclass(frozen=True, slots=True)
class ForwardFlops:
    """One forward pass of one token (or sample).

    Attributes
    ----------
    weights : float
        Of matrices [FLOP].
    attention : float
        Of attention's scores and values [FLOP].
    frozen : float
        Of the network's own frozen parts [FLOP].
    """

    weights: float
    attention: float
    frozen: float = 0.0

    @property
    def trained(self) -> float:
        """Weights and attention [FLOP]."""
        return self.weights + self.attention


@dataclass(frozen=True, slots=True)
class TrainingFlops:
    """FLOPs of training on one token (or sample).

    Attributes
    ----------
    forward, backward : float
        Passes of the model and, forward, of auxiliary networks [FLOP].
    attention : float
        Part of both that is attention's scores and values, sampling apart [FLOP].
    generation : float
        Part of `forward` that samples text one token at a time (RL) [FLOP].
    """

    forward: float
    backward: float
    attention: float
    generation: float = 0.0

    @property
    def total(self) -> float:
        """Forward and backward [FLOP]."""
        return self.forward + self.backward


def mean_context_tokens(model: Transformer, seq_len: float, *, full_attention: bool = True) -> float:
    """Tokens that each token attends to, averaged over layers.

    With s tokens: s where the full square is counted, s / 2 where the causal half is. In layers with a window w, min(s, w) replaces s;
    their causal part is w - w^2 / (2 s), because only the first w tokens see fewer than w.

    Parameters
    ----------
    model : Transformer
        Window and layers with global attention.
    seq_len : float
        Tokens of a sequence.
    full_attention : bool
        Whether the full square is counted.

    Returns
    -------
    float
        [tokens].
    """
    everything = seq_len if full_attention else seq_len / 2
    if model.sliding_window is None:
        return everything
    window = min(seq_len, model.sliding_window)
    windowed = window if full_attention else window - window**2 / (2 * seq_len)
    if not model.global_attention_every:
        return windowed
    global_layers = model.layers // model.global_attention_every
    return (global_layers * everything + (model.layers - global_layers) * windowed) / model.layers


def attention_width(model: Transformer) -> float:
    """Elements heads * (query-key dimension + value dimension): twice heads * head_dim but for latent attention [1]."""
    if model.latent is None:
        return 2.0 * model.attention_heads * model.head_dim
    query_key = model.latent.qk_nope_head_dim + model.latent.qk_rope_head_dim
    return 1.0 * model.attention_heads * (query_key + model.latent.v_head_dim)


def state_space_flops(mixer: StateSpace) -> float:
    """FLOPs of one state-space layer's recurrence for a token, forward, in chunks of tokens.

    Within its chunk a token's queries meet all keys and their values; it writes to the chunk's state and reads the state before it:
    2 Q (G N + H P) + 4 H P N. The delta rule solves for what is written: keys meet keys, the solution is applied to keys and values, and
    the state's own share is taken off: 2 Q H (2 N + P) + 2 H P N more, in chunks half as long.

    Returns
    -------
    float
        [FLOP per token].

    References
    ----------
    Mamba-2 (arXiv 2405.21060), section 6; gated DeltaNet (arXiv 2412.06464), section 3.3.
    """
    written, inner = mixer.groups * mixer.state_size, mixer.inner_size
    chunk = CHUNK_TOKENS / 2 if mixer.delta_rule else CHUNK_TOKENS
    states = inner * mixer.state_size
    solved = 2 * chunk * (2 * mixer.heads * mixer.state_size + inner) + 2 * states if mixer.delta_rule else 0.0
    return 2 * chunk * (written + inner) + 4 * states + solved


def transformer_forward_flops(
    model: Transformer, seq_len: float, decoder_seq_len: float = 0, *, full_attention: bool = True
) -> ForwardFlops:
    """FLOPs of a forward pass for each token of the (encoder's) sequence.

    The decoder's FLOPs of an encoder-decoder are spread over the encoder's tokens.

    Parameters
    ----------
    model : Transformer
        Shape.
    seq_len : float
        Tokens of a sequence.
    decoder_seq_len : float
        Tokens of the decoder's sequence; 0 without a decoder.
    full_attention : bool
        Whether the full square of causal attention is counted.

    Returns
    -------
    ForwardFlops
        [FLOP per token].
    """
    counts = count_parameters(model)
    both_ways = full_attention or model.kind != "transformer" or model.masked_share > 0
    attention = 2 * attention_layer_count(model) * mean_context_tokens(model, seq_len, full_attention=both_ways) * attention_width(model)
    if model.state_space:
        attention += model.state_space.layers * state_space_flops(model.state_space)
    weights = 2 * counts.encoder_multiplied
    if model.decoder_layers:
        ratio = decoder_seq_len / seq_len
        causal = 1.0 if full_attention else 0.5
        weights += 2 * counts.decoder_multiplied * ratio
        attention += 2 * ratio * model.decoder_layers * (causal * decoder_seq_len + seq_len) * attention_width(model)
    return ForwardFlops(weights, attention)


def forward_flops(model: Model, training: Training) -> ForwardFlops:
    """FLOPs of one forward pass of a token (transformers) or sample (other networks)."""
    if isinstance(model, GenericNetwork):
        return ForwardFlops(model.flops_per_sample, 0.0, model.frozen_flops_per_sample)
    return transformer_forward_flops(model, training.seq_len, training.decoder_seq_len, full_attention=training.count_full_attention)


def training_flops(model: Model, training: Training) -> TrainingFlops:
    """FLOPs of training on a token (or sample), without recomputation, by `training.method`.

    - pretrain, continued_pretrain, full_finetune: forward, and twice that backward.
    - lora, qlora: frozen weights have no weight gradient (2 forward + 2 backward a weight); adapters train in full.
    - distill: the teacher's forward in addition; none where its logits are cached.
    - dpo: the frozen reference's forward in addition; `tokens` counts chosen and rejected answers alike.
    - rl: every sampled token is generated, scored (own log-probability, reference, reward model) and trained on `update_epochs` times.

    Returns
    -------
    TrainingFlops
        [FLOP per token].

    References
    ----------
    DPO: Rafailov et al. 2023 (arXiv 2305.18290), equation 7. PPO: arXiv 1707.06347, algorithm 1. GRPO: arXiv 2402.03300, algorithm 1.
    """
    forward = forward_flops(model, training)
    if training.method in FROZEN_BASE:
        adapters = 2 * adapter_parameters(model, training, visited=True)
        passed = forward.trained + adapters
        return TrainingFlops(passed + forward.frozen, forward.weights + 2 * forward.attention + 2 * adapters, 3 * forward.attention)
    passes = [forward_flops(helper, training) for helper in auxiliary_networks(model, training)]
    beside = forward.frozen + sum(one.trained for one in passes)
    attention_beside = sum(one.attention for one in passes)
    if training.method == "rl":
        updates = training.update_epochs
        return TrainingFlops(
            forward=(2 + updates) * forward.trained + beside,
            backward=2 * updates * forward.trained,
            attention=(1 + 3 * updates) * forward.attention + attention_beside,
            generation=forward.trained,
        )
    return TrainingFlops(forward.trained + beside, 2 * forward.trained, 3 * forward.attention + attention_beside)


def recomputed_flops(model: Model, training: Training) -> tuple[float, float, float]:
    """FLOPs that the backward pass runs again for each token.

    Selective repeats attention's core, full the layers' whole forward; the head is behind the last checkpoint and is not repeated. Flash
    attention keeps no scores to recompute: selective then repeats norms and activation functions, which cost no products.

    Returns
    -------
    tuple of 3 float
        In the order of `RECOMPUTES`: none, selective, full [FLOP per token].

    References
    ----------
    Narayanan et al. 2021 (arXiv 2104.04473), appendix; Korthikanti et al. 2022 (arXiv 2205.05198), section 5.
    """
    forward = forward_flops(model, training)
    passes = training.update_epochs if training.method == "rl" else 1.0
    if isinstance(model, GenericNetwork):
        return 0.0, 0.0, passes * forward.trained
    adapters = 2 * adapter_parameters(model, training, visited=True) if training.method in FROZEN_BASE else 0.0
    ratio = training.decoder_seq_len / training.seq_len if model.decoder_layers else 1.0
    head = 2 * ratio * count_parameters(model).head_multiplied
    core = 0.0 if training.flash_attention else forward.attention
    return 0.0, passes * core, passes * (forward.trained + adapters - head)


def auxiliary_networks(model: Model, training: Training) -> tuple[Model, ...]:
    """Networks run forward with the trained one: teacher, reward model, and the reference, a frozen copy of the model itself."""
    auxiliary = training.auxiliary_models
    networks = (auxiliary.teacher, auxiliary.reward_model, model if auxiliary.reference else None)
    return tuple(network for network in networks if network is not None)


def predicted_tokens(model: Transformer, training: Training) -> float:
    """Tokens of a sequence that the output head predicts: those of the decoder, the masked ones of an encoder, one row of a ViT [1]."""
    if model.kind == "vit":
        return 1.0
    return (training.decoder_seq_len if model.decoder_layers else training.seq_len) * (model.masked_share or 1.0)
