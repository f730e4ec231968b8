"""Quantities of a served model and the memory it takes: weights, cache of keys and values, activations.

Configurations are arrays of one shape. Decoder-only transformers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.serving.requirements import MeanRequest, Replicas, ServingMachine, WeightFormat
from service.domain.training.model import Transformer
from service.engine.training.flops import attention_width
from service.engine.training.parameters import attention_layer_count, count_parameters, expert_layer_count

if TYPE_CHECKING:
    from service.domain.serving.requirements import Amount

ACTIVATION_BYTES = 2.0
LOGIT_BYTES = 4.0
# Recurrent states are kept in the model's own 16-bit type unless their width is stated (vLLM, mamba_ssm_cache_dtype).
STATE_BYTES = 2.0
# Midpoints of eighths of an answer, over which what its tokens attend to is averaged.
OUTPUT_SHARES = np.linspace(1 / 16, 15 / 16, 8)


@dataclass(frozen=True, slots=True)
class ServedWeights:
    """Weights by where they are read.

    Attributes
    ----------
    dense, routed : float
        Of the layers that every token meets, and of all experts.
    embedding, head : float
        Of the embedding and of the head, 0 where it is tied to the embedding.
    """

    dense: float
    routed: float
    embedding: float
    head: float

    @property
    def output(self) -> Amount:
        """Weights of the output matrix, tied or not."""
        return np.where(np.greater(self.head, 0), self.head, self.embedding)


@dataclass(frozen=True, slots=True)
class TokenFlops:
    """Compute of a token.

    Attributes
    ----------
    matrices, routed, head : float
        In the layers' matrices, of which the experts', and in the head [FLOP].
    prefill, decode : float
        Attention over all layers for each token attended to [FLOP]; the two differ for latent attention.
    """

    matrices: float
    routed: float
    head: float
    prefill: float
    decode: float


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Cache of keys and values, and recurrent states.

    Attributes
    ----------
    elements : float
        Elements of keys and values that a token leaves over all layers.
    parts : float
        Parts that they divide into.
    window : float
        Sliding window [tokens], infinite without one.
    global_share : float
        Share of the layers that attend to everything [1].
    state_elements : float
        Elements that a sequence of any length holds in state-space layers, over all of them.
    """

    elements: float
    parts: float
    window: float
    global_share: float
    state_elements: float = 0.0


@dataclass(frozen=True, slots=True)
class ServedModel:
    """Quantities of a model in service.

    Attributes
    ----------
    params : float
        Parameters.
    layers, hidden_size, inner_size, vocab_size : float
        Shape; `inner_size` is the feed-forward width that a token meets.
    weights : ServedWeights
    flops : TokenFlops
    cache : CacheShape
    experts, experts_per_token, expert_layers : float
        0 for a dense model.
    """

    params: float
    layers: float
    hidden_size: float
    inner_size: float
    vocab_size: float
    weights: ServedWeights
    flops: TokenFlops
    cache: CacheShape
    experts: float
    experts_per_token: float
    expert_layers: float


@dataclass(frozen=True, slots=True)
class ServingSetup:
    """A model, its weight format, the machine and the mean request."""

    model: ServedModel
    weight_format: WeightFormat
    machine: ServingMachine
    request: MeanRequest


