"""Arithmetic of training: FLOPs a token, forward and backward, by training method.

Weights cost 2 FLOPs a token forward (Kaplan et al. 2020, arXiv 2001.08361, section 2.1). Attention scores and values cost
4 * s * heads * head_dim a token and layer where the whole square is counted (Chowdhery et al. 2022, arXiv 2204.02311,
appendix B), half of it where only the causal half is. A backward pass costs twice its forward: once for the gradient of
the activations, once for that of the weights; frozen weights need the first alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from service.domain.model import Model, OtherNetwork, Transformer
from service.domain.run import Training
from service.engine.parameters import count_parameters

FLOPS_PER_PETAFLOP_S_DAY = 1e15 * 86400


@dataclass(frozen=True, slots=True)
class ForwardFlops:
    """FLOPs of one forward pass of one token (or sample): of matrices, of attention's scores and values, of frozen parts beside."""

    weights: float
    attention: float
    frozen: float = 0.0

    @property
    def trained(self) -> float:
        return self.weights + self.attention


@dataclass(frozen=True, slots=True)
class TrainingFlops:
    """FLOPs a trained token. `generation` is the part of `forward` that samples text one token at a time (RL)."""

    forward: float
    backward: float
    attention: float
    generation: float = 0.0

    @property
    def total(self) -> float:
        return self.forward + self.backward


def mean_context(model: Transformer, seq_len: float) -> float:
    """Tokens each token attends to, averaged over layers, before any causal halving: min(s, window) in windowed layers."""
    if model.sliding_window is None:
        return seq_len
    windowed = min(seq_len, model.sliding_window)
    if not model.global_attention_every:
        return windowed
    global_layers = model.layers // model.global_attention_every
    return (global_layers * seq_len + (model.layers - global_layers) * windowed) / model.layers


def attention_width(model: Transformer) -> float:
    """heads * (query-key dimension + value dimension): twice heads * head_dim but for latent attention."""
    if model.latent is None:
        return 2.0 * model.attention_heads * model.head_dim
    query_key = model.latent.qk_nope_head_dim + model.latent.qk_rope_head_dim
    return float(model.attention_heads * (query_key + model.latent.v_head_dim))


def transformer_forward(model: Transformer, seq_len: float, decoder_seq_len: float = 0, *, full_attention: bool = True) -> ForwardFlops:
    """FLOPs of a forward pass, a token of the (encoder's) sequence of `seq_len` tokens.

    For an encoder-decoder the decoder's share, `decoder_seq_len` tokens a sequence, is spread over the encoder's tokens.
    """
    counts = count_parameters(model)
    causal = 1.0 if full_attention else 0.5
    own = 1.0 if model.kind != "transformer" else causal
    attention = 2 * own * model.layers * mean_context(model, seq_len) * attention_width(model)
    weights = 2 * counts.encoder_multiplied
    if model.decoder_layers:
        ratio = decoder_seq_len / seq_len
        weights += 2 * counts.decoder_multiplied * ratio
        attention += 2 * ratio * model.decoder_layers * (causal * decoder_seq_len + seq_len) * attention_width(model)
    return ForwardFlops(weights, attention)


def forward_flops(model: Model, training: Training) -> ForwardFlops:
    """FLOPs of one forward pass of a token (transformers) or sample (other networks)."""
    if isinstance(model, OtherNetwork):
        return ForwardFlops(model.flops_per_sample, 0.0, model.frozen_flops_per_sample)
    return transformer_forward(model, training.seq_len, training.decoder_seq_len, full_attention=training.count_full_attention)


def adapter_parameters(model: Model, rank: int) -> float:
    """Weights of LoRA adapters on every linear layer: rank * (inputs + outputs) each (Hu et al. 2021, arXiv 2106.09685, section 4.1)."""
    if isinstance(model, OtherNetwork):
        return 0.0
    hidden, query, key_value = model.hidden_size, model.attention_heads * model.head_dim, model.kv_heads * model.head_dim
    attention = 2 * (hidden + query) + 2 * (hidden + key_value)
    width = model.experts.ffn_hidden_size * model.experts.experts_per_token if model.experts else model.ffn_hidden_size
    feed_forward = (3 if model.gated_ffn else 2) * (hidden + width)
    return float(rank * (model.layers + model.decoder_layers) * (attention + feed_forward))


def training_flops(model: Model, training: Training) -> TrainingFlops:
    """FLOPs a trained token (or sample), without recomputation, by `training.method`.

    - pretrain, continued_pretrain, full_finetune: forward and twice that backward.
    - lora, qlora: frozen weights have no weight gradient (2 forward + 2 backward a weight); adapters train in full.
    - distill: the teacher's forward beside; none where its logits are cached.
    - dpo: the frozen reference's forward beside; `tokens` counts chosen and rejected answers alike
      (Rafailov et al. 2023, arXiv 2305.18290, equation 7).
    - rl: every sampled token is generated, scored (own log-probability, reference, reward model) and then trained on
      `update_epochs` times (PPO: arXiv 1707.06347, algorithm 1; GRPO: arXiv 2402.03300, algorithm 1).
    """
    forward = forward_flops(model, training)
    if training.method in ("lora", "qlora"):
        adapters = 2 * adapter_parameters(model, training.lora_rank)
        passed = forward.trained + adapters
        return TrainingFlops(passed + forward.frozen, forward.weights + 2 * forward.attention + 2 * adapters, 3 * forward.attention)
    beside = forward.frozen + sum(forward_flops(helper, training).trained for helper in _beside(training))
    reference = forward.trained if training.helpers.reference else 0.0
    if training.method == "rl":
        updates = training.update_epochs
        scoring = forward.trained + beside + reference
        return TrainingFlops(
            forward=forward.trained + scoring + updates * forward.trained,
            backward=2 * updates * forward.trained,
            attention=(2 + 3 * updates) * forward.attention,
            generation=forward.trained,
        )
    return TrainingFlops(forward.trained + beside + reference, 2 * forward.trained, 3 * forward.attention)


def _beside(training: Training) -> tuple[Model, ...]:
    helpers = training.helpers
    return tuple(helper for helper in (helpers.teacher, helpers.reward_model) if helper is not None)
