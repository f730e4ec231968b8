"""First and last pipeline stage; one of them needs the most memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.domain.training.model import Model, Transformer
from service.domain.training.run import Training
from service.engine.training.layouts import Layouts, layer_count, micro_batches
from service.engine.training.parameters import ParameterCounts, expert_layer_count, head_weights

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """Quantities that determine the memory of one pipeline stage, before division by tensor and expert ranks.

    Every field: (layouts,) float array.

    Attributes
    ----------
    layers
        Layers [1].
    dense
        Weights that every token meets, embedding and head included [1].
    tables
        Weights of embedding and head [1].
    routed
        Weights of all experts [1]; unused where there are none.
    in_flight_layers
        Layers times micro-batches whose activations are stored [1].
    decoder
        Those of them that are an encoder-decoder's decoder layers [1]; unused where there are none.
    head
        1 where the stage computes logits, else 0.
    """

    layers: Floats
    dense: Floats
    tables: Floats | float
    routed: Floats
    in_flight_layers: Floats
    decoder: Floats
    head: Floats | float


def pipeline_stages(
    model: Transformer, counts: ParameterCounts, training: Training, layouts: Layouts
) -> tuple[PipelineStage, PipelineStage]:
    """The first stage, with the most micro-batches in flight and the embedding, and the last, with the head and its logits.

    Layers that do not divide leave the last stage one short, then the first, as Llama 3 cuts 126 layers into 16 stages: then the second,
    full and one micro-batch less ahead, stands for the first. Where embedding and head are shared both ends of a pipeline hold a copy.

    Returns
    -------
    tuple of 2 PipelineStage
        First and last.

    References
    ----------
    Llama 3 (arXiv 2407.21783), section 3.3.2; Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.
    """
    pipeline, chunks = layouts.pipeline.astype(float), layouts.virtual_pipeline.astype(float)
    count = micro_batches(training, layouts)
    only = (pipeline == 1).astype(float)
    most = np.ceil(layer_count(model) / pipeline)
    spare = most * pipeline - layer_count(model)
    first_short = (spare >= 2).astype(float)
    ahead = np.minimum(in_flight(pipeline, chunks, pipeline - first_short), count)
    behind = np.minimum(in_flight(pipeline, chunks, 1.0), count)
    # Without a pipeline no layer is spare: the one stage holds both tables.
    front = _stage(model, counts, most, only * counts.head + (1 - first_short) * counts.embedding, ahead, only)
    if model.experts and model.experts.dense_layers:
        leading = np.maximum(model.experts.dense_layers - first_short * (most - 1), 0.0)
        front = replace(front, routed=counts.expert_stored * routed_share(model, np.maximum(most - leading, 0.0)))
    last = _stage(model, counts, most - (spare >= 1), head_weights(model, counts), behind, 1.0)
    if model.decoder_layers:
        front = replace(front, decoder=np.clip((first_short + 1.0) * most - model.layers, 0.0, most) * ahead)
        last = replace(last, decoder=np.minimum(last.layers, model.decoder_layers) * behind)
    return front, last


def _stage(
    model: Transformer, counts: ParameterCounts, layers: Floats, tables: Floats | float, ahead: Floats, head: Floats | float
) -> PipelineStage:
    body = counts.total - counts.embedding - counts.head - counts.expert_stored
    routed = counts.expert_stored * routed_share(model, layers) if model.experts else layers
    return PipelineStage(layers, layers * (body / layer_count(model)) + tables, tables, routed, layers * ahead, layers, head)


def in_flight(pipeline: Floats, chunks: Floats, later: Floats | float) -> Floats:
    """Micro-batches in flight on a stage, weighed by the share of its layers that store them.

    1F1B: p - rank. Interleaved, of each chunk's 1/v of the layers: 2 (p - rank - 1) + (v - 1) p + 1, which on the first stage is p (1 + (p
    - 1) / (p v)) of all.

    Parameters
    ----------
    pipeline, chunks : (layouts,) float array
        Stages p, and chunks v of each.
    later : (layouts,) float array or float
        Stages from this one on, itself included: p - rank.

    Returns
    -------
    (layouts,) float array
        [1].

    References
    ----------
    Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.1; Korthikanti et al. 2022 (arXiv 2205.05198), section 4.2.3.
    """
    return np.where(chunks > 1, (2 * later - 1 + (chunks - 1) * pipeline) / chunks, later)


def stage_layers(model: Model, layouts: Layouts) -> Floats:
    """Layers of the fullest pipeline stage.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    return np.ceil(layer_count(model) / layouts.pipeline)


def routed_share(model: Transformer, layers: Floats) -> Floats:
    """Share of the model's layers with experts that a stage has at most.

    Parameters
    ----------
    model : Transformer
        Shape.
    layers : (layouts,) float array
        Layers of the stage [1].

    Returns
    -------
    (layouts,) float array
        [1].
    """
    if model.experts is None:
        return np.zeros_like(layers)
    routed = expert_layer_count(model)
    on_stage = layers if model.experts.moe_every == 1 else np.ceil(layers / model.experts.moe_every)
    share: Floats = np.minimum(on_stage, routed) / np.maximum(routed, 1)
    return share


def embedding_weights_per_rank(counts: ParameterCounts, layouts: Layouts) -> Floats:
    """Weights of embedding and head on one tensor rank: the first stage holds the one, the last the other; without a pipeline both.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    both = counts.embedding + counts.head
    return np.where(layouts.pipeline > 1, np.maximum(counts.embedding, counts.head), both) / layouts.tensor


def expert_ranks(layouts: Layouts) -> Floats:
    """Ranks over which one set of experts is spread: the expert ranks, each times the slices of an expert.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    return (layouts.expert * layouts.expert_tensor).astype(float)
