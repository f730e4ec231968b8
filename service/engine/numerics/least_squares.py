"""Robust least squares in batches: many starts, or many resamples of the same points, at once.

The sum over the points of Huber's loss of the residual (Huber 1964) is minimised by Levenberg-Marquardt steps, with the weight that Huber's
loss gives each residual. A normal prior holds parameters that the points do not determine; its weight against the points is the caller's,
and its centre may differ from resample to resample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Parameters (rows, parameters) to values (rows, points) and their derivatives (rows, parameters, points).
Curve = Callable[[Floats], tuple[Floats, Floats]]
MAX_STEPS = 200
# Steps of each round, and the share of starts (1 in n) that goes on: on 14 sets of runs 500 converged starts are no better.
ROUNDS = ((4, 3), (8, 12))
FEWEST_FINALISTS = 10
# A row has converged when PATIENCE steps in a row lower its sum by less than this share.
TOLERANCE, PATIENCE = 1e-7, 3
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-2, 1e-9, 1e9
DAMPING_DECREASE, DAMPING_INCREASE = 0.2, 4.0
LONGEST_STEP = 2.0
# Rows times points computed at once: they and their derivatives fit a core's cache.
CELLS = 60_000


@dataclass(frozen=True, slots=True)
class NormalPrior:
    """Normal prior on each parameter.

    Attributes
    ----------
    centre : (1, parameters) or (rows, parameters) float array
        Mean; one row for all starts, or one for each.
    deviation : (parameters,) float array
        Standard deviation.
    weight : float
        Weight of its sum of squares against the points [1].
    """

    centre: Floats
    deviation: Floats
    weight: float


@dataclass(frozen=True, slots=True)
class RobustProblem:
    """What is fitted.

    Attributes
    ----------
    model : Curve
        Values and derivatives from parameters.
    target : (1, points) or (rows, points) float array
        Values to fit; one row for all starts, or one for each.
    weights : (1, points) or (rows, points) float array
        Weight of each point [1].
    delta : float
        Threshold of Huber's loss, in the unit of `target`.
    low, high : (parameters,) float array
        Bounds.
    prior : NormalPrior
        Prior on the parameters.
    """

    model: Curve
    target: Floats
    weights: Floats
    delta: float
    low: Floats
    high: Floats
    prior: NormalPrior


def huber_loss(residuals: Floats, delta: float) -> Floats:
    """Huber's loss: half the square up to `delta`, linear beyond.

    Parameters
    ----------
    residuals : float array of any shape
        Residuals.
    delta : float
        Threshold, in the unit of `residuals`.

    Returns
    -------
    float array of the same shape
        In the square of that unit.

    References
    ----------
    Huber 1964; Hoffmann et al. 2022, D.2.
    """
    size = np.abs(residuals)
    return np.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))


def minimise_from_starts(problem: RobustProblem, starts: Floats) -> Floats:
    """Parameters of the lowest sum that the starts lead to.

    All starts make a few steps, the best of them more, and the best few run to convergence.

    Parameters
    ----------
    problem : RobustProblem
        Problem whose target, weights and prior have one row.
    starts : (starts, parameters) float array
        First parameters.

    Returns
    -------
    (parameters,) float array
        Parameters at the minimum.
    """
    ends = starts
    for steps, one_in in ROUNDS:
        ends, sums = minimise(problem, ends, steps)
        ends = ends[np.argsort(sums, kind="stable")[: max(FEWEST_FINALISTS, len(starts) // one_in)]]
    ends, sums = minimise(problem, ends)
    return np.asarray(ends[sums.argmin()])


def minimise(problem: RobustProblem, starts: Floats, steps: int = MAX_STEPS) -> tuple[Floats, Floats]:
    """Parameters that each start converges to, and the sum there.

    Parameters
    ----------
    problem : RobustProblem
        Targets, weights and prior centres of one row serve every start.
    starts : (rows, parameters) float array
        First parameters.
    steps : int
        Most steps.

    Returns
    -------
    tuple of (rows, parameters) and (rows,) float array
        Parameters, and Huber's loss over the points plus the prior there.
    """
    count, points = len(starts), problem.target.shape[-1]
    pieces = max(1, -(-count * points // CELLS))
    found = np.array(starts, dtype=np.float64)
    sums = np.empty(count)
    for rows in np.array_split(np.arange(count), min(pieces, count)):
        found[rows], sums[rows] = _descend(_rows(problem, rows, count), found[rows], steps)
    return found, sums


def _rows(problem: RobustProblem, rows: NDArray[np.int64], count: int) -> RobustProblem:
    """The task of some of its rows."""

    def chosen(values: Floats) -> Floats:
        return np.broadcast_to(values, (count, values.shape[-1]))[rows]

    prior = NormalPrior(chosen(problem.prior.centre), problem.prior.deviation, problem.prior.weight)
    return RobustProblem(problem.model, chosen(problem.target), chosen(problem.weights), problem.delta, problem.low, problem.high, prior)


def _descend(problem: RobustProblem, starts: Floats, steps: int) -> tuple[Floats, Floats]:
    """Step every row until it has converged."""
    found = np.clip(starts, problem.low, problem.high)
    sums, slopes, curves = _expand(problem, found)
    damping = np.full(len(found), FIRST_DAMPING)
    idle = np.zeros(len(found), dtype=np.int64)
    active = np.arange(len(found))
    for _ in range(steps):
        part = _rows(problem, active, len(found))
        moved = np.clip(found[active] + _step(slopes[active], curves[active], damping[active]), problem.low, problem.high)
        lowered, slope, curve = _expand(part, moved)
        better = lowered < sums[active]
        settled = ~(sums[active] - lowered > TOLERANCE * sums[active])
        rows = active[better]
        found[rows], sums[rows], slopes[rows], curves[rows] = moved[better], lowered[better], slope[better], curve[better]
        damping[active] = np.clip(damping[active] * np.where(better, DAMPING_DECREASE, DAMPING_INCREASE), LEAST_DAMPING, MOST_DAMPING)
        idle[active] = np.where(settled, idle[active] + 1, 0)
        active = active[idle[active] < PATIENCE]
        if not active.size:
            break
    return found, sums


def _expand(problem: RobustProblem, found: Floats) -> tuple[Floats, Floats, Floats]:
    """The sum at each row's parameters, its gradient, and the curvature of its Gauss-Newton model."""
    values, derivatives = problem.model(found)
    residuals = values - problem.target
    sums = (problem.weights * huber_loss(residuals, problem.delta)).sum(axis=1)
    shares = problem.weights * problem.delta / np.maximum(np.abs(residuals), problem.delta)
    weighted = derivatives * shares[:, None, :]
    slopes = (weighted @ residuals[:, :, None])[:, :, 0]
    curves = weighted @ derivatives.transpose(0, 2, 1)
    return _with_prior(problem.prior, found, sums, slopes, curves)


