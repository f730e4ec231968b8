"""What serving needs to know of a model, and the memory it takes: weights, cache of keys and values, activations.

Everything broadcasts: configurations along a row, model sizes down a column. Decoder-only transformers alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.serving.requirements import MeanRequest, Replicas, ServingMachine, WeightFormat
from service.domain.training.model import Transformer
from service.engine.training.flops import attention_width
from service.engine.training.parameters import count_parameters, expert_layer_count
from service.engine.training.shape import infer_shape

if TYPE_CHECKING:
    from service.domain.serving.requirements import Amount

ACTIVATION_BYTES = 2.0
LOGIT_BYTES = 4.0


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model's quantities: figures, or columns of them, one for each size.

    Weights: `dense` of the layers that every token meets, `routed` of all experts, `embedding` and `head` (0 where tied to it).
    FLOPs a token: `matrix_flops` of the layers' matrices, `routed_flops` of them the experts', `head_flops`; for each token attended to,
    over all layers: `prefill_flops`, and `decode_flops`, which differ for latent attention. `cache_elements` a token leaves over all
    layers; `cache_split`: parts it divides into. `global_share` of the layers see everything, the others the last `window` tokens.
    """

    total: Amount
    layers: Amount
    hidden_size: Amount
    inner_size: Amount
    vocab_size: Amount
    dense: Amount
    routed: Amount
    embedding: Amount
    head: Amount
    matrix_flops: Amount
    routed_flops: Amount
    head_flops: Amount
    prefill_flops: Amount
    decode_flops: Amount
    cache_elements: Amount
    cache_split: Amount
    window: Amount
    global_share: Amount
    experts: Amount
    experts_per_token: Amount
    expert_layers: Amount

    @property
    def table(self) -> Amount:
        """Weights of the output's matrix, be it tied or not."""
        return self.head + (self.head == 0) * self.embedding


@dataclass(frozen=True, slots=True)
class ServingSetup:
    """What is served, how it is stored, on what, and to which requests."""

    model: ServedModel
    stored: WeightFormat
    machine: ServingMachine
    requests: MeanRequest


def describe_served_model(model: Transformer) -> ServedModel:
    """The quantities of one model. Raises InvalidRequest for other networks than decoder-only transformers."""
    if not isinstance(model, Transformer) or model.kind != "transformer":
        raise InvalidRequest("serving is counted for decoder-only transformers; state one by its shape, size or preset", "/model")
    counts, experts = count_parameters(model), model.experts
    return ServedModel(
        total=counts.total,
        layers=float(model.layers),
        hidden_size=float(model.hidden_size),
        inner_size=_inner_size(model),
        vocab_size=float(model.vocab_size),
        dense=counts.total - counts.expert_stored - counts.embedding - counts.head,
        routed=counts.expert_stored,
        embedding=counts.embedding,
        head=counts.head,
        matrix_flops=2 * (counts.multiplied - counts.head_multiplied),
        routed_flops=2 * counts.expert_stored * experts.experts_per_token / experts.experts if experts else 0.0,
        head_flops=2 * counts.head_multiplied,
        prefill_flops=2 * model.layers * attention_width(model),
        decode_flops=2 * model.layers * _decode_width(model),
        cache_elements=float(model.layers * _cache_width(model)),
        cache_split=1.0 if model.latent else float(model.kv_heads),
        window=float(model.sliding_window or np.inf),
        global_share=_global_share(model),
        experts=float(experts.experts) if experts else 0.0,
        experts_per_token=float(experts.experts_per_token) if experts else 0.0,
        expert_layers=float(expert_layer_count(model)),
    )


def served_sizes(sizes: Sequence[float], shape: Mapping[str, Any]) -> ServedModel:
    """Quantities of models of `sizes` parameters in a column, of the field's proportions but for the fields of `shape`."""
    rows = [describe_served_model(_of_size(size, shape)) for size in sizes]
    return ServedModel(**{field.name: np.array([[getattr(row, field.name)] for row in rows]) for field in fields(ServedModel)})


def cached_tokens(model: ServedModel, tokens: Amount) -> Amount:
    """Tokens of a sequence of `tokens` whose keys and values are kept, averaged over layers: a window keeps its own."""
    return model.global_share * tokens + (1 - model.global_share) * np.minimum(tokens, model.window)


def attended_tokens(service: ServingSetup) -> Amount:
    """Tokens that an output token attends to, averaged over layers and the output's length."""
    asked = service.requests
    middles = asked.prompt_tokens + asked.output_tokens * np.linspace(1 / 16, 15 / 16, 8)
    return sum(cached_tokens(service.model, float(middle)) for middle in middles) / len(middles)


def tensor_groups(replicas: Replicas) -> Amount:
    """Groups of tensor ranks in a replica."""
    return replicas.accelerators / replicas.tensor


