"""Weights of a transformer, and how many of them a token is multiplied with.

Conventions: projections, feed-forward matrices, embeddings and norms are counted as the published models lay them out; a mixture of experts
counts all experts in `total` and the active ones in `active`. Multiplied weights (of the rule of 2 FLOPs a weight) leave out the embedding
look-up, which costs no arithmetic, and keep the output head even where it is tied.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from service.domain.training.model import Experts, LatentAttention, Model, StateSpace, Transformer


@dataclass(frozen=True, slots=True)
class LayerParameters:
    """Weights of one layer.

    Attributes
    ----------
    multiplied : float
        Weights that a token is multiplied with [1].
    stored : float
        All weights, those of inactive experts included [1].
    """

    multiplied: float
    stored: float


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Weights of a model [1]. Counts that the caller states replace `total` and `active`, and scale the others.

    Attributes
    ----------
    total, active : float
        All weights, and those that a token meets.
    attention, feed_forward, embedding, head : float
        All weights of these parts.
    multiplied, encoder_multiplied, decoder_multiplied, head_multiplied : float
        Weights that a token is multiplied with: all, of the encoder, of the decoder (0 without one) and of the output head.
    expert_stored : float
        Weights of all routed experts.
    active_scale : float
        `active` over the shape's own count.
    """

    total: float
    active: float
    attention: float
    feed_forward: float
    embedding: float
    head: float
    multiplied: float
    encoder_multiplied: float
    decoder_multiplied: float
    head_multiplied: float
    expert_stored: float
    active_scale: float


@dataclass(frozen=True, slots=True)
class TransformerColumns(Transformer):
    """Transformers of one structure, layout by layout: sizes that differ are (layouts,) float arrays, the others numbers.

    Attributes
    ----------
    counts : ParameterCounts
        Their weights: (layouts,) float arrays or numbers [1].
    """

    counts: ParameterCounts = field(kw_only=True)


def attention_parameters(model: Transformer) -> float:
    """Weights of one self-attention block, biases and latent norms included [1]."""
    if model.latent is not None:
        return latent_attention_parameters(model, model.latent)
    query = model.attention_heads * model.head_dim
    key_value = model.kv_heads * model.head_dim
    biases = query + 2 * key_value + model.hidden_size if model.biases else 0
    return model.hidden_size * (2 * query + 2 * key_value) + biases


def latent_attention_parameters(model: Transformer, latent: LatentAttention) -> float:
    """Weights of one multi-head latent attention block.

    Returns
    -------
    int
        [1].

    References
    ----------
    DeepSeek-V2 (arXiv 2405.04434), equations 9 to 19.
    """
    heads, hidden = model.attention_heads, model.hidden_size
    query_dim = heads * (latent.qk_nope_head_dim + latent.qk_rope_head_dim)
    rank = latent.q_lora_rank
    query = (hidden + 1 + query_dim) * rank if rank else hidden * query_dim
    down = hidden * (latent.kv_lora_rank + latent.qk_rope_head_dim) + latent.kv_lora_rank
    up = latent.kv_lora_rank * heads * (latent.qk_nope_head_dim + latent.v_head_dim)
    return query + down + up + heads * latent.v_head_dim * hidden


def state_space_parameters(model: Transformer, mixer: StateSpace) -> float:
    """Weights of one state-space block: projections, convolution, and what each head and value has of its own.

    Returns
    -------
    float
        [1].

    References
    ----------
    Mamba-2 (arXiv 2405.21060), section 7; gated DeltaNet (arXiv 2412.06464), section 3.4.
    """
    projections = model.hidden_size * (mixer.projected_size + mixer.inner_size)
    return float(projections + mixer.mixed_size * (mixer.conv_kernel + 1) + 3 * mixer.heads + mixer.inner_size)


def attention_layer_count(model: Transformer) -> int:
    """Layers that attend [1]; of an encoder-decoder those of the encoder."""
    others = model.layers - ffn_layer_count(model) if model.ffn_layers is not None else model.layers
    return others - (model.state_space.layers if model.state_space else 0)


def ffn_layer_count(model: Transformer) -> int:
    """Layers with a feed-forward block, experts among them [1]; of an encoder-decoder those of the encoder."""
    return model.layers if model.ffn_layers is None else model.ffn_layers


@dataclass(frozen=True, slots=True)
class BlockShares:
    """Blocks of a mean layer: those that attend, that carry states, and feed-forwards [1]. A transformer's layer has 1, 0 and 1."""

    attention: float
    state_space: float
    feed_forward: float

    @property
    def blocks(self) -> float:
        """All of them: two in a transformer's layer [1]."""
        return self.attention + self.state_space + self.feed_forward


def block_shares(model: Transformer) -> BlockShares:
    """Blocks of a mean layer."""
    if model.state_space is None:
        return BlockShares(1.0, 0.0, 1.0)
    return BlockShares(
        attention_layer_count(model) / model.layers, model.state_space.layers / model.layers, ffn_layer_count(model) / model.layers
    )