def _with_prior(prior: NormalPrior, found: Floats, sums: Floats, slopes: Floats, curves: Floats) -> tuple[Floats, Floats, Floats]:
    away = (found - prior.centre) / prior.deviation
    diagonal = np.arange(found.shape[1])
    curves[:, diagonal, diagonal] += prior.weight / prior.deviation**2
    return sums + 0.5 * prior.weight * (away**2).sum(axis=1), slopes + prior.weight * away / prior.deviation, curves


def _step(slopes: Floats, curves: Floats, damping: Floats) -> Floats:
    """Levenberg-Marquardt steps, damped by each parameter's own curvature (Marquardt 1963)."""
    diagonal = np.arange(slopes.shape[1])
    damped = curves.copy()
    damped[:, diagonal, diagonal] *= 1 + damping[:, None]
    # Curvatures span many powers of ten: scaled to a unit diagonal, and with a floor that keeps what is flat solvable.
    scale = np.sqrt(np.maximum(damped[:, diagonal, diagonal], np.finfo(float).tiny))
    damped /= scale[:, :, None] * scale[:, None, :]
    damped[:, diagonal, diagonal] += 1e-14
    step = np.linalg.solve(damped, -(slopes / scale)[:, :, None])[:, :, 0] / scale
    return np.clip(step, -LONGEST_STEP, LONGEST_STEP)
