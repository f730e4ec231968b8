"""A model: a transformer by its shape, or any other network by its cost for each sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TransformerKind = Literal["transformer", "encoder_decoder", "vit"]


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). `q_lora_rank` 0: queries are not compressed."""

    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    q_lora_rank: int = 0


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts: which layers route, how many experts there are and how many a token visits.

    The first `dense_layers` layers are dense; of the others every `moe_every`-th routes (1: all of them).
    """

    experts: int
    experts_per_token: int
    ffn_hidden_size: int
    shared_experts: int = 0
    shared_ffn_hidden_size: int = 0
    dense_layers: int = 0
    moe_every: int = 1


@dataclass(frozen=True, slots=True)
class Transformer:
    """A transformer's shape. Sizes are counts of elements; `ffn_hidden_size` is that of the dense layers.

    `sliding_window` limits attention to that many tokens in all layers but every `global_attention_every`-th (0: in all).
    `decoder_layers` is for `encoder_decoder`, where `layers` counts the encoder's.
    `max_positions` counts learned position embeddings (0: rotary, ALiBi or none).
    `params` and `active_params` are the published counts where the caller or a preset states them; they replace the shape's.
    """

    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    ffn_hidden_size: int
    vocab_size: int
    kind: TransformerKind = "transformer"
    gated_ffn: bool = True
    tied_embeddings: bool = False
    biases: bool = False
    max_positions: int = 0
    sliding_window: int | None = None
    global_attention_every: int = 0
    experts: Experts | None = None
    latent: LatentAttention | None = None
    decoder_layers: int = 0
    params: float | None = None
    active_params: float | None = None


@dataclass(frozen=True, slots=True)
class GenericNetwork:
    """A CNN, diffusion, recurrent or any other network, by its arithmetic.

    `flops_per_sample`: forward FLOPs of the trained part for one sample, 2 a multiply-add.
    `frozen_flops_per_sample`: forward FLOPs of its frozen parts (text encoder, VAE).
    `activation_bytes_per_sample`: activations of one sample in 16 bit [B], None where unknown.
    """

    flops_per_sample: float
    sample_unit: str
    params: float | None = None
    frozen_flops_per_sample: float = 0.0
    frozen_params: float = 0.0
    activation_bytes_per_sample: float | None = None


Model = Transformer | GenericNetwork
