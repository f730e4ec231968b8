"""Layouts of several shapes in one pass of the search: models, batches and machines of one kind, laid side by side as columns.

With the few hundred layouts of one shape numpy's calls take longer than their arithmetic. What a formula branches on is the same for all
shapes of a pass; what it multiplies with is a column.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.training.model import Transformer
from service.domain.training.run import TUNED, Cluster, Training
from service.domain.training.utilisation import Utilisation
from service.engine.training.layouts import Layouts, base_layouts, with_memory_options
from service.engine.training.memory.memory_use import memory_use
from service.engine.training.parameters import ParameterCounts, TransformerColumns, count_parameters
from service.engine.training.search.alternatives import TimedLayouts, alternatives, has_several_meshes
from service.engine.training.search.fitting_layouts import (
    SizedLayouts,
    check_axes,
    filled_share,
    near_capacity,
    with_every_saving,
    within_link,
)
from service.engine.training.search.layout_search import LayoutChoice, Question, as_choice, best_layout, is_remembered, remember
from service.engine.training.step.step_time import StepTime, slowed, step_time, typical_share

# Sizes of a transformer that no formula branches on.
SIZES = ("layers", "hidden_size", "attention_heads", "kv_heads", "head_dim", "ffn_hidden_size", "vocab_size")
_STRUCTURE = attrgetter(*(field.name for field in fields(Transformer) if field.name not in (*SIZES, "params", "active_params")))
_TRAINED = attrgetter(*(field.name for field in fields(Training) if field.name != "global_batch"))
_MACHINE = attrgetter(*(field.name for field in fields(Cluster) if field.name != "count"))
# Larger columns leave the processor's caches.
LAYOUTS_AT_ONCE = 8000


@dataclass(frozen=True, slots=True)
class Shape:
    """A network, how it is trained and on what, with every layout worth trying."""

    model: Transformer
    training: Training
    cluster: Cluster
    utilisation: Utilisation
    layouts: Layouts

    @property
    def question(self) -> Question:
        """What the layout is chosen for."""
        return self.model, self.training, self.cluster, self.utilisation


def search_ahead(questions: Iterable[Question]) -> None:
    """Answer what `choose_layout` will be asked, as far as it is not known and several shapes can be searched together."""
    remember(choose_together(question for question in dict.fromkeys(questions) if not is_remembered(question)))


def choose_together(questions: Iterable[Question]) -> dict[Question, LayoutChoice]:
    """The layout that `search_layout` chooses for each of several questions.

    Parameters
    ----------
    questions : iterable of Question
        Networks, trainings, machines and what these achieve.

    Returns
    -------
    dict of Question to LayoutChoice
        Without questions that have no like, and those that are searched in several steps: of other networks than transformers, of
        fine-tuning and sampling, with a stated mesh, or where no layout fits with room to spare.
    """
    found: dict[Question, LayoutChoice] = {}
    for alike in _alike(questions):
        for shapes in _few(alike):
            found |= _choose(shapes) if len(shapes) > 1 else {}
    return found


def _alike(questions: Iterable[Question]) -> Iterator[list[Shape]]:
    """Shapes that differ in their sizes alone."""
    groups: dict[Hashable, list[Shape]] = {}
    for model, training, cluster, utilisation in questions:
        if not isinstance(model, Transformer) or training.method in (*TUNED, "rl"):
            continue
        try:
            check_axes(model, training)
            layouts = base_layouts(model, training, cluster.count)
        except InvalidRequest:
            continue
        if has_several_meshes(layouts):
            key = _STRUCTURE(model), _TRAINED(training), _MACHINE(cluster), utilisation
            groups.setdefault(key, []).append(Shape(model, training, cluster, utilisation, layouts))
    yield from groups.values()


def _few(shapes: Iterable[Shape]) -> Iterator[list[Shape]]:
    """The shapes in lists of at most `LAYOUTS_AT_ONCE` layouts, or of one shape."""
    few, count = list[Shape](), 0
    for shape in shapes:
        if few and count + len(shape.layouts) > LAYOUTS_AT_ONCE:
            yield few
            few, count = [], 0
        few.append(shape)
        count += len(shape.layouts)
    yield few


def _choose(shapes: Sequence[Shape]) -> dict[Question, LayoutChoice]:
    """The fastest layout of each shape of which any fits with room to spare."""
    weighed, counts = _worth_timing(shapes)
    steps = _steps(shapes, counts, weighed.layouts)
    fits, seconds = weighed.needed <= weighed.capacity, steps.total
    whole = TimedLayouts(weighed.layouts, steps, weighed.needed, fits, seconds, steps.batch / seconds)
    ends = np.cumsum(counts).tolist()
    parts = [_part(whole, slice(begin, end)) for begin, end in itertools.pairwise([0, *ends])]
    fitting = [(shape, timed, best_layout(timed)) for shape, timed in zip(shapes, parts, strict=True) if timed.fits.any()]
    memory = _memory_parts([(shape, timed.layouts.take(np.array([best]))) for shape, timed, best in fitting])
    return {
        shape.question: replace(as_choice(timed, best, held), alternatives=alternatives(timed, best, shape.training, shape.cluster))
        for (shape, timed, best), held in zip(fitting, memory, strict=True)
    }


def _worth_timing(shapes: Sequence[Shape]) -> tuple[SizedLayouts, list[int]]:
    """Layouts that fit with room to spare or nearly do, shape by shape, and how many there are of each."""
    training, cluster = shapes[0].training, shapes[0].cluster
    counts = [len(shape.layouts) for shape in shapes]
    model, batched, _ = _columns(shapes, counts)
    every = with_every_saving(model, batched, _joined([shape.layouts for shape in shapes]))
    layouts, used, needed = within_link(training, cluster.link_domain, every)
    capacity = filled_share(training) * cluster.accelerator.usable_memory_bytes
    of_shape = np.repeat(np.arange(len(shapes)), counts)
    places = near_capacity(needed, capacity, of_shape)
    near = SizedLayouts(with_memory_options(training, layouts, places), needed[places], used, places, capacity)
    return near, np.bincount(of_shape[places[-1]], minlength=len(shapes)).tolist()


def _steps(shapes: Sequence[Shape], counts: Sequence[int], layouts: Layouts) -> StepTime:
    """Duration of a step in layouts that lie shape by shape, in layouts as teams run them."""
    utilisation = shapes[0].utilisation
    steps = step_time(*_columns(shapes, counts), utilisation, layouts)
    slower = [1 / (utilisation.measured_over_modelled * typical_share(utilisation, shape.cluster)) for shape in shapes]
    return slowed(steps, np.repeat(slower, counts))


def _memory_parts(chosen: Sequence[tuple[Shape, Layouts]]) -> list[dict[str, float]]:
    """Memory by part, of one layout of each shape [B]."""
    if not chosen:
        return []
    shapes = [shape for shape, _ in chosen]
    model, training, _ = _columns(shapes, [1] * len(shapes))
    parts = memory_use(model, training, _joined([layouts for _, layouts in chosen])).parts
    columns = {name: np.broadcast_to(size, len(shapes)).tolist() for name, size in parts.items()}
    return [dict(zip(columns, sizes, strict=True)) for sizes in zip(*columns.values(), strict=True)]


def _columns(shapes: Sequence[Shape], counts: Sequence[int]) -> tuple[TransformerColumns, Training, Cluster]:
    """The shapes' sizes, each as many times as the shape has layouts; what all have in common stays a number."""

    def column(values: Sequence[Any]) -> Any:
        same = all(value == values[0] for value in values)
        return values[0] if same else np.repeat(np.array(values, dtype=np.float64), counts)

    models = [shape.model for shape in shapes]
    weights = [count_parameters(model) for model in models]
    sizes = {field.name: getattr(models[0], field.name) for field in fields(Transformer)}
    sizes |= {name: column([getattr(model, name) for model in models]) for name in SIZES}
    model = TransformerColumns(
        **sizes | {"params": None, "active_params": None},
        counts=ParameterCounts(*(column([getattr(each, name) for each in weights]) for name in ParameterCounts.__slots__)),
    )
    training = replace(shapes[0].training, global_batch=column([shape.training.global_batch for shape in shapes]))
    return model, training, replace(shapes[0].cluster, count=column([shape.cluster.count for shape in shapes]))


def _joined(layouts: Sequence[Layouts]) -> Layouts:
    """Layouts one after the other."""
    return Layouts(*(np.concatenate([getattr(each, name) for each in layouts]) for name in Layouts.__slots__))


def _part(timed: TimedLayouts, part: slice) -> TimedLayouts:
    """Some of the layouts, which lie side by side."""
    return TimedLayouts(
        Layouts(*(getattr(timed.layouts, name)[part] for name in Layouts.__slots__)),
        StepTime(*(getattr(timed.steps, name)[part] for name in StepTime.__slots__)),
        timed.needed[part],
        timed.fits[part],
        timed.seconds[part],
        timed.rate[part],
    )
