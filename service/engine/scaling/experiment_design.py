"""Which small runs to make next: those that sharpen the loss foretold for a target most, within a sum.

Optimal design for one figure, c-optimality (Elfving 1952; Atkinson, Donev & Tobias 2007, ch. 10): for small errors a run adds its squared
sensitivity over its scatter to what is known, so that what it would tell is known before it is made. Runs are chosen one after another:
by what each takes off the variance for its cost, and by what it takes off at all, among runs of at most the sum, a half of it and so on.
The set that leaves the least variance is proposed.
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
PARTS = (1, 2, 4, 8)
# A run that takes less than this share off the variance is not worth starting.
LEAST_GAIN = 0.02


@dataclass(frozen=True, slots=True)
class CandidateRuns:
    """Runs that could be made, one element each: parameters, tokens, and cost in the unit of the sum."""

    params: Floats
    tokens: Floats
    cost: Floats


@dataclass(frozen=True, slots=True)
class _DesignProblem:
    """What there is to choose from: sensitivities and costs of the candidates, the aim's own sensitivity, and the runs' scatter."""

    slopes: Floats
    cost: Floats
    aim: Floats
    scatter: float


@dataclass(frozen=True, slots=True)
class ProposedRun:
    """A run to make; `narrowed_to` is the share of the interval's width that remains once it and those before it are made."""

    params: float
    tokens: float
    cost: float
    narrowed_to: float


@dataclass(frozen=True, slots=True)
class ExperimentDesign:
    """Runs to make next, what they cost together, and the interval of the target's loss before and, as expected, after them."""

    runs: tuple[ProposedRun, ...]
    cost: float
    before: Range
    after: Range


def default_candidates(fit: ScalingFit) -> CandidateRuns:
    """Runs at a grid of sizes and tokens a parameter, sizes in steps of the square root of 2; their cost is FLOPs, 6 N D."""
    sizes = fit.points.params.min() / 2 * 2 ** (np.arange(SIZES) / 2)
    params, ratios = (grid.ravel() for grid in np.meshgrid(sizes, TOKENS_PER_PARAM))
    return CandidateRuns(params, params * ratios, FLOPS_PER_PARAM_AND_TOKEN * params**2 * ratios)


def design_runs(
    fit: ScalingFit, target: tuple[float, float], candidates: CandidateRuns, budget: float, generator: np.random.Generator
) -> ExperimentDesign:
    """The candidates that sharpen the loss of a target (parameters, tokens) most, for at most `budget` together.

    No candidate is proposed twice: another seed tells of chance, not of the law. Raises InvalidRequest where no candidate is affordable.
    """
    if not np.any(candidates.cost <= budget):
        raise InvalidRequest(f"no run fits a sum of {budget:g}; the cheapest candidate costs {candidates.cost.min():g}", "/design")
    aim = np.array([target[0]]), np.array([target[1]])
    slopes = sensitivities(fit, candidates.params, candidates.tokens)
    choice = _DesignProblem(slopes, candidates.cost, sensitivities(fit, *aim)[0], fit.scatter)
    known = np.linalg.inv(precision(fit)).astype(np.float64)
    chosen = _chosen(choice, known, budget)
    before = predict_runs(fit, *aim, generator)[0].interval
    runs = tuple(
        ProposedRun(float(candidates.params[which]), float(candidates.tokens[which]), float(candidates.cost[which]), share)
        for which, share in zip(chosen, _remaining(choice, known, chosen), strict=True)
    )
    return ExperimentDesign(runs, sum(run.cost for run in runs), before, _narrowed(before, runs))


def _chosen(choice: _DesignProblem, known: Floats, budget: float) -> list[int]:
    """Rows of the candidates that together leave the least variance, of the sets that each rule finds."""
    rules = [choice.cost, *(np.where(choice.cost <= budget / parts, 1.0, np.inf) for parts in PARTS)]
    sets = [_greedy(choice, known, budget, price) for price in rules]
    return min(sets, key=lambda rows: _variance(choice, _told(choice, known, rows)))


def _greedy(choice: _DesignProblem, known: Floats, budget: float, price: Floats) -> list[int]:
    """The runs with the most gain for their price, one after another, while the sum lasts; a run of infinite price is never taken."""
    chosen: list[int] = []
    left = np.isfinite(price)
    while len(chosen) < MOST_RUNS:
        gains = _gains(choice, known)
        worth = left & (choice.cost <= budget) & (gains > LEAST_GAIN * _variance(choice, known))
        if not worth.any():
            break
        best = int(np.argmax(np.where(worth, gains / price, -np.inf)))
        chosen.append(best)
        left[best] = False
        budget -= choice.cost[best]
        known = _told(choice, known, [best])
    return chosen


def _gains(choice: _DesignProblem, known: Floats) -> Floats:
    """What each run alone takes off the variance of the aim: (c' V j)^2 / (s^2 + j' V j)."""
    shared = choice.slopes @ known
    return np.asarray((shared @ choice.aim) ** 2 / (choice.scatter**2 + (shared * choice.slopes).sum(axis=1)))


def _told(choice: _DesignProblem, known: Floats, rows: list[int]) -> Floats:
    """The covariance of the parameters once those runs are made."""
    slopes = choice.slopes[rows]
    return np.linalg.inv(np.linalg.inv(known) + slopes.T @ slopes / choice.scatter**2).astype(np.float64)


def _variance(choice: _DesignProblem, known: Floats) -> float:
    return float(choice.aim @ known @ choice.aim)


def _remaining(choice: _DesignProblem, known: Floats, rows: list[int]) -> list[float]:
    """The share of the interval's width left after each run: the parameters' variance, and the run's own scatter, which stays."""
    own = 2 * choice.scatter**2  # a Laplace distribution's variance
    left = [_variance(choice, _told(choice, known, rows[:count])) + own for count in range(len(rows) + 1)]
    return [float(np.sqrt(each / left[0])) for each in left[1:]]


def _narrowed(before: Range, runs: tuple[ProposedRun, ...]) -> Range:
    share = runs[-1].narrowed_to if runs else 1.0
    return Range(before.p50 + (before.p10 - before.p50) * share, before.p50, before.p50 + (before.p90 - before.p50) * share)
