"""Weights of LoRA adapters: rank * (inputs + outputs) of each layer they are on (Hu et al. 2021, arXiv 2106.09685, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping

from service.domain.training.model import GenericNetwork, Model, Transformer
from service.domain.training.run import Training
from service.engine.training.parameters import attention_layer_count, block_shares, expert_layer_count, ffn_layer_count

# Linear layers by their usual names, each with its inputs plus outputs [1].
LinearLayers = Mapping[str, int]


def adapter_parameters(model: Model, training: Training, *, visited: bool = False) -> float:
    """Weights of all adapters. Each expert has its own.

    Parameters
    ----------
    model : Model
        Network; any but a transformer has none.
    training : Training
        Rank of the adapters, and the layers they are on.
    visited : bool
        Count only the adapters that one token meets.

    Returns
    -------
    float
        Weights [1].
    """
    if isinstance(model, GenericNetwork):
        return 0.0
    met = 0 if model.experts is None else model.experts.experts_per_token if visited else model.experts.experts
    return shared_adapter_parameters(model, training) + met * expert_adapter_parameters(model, training)


def shared_adapter_parameters(model: Transformer, training: Training) -> float:
    """Weights of the adapters that every token meets: those of attention, dense feed-forwards and shared experts.

    Parameters
    ----------
    model : Transformer
        Shape.
    training : Training
        Rank of the adapters, and the layers they are on.

    Returns
    -------
    float
        Weights [1].
    """
    groups = frozenset(training.adapter_targets)
    routed_layers = expert_layer_count(model)
    blocks = attention_layer_count(model) + 2 * model.decoder_layers
    ends = blocks * _adapted(_attention_layers(model), training, whole=bool(groups & {"attention", "all_linear", "experts"}))
    dense = ffn_layer_count(model) + model.decoder_layers - routed_layers
    on_every_layer = bool(groups & {"all_linear", "experts"})
    ends += (model.state_space.layers if model.state_space else 0) * _adapted(_state_space_layers(model), training, whole=on_every_layer)
    ends += dense * _adapted(_feed_forward_layers(model, model.ffn_hidden_size), training, whole=on_every_layer)
    if model.experts:
        width = model.experts.shared_ffn_hidden_size or model.experts.ffn_hidden_size
        shared = _adapted(_feed_forward_layers(model, width), training, whole=on_every_layer)
        ends += routed_layers * model.experts.shared_experts * shared
    return float(training.lora_rank * ends)


def expert_adapter_parameters(model: Transformer, training: Training) -> float:
    """Weights of one routed expert's adapters, over all layers with experts; 0 where experts are no target.

    Parameters
    ----------
    model : Transformer
        Shape.
    training : Training
        Rank of the adapters, and the layers they are on.

    Returns
    -------
    float
        Weights [1].
    """
    if model.experts is None or "experts" not in training.adapter_targets:
        return 0.0
    ends = sum(_feed_forward_layers(model, model.experts.ffn_hidden_size).values())
    return float(training.lora_rank * expert_layer_count(model) * ends)


def has_adapter(training: Training, names: tuple[str, ...]) -> bool:
    """Whether adapters are on every layer, or on any of these: names, or the group `attention`."""
    groups = frozenset(training.adapter_targets)
    return bool(groups & {"all_linear", "experts", *names})


def adapters_of_a_layer(model: Transformer, training: Training) -> float:
    """Adapters that a token meets in a layer, averaged over the layers [1].

    Parameters
    ----------
    model : Transformer
        Shape.
    training : Training
        The layers that adapters are on.

    Returns
    -------
    float
        [1].
    """
    groups = frozenset(training.adapter_targets)
    every = bool(groups & {"all_linear", "experts"})
    attention: float = sum(every or "attention" in groups or name in groups for name in _attention_layers(model))
    inner = sum(every or name in groups for name in _feed_forward_layers(model, model.ffn_hidden_size))
    shares = block_shares(model)
    mixers = shares.state_space * sum(every or name in groups for name in _state_space_layers(model))
    attention = shares.attention * attention + mixers
    if model.experts is None:
        return float(attention + shares.feed_forward * inner)
    routed = expert_layer_count(model) / (model.layers + model.decoder_layers)
    visited = model.experts.experts_per_token * ("experts" in groups) * len(_feed_forward_layers(model, 1))
    return float(attention + (shares.feed_forward - routed) * inner + routed * (visited + inner * (model.experts.shared_experts > 0)))


def linear_layers(model: Transformer) -> tuple[str, ...]:
    """Names of the layers that adapters can be on, those of routed experts apart."""
    return (*_attention_layers(model), *_state_space_layers(model), *_feed_forward_layers(model, model.ffn_hidden_size))


def _adapted(layers: LinearLayers, training: Training, *, whole: bool) -> int:
    """Inputs plus outputs of the adapted layers: all of them, or those that are targets by name."""
    return sum(ends for name, ends in layers.items() if whole or name in training.adapter_targets)


def _feed_forward_layers(model: Transformer, width: int) -> LinearLayers:
    ends = model.hidden_size + width
    return {"up_proj": ends, "down_proj": ends, **({"gate_proj": ends} if model.gated_ffn else {})}


def _state_space_layers(model: Transformer) -> LinearLayers:
    mixer = model.state_space
    if mixer is None:
        return {}
    return {"in_proj": model.hidden_size + mixer.projected_size, "out_proj": mixer.inner_size + model.hidden_size}


def _attention_layers(model: Transformer) -> LinearLayers:
    hidden, heads = model.hidden_size, model.attention_heads
    if model.latent is None:
        query, key = hidden + heads * model.head_dim, hidden + model.kv_heads * model.head_dim
        return {"q_proj": query, "k_proj": key, "v_proj": key, "o_proj": query}
    latent = model.latent
    query_dim = heads * (latent.qk_nope_head_dim + latent.qk_rope_head_dim)
    down = hidden + latent.kv_lora_rank + latent.qk_rope_head_dim
    up = latent.kv_lora_rank + heads * (latent.qk_nope_head_dim + latent.v_head_dim)
    beside = {"kv_a_proj_with_mqa": down, "kv_b_proj": up, "o_proj": heads * latent.v_head_dim + hidden}
    if latent.q_lora_rank == 0:
        return {"q_proj": hidden + query_dim, **beside}
    return {"q_a_proj": hidden + latent.q_lora_rank, "q_b_proj": latent.q_lora_rank + query_dim, **beside}
