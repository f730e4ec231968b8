"""Robust least squares in batches: many starts, or many resamples of the same points, descend side by side.

The sum over the points of Huber's function of the residual (Huber 1964) is minimised by Levenberg-Marquardt steps on the weights that
Huber's function gives each residual. A normal prior keeps parameters that the points say nothing of where they are known to lie; its
weight beside the points is the caller's, and its centre may differ from resample to resample, so that what they leave open stays open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Parameters (rows, parameters) to values (rows, points) and their derivatives (rows, parameters, points).
Curve = Callable[[Floats], tuple[Floats, Floats]]
STEPS = 200
# Steps of each heat, and one in how many starts goes on after it: on 14 sets of runs, 500 starts taken to their end found nothing better.
HEATS = ((4, 3), (8, 12))
FEWEST_FINALISTS = 10
# A row is done when this many steps in a row have each lowered its sum by less than this share.
SETTLED, PATIENCE = 1e-7, 3
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-2, 1e-9, 1e9
EASE, TIGHTEN = 0.2, 4.0
LONGEST_STEP = 2.0
# Rows times points worked on at once: they and their derivatives stay in a core's cache.
CELLS = 60_000


@dataclass(frozen=True, slots=True)
class NormalPrior:
    """A normal prior on each parameter: `centre` one row, or one a start; `weight` is what its sum of squares counts beside the points."""

    centre: Floats
    deviation: Floats
    weight: float


@dataclass(frozen=True, slots=True)
class RobustProblem:
    """What is fitted: the model, its targets (one row, or one a start), each point's weight, Huber's threshold, bounds and prior."""

    model: Curve
    target: Floats
    weights: Floats
    delta: float
    low: Floats
    high: Floats
    prior: NormalPrior


def huber_loss(residuals: Floats, delta: float) -> Floats:
    """Huber's function of each residual: half its square up to `delta`, linear beyond (Huber 1964; Hoffmann et al. 2022, D.2)."""
    size = np.abs(residuals)
    return np.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))


def minimise_from_starts(task: RobustProblem, starts: Floats) -> Floats:
    """The parameters of the lowest sum that the starts lead to: all go some steps, those ahead go on, and the best few to the end."""
    ends = starts
    for steps, one_in in HEATS:
        ends, sums = minimise(task, ends, steps)
        ends = ends[np.argsort(sums, kind="stable")[: max(FEWEST_FINALISTS, len(starts) // one_in)]]
    ends, sums = minimise(task, ends)
    return np.asarray(ends[sums.argmin()])


def minimise(task: RobustProblem, starts: Floats, steps: int = STEPS) -> tuple[Floats, Floats]:
    """The parameters each start ends at, and the sum there: Huber's function over the points, plus the prior.

    Targets, weights and prior centres of one row serve every start.
    """
    count, points = len(starts), task.target.shape[-1]
    pieces = max(1, -(-count * points // CELLS))
    found = np.array(starts, dtype=np.float64)
    sums = np.empty(count)
    for rows in np.array_split(np.arange(count), min(pieces, count)):
        found[rows], sums[rows] = _descend(_rows(task, rows, count), found[rows], steps)
    return found, sums


def _rows(task: RobustProblem, rows: NDArray[np.int64], count: int) -> RobustProblem:
    """The task of some of its rows."""

    def chosen(values: Floats) -> Floats:
        return np.broadcast_to(values, (count, values.shape[-1]))[rows]

    prior = NormalPrior(chosen(task.prior.centre), task.prior.deviation, task.prior.weight)
    return RobustProblem(task.model, chosen(task.target), chosen(task.weights), task.delta, task.low, task.high, prior)


def _descend(task: RobustProblem, starts: Floats, steps: int) -> tuple[Floats, Floats]:
    """Every row until it has settled; settled rows are left alone."""
    found = np.clip(starts, task.low, task.high)
    sums, slopes, curves = _expand(task, found)
    damping = np.full(len(found), FIRST_DAMPING)
    idle = np.zeros(len(found), dtype=np.int64)
    active = np.arange(len(found))
    for _ in range(steps):
        part = _rows(task, active, len(found))
        moved = np.clip(found[active] + _step(slopes[active], curves[active], damping[active]), task.low, task.high)
        lowered, slope, curve = _expand(part, moved)
        better = lowered < sums[active]
        settled = ~(sums[active] - lowered > SETTLED * sums[active])
        rows = active[better]
        found[rows], sums[rows], slopes[rows], curves[rows] = moved[better], lowered[better], slope[better], curve[better]
        damping[active] = np.clip(damping[active] * np.where(better, EASE, TIGHTEN), LEAST_DAMPING, MOST_DAMPING)
        idle[active] = np.where(settled, idle[active] + 1, 0)
        active = active[idle[active] < PATIENCE]
        if not active.size:
            break
    return found, sums


def _expand(task: RobustProblem, found: Floats) -> tuple[Floats, Floats, Floats]:
    """The sum at each row's parameters, its gradient, and the curvature of its Gauss-Newton model."""
    values, derivatives = task.model(found)
    residuals = values - task.target
    sums = (task.weights * huber_loss(residuals, task.delta)).sum(axis=1)
    shares = task.weights * task.delta / np.maximum(np.abs(residuals), task.delta)
    weighted = derivatives * shares[:, None, :]
    slopes = (weighted @ residuals[:, :, None])[:, :, 0]
    curves = weighted @ derivatives.transpose(0, 2, 1)
    return _with_prior(task.prior, found, sums, slopes, curves)


def _with_prior(prior: NormalPrior, found: Floats, sums: Floats, slopes: Floats, curves: Floats) -> tuple[Floats, Floats, Floats]:
    away = (found - prior.centre) / prior.deviation
    each = np.arange(found.shape[1])
    curves[:, each, each] += prior.weight / prior.deviation**2
    return sums + 0.5 * prior.weight * (away**2).sum(axis=1), slopes + prior.weight * away / prior.deviation, curves


def _step(slopes: Floats, curves: Floats, damping: Floats) -> Floats:
    """Levenberg-Marquardt steps, damped by each parameter's own curvature (Marquardt 1963)."""
    each = np.arange(slopes.shape[1])
    damped = curves.copy()
    damped[:, each, each] *= 1 + damping[:, None]
    # Curvatures span many powers of ten: scaled to a unit diagonal, and with a floor that keeps what is flat solvable.
    scale = np.sqrt(np.maximum(damped[:, each, each], np.finfo(float).tiny))
    damped /= scale[:, :, None] * scale[:, None, :]
    damped[:, each, each] += 1e-14
    step = np.linalg.solve(damped, -(slopes / scale)[:, :, None])[:, :, 0] / scale
    return np.clip(step, -LONGEST_STEP, LONGEST_STEP)