def feed_forward_parameters(model: Transformer, ffn_hidden_size: float) -> float:
    """Weights of one feed-forward block: two matrices, three where gated.

    Parameters
    ----------
    model : Transformer
        Hidden size, gate, biases.
    ffn_hidden_size : float
        Inner elements.

    Returns
    -------
    float
        Weights [1].

    References
    ----------
    Shazeer 2020 (arXiv 2002.05202).
    """
    matrices = 3 if model.gated_ffn else 2
    biases = (matrices - 1) * ffn_hidden_size + model.hidden_size if model.biases else 0
    return matrices * model.hidden_size * ffn_hidden_size + biases


def expert_layer_count(model: Transformer) -> int:
    """Layers that route their tokens to experts [1]; 0 without experts."""
    if model.experts is None:
        return 0
    return (ffn_layer_count(model) - model.experts.dense_layers) // model.experts.moe_every


def expert_layer_parameters(model: Transformer, experts: Experts) -> LayerParameters:
    """Feed-forward weights of one layer with experts: router, shared experts, active and all routed experts."""
    one = feed_forward_parameters(model, experts.ffn_hidden_size)
    shared = experts.shared_experts * feed_forward_parameters(model, experts.shared_ffn_hidden_size or experts.ffn_hidden_size)
    router = model.hidden_size * experts.experts
    always = router + shared
    return LayerParameters(always + experts.experts_per_token * one, always + experts.experts * one)


def norm_parameters(model: Transformer) -> float:
    """Weights of one norm [1]: a gain, and an offset where the model has biases."""
    return model.hidden_size * (2 if model.biases else 1)


def count_parameters(model: Transformer) -> ParameterCounts:
    """All weights of the model, and those that a token meets.

    Stated `params` and `active_params` replace the sums in `total` and `active`, and the multiplied weights and all parts are scaled by the
    same factor: a shape known in part keeps the published arithmetic. The head of a ViT classifies one vector an image: it is stored, but
    no patch is multiplied with it. The head of an encoder of its own meets the tokens that are masked (Devlin et al. 2018, arXiv
    1810.04805, section 3.1).

    Returns
    -------
    ParameterCounts
        [1].
    """
    return model.counts if isinstance(model, TransformerColumns) else _count_parameters(model)


@lru_cache(maxsize=256)
def _count_parameters(model: Transformer) -> ParameterCounts:
    attention = attention_parameters(model)
    dense_ffn = feed_forward_parameters(model, model.ffn_hidden_size)
    routed = expert_layer_parameters(model, model.experts) if model.experts else LayerParameters(0, 0)
    routed_layers = expert_layer_count(model)
    dense_layers, attending = ffn_layer_count(model) - routed_layers, attention_layer_count(model)
    mixers = model.state_space.layers * state_space_parameters(model, model.state_space) if model.state_space else 0
    encoder = attending * attention + mixers + dense_layers * dense_ffn + routed_layers * routed.multiplied
    idle = routed_layers * (routed.stored - routed.multiplied)
    # The decoder's cross-attention reads the encoder's tokens: its keys and values are multiplied with those.
    cross_keys_values = model.decoder_layers * 2 * model.hidden_size * model.kv_heads * model.head_dim
    encoder += cross_keys_values
    decoder = model.decoder_layers * (2 * attention + dense_ffn) - cross_keys_values
    embedding = float(model.vocab_size * model.hidden_size if model.kind != "vit" else 0)
    positions = model.max_positions * model.hidden_size
    head = float(model.vocab_size * model.hidden_size)
    met_head = head * (model.masked_share or 1.0) if model.kind != "vit" else 0.0
    blocks = 2 * model.layers if model.ffn_layers is None else model.layers
    norms = (blocks + 3 * model.decoder_layers + 1 + bool(model.decoder_layers)) * norm_parameters(model)
    separate_head = 0.0 if model.tied_embeddings and model.kind != "vit" else head
    counted_active = encoder + decoder + embedding + positions + separate_head + norms
    counted_total = counted_active + idle
    total = model.params or counted_total
    active = model.active_params or (counted_active if model.params is None else counted_active * total / counted_total)
    scale, stored_scale = active / counted_active, total / counted_total
    return ParameterCounts(
        total=total,
        active=active,
        attention=stored_scale * ((attending + 2 * model.decoder_layers) * attention + mixers),
        feed_forward=stored_scale * (dense_layers * dense_ffn + routed_layers * routed.stored + model.decoder_layers * dense_ffn),
        embedding=stored_scale * (embedding + positions),
        head=stored_scale * separate_head,
        multiplied=scale * (encoder + decoder + met_head),
        encoder_multiplied=scale * (encoder + (0 if model.decoder_layers else met_head)),
        decoder_multiplied=scale * (decoder + met_head) if model.decoder_layers else 0.0,
        head_multiplied=scale * met_head,
        expert_stored=stored_scale * routed_layers * (routed.stored - (routed.multiplied - _visited(model))),
        active_scale=scale,
    )


def _visited(model: Transformer) -> float:
    if model.experts is None:
        return 0.0
    return model.experts.experts_per_token * feed_forward_parameters(model, model.experts.ffn_hidden_size)


def head_weights(model: Transformer, counts: ParameterCounts) -> float:
    """Weights of the output head, which are the embedding's where the two share them [1]."""
    return counts.embedding if model.tied_embeddings and model.kind != "vit" else counts.head


def total_parameters(model: Model) -> float:
    """All weights of any network [1]; 0 for a network stated by its FLOPs alone."""
    return count_parameters(model).total if isinstance(model, Transformer) else model.params or 0.0
