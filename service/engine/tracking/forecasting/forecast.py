"""Forecast of what is left of a run: hours, USD and accelerator-hours to its last token, from its history and its plan.

The history is cut into blocks of equally many surviving tokens (batch means: Schmeiser 1982, Batch size effects in the analysis of
simulation output), so that autocorrelated noise, repairs and rollbacks average out within a block. A block's use per token is a level plus
noise, where the level follows a random walk (local level model: Muth 1960; Harvey 1989, ch. 2). The signal-to-noise ratio is unknown:
several values are weighted by likelihood (Bayesian model averaging: Hoeting et al. 1999). Each predicts the mean of the remaining blocks
by a Student t distribution (Gelman et al. 2013, Bayesian Data Analysis, sec. 3.2), its variance shrunk towards the typical one while blocks
are few; the plan is one more observation of the level. The percentiles are those of the mixture.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.engine.numerics.quantiles import median
from service.engine.numerics.ranges import P90_Z_SCORE, inverse

Floats = NDArray[np.float64]
Basis = Literal["history", "history and plan", "plan"]
HOURS_PER_DAY = 24.0
# Standard deviation of a normal sample over its median absolute deviation.
NORMAL_SCALE = 1.4826
# Of the history's mean: 0 has no logarithm.
MIN_LEVEL = 0.01
# Quantiles of each component: enough for p10 and p90 of the mixture to a few thousandths of its width.
POINTS = np.array([NormalDist().inv_cdf((point + 0.5) / 100) for point in range(100)])


@dataclass(frozen=True, slots=True)
class ProgressSeries:
    """A run's progress, one element for each report; the last element is now.

    `at_hours` is elapsed time, increasing. `tokens` is the position in the plan (it falls at a rollback); `usd` and `accelerator_hours`
    are running totals, None where unknown.
    """

    at_hours: Floats
    tokens: Floats
    usd: Floats | None = None
    accelerator_hours: Floats | None = None


@dataclass(frozen=True, slots=True)
class PlanPrior:
    """Planned rates of a run, None where not planned. Their weight falls as the history grows."""

    tokens_per_hour: Range | None = None
    usd_per_token: Range | None = None
    accelerator_hours_per_token: Range | None = None


@dataclass(frozen=True, slots=True)
class RemainingWork:
    """What is left to the last token, as p10, p50 and p90; None where neither history nor plan are informative."""

    remaining_hours: Range | None
    remaining_usd: Range | None
    remaining_accelerator_hours: Range | None
    basis: Basis


@dataclass(frozen=True, slots=True)
class ForecastRules:
    """Rules of a forecast; scatters are relative standard deviations of the use per token.

    `max_blocks` bounds the number of blocks; values are clipped at `clip` deviations before models are weighted. `daily_scatter` is the
    typical scatter of days, with the weight of `scatter_weight` blocks. `plan_error` is the least error of a plan.
    `signal_to_noise_weights` maps the variance of the level's steps, in units of the noise variance, to the prior weight of that model.
    """

    max_blocks: int
    clip: float
    daily_scatter: float
    scatter_weight: float
    plan_error: float
    signal_to_noise_weights: Mapping[str, float]
    source: str


@dataclass(frozen=True, slots=True)
class _Models:
    """Data-independent parts of the local level models, one element for each signal-to-noise ratio.

    `inverse` are the inverted covariances of the blocks about the final level, `end` the variance of that level, both in units of the
    block noise; `plausible` is the log of each model's prior weight and determinant.
    """

    wandering: Floats
    inverse: Floats
    end: Floats
    plausible: Floats


@dataclass(frozen=True, slots=True)
class _Cut:
    """A history cut into blocks: indices of the reports on the surviving line, their positions, and the blocks' boundaries [tokens]."""

    kept: NDArray[np.int64]
    positions: Floats
    boundaries: Floats

    @property
    def tokens(self) -> float:
        """Tokens of a block."""
        return float(self.boundaries[1] - self.boundaries[0])

    def per_token(self, totals: Floats) -> Floats:
        """Use per token in each block."""
        at = np.interp(self.boundaries, self.positions, totals[self.kept])
        return np.asarray((at[1:] - at[:-1]) / self.tokens)


