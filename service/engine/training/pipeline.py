"""The pipeline stages of which one is the fullest: the front of the pipeline and its end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.domain.training.model import Model, Transformer
from service.domain.training.run import Training
from service.engine.training.layouts import Layouts, layer_count, micro_batches
from service.engine.training.parameters import count_parameters, expert_layer_count

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """What bytes of one pipeline stage go with, one position a layout; weights are counted before tensor and expert ranks divide them.

    `layers`; `dense`: weights that every token meets, tables included; `tables`: those of embedding and head; `routed`: weights of all
    experts; `stacked`: layers times micro-batches whose activations are kept; `decoder`: as many of these as are an encoder-decoder's
    decoder layers (`routed` and `decoder` go with nothing where there are none); `head`: 1 where the stage computes logits, 0 elsewhere.
    """

    layers: Floats
    dense: Floats
    tables: Floats | float
    routed: Floats
    in_flight_layers: Floats
    decoder: Floats
    head: Floats | float


def pipeline_stages(model: Transformer, training: Training, layouts: Layouts) -> tuple[PipelineStage, PipelineStage]:
    """The front stage, which keeps the most micro-batches in flight and the embedding, and the last, with the head and its logits.

    Layers that do not divide leave the last stage one short, then the first, as Llama 3 (arXiv 2407.21783, section 3.3.2) cuts
    126 layers into 16 stages: then the second, whole and one micro-batch less ahead, is taken for the front.
    Where embedding and head are shared both ends of a pipeline hold a copy (Narayanan et al. 2021, arXiv 2104.04473, section 2.2).
    """
    pipeline, chunks = layouts.pipeline.astype(float), layouts.virtual_pipeline.astype(float)
    counts, count = count_parameters(model), micro_batches(training, layouts)
    only = (pipeline == 1).astype(float)
    most = np.ceil(layer_count(model) / pipeline)
    spare = most * pipeline - layer_count(model)
    first_short = (spare >= 2).astype(float)
    ahead = np.minimum(in_flight(pipeline, chunks, pipeline - first_short), count)
    behind = np.minimum(in_flight(pipeline, chunks, 1.0), count)
    # Without a pipeline no layer is spare: the one stage holds both tables.
    front = _stage(model, most, only * counts.head + (1 - first_short) * counts.embedding, ahead, only)
    last = _stage(model, most - (spare >= 1), counts.head or counts.embedding, behind, 1.0)
    if model.decoder_layers:
        front = replace(front, decoder=np.clip((first_short + 1.0) * most - model.layers, 0.0, most) * ahead)
        last = replace(last, decoder=np.minimum(last.layers, model.decoder_layers) * behind)
    return front, last


def _stage(model: Transformer, layers: Floats, tables: Floats | float, ahead: Floats, head: Floats | float) -> PipelineStage:
    counts = count_parameters(model)
    body = counts.total - counts.embedding - counts.head - counts.expert_stored
    routed = counts.expert_stored * routed_share(model, layers) if model.experts else layers
    return PipelineStage(layers, layers * (body / layer_count(model)) + tables, tables, routed, layers * ahead, layers, head)


def in_flight(pipeline: Floats, chunks: Floats, later: Floats | float) -> Floats:
    """Micro-batches in flight on a stage, as many as its layers hold, with `later` stages from it on, itself included.

    1F1B: p - rank, which is `later` (Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1). Interleaved, of each chunk's 1/v of the
    layers: 2 (p - rank - 1) + (v - 1) p + 1, which on the first stage is p (1 + (p - 1) / (p v)) of all (Korthikanti et al. 2022,
    arXiv 2205.05198, section 4.2.3).
    """
    return np.where(chunks > 1, (2 * later - 1 + (chunks - 1) * pipeline) / chunks, later)


def stage_layers(model: Model, layouts: Layouts) -> Floats:
    """Layers of the fullest pipeline stage."""
    return np.ceil(layer_count(model) / layouts.pipeline)


def routed_share(model: Transformer, layers: Floats) -> Floats:
    """Share of the model's routed layers among `layers` of a stage that has as many of them as it can."""
    routed = expert_layer_count(model)
    if model.experts is None or not routed:
        return np.zeros_like(layers)
    on_stage = layers if model.experts.moe_every == 1 else np.ceil(layers / model.experts.moe_every)
    share: Floats = np.minimum(on_stage, routed) / routed
    return share


def embedding_weights_per_rank(model: Transformer, layouts: Layouts) -> Floats:
    """Weights of embedding and head on one tensor rank: the first stage holds the one, the last the other; without a pipeline both."""
    counts = count_parameters(model)
    both = counts.embedding + counts.head
    return np.where(layouts.pipeline > 1, max(counts.embedding, counts.head), both) / layouts.tensor


def expert_ranks(layouts: Layouts) -> Floats:
    """Over how many ranks one set of experts is spread: the expert ranks, or the tensor ranks where those are more."""
    return np.maximum(layouts.expert, layouts.tensor).astype(float)
