"""Weights that one rank holds: of the fullest pipeline stage, divided over tensor, expert and, by ZeRO, data ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from service.domain.training.model import GenericNetwork, Model, Transformer
from service.domain.training.run import Training
from service.engine.training.adapters import expert_adapter_parameters, shared_adapter_parameters
from service.engine.training.layouts import Layouts, layer_count
from service.engine.training.parameters import count_parameters
from service.engine.training.pipeline_stages import embedding_weights_per_rank, expert_ranks, routed_share, stage_layers

Floats = NDArray[np.float64]
# Weights that every token meets, and weights of experts, on one rank.
LocalWeights = tuple[Floats, Floats]


def local_parameters(model: Model, layouts: Layouts) -> LocalWeights:
    """Weights of the fullest pipeline stage on one tensor rank.

    Returns
    -------
    tuple of 2 (layouts,) float arrays
        Weights shared by all data ranks, and weights of the experts on this rank [1].
    """
    if isinstance(model, GenericNetwork):
        return (model.params or 0.0) / (layouts.tensor * layouts.pipeline), np.zeros(layouts.tensor.shape)
    counts = count_parameters(model)
    layers = stage_layers(model, layouts)
    body = counts.total - counts.embedding - counts.head - counts.expert_stored
    dense = body * (layers / layer_count(model)) / layouts.tensor + embedding_weights_per_rank(counts, layouts)
    return dense, counts.expert_stored * routed_share(model, layers) / expert_ranks(layouts)


def local_adapters(model: Model, training: Training, layouts: Layouts) -> LocalWeights:
    """Adapter weights of the fullest pipeline stage on one tensor rank.

    Returns
    -------
    tuple of 2 (layouts,) float arrays
        Adapters that every token meets, and those of the experts on this rank [1].
    """
    if isinstance(model, GenericNetwork):
        return np.zeros(layouts.tensor.shape), np.zeros(layouts.tensor.shape)
    layers = stage_layers(model, layouts)
    dense = shared_adapter_parameters(model, training) * (layers / layer_count(model)) / layouts.tensor
    number = model.experts.experts if model.experts else 0
    experts = number * expert_adapter_parameters(model, training) * routed_share(model, layers)
    return dense, experts / expert_ranks(layouts)


def zero_sharded(local: LocalWeights, layouts: Layouts, from_stage: int) -> Floats:
    """Weights that a rank holds where ZeRO divides them over their replicas.

    Parameters
    ----------
    local : tuple of 2 (layouts,) float arrays
        Shared and expert weights before the division [1].
    layouts : Layouts
        ZeRO stage and ranks.
    from_stage : int
        First ZeRO stage that divides them.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    (dense, experts), split = local, layouts.zero_stage >= from_stage
    return np.where(split, dense / data_ranks(layouts) + experts / expert_replicas(layouts), dense + experts)


def zero_shares(model: Transformer, layouts: Layouts) -> dict[int, LocalWeights]:
    """Share of one shared and of one expert weight of a stage that a rank holds, where ZeRO divides them from stage 1, 2 or 3 on.

    Returns
    -------
    dict of int to tuple of 2 (layouts,) float arrays
        By the first ZeRO stage that divides them [1].
    """
    dense = _divided(1.0 / layouts.tensor, data_ranks(layouts), layouts)
    if model.experts is None:
        nothing = np.zeros(())
        return {stage: (share, nothing) for stage, share in dense.items()}
    experts = _divided(1.0 / expert_ranks(layouts), expert_replicas(layouts), layouts)
    return {stage: (share, experts[stage]) for stage, share in dense.items()}


def _divided(weights: Floats, ranks: Floats, layouts: Layouts) -> dict[int, Floats]:
    """Weights that a rank holds where ZeRO divides them from stage 1, 2 or 3 on."""
    share = weights / ranks
    return {stage: np.where(layouts.zero_stage >= stage, share, weights) for stage in (1, 2, 3)}


def data_ranks(layouts: Layouts) -> Floats:
    """Ranks that hold the same shared weights.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    return (layouts.data * layouts.context).astype(float)


def expert_replicas(layouts: Layouts) -> Floats:
    """Ranks that hold the same experts.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    return np.maximum(data_ranks(layouts) * layouts.tensor / expert_ranks(layouts), 1.0)