def forecast(done: ProgressSeries, remaining_tokens: float, prior: PlanPrior, rules: ForecastRules) -> RemainingWork | None:
    """Hours, USD and accelerator-hours that the remaining tokens will take.

    Parameters
    ----------
    done : ProgressSeries
        Progress until now.
    remaining_tokens : float
        Tokens to the end of the plan.
    prior : PlanPrior
        Planned rates [tokens per hour, USD per token, accelerator-hours per token].
    rules : ForecastRules
        Prior weights and scatters.

    Returns
    -------
    RemainingWork or None
        Ranges p10, p50, p90; None where neither history nor plan are informative.

    References
    ----------
    Schmeiser 1982; Harvey 1989, ch. 2; Hoeting et al. 1999; Gelman et al. 2013, sec. 3.2 (see the module).
    """
    left = max(float(remaining_tokens), 0.0)
    cut = _cut(done, rules.max_blocks)
    pace = prior.tokens_per_hour if prior.tokens_per_hour and prior.tokens_per_hour.p10 > 0 else None
    plans = (inverse(pace) if pace else None, prior.usd_per_token, prior.accelerator_hours_per_token)
    totals = (done.at_hours, done.usd, done.accelerator_hours)
    scatter = _typical_scatter(cut, done.at_hours, rules) if cut else 0.0
    hours, usd, accelerator_hours = (_remaining(cut, total, plan, left, scatter, rules) for total, plan in zip(totals, plans, strict=True))
    if not (hours or usd or accelerator_hours):
        return None
    basis: Basis = "plan" if cut is None else "history and plan" if any(plans) else "history"
    return RemainingWork(hours, usd, accelerator_hours, basis)


def _cut(done: ProgressSeries, blocks: int) -> _Cut | None:
    """The surviving line in equal blocks of tokens, fewer than its reports. None where nothing was trained yet.

    A position counts from the last time the run passed it: the time of rollbacks and standstill belongs to the tokens before it.
    """
    line = np.minimum.accumulate(done.tokens[::-1])[::-1]
    if len(line) < 2 or line[-1] <= line[0]:
        return None
    kept = np.append(np.flatnonzero(np.diff(line) > 0), len(line) - 1)
    kept[0] = 0
    boundaries = np.linspace(line[0], line[-1], min(blocks, len(kept) - 1) + 1)
    return _Cut(kept, line[kept], boundaries)


def _typical_scatter(cut: _Cut, at_hours: Floats, rules: ForecastRules) -> float:
    """Typical variance of blocks of this length: independent days average out."""
    block_hours = float(at_hours[-1] - at_hours[0]) / (len(cut.boundaries) - 1)
    return rules.daily_scatter**2 * HOURS_PER_DAY / block_hours


def _as_planned(plan: Range | None, remaining_tokens: float, rules: ForecastRules) -> Range | None:
    """The planned range, widened to the usual error of plans."""
    if plan is None:
        return None
    factor = math.exp(P90_Z_SCORE * rules.plan_error)
    return Range(min(plan.p10, plan.p50 / factor), plan.p50, max(plan.p90, plan.p50 * factor)).scaled(remaining_tokens)


def _remaining(
    cut: _Cut | None, totals: Floats | None, plan: Range | None, remaining_tokens: float, scatter: float, rules: ForecastRules
) -> Range | None:
    """What is left of one quantity. A quantity without any reported use is predicted from the plan alone."""
    if cut is None or totals is None or totals[-1] <= totals[0]:
        return _as_planned(plan, remaining_tokens, rules)
    if not remaining_tokens:
        return Range.exactly(0.0)
    values = cut.per_token(totals)
    mean = float(values.mean())
    relative = _predict(values / mean, remaining_tokens / cut.tokens, scatter, plan and plan.scaled(1 / mean), rules)
    return relative.scaled(mean * remaining_tokens)


