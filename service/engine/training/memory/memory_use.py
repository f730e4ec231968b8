"""Memory on the fullest accelerator, by part, vectorised over layouts.

Weights and optimizer states after Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054, section 3; `model_states.py`), activations after
Korthikanti et al. 2022 (`activations.py`). With a pipeline the parts are those of its fullest stage, the first or the last
(`pipeline_stages.py`); fine-tuning is followed through the moments of a step (`memory/finetuning.py`). Bytes of a parameter and of an
element are data (`Footprint`). Left out: offloading to the host's memory, copies of weights for averaging, and networks' own
workspaces.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.training.footprint import Footprint
from service.domain.training.model import GenericNetwork, Model, Transformer
from service.domain.training.run import TUNED, Training
from service.engine.training.dtypes import element_bytes, gradient_bytes, optimizer_bytes, weight_bytes
from service.engine.training.flops import auxiliary_networks, mean_context_tokens
from service.engine.training.layouts import Layouts, auxiliary_layouts, layer_count
from service.engine.training.memory.activations import activation_bytes, logit_bytes
from service.engine.training.memory.finetuning import finetuning_phases
from service.engine.training.memory.model_states import BytesPerUnit, model_state_bytes
from service.engine.training.parameters import ParameterCounts, attention_layer_count, count_parameters, expert_layer_count, head_weights
from service.engine.training.pipeline_stages import (
    PipelineStage,
    expert_ranks,
    pipeline_stages,
)
from service.engine.training.rl.memory import longest_sequences, resident_bytes
from service.engine.training.sharding import local_parameters, zero_sharded

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes on the fullest accelerator: one position a layout, or a grid of them where the layouts' columns broadcast.

    Attributes
    ----------
    phases : tuple of mapping of str to BytesPerUnit
        For each moment of the step that may be the fullest: by part, bytes for each unit of what a stage holds [B].
    stages : tuple of PipelineStage
        First and last stage, of which the fuller counts; empty without stages.
    beside : mapping of str to float array
        Parts that are the same on every stage [B].
    footprint : Footprint
        What the device and its allocator hold on top.
    """

    phases: tuple[Mapping[str, BytesPerUnit], ...]
    stages: tuple[PipelineStage, ...]
    beside: Mapping[str, Floats]
    footprint: Footprint

    @property
    def total(self) -> Floats:
        """All parts [B]."""
        held = [_sum([term for unit in units.values() for term in _terms(unit, stage)]) for units in self.phases for stage in self.stages]
        used = _sum([*self.beside.values(), *([functools.reduce(np.maximum, held)] if held else [])])
        return used + self._reserve(used)

    @property
    def parts(self) -> dict[str, Floats]:
        """Each part, in the order of an answer [B]."""
        held = [{part: _added(_terms(unit, stage)) for part, unit in units.items()} for units in self.phases for stage in self.stages]
        parts = {**_fullest(held), **self.beside}
        return {**parts, "reserve": self._reserve(_added(parts.values()))}

    def at(self, place: tuple[int, ...]) -> dict[str, float]:
        """Parts of the layout at one position of the grid [B]."""
        phases = tuple(
            {part: {name: _at(size, place) for name, size in unit.items()} for part, unit in units.items()} for units in self.phases
        )
        stages = tuple(PipelineStage(*(_at(getattr(stage, name), place) for name in PipelineStage.__slots__)) for stage in self.stages)
        beside = {part: _at(size, place) for part, size in self.beside.items()}
        return {part: float(size) for part, size in MemoryUse(phases, stages, beside, self.footprint).parts.items()}

    def _reserve(self, used: Floats) -> Floats:
        return self.footprint.reserve_bytes + self.footprint.fragmentation_share * used


def memory_use(model: Model, training: Training, layouts: Layouts) -> MemoryUse:
    """Memory of a run on its fullest accelerator.

    Returns
    -------
    MemoryUse
        By part [B].
    """
    training = longest_sequences(training)
    beside = {"auxiliary_models": auxiliary_weight_bytes(model, training, layouts)}
    if isinstance(model, GenericNetwork):
        return MemoryUse((), (), {**_other(model, training, layouts), **beside}, training.footprint)
    if training.rl is not None:
        beside = {**resident_bytes(model, training, layouts), **beside}
    elif training.method == "rl":
        beside = {"kv_cache": kv_cache_bytes(model, training, layouts), **beside}
    counts = count_parameters(model)
    stages = pipeline_stages(model, counts, training, layouts)
    return MemoryUse(_phases(model, counts, training, layouts), stages, beside, _with_reserve(training))


