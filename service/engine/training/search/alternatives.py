"""The best layouts of each kind besides the chosen one, and what makes them slower."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.training.estimate import Alternative
from service.domain.training.run import Cluster, Training
from service.engine.training.layouts import Layouts
from service.engine.training.step.step_time import StepTime

MESH = ("tensor", "pipeline", "data", "context", "expert", "expert_tensor")
SCHEDULE = ("micro_batch", "zero_stage", "recompute")
FITTING_ALTERNATIVES = 4
# What a slower layout spends more time in, by the parts of a step.
SPENT_IN = {
    "compute": "arithmetic",
    "memory": "memory traffic",
    "launch": "the host's launches",
    "network": "the network",
    "pipeline": "the pipeline's bubble",
}


@dataclass(frozen=True, slots=True)
class TimedLayouts:
    """Layouts with their steps and memory.

    Attributes
    ----------
    layouts : Layouts
        Columns of length (layouts,).
    steps : StepTime
        Parts of a step.
    needed : (layouts,) float array
        Memory [B].
    fits : (layouts,) bool array
        Whether they may be chosen: the memory that is to be filled at most holds them.
    seconds : (layouts,) float array
        Duration of a step [s].
    rate : (layouts,) float array
        Throughput [sequences per s].
    """

    layouts: Layouts
    steps: StepTime
    needed: NDArray[np.float64]
    fits: NDArray[np.bool_]
    seconds: NDArray[np.float64]
    rate: NDArray[np.float64]


def has_several_meshes(layouts: Layouts) -> bool:
    """Whether the layouts divide the machine in more than one way."""
    return len(layouts) > 1 and not _family(_table(layouts, MESH), 0).all()


def alternatives(timed: TimedLayouts, best: int, training: Training, cluster: Cluster) -> tuple[Alternative, ...]:
    """The fastest layouts of other kinds than the chosen one, and the fastest that is faster and too full; fastest first.

    Parameters
    ----------
    timed : TimedLayouts
        Layouts of the search.
    best : int
        Position of the chosen one.
    training : Training
        Sequence length.
    cluster : Cluster
        Accelerators and their memory.

    Returns
    -------
    tuple of Alternative
        At most 5.
    """
    if len(timed.layouts) == 1:
        return ()
    others = _best_of_others(timed, best)
    unfitting = int(np.argmax(np.where(timed.fits, 0.0, timed.rate)))
    if not timed.fits[unfitting] and timed.rate[unfitting] > timed.rate[best]:
        others.insert(0, unfitting)
    return tuple(_alternative(timed, best, other, training, cluster) for other in others)


def _best_of_others(timed: TimedLayouts, best: int) -> list[int]:
    """Fastest layouts that fit, of each other mesh; or each other micro-batch, ZeRO stage and recomputation where there is one mesh."""
    meshes = _table(timed.layouts, MESH)
    kinds = _table(timed.layouts, SCHEDULE) if _family(meshes, 0).all() else meshes
    left, others, taken = np.where(timed.fits, timed.rate, 0.0), list[int](), best
    while len(others) < FITTING_ALTERNATIVES:
        left[_family(kinds, taken)] = 0.0
        taken = int(np.argmax(left))
        if not left[taken]:
            break
        others.append(taken)
    return others


def _table(layouts: Layouts, columns: Sequence[str]) -> NDArray[np.int64]:
    """These columns of the layouts, as rows."""
    return np.array([getattr(layouts, name) for name in columns])


def _family(table: NDArray[np.int64], index: int) -> NDArray[np.bool_]:
    """Layouts that are the same as one of them in all rows."""
    same: NDArray[np.bool_] = (table == table[:, index, np.newaxis]).all(axis=0)
    return same


def _alternative(timed: TimedLayouts, best: int, other: int, training: Training, cluster: Cluster) -> Alternative:
    needed, held = float(timed.needed[other]) / 1e9, cluster.accelerator.usable_memory_bytes / 1e9
    return Alternative(
        parallelism=timed.layouts.named(other),
        tokens_per_s_per_accelerator=float(timed.rate[other]) * training.seq_len / cluster.count,
        step_time_s=float(timed.seconds[other]),
        memory_gb=needed,
        fits=needed <= held,
        slower_by=float(1 - timed.rate[other] / timed.rate[best]),
        why=_why_slower(timed, best, other) if timed.fits[other] else _why_too_full(needed, held),
    )


def _why_too_full(needed_gb: float, held_gb: float) -> str:
    if needed_gb > held_gb:
        return f"needs {needed_gb:,.1f} GB of {held_gb:,.1f} GB"
    return f"leaves {held_gb - needed_gb:,.1f} GB of {held_gb:,.1f} GB free, less than teams do"


def _why_slower(timed: TimedLayouts, best: int, other: int) -> str:
    """The part of the step that grows most, for the same sequences."""
    if timed.rate[other] >= timed.rate[best]:
        return "as fast"
    steps, same_batch = timed.steps, timed.steps.batch[best] / timed.steps.batch[other]
    grown = {name: float(getattr(steps, name)[other] * same_batch - getattr(steps, name)[best]) for name in SPENT_IN}
    most = max(grown, key=lambda name: grown[name])
    amount = f"{grown[most]:.2f} s" if grown[most] >= 1 else f"{grown[most] * 1e3:.3g} ms"
    return f"more time in {SPENT_IN[most]}: +{amount} a step"