def describe_served_model(model: Transformer) -> ServedModel:
    """The quantities of a model.

    Parameters
    ----------
    model : Transformer

    Returns
    -------
    ServedModel

    Raises
    ------
    InvalidRequest
        For networks other than decoder-only transformers.
    """
    if not isinstance(model, Transformer) or model.kind != "transformer":
        raise InvalidRequest("serving is counted for decoder-only transformers; state one by its shape, size or preset", "/model")
    counts, experts = count_parameters(model), model.experts
    return ServedModel(
        params=counts.total,
        layers=float(model.layers),
        hidden_size=float(model.hidden_size),
        inner_size=_inner_size(model),
        vocab_size=float(model.vocab_size),
        weights=ServedWeights(
            dense=counts.total - counts.expert_stored - counts.embedding - counts.head,
            routed=counts.expert_stored,
            embedding=counts.embedding,
            head=counts.head,
        ),
        flops=TokenFlops(
            matrices=2 * (counts.multiplied - counts.head_multiplied),
            routed=2 * counts.expert_stored * experts.experts_per_token / experts.experts if experts else 0.0,
            head=2 * counts.head_multiplied,
            prefill=2 * attention_layer_count(model) * attention_width(model),
            decode=2 * attention_layer_count(model) * _decode_width(model),
        ),
        cache=CacheShape(
            elements=float(attention_layer_count(model) * _cache_width(model)),
            parts=1.0 if model.latent else float(model.kv_heads),
            window=float(model.sliding_window or np.inf),
            global_share=_global_share(model),
            state_elements=_state_elements(model),
        ),
        experts=float(experts.experts) if experts else 0.0,
        experts_per_token=float(experts.experts_per_token) if experts else 0.0,
        expert_layers=float(expert_layer_count(model)),
    )


def cached_tokens(model: ServedModel, tokens: Amount) -> Amount:
    """Tokens of a sequence whose keys and values are in the cache, averaged over layers.

    Parameters
    ----------
    model : ServedModel
    tokens : float or float array
        Length of the sequence.

    Returns
    -------
    float or float array
        Layers with a sliding window hold at most that window.
    """
    return model.cache.global_share * tokens + (1 - model.cache.global_share) * np.minimum(tokens, model.cache.window)


def attended_tokens(setup: ServingSetup) -> Amount:
    """Tokens that an output token attends to, averaged over layers and the output's length."""
    request = setup.request
    positions = request.prompt_tokens + request.output_tokens * OUTPUT_SHARES
    return float(np.mean(cached_tokens(setup.model, positions)))


def tensor_groups(replicas: Replicas) -> Amount:
    """Groups of tensor ranks in a replica."""
    return replicas.accelerators / replicas.tensor


def pipeline_stages(model: ServedModel, replicas: Replicas) -> Amount:
    """Pipeline stages: the groups of a dense model, 1 for mixtures of experts."""
    return np.where(np.greater(model.weights.routed, 0), 1.0, tensor_groups(replicas))


def memory_by_part(setup: ServingSetup, replicas: Replicas) -> dict[str, Amount]:
    """Memory of the fullest accelerator by part, every sequence in flight at its full length.

    Parameters
    ----------
    setup : ServingSetup
    replicas : Replicas

    Returns
    -------
    dict of str to float or float array
        Parts "weights", "kv_cache", "activations" and "reserve" [B]; they add up to the total.
    """
    return {
        "weights": weight_memory(setup, replicas),
        "kv_cache": replicas.batch * sequence_bytes(setup, replicas),
        "activations": activation_memory(setup, replicas),
        "reserve": setup.machine.limits.reserve_bytes * np.ones_like(replicas.batch),
    }