def _with_reserve(training: Training) -> Footprint:
    """The footprint with what the device and the allocator hold under the method's software."""
    whole, tuned = training.footprint, training.footprint.finetuning
    if training.method not in TUNED:
        return whole
    reserve, fragmentation = (min(getattr(whole, name), getattr(tuned, name)) for name in ("reserve_bytes", "fragmentation_share"))
    return replace(whole, reserve_bytes=reserve, fragmentation_share=fragmentation)


def _phases(model: Transformer, counts: ParameterCounts, training: Training, layouts: Layouts) -> tuple[Mapping[str, BytesPerUnit], ...]:
    """Moments of a step that may be its fullest: one with everything at once where many micro-batches are under way."""
    if training.method in TUNED:
        return finetuning_phases(model, counts, training, layouts)
    units = {
        **model_state_bytes(model, counts, training, layouts),
        "activations": activation_bytes(model, training, layouts),
        "logits": logit_bytes(model, training, layouts),
        "buffers": buffer_bytes(model, counts, training, layouts),
    }
    return (units,)


def _terms(unit: BytesPerUnit, stage: PipelineStage) -> list[Floats]:
    """Bytes of a part on a stage: what the stage has of each unit, times the bytes of one."""
    return [size if name == "once" else size * getattr(stage, name) for name, size in unit.items()]


def _fullest(held: list[dict[str, Floats]]) -> dict[str, Floats]:
    """Parts of the fullest of stages and moments, layout by layout; none of none."""
    fullest, *others = held or [{}]
    for other in others:
        fuller = _added(fullest.values()) >= _added(other.values())
        fullest = {part: np.where(fuller, size, other[part]) for part, size in fullest.items()}
    return fullest


def _added(parts: Iterable[Floats]) -> Floats:
    """Sum of the parts."""
    return functools.reduce(operator.add, parts)


def _sum(parts: Iterable[Floats]) -> Floats:
    """Sum, those of equal shape first: what does not change along an axis of the grid is not added along it."""
    by_shape: dict[tuple[int, ...], Floats] = {}
    for part in parts:
        before = by_shape.get(part.shape)
        by_shape[part.shape] = part if before is None else before + part
    return _added(sorted(by_shape.values(), key=np.size))


def _at(values: Any, place: tuple[int, ...]) -> Any:
    """The value at one position of the grid that the values broadcast to."""
    if np.ndim(values) == 0:
        return values
    return values[tuple([at if size > 1 else 0 for at, size in zip(place[-values.ndim :], values.shape, strict=True)])]


def _other(model: GenericNetwork, training: Training, layouts: Layouts) -> dict[str, Floats]:
    local = local_parameters(model, layouts)
    return {
        "weights": weight_bytes(training) * zero_sharded(local, layouts, 3),
        "gradients": gradient_bytes(training, layouts) * zero_sharded(local, layouts, 2),
        "optimizer": optimizer_bytes(training) * zero_sharded(local, layouts, 1),
        "activations": generic_activation_bytes(model, training, layouts),
    }


