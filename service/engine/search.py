"""Which layout a run takes: the fastest that fits."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.estimate import Alternative
from service.domain.model import Model, Transformer
from service.domain.run import Cluster, Training
from service.domain.utilisation import Utilisation
from service.engine.alternatives import Timed, alternatives, several_meshes
from service.engine.layouts import Layouts, plain_layouts, searched_recomputes, searched_zero_stages, with_savings
from service.engine.memory import Memory, memory
from service.engine.throughput import Step, step

# A layout that needs more than this many times the memory there is tells nobody what to change: it is not timed.
NEAR_MISS = 2.0
# So few layouts are asked at once what they take with all savings: calls cost more than arithmetic.
FEW_LAYOUTS = 1000

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """The layout taken: its columns (one position), its step, its memory in bytes by part, and the best of the others."""

    layouts: Layouts
    steps: Step
    memory_bytes: dict[str, float]
    fits: bool
    alternatives: tuple[Alternative, ...]

    @property
    def total_bytes(self) -> float:
        return sum(self.memory_bytes.values())


@lru_cache(maxsize=2048)
def choose_layout(model: Model, training: Training, cluster: Cluster, utilisation: Utilisation) -> Choice:
    """The fastest layout that fits; where none fits the leanest one, with `fits` false.

    Raises InvalidRequest where the axes the caller fixed cannot make up the machine or cut the model.
    """
    layouts, used = _worth_timing(model, training, cluster)
    timed = _timed(layouts, used.total, step(model, training, cluster, utilisation, layouts), cluster)
    best = _best(timed)
    choice = _choice(timed, best, used)
    return replace(choice, alternatives=alternatives(timed, best, training, cluster)) if choice.fits else choice


@lru_cache(maxsize=512)
def choose_layouts(
    model: Model, training: Training, cluster: Cluster, utilisation: Utilisation, networks_gbit_per_s: tuple[float, ...]
) -> tuple[Choice, ...]:
    """`choose_layout` in each of several networks in place of the cluster's, without a look at the alternatives. Raises InvalidRequest."""
    layouts, used = _worth_timing(model, training, cluster)
    steps = step(model, training, cluster, utilisation, layouts, np.array(networks_gbit_per_s)[:, np.newaxis])
    rows = zip(*np.broadcast_arrays(*(getattr(steps, name) for name in Step.__slots__)), strict=True)
    needed = used.total
    found = (_timed(layouts, needed, Step(*parts), cluster) for parts in rows)
    return tuple(_choice(timed, _best(timed), used) for timed in found)


def _timed(layouts: Layouts, needed: Floats, steps: Step, cluster: Cluster) -> Timed:
    """The layouts with the bytes they need and how long they take in one network."""
    seconds = steps.total
    return Timed(layouts, steps, needed, needed <= cluster.accelerator.usable_memory_bytes, seconds, steps.batch / seconds)


def _best(timed: Timed) -> int:
    """Position of the fastest layout that fits, or of the leanest."""
    return int(np.argmax(np.where(timed.fits, timed.rate, 0.0))) if timed.fits.any() else int(np.argmin(timed.needed))


def _choice(timed: Timed, best: int, used: Memory) -> Choice:
    """The layout at that position as the one taken."""
    only = np.array([best])
    return Choice(
        layouts=timed.layouts.take(only),
        steps=Step(*(getattr(timed.steps, name)[only] for name in Step.__slots__)),
        memory_bytes={name: float(values[best]) for name, values in used.parts.items()},
        fits=bool(timed.fits.any()),
        alternatives=(),
    )


def _worth_timing(model: Model, training: Training, cluster: Cluster) -> tuple[Layouts, Memory]:
    """The layouts near the memory there is, or the leanest where none is, and what they take: the same in every network.

    More recomputation and higher ZeRO stages cost time and never save any: where the machine can be divided in several ways, they
    are tried only for layouts that do not fit without.
    """
    _check_axes(model, training)
    capacity = cluster.accelerator.usable_memory_bytes
    plain = _plain(model, training, cluster.count)
    one_mesh = not several_meshes(plain)
    if len(plain) <= FEW_LAYOUTS or one_mesh:
        layouts, used = _with_all_savings(model, training, cluster.count)
        some_fit = bool((used.total <= capacity).any())
        if some_fit or one_mesh:
            return _take(layouts, used, _worth_it(training, layouts, used.total, capacity, some_fit=some_fit))
    bare, least = _barest(model, training, cluster.count)
    if not (least.total <= capacity).any():
        return _take(bare, least, least.total <= least.total.min())
    used = _plain_memory(model, training, cluster.count)
    fits = used.total <= capacity
    if fits.all():
        return plain, used
    tight = plain.take(~fits)
    leanest = _leanest_of(training, tight)
    least = memory(model, training, leanest)
    if not fits.any() and not (least.total <= capacity).any():
        return _take(leanest, least, least.total <= least.total.min())
    tight = with_savings(training, tight.take(least.total <= NEAR_MISS * capacity))
    tight_used = memory(model, training, tight)
    some_fit = bool(fits.any() or (tight_used.total <= capacity).any())
    worth = _worth_it(training, tight, tight_used.total, capacity, some_fit=some_fit)
    return _together(_take(plain, used, fits), _take(tight, tight_used, worth))