def _predict(values: Floats, ahead: float, scatter: float, plan: Range | None, rules: ForecastRules) -> Range:
    """Mean of the remaining blocks by the mixture of all models, in units of the history's mean."""
    models = _models(len(values), tuple(rules.signal_to_noise_weights.items()))
    freedom = rules.scatter_weight + len(values) - 1
    typical = rules.scatter_weight * scatter
    level, squares = _level(models, values)
    noise = (squares + typical) / freedom / level**2
    middle, variance = _with_plan(np.log(level), noise * models.end, plan, rules)
    # Random walk from the end: the variance of the mean level is a third of the last one's. Log-normal: few blocks vary widely.
    variance = variance + np.log1p(noise * (1 / ahead + models.wandering * ahead / 3))
    squares = _level(models, _winsorize(values, scatter, rules.clip))[1]
    weight = _model_weights(models, squares + typical, freedom)
    return _percentiles(middle[:, None] + np.sqrt(variance)[:, None] * student_points(freedom), weight)


def _model_weights(models: _Models, squares: Floats, freedom: float) -> Floats:
    """Posterior probability of every model by its residual sum of squares, in units of the block noise."""
    likely = models.plausible - freedom / 2 * np.log(squares)
    weight = np.exp(likely - likely.max())
    return np.asarray(weight / weight.sum())


def _level(models: _Models, values: Floats) -> tuple[Floats, Floats]:
    """Final level under each model, and the residual sum of squares, in units of the block noise."""
    weighed = models.inverse @ values
    level = np.maximum(weighed.sum(axis=1) * models.end, MIN_LEVEL)
    return level, np.maximum(weighed @ values - level**2 / models.end, 0)


def _winsorize(values: Floats, scatter: float, clip: float) -> Floats:
    """Values clipped at `clip` deviations from their median (Huber 1964): a single pause does not move the level."""
    middle = median(values)
    furthest = clip * max(NORMAL_SCALE * median(np.abs(values - middle)), math.sqrt(scatter))
    return np.asarray(np.clip(values, middle - furthest, middle + furthest))


def _with_plan(middle: Floats, variance: Floats, plan: Range | None, rules: ForecastRules) -> tuple[Floats, Floats]:
    """Log level combined with the plan's, weighted by precision. A plan of 0 is ignored."""
    if plan is None or plan.p10 <= 0:
        return middle, variance
    planned = math.log(plan.p50)
    deviation = max(math.log(plan.p90 / plan.p10) / (2 * P90_Z_SCORE), rules.plan_error)
    share = variance / (variance + deviation**2)
    return middle + share * (planned - middle), variance * (1 - share)


@functools.lru_cache(maxsize=64)
def _models(blocks: int, wandering: tuple[tuple[str, float], ...]) -> _Models:
    """Covariance of blocks i and j about the final level: the noise of each, and the random-walk steps that separate both from the end."""
    shares = np.array([float(share) for share, _ in wandering])
    place = np.arange(blocks)
    steps = blocks - np.maximum(place[:, None], place) - 0.5
    covariance = np.eye(blocks) + shares[:, None, None] * steps
    inverted = np.linalg.inv(covariance)
    end = np.asarray(1 / inverted.sum(axis=(1, 2)), dtype=np.float64)
    before = np.array([math.log(weight) for _, weight in wandering])
    plausible = before + 0.5 * (np.log(end) - np.linalg.slogdet(covariance)[1])
    return _Models(shares, np.asarray(inverted, dtype=np.float64), end, np.asarray(plausible, dtype=np.float64))


def _percentiles(points: Floats, weight: Floats) -> Range:
    """p10, p50 and p90 of a mixture whose components, one a row, are equally probable points; `points` are logarithms."""
    order = points.argsort(axis=None)
    weights = weight.repeat(points.shape[1])[order]
    below = weights.cumsum() - weights / 2
    return Range(*np.exp(np.interp(np.array([0.1, 0.5, 0.9]) * weights.sum(), below, points.ravel()[order])).tolist())


@functools.lru_cache(maxsize=64)
def student_points(freedom: float) -> Floats:
    """Student t quantiles at the midpoints of 100 equal probabilities, by expansion in the degrees of freedom.

    Parameters
    ----------
    freedom : float
        Degrees of freedom, at least 3 [1].

    Returns
    -------
    (100,) float array
        Quantiles, read-only [1].

    References
    ----------
    Abramowitz & Stegun 1964, 26.7.5.
    """
    z = POINTS
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    points = z + first / freedom + second / freedom**2 + third / freedom**3
    points.flags.writeable = False  # cached: shared by all callers
    return np.asarray(points)