def weight_memory(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Weights on one accelerator: layers divided over tensor ranks and stages, experts over all accelerators.

    Parameters
    ----------
    setup : ServingSetup
    replicas : Replicas

    Returns
    -------
    float or float array
        Memory [B]. Embedding and head keep wider elements and lie on the first and the last stage.
    """
    weights, stored = setup.model.weights, setup.weight_format
    stages = pipeline_stages(setup.model, replicas)
    tables = np.where(stages > 1, np.maximum(weights.embedding, weights.output), weights.embedding + weights.head)
    layers = stored.weight_bytes * (weights.dense / (replicas.tensor * stages) + weights.routed / replicas.accelerators)
    return layers + stored.table_bytes * tables / replicas.tensor


def sequence_bytes(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Keys, values and recurrent states of one sequence at its full length on each accelerator, averaged over groups.

    Parameters
    ----------
    setup : ServingSetup
    replicas : Replicas

    Returns
    -------
    float or float array
        Memory [B]. Heads divide over tensor ranks as far as there are any; a latent cache is whole on each.

    References
    ----------
    DeepSeek-V2 (arXiv 2405.04434), section 2.1.
    """
    cached = cached_tokens(setup.model, setup.request.prompt_tokens + setup.request.output_tokens)
    keys_and_values = token_cache_bytes(setup) * cached / (cache_parts(setup, replicas) * tensor_groups(replicas))
    return keys_and_values + state_bytes(setup.model) / replicas.accelerators


def state_bytes(model: ServedModel) -> float:
    """Recurrent states of one sequence over all state-space layers, whose heads divide over tensor ranks [B]."""
    return STATE_BYTES * model.cache.state_elements


def token_cache_bytes(setup: ServingSetup) -> Amount:
    """Keys and values of one token over all layers [B]."""
    return setup.weight_format.kv_bytes * setup.model.cache.elements


def cache_parts(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Parts into which a group's tensor ranks divide a sequence's cache."""
    return np.minimum(replicas.tensor, setup.model.cache.parts)


def activation_memory(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Activations of one layer for a step's tokens and the logits of a full batch [B]; no backward pass."""
    model, limits = setup.model, setup.machine.limits
    bytes_per_token = ACTIVATION_BYTES * (4 * model.hidden_size + 2 * model.inner_size / replicas.tensor)
    return limits.chunk_tokens * bytes_per_token + LOGIT_BYTES * limits.max_batch * model.vocab_size / replicas.tensor


def largest_batch(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Sequences that a replica holds at their full length.

    Parameters
    ----------
    setup : ServingSetup
    replicas : Replicas
        Its batch is not read.

    Returns
    -------
    float or float array
        Sequences, 0 where not even the weights fit. No sequence is evicted, so the cache has room for all of them at their end.
    """
    limits = setup.machine.limits
    used_bytes = weight_memory(setup, replicas) + activation_memory(setup, replicas) + limits.reserve_bytes
    cache_bytes = limits.cache_share * (setup.machine.accelerator.usable_memory_bytes - used_bytes)
    return np.clip(np.floor(cache_bytes / sequence_bytes(setup, replicas)), 0.0, limits.max_batch * tensor_groups(replicas))


def _cache_width(model: Transformer) -> int:
    if model.latent is not None:
        return model.latent.kv_lora_rank + model.latent.qk_rope_head_dim
    return 2 * model.kv_heads * model.head_dim


def _state_elements(model: Transformer) -> float:
    """A matrix of each head, and the tokens before that the convolution mixes (Dao and Gu 2024, arXiv 2405.21060)."""
    mixer = model.state_space
    if mixer is None:
        return 0.0
    return float(mixer.layers * (mixer.inner_size * mixer.state_size + (mixer.conv_kernel - 1) * mixer.mixed_size))


def _decode_width(model: Transformer) -> float:
    """As `attention_width`; with latent attention every head works on the latent itself, with its projections absorbed into those of
    queries and outputs (DeepSeek-V2, arXiv 2405.04434, section 2.1.2).
    """
    if model.latent is None:
        return attention_width(model)
    return float(model.attention_heads * (2 * model.latent.kv_lora_rank + model.latent.qk_rope_head_dim))


def _inner_size(model: Transformer) -> float:
    """Feed-forward width that a token meets."""
    if model.experts is None:
        return float(model.ffn_hidden_size)
    shared = model.experts.shared_experts * (model.experts.shared_ffn_hidden_size or model.experts.ffn_hidden_size)
    return float(max(model.ffn_hidden_size, model.experts.experts_per_token * model.experts.ffn_hidden_size + shared))


def _global_share(model: Transformer) -> float:
    if model.sliding_window is None:
        return 1.0
    return (model.layers // model.global_attention_every) / model.layers if model.global_attention_every else 0.0
