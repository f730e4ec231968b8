"""A model: a transformer by its shape, or any other network by its cost for each sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

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
class StateSpace:
    """Layers that carry a matrix of states along the sequence where others attend to it.

    Mamba-2 (Dao and Gu 2024, arXiv 2405.21060) or, with `delta_rule`, gated linear attention that corrects its state (gated DeltaNet,
    Yang et al. 2024, arXiv 2412.06464). Each of the `heads` has values of `head_dim` and a state of `head_dim` times `state_size`;
    `groups` of heads share what writes and reads it (keys and queries). `conv_kernel` tokens are mixed before.
    """

    layers: int
    heads: int
    head_dim: int
    state_size: int
    groups: int = 1
    conv_kernel: int = 4
    delta_rule: bool = False

    @property
    def inner_size(self) -> int:
        """Elements of a token's values [1]."""
        return self.heads * self.head_dim

    @property
    def mixed_size(self) -> int:
        """Elements of a token that the convolution mixes: values, and keys and queries of the groups [1]."""
        return self.inner_size + 2 * self.groups * self.state_size

    @property
    def projected_size(self) -> int:
        """Elements that a token is projected to: those mixed, gates as wide as the values, and steps of the heads [1]."""
        return self.mixed_size + self.inner_size + self.heads * (2 if self.delta_rule else 1)


STATE_SPACE_FIELDS = {
    "ssm_layers": "layers",
    "ssm_heads": "heads",
    "ssm_head_dim": "head_dim",
    "ssm_state_size": "state_size",
    "ssm_groups": "groups",
    "ssm_conv_kernel": "conv_kernel",
    "ssm_delta_rule": "delta_rule",
}
"""Names of requests and presets, and the fields of `StateSpace`."""


def read_state_space(fields: Mapping[str, Any]) -> StateSpace | None:
    """The state-space layers among the fields of a request or a preset; None without any."""
    named = {ours: fields[theirs] for theirs, ours in STATE_SPACE_FIELDS.items() if theirs in fields}
    return StateSpace(**named) if named else None


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
    `masked_share` is that of the tokens that an encoder of its own (BERT) learns to predict from all others [1]; 0: each token is predicted
    from those before it.
    A hybrid has `state_space` layers in place of some that attend. `ffn_layers` is for those whose layers are one block each: so many are
    feed-forward blocks, and what neither they nor the state-space layers are attends (None: every layer has both blocks).
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
    masked_share: float = 0.0
    sliding_window: int | None = None
    global_attention_every: int = 0
    experts: Experts | None = None
    latent: LatentAttention | None = None
    state_space: StateSpace | None = None
    ffn_layers: int | None = None
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
