"""Choice of small training runs that sharpen the predicted loss of a target most within a budget.

C-optimal design (Elfving 1952; Atkinson, Donev & Tobias 2007, chapter 10): for small errors a run adds its squared sensitivity over its
scatter to the information, so its value is known before it is made. Runs are chosen one after another, by gain for their cost and by gain
alone, among runs of at most the budget, a half of it and so on; the set that leaves the least variance is proposed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.scaling.fits import ScalingFit
from service.domain.scaling.laws import FLOPS_PER_PARAM_AND_TOKEN
from service.engine.numerics.least_squares import Floats
from service.engine.scaling.law_fit import precision, predict_runs, sensitivities

# Candidates: tokens a parameter from a quarter of Hoffmann's 20 to sixteen times that, sizes from half the smallest run on.
TOKENS_PER_PARAM = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
SIZES = 60
MOST_RUNS = 8
BUDGET_PARTS = (1, 2, 4, 8)
# A run that takes less than this share off the variance is not worth starting.
LEAST_GAIN = 0.02


@dataclass(frozen=True, slots=True)
class CandidateRuns:
    """Runs that could be made.

    Attributes
    ----------
    params, tokens : (runs,) float arrays
        Parameters and training tokens.
    cost : (runs,) float array
        Cost in the budget's unit.
    """

    params: Floats
    tokens: Floats
    cost: Floats


@dataclass(frozen=True, slots=True)
class _DesignProblem:
    """Sensitivities and costs of the candidates, the target's sensitivity, and the scatter of a run's log-loss."""

    slopes: Floats
    cost: Floats
    target_slopes: Floats
    scatter: float


@dataclass(frozen=True, slots=True)
class ProposedRun:
    """A run to make.

    Attributes
    ----------
    params, tokens : float
    cost : float
        In the budget's unit.
    narrowed_to : float
        Share of the interval's width that remains after this run and those before it [1].
    """

    params: float
    tokens: float
    cost: float
    narrowed_to: float


@dataclass(frozen=True, slots=True)
class ExperimentDesign:
    """Runs to make next.

    Attributes
    ----------
    runs : tuple of ProposedRun
    cost : float
        Of all runs, in the budget's unit.
    before, after : Range
        Interval of the target's loss before and, as expected, after the runs [nats/token].
    """

    runs: tuple[ProposedRun, ...]
    cost: float
    before: Range
    after: Range


def default_candidates(fit: ScalingFit) -> CandidateRuns:
    """Candidate runs on a grid of sizes (steps of the square root of 2) and tokens per parameter.

    Parameters
    ----------
    fit : ScalingFit

    Returns
    -------
    CandidateRuns
        Their cost is 6 N D [FLOP].
    """
    sizes = fit.points.params.min() / 2 * 2 ** (np.arange(SIZES) / 2)
    params, ratios = (grid.ravel() for grid in np.meshgrid(sizes, TOKENS_PER_PARAM))
    return CandidateRuns(params, params * ratios, FLOPS_PER_PARAM_AND_TOKEN * params**2 * ratios)


def design_runs(
    fit: ScalingFit, target: tuple[float, float], candidates: CandidateRuns, budget: float, generator: np.random.Generator
) -> ExperimentDesign:
    """The candidates that together sharpen the loss of a target most within the budget.

    Parameters
    ----------
    fit : ScalingFit
    target : tuple of float
        Parameters and training tokens.
    candidates : CandidateRuns
    budget : float
        In the unit of the candidates' cost.
    generator : numpy.random.Generator

    Returns
    -------
    ExperimentDesign
        No candidate is proposed twice: a second seed tells about scatter, not about the law.

    Raises
    ------
    InvalidRequest
        Where no candidate is affordable.
    """
    if not np.any(candidates.cost <= budget):
        raise InvalidRequest(f"no run fits a sum of {budget:g}; the cheapest candidate costs {candidates.cost.min():g}", "/design")
    target_run = np.array([target[0]]), np.array([target[1]])
    slopes = sensitivities(fit, candidates.params, candidates.tokens)
    problem = _DesignProblem(slopes, candidates.cost, sensitivities(fit, *target_run)[0], fit.scatter)
    covariance = np.linalg.inv(precision(fit)).astype(np.float64)
    selected = _select_runs(problem, covariance, budget)
    before = predict_runs(fit, *target_run, generator)[0].interval
    runs = tuple(
        ProposedRun(float(candidates.params[row]), float(candidates.tokens[row]), float(candidates.cost[row]), share)
        for row, share in zip(selected, _remaining_width(problem, covariance, selected), strict=True)
    )
    return ExperimentDesign(runs, sum(run.cost for run in runs), before, _narrow(before, runs))


def _select_runs(problem: _DesignProblem, covariance: Floats, budget: float) -> list[int]:
    """Rows of the candidates that leave the least variance, over the sets that each rule finds."""
    rules = [problem.cost, *(np.where(problem.cost <= budget / parts, 1.0, np.inf) for parts in BUDGET_PARTS)]
    sets = [_greedy(problem, covariance, budget, unit_price) for unit_price in rules]
    return min(sets, key=lambda rows: _variance(problem, _updated_covariance(problem, covariance, rows)))


def _greedy(problem: _DesignProblem, covariance: Floats, budget: float, unit_price: Floats) -> list[int]:
    """Rows with the most gain for their price, one after another, while the budget lasts; a row of infinite price is never taken."""
    selected: list[int] = []
    available = np.isfinite(unit_price)
    while len(selected) < MOST_RUNS:
        gains = _gains(problem, covariance)
        worthwhile = available & (problem.cost <= budget) & (gains > LEAST_GAIN * _variance(problem, covariance))
        if not worthwhile.any():
            break
        best = int(np.argmax(np.where(worthwhile, gains / unit_price, -np.inf)))
        selected.append(best)
        available[best] = False
        budget -= problem.cost[best]
        covariance = _updated_covariance(problem, covariance, [best])
    return selected


def _gains(problem: _DesignProblem, covariance: Floats) -> Floats:
    """Reduction of the target's variance by each run alone: (c' V j)^2 / (s^2 + j' V j)."""
    projected = problem.slopes @ covariance
    return np.asarray((projected @ problem.target_slopes) ** 2 / (problem.scatter**2 + (projected * problem.slopes).sum(axis=1)))


def _updated_covariance(problem: _DesignProblem, covariance: Floats, rows: list[int]) -> Floats:
    """Covariance of the parameters after those runs."""
    slopes = problem.slopes[rows]
    return np.linalg.inv(np.linalg.inv(covariance) + slopes.T @ slopes / problem.scatter**2).astype(np.float64)


def _variance(problem: _DesignProblem, covariance: Floats) -> float:
    return float(problem.target_slopes @ covariance @ problem.target_slopes)


def _remaining_width(problem: _DesignProblem, covariance: Floats, rows: list[int]) -> list[float]:
    """Share of the interval's width left after each run: parameter variance plus the run's own scatter, which stays."""
    run_variance = 2 * problem.scatter**2  # a Laplace distribution's variance
    variances = [
        _variance(problem, _updated_covariance(problem, covariance, rows[:count])) + run_variance for count in range(len(rows) + 1)
    ]
    return [float(np.sqrt(each / variances[0])) for each in variances[1:]]


def _narrow(before: Range, runs: tuple[ProposedRun, ...]) -> Range:
    share = runs[-1].narrowed_to if runs else 1.0
    return Range(before.p50 + (before.p10 - before.p50) * share, before.p50, before.p50 + (before.p90 - before.p50) * share)
