"""The layout of a run: the fastest that fits."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from service.domain.training.estimate import Alternative
from service.domain.training.model import Model
from service.domain.training.run import Cluster, Training
from service.domain.training.utilisation import Utilisation
from service.engine.training.layouts import Layouts
from service.engine.training.rl.phases import sampler_fits, step_by_phase, training_pool, update_training
from service.engine.training.search.alternatives import TimedLayouts, alternatives
from service.engine.training.search.fitting_layouts import SizedLayouts, layouts_worth_timing
from service.engine.training.step.step_time import StepTime, slowed, step_time, typical_share

Floats = NDArray[np.float64]
# What a layout is chosen for.
Question = tuple[Model, Training, Cluster, Utilisation]
MOST_REMEMBERED = 2048
_remembered: dict[Question, LayoutChoice] = {}
_remembering = threading.Lock()


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """The chosen layout.

    Attributes
    ----------
    layouts : Layouts
        Columns of length 1.
    steps : StepTime
        Its step.
    memory_bytes : dict of str to float
        Memory by part [B].
    fits : bool
        Whether the accelerator has that memory.
    alternatives : tuple of Alternative
        The best of the others.
    fused : bool
        Whether it fits only with a loss that never holds the logits, which the caller left open.
    """

    layouts: Layouts
    steps: StepTime
    memory_bytes: dict[str, float]
    fits: bool
    alternatives: tuple[Alternative, ...]
    fused: bool = False

    @property
    def total_bytes(self) -> float:
        """Memory of all parts [B]."""
        return sum(self.memory_bytes.values())


def choose_layout(model: Model, training: Training, cluster: Cluster, utilisation: Utilisation) -> LayoutChoice:
    """`search_layout`, each of the last `MOST_REMEMBERED` questions once. Raises InvalidRequest."""
    question = (model, training, cluster, utilisation)
    choice = _remembered.get(question)
    if choice is None:
        choice = search_layout(*question)
        remember({question: choice})
    return choice


def is_remembered(question: Question) -> bool:
    """Whether `choose_layout` has the answer."""
    return question in _remembered


def remember(choices: Mapping[Question, LayoutChoice]) -> None:
    """Keep choices for `choose_layout`; the oldest are forgotten."""
    with _remembering:
        _remembered.update(choices)
        for oldest in list(itertools.islice(_remembered, max(0, len(_remembered) - MOST_REMEMBERED))):
            del _remembered[oldest]


def search_layout(model: Model, training: Training, cluster: Cluster, utilisation: Utilisation) -> LayoutChoice:
    """The fastest layout that fits; where none fits the leanest one, with `fits` false.

    Parameters
    ----------
    model : Model
        Network.
    training : Training
        Method, batch, fixed axes.
    cluster : Cluster
        Accelerators and links.
    utilisation : Utilisation
        What the accelerator achieves.

    Returns
    -------
    LayoutChoice
        With alternatives where it fits.

    Raises
    ------
    InvalidRequest
        The fixed axes cannot make up the machine or divide the model.
    """
    training, pool = update_training(training), training_pool(training, cluster)
    weighed, training, fused = layouts_worth_timing(model, training, pool)
    steps = _step_time(model, training, cluster, utilisation, weighed.layouts)
    timed = _timed(weighed, steps, sampled=sampler_fits(model, training, cluster))
    best = best_layout(timed)
    choice = replace(as_choice(timed, best, weighed.parts(best)), fused=fused)
    return replace(choice, alternatives=alternatives(timed, best, training, cluster)) if choice.fits else choice


@lru_cache(maxsize=512)
def choose_layouts(
    model: Model, training: Training, cluster: Cluster, utilisation: Utilisation, networks_gbit_per_s: tuple[float, ...]
) -> tuple[LayoutChoice, ...]:
    """`choose_layout` in each of several networks, without alternatives.

    Parameters
    ----------
    model : Model
        Network.
    training : Training
        Method, batch, fixed axes.
    cluster : Cluster
        Accelerators and links.
    utilisation : Utilisation
        What the accelerator achieves.
    networks_gbit_per_s : tuple of (networks,) float
        Network of one accelerator, one direction, in place of the cluster's [Gbit/s].

    Returns
    -------
    tuple of (networks,) LayoutChoice
        In the order of the networks.

    Raises
    ------
    InvalidRequest
        The fixed axes cannot make up the machine or divide the model.
    """
    training, pool = update_training(training), training_pool(training, cluster)
    weighed, training, fused = layouts_worth_timing(model, training, pool)
    steps = _step_time(model, training, cluster, utilisation, weighed.layouts, np.array(networks_gbit_per_s)[:, np.newaxis])
    rows = zip(*np.broadcast_arrays(*(getattr(steps, name) for name in StepTime.__slots__)), strict=True)
    sampled = sampler_fits(model, training, cluster)
    found = (_timed(weighed, StepTime(*parts), sampled=sampled) for parts in rows)
    best = ((timed, best_layout(timed)) for timed in found)
    return tuple(replace(as_choice(timed, at, weighed.parts(at)), fused=fused) for timed, at in best)


def _step_time(
    model: Model,
    training: Training,
    cluster: Cluster,
    utilisation: Utilisation,
    layouts: Layouts,
    networks_gbit_per_s: Floats | None = None,
) -> StepTime:
    """Duration of a step of any method: as much faster than modelled as a measured one was, in layouts as teams run them."""
    if training.rl is not None:
        steps = step_by_phase(model, training, cluster, utilisation, layouts, networks_gbit_per_s).steps
    else:
        steps = step_time(model, training, cluster, utilisation, layouts, networks_gbit_per_s)
    return slowed(steps, 1 / (utilisation.measured_over_modelled * typical_share(utilisation, cluster)))


def _timed(weighed: SizedLayouts, steps: StepTime, *, sampled: bool) -> TimedLayouts:
    """Layouts with their memory and their duration in one network; none fits where what samples does not (`sampled` false)."""
    seconds, fits = steps.total, sampled & (weighed.needed <= weighed.capacity)
    return TimedLayouts(weighed.layouts, steps, weighed.needed, fits, seconds, steps.batch / seconds)


def best_layout(timed: TimedLayouts) -> int:
    """Position of the fastest layout that fits, or of the leanest."""
    return int(np.argmax(np.where(timed.fits, timed.rate, 0.0))) if timed.fits.any() else int(np.argmin(timed.needed))


def as_choice(timed: TimedLayouts, best: int, memory_bytes: dict[str, float]) -> LayoutChoice:
    """The layout at one position, as the chosen one, without alternatives; `memory_bytes` by part [B]."""
    only = np.array([best])
    return LayoutChoice(
        layouts=timed.layouts.take(only),
        steps=StepTime(*(getattr(timed.steps, name)[only] for name in StepTime.__slots__)),
        memory_bytes=memory_bytes,
        fits=bool(timed.fits.any()),
        alternatives=(),
    )