def _worth_it(training: Training, layouts: Layouts, needed: Floats, capacity: float, *, some_fit: bool) -> NDArray[np.bool_]:
    """Which of `with_savings` take at most `NEAR_MISS` times the capacity, or the least where none fits, and are not needlessly lean."""
    near: NDArray[np.bool_] = needed <= (NEAR_MISS * capacity if some_fit else needed.min())
    if not several_meshes(layouts):
        return near
    fits = needed <= capacity
    return near & ~np.where(fits, _needlessly_lean(training, fits), _needlessly_lean(training, near))


# What a layout takes is the same on every accelerator: where several are compared it is asked for again.
@lru_cache(maxsize=4)
def _plain(model: Model, training: Training, count: int) -> Layouts:
    """`plain_layouts`."""
    return plain_layouts(model, training, count)


@lru_cache(maxsize=4)
def _plain_memory(model: Model, training: Training, count: int) -> Memory:
    """What `plain_layouts` take."""
    return memory(model, training, _plain(model, training, count))


@lru_cache(maxsize=4)
def _with_all_savings(model: Model, training: Training, count: int) -> tuple[Layouts, Memory]:
    """`plain_layouts` with all savings, and what they take."""
    layouts = with_savings(training, _plain(model, training, count))
    return layouts, memory(model, training, layouts)


@lru_cache(maxsize=4)
def _barest(model: Model, training: Training, count: int) -> tuple[Layouts, Memory]:
    """Every division of the machine with one sequence at a time, whole stages and all savings, where these are not stated."""
    axes = training.axes
    bare = replace(training, axes=replace(axes, micro_batch=axes.micro_batch or 1, virtual_pipeline=axes.virtual_pipeline or 1))
    leanest = _leanest_of(training, plain_layouts(model, bare, count))
    return leanest, memory(model, training, leanest)


def _leanest_of(training: Training, layouts: Layouts) -> Layouts:
    """Each layout with the most recomputation and sharding that is searched."""
    recompute, zero_stage = searched_recomputes(training)[-1], searched_zero_stages(training)[-1]
    size = len(layouts)
    return replace(layouts, recompute=np.full(size, recompute), zero_stage=np.full(size, zero_stage))


def _needlessly_lean(training: Training, enough: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of `with_savings` recompute or shard more than one that is lean `enough` and the same otherwise."""
    fitting = enough.reshape(-1, len(searched_recomputes(training)), len(searched_zero_stages(training)))
    so_far = fitting.copy()
    for at in range(1, so_far.shape[1]):
        so_far[:, at] |= so_far[:, at - 1]
    for at in range(1, so_far.shape[2]):
        so_far[:, :, at] |= so_far[:, :, at - 1]
    needless = np.zeros_like(so_far)
    needless[:, 1:, :] |= so_far[:, :-1, :]
    needless[:, :, 1:] |= so_far[:, :, :-1]
    return needless.ravel()


def _take(layouts: Layouts, used: Memory, chosen: NDArray[np.bool_]) -> tuple[Layouts, Memory]:
    if chosen.all():
        return layouts, used
    return layouts.take(chosen), Memory({name: values[chosen] for name, values in used.parts.items()})


def _together(one: tuple[Layouts, Memory], other: tuple[Layouts, Memory]) -> tuple[Layouts, Memory]:
    layouts = Layouts(*(np.concatenate([getattr(each[0], field.name) for each in (one, other)]) for field in fields(Layouts)))
    return layouts, Memory({name: np.concatenate([values, other[1].parts[name]]) for name, values in one[1].parts.items()})


def _check_axes(model: Model, training: Training) -> None:
    """Raises InvalidRequest where a fixed axis cannot cut this model."""
    axes = training.axes
    if axes.context and training.seq_len % axes.context:
        raise InvalidRequest(
            f"a sequence of {training.seq_len} does not divide by context {axes.context}; take a divisor", "/training/parallelism/context"
        )
    if not isinstance(model, Transformer):
        return
    depth = model.layers + model.decoder_layers
    if axes.tensor and model.attention_heads % axes.tensor:
        raise InvalidRequest(
            f"{model.attention_heads} attention heads do not divide by tensor {axes.tensor}; take a divisor", "/training/parallelism/tensor"
        )
    if axes.pipeline and axes.pipeline > depth:
        raise InvalidRequest(f"pipeline {axes.pipeline} has more stages than the model's {depth} layers", "/training/parallelism/pipeline")
    # In a pipeline embedding and head may be chunks of their own (Llama 3, arXiv 2407.21783, section 3.3.2: 126 layers in 16 x 8).
    most_chunks = depth + 2 if axes.pipeline and axes.pipeline > 1 else depth
    if axes.virtual_pipeline and axes.virtual_pipeline * (axes.pipeline or 1) > most_chunks:
        raise InvalidRequest(
            f"virtual_pipeline {axes.virtual_pipeline} on pipeline {axes.pipeline or 1} makes more chunks than the model's {depth} layers",
            "/training/parallelism/virtual_pipeline",
        )
    if axes.expert and axes.expert > 1 and model.experts is None:
        raise InvalidRequest("expert parallelism needs a mixture of experts; leave it out or set it to 1", "/training/parallelism/expert")
    if axes.expert and model.experts and model.experts.experts % axes.expert:
        raise InvalidRequest(
            f"{model.experts.experts} experts do not divide by expert {axes.expert}; take a divisor", "/training/parallelism/expert"
        )