def buffer_bytes(model: Transformer, counts: ParameterCounts, training: Training, layouts: Layouts) -> BytesPerUnit:
    """Buffers of collectives.

    - ZeRO 3: the layer being computed and the next one gathered, as wide as activations (Zhao et al. 2023, PyTorch FSDP, arXiv 2304.11277,
      section 3.4: at most two gathers in flight), and a stage's embeddings, which no layer's unit holds.
    - ZeRO 2 and 3: one layer's full gradients before their reduction.
    - otherwise: 16-bit gradients of the head's and one layer's weights before they are added to the sum; Transformer Engine keeps one for
      every shape of a weight, so that experts share theirs.
    - sequence parallelism: a matrix product's input and its output's gradient, gathered over tensor ranks (Korthikanti et al. 2022,
      section 4.2.2).

    Returns
    -------
    BytesPerUnit
        [B].
    """
    dense = (counts.total - counts.embedding - counts.head - counts.expert_stored) / layer_count(model)
    layer = dense / layouts.tensor
    if model.experts:
        layer = layer + counts.expert_stored / np.maximum(expert_layer_count(model), 1) / expert_ranks(layouts)
    element = element_bytes(training)
    reduced = training.footprint.gradient_bytes[training.precision]
    whole = np.array([0.0, 0.0, reduced, 2 * element + min(reduced, element)])
    held = whole[layouts.zero_stage] * layer
    if training.sequence_parallel:
        held += (layouts.tensor > 1) * (layouts.micro_batch / layouts.context) * (2 * element * model.hidden_size * training.seq_len)
    summed = np.array([element, element, element, 0.0])[layouts.zero_stage]
    head = head_weights(model, counts) / layouts.tensor
    return {
        "once": held + summed * _product_weights(model, counts, layouts),
        "head": summed * head,
        "tables": np.array([0.0, 0.0, 0.0, element])[layouts.zero_stage] / layouts.tensor,
    }


def _product_weights(model: Transformer, counts: ParameterCounts, layouts: Layouts) -> Floats:
    """Weights of a layer on one rank, of its experts one."""
    dense = (counts.total - counts.embedding - counts.head - counts.expert_stored) / layer_count(model)
    if model.experts is None:
        return dense / layouts.tensor
    expert = counts.expert_stored / np.maximum(expert_layer_count(model), 1) / model.experts.experts
    weights: Floats = dense / layouts.tensor + expert / layouts.expert_tensor
    return weights


def kv_cache_bytes(model: Transformer, training: Training, layouts: Layouts) -> Floats:
    """Keys and values of one micro-batch while an RL step samples its answers: the least that sampling takes.

    Heads divide over tensor ranks as far as there are any; a latent cache is full on each (DeepSeek-V2, arXiv 2405.04434, section 2.1).

    Returns
    -------
    (layouts,) float array
        [B].
    """
    heads = np.ones(1) if model.latent else np.minimum(layouts.tensor, model.kv_heads)
    sequences = layouts.micro_batch / layouts.context
    return sequences * key_value_bytes_per_sequence(model, training.seq_len) / (heads * layouts.pipeline)


def key_value_bytes_per_sequence(model: Transformer, seq_len: float) -> float:
    """16-bit keys and values that a sequence leaves for its next token; a window holds only its own tokens.

    Parameters
    ----------
    model : Transformer
        Shape.
    seq_len : float
        Tokens of the sequence.

    Returns
    -------
    float
        [B].
    """
    width = 2.0 * model.kv_heads * model.head_dim
    if model.latent is not None:
        width = float(model.latent.kv_lora_rank + model.latent.qk_rope_head_dim)
    return 2.0 * width * attention_layer_count(model) * mean_context_tokens(model, seq_len)


def auxiliary_weight_bytes(model: Model, training: Training, layouts: Layouts) -> Floats:
    """16-bit weights of teacher, reward model, reference and a network's own frozen parts, divided as the trained weights are.

    Returns
    -------
    (layouts,) float array
        [B].
    """
    total = np.zeros(layouts.tensor.shape)
    for helper in auxiliary_networks(model, training):
        divided = auxiliary_layouts(model, layouts)
        total = total + 2.0 * zero_sharded(local_parameters(helper, divided), divided, 3)
    if isinstance(model, GenericNetwork):
        frozen = model.frozen_params / (layouts.tensor * layouts.pipeline)
        total = total + 2.0 * zero_sharded((frozen, np.zeros(1)), layouts, 3)
    return total


def generic_activation_bytes(model: GenericNetwork, training: Training, layouts: Layouts) -> Floats:
    """Activations of a micro-batch of a network counted by samples; 0 where the preset does not know them (and says so).

    Returns
    -------
    (layouts,) float array
        [B].
    """
    return element_bytes(training) / 2 * (model.activation_bytes_per_sample or 0.0) * layouts.micro_batch.astype(float)