def pipeline_stages(model: ServedModel, replicas: Replicas) -> Amount:
    """Pipeline stages: a dense model's groups."""
    return np.where(np.greater(model.routed, 0), 1.0, tensor_groups(replicas))


def memory_by_part(service: ServingSetup, replicas: Replicas) -> dict[str, Amount]:
    """Bytes on the fullest accelerator by part, every sequence in flight at its full length; they add up to what is taken."""
    return {
        "weights": weight_memory(service, replicas),
        "kv_cache": replicas.batch * sequence_bytes(service, replicas),
        "activations": activation_memory(service, replicas),
        "reserve": service.machine.limits.reserve_bytes * np.ones_like(replicas.batch),
    }


def weight_memory(service: ServingSetup, replicas: Replicas) -> Amount:
    """Bytes of weights on one accelerator: layers divided over tensor ranks and stages, experts over all accelerators.

    Embedding and head stay in wider elements and lie on the first and the last stage.
    """
    model, stored = service.model, service.stored
    deep = pipeline_stages(model, replicas)
    tables = np.where(deep > 1, np.maximum(model.embedding, model.table), model.embedding + model.head)
    layers = stored.weight_bytes * (model.dense / (replicas.tensor * deep) + model.routed / replicas.accelerators)
    return layers + stored.table_bytes * tables / replicas.tensor


def sequence_bytes(service: ServingSetup, replicas: Replicas) -> Amount:
    """Bytes of one sequence's keys and values at its full length, on each accelerator, averaged over groups.

    Heads divide over tensor ranks as far as there are any; a latent cache is whole on each (DeepSeek-V2, arXiv 2405.04434, 2.1).
    """
    full = cached_tokens(service.model, service.requests.prompt_tokens + service.requests.output_tokens)
    return token_cache_bytes(service) * full / (cache_parts(service, replicas) * tensor_groups(replicas))


def token_cache_bytes(service: ServingSetup) -> Amount:
    """Bytes of keys and values of one token over all layers."""
    return service.stored.kv_bytes * service.model.cache_elements


def cache_parts(service: ServingSetup, replicas: Replicas) -> Amount:
    """Parts that a group's tensor ranks divide a sequence's cache into."""
    return np.minimum(replicas.tensor, service.model.cache_split)


def activation_memory(service: ServingSetup, replicas: Replicas) -> Amount:
    """Bytes of one layer's activations for a step's tokens, and of the logits of a full batch: nothing is kept for a backward pass."""
    model, limits = service.model, service.machine.limits
    a_token = ACTIVATION_BYTES * (4 * model.hidden_size + 2 * model.inner_size / replicas.tensor)
    return limits.chunk_tokens * a_token + LOGIT_BYTES * limits.max_batch * model.vocab_size / replicas.tensor


def largest_batch(service: ServingSetup, replicas: Replicas) -> Amount:
    """Sequences that a replica holds at their full length, 0 where not even the weights fit; `replicas.batch` is not read.

    No sequence is ever evicted, so the cache has room for all of them at their end.
    """
    limits = service.machine.limits
    taken = weight_memory(service, replicas) + activation_memory(service, replicas) + limits.reserve_bytes
    free = limits.cache_share * (service.machine.accelerator.usable_memory_bytes - taken)
    return np.clip(np.floor(free / sequence_bytes(service, replicas)), 0.0, limits.max_batch * tensor_groups(replicas))


def _of_size(size: float, shape: Mapping[str, Any]) -> Transformer:
    return infer_shape({"params": size, **shape}).model


def _cache_width(model: Transformer) -> int:
    if model.latent is not None:
        return model.latent.kv_lora_rank + model.latent.qk_rope_head_dim
    return 2 * model.kv_heads * model.head_dim


def _decode_width(model: Transformer) -> float:
    """As `attention_width`; with latent attention every head works on the latent itself, its own projections being absorbed into those
    of queries and outputs (DeepSeek-V2, arXiv 2405.04434, section 2.1.2).
    """
    if model.latent is None:
        return attention_width(model)
    return float(model.attention_heads * (2 * model.latent.kv_lora_rank + model.latent.qk_rope_head_dim))


def _inner_size(model: Transformer) -> float:
    """Width of the feed-forward that a token meets."""
    if model.experts is None:
        return float(model.ffn_hidden_size)
    shared = model.experts.shared_experts * (model.experts.shared_ffn_hidden_size or model.experts.ffn_hidden_size)
    return float(max(model.ffn_hidden_size, model.experts.experts_per_token * model.experts.ffn_hidden_size + shared))


def _global_share(model: Transformer) -> float:
    if model.sliding_window is None:
        return 1.0
    return (model.layers // model.global_attention_every) / model.layers if model.global_attention_every else 0.0
