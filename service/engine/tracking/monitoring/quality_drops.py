"""Drops of evaluation metrics: a sequential test with a stated rate of false alarms.

Each evaluation is compared with the level that the metric had reached before it, in standard deviations of the difference. The level is
the end of the best-fitting curve through the newest evaluations: a constant, or an improvement that is linear, logarithmic or saturating in
the number of evaluations. A level that falls is fitted as a constant, so that a slow decline is not followed. Differences are normal scores
of Student's t, because level and noise are estimated from the same few evaluations (Hawkins 1987, Self-starting Cusum charts for location
and scale; Brown, Durbin & Evans 1975 on recursive residuals of a regression). Their cumulative sum less an allowance, never below 0, raises
an alarm above a threshold (Page 1954, Continuous inspection schemes). Evaluations since the sum left 0 are the drop: while it lasts they
are no part of the level. It ends with the first evaluation that is as good as the level before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
LEAST = 1e-300  # keeps logarithms and quotients of sums of squares finite


@dataclass(frozen=True, slots=True)
class QualityRules:
    """Rules of the test; see data/tracking_status.toml.

    `allowance`, `threshold` and `recovery` are in standard deviations. `window` is the number of evaluations behind a level, `watched` the
    newest that are tested. `saturations` are the numbers of evaluations in which a curve gets to within 1/e of its end.
    """

    false_alarm_share: float
    allowance: float
    threshold: float
    recovery: float
    window: int
    watched: int
    min_own: int
    min_trend: int
    trend_penalty: float
    saturations: tuple[float, ...]
    stated_weight: float
    typical_samples: float
    typical_scatter: float
    typical_weight: float
    least_scatter: float
    lower_is_better: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class DropTest:
    """State of each series after each of its evaluations, (series, evaluations) arrays.

    `dropped` whether an alarm holds, `since` the first evaluation of the excursion below the level, `level` and `deviation` what an
    evaluation is expected to be and its standard deviation, `improving` whether the level follows a curve, `score` the evaluation's
    difference as a normal score, positive below the level.
    """

    dropped: Bools
    since: NDArray[np.int64]
    level: Floats
    deviation: Floats
    improving: Bools
    score: Floats


@dataclass(frozen=True, slots=True)
class _Level:
    """Level of each series, the best evaluation behind it, the variance of its estimate over that of an evaluation, and the residual
    variance with its degrees of freedom."""

    value: Floats
    best: Floats
    leverage: Floats
    variance: Floats
    freedom: Floats
    count: Floats
    improving: Bools
    stated: Floats


def find_drops(values: Floats, deviations: Floats, rules: QualityRules) -> DropTest:
    """Test every evaluation of each series, in order.

    Parameters
    ----------
    values : (series, evaluations) float array
        Values, larger is better; a shorter series ends with NaN.
    deviations : (series, evaluations) float array
        Stated standard errors of the values, NaN where none is stated.
    rules : QualityRules
        Allowance, threshold and windows.

    References
    ----------
    Page 1954, Biometrika 41; Hawkins 1987, The Statistician 36.
    """
    series, count = values.shape
    kept, places = np.zeros((series, count), bool), np.arange(count)
    total, since, dropped = np.zeros(series), np.zeros(series, np.int64), np.zeros(series, bool)
    found = DropTest(*(np.zeros((series, count), kind) for kind in (bool, np.int64, float, float, bool, float)))
    for place in range(count):
        known = ~np.isnan(values[:, place])
        calm = kept[:, :place] & (places[:place] < np.where(total > 0, since, place)[:, None])
        level = _fit_level(values[:, :place], deviations[:, :place], (kept[:, :place], calm), rules)
        score, deviation = _score(level, values[:, place], deviations[:, place], rules)
        since = np.where(known & (total <= 0), place, since)
        total = np.where(known, np.clip(total + score - rules.allowance, 0, rules.threshold + rules.allowance), total)
        before, dropped = dropped, np.where(known, np.where(dropped, score > rules.recovery, total > rules.threshold), dropped)
        total = np.where(before & ~dropped, 0.0, total)
        begun = dropped & ~before
        kept[begun] &= places < since[begun, None]
        kept[:, place] = known & ~dropped
        for name, now in (("dropped", dropped), ("since", since), ("level", level.value), ("deviation", deviation), ("score", score)):
            getattr(found, name)[:, place] = now
        found.improving[:, place] = level.improving
    return found


def normal_score(statistic: Floats, freedom: Floats) -> Floats:
    """Standard normal quantile with the tail of a Student's t statistic (Wallace 1959, Annals of Mathematical Statistics 30, bound 2).

    Parameters
    ----------
    statistic, freedom : float arrays
        The statistic [1], and its degrees of freedom [1], at least 1.
    """
    size = np.sqrt(freedom * np.log1p(statistic**2 / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    return np.asarray(np.copysign(size, statistic))


def _score(level: _Level, values: Floats, stated: Floats, rules: QualityRules) -> tuple[Floats, Floats]:
    """Differences below the level as normal scores, 0 where there is no level or no value, and the standard deviation of a value."""
    typical = _typical_variance(level.value, rules)
    few = level.count < rules.min_own
    variance = np.where(few, np.maximum(typical, level.variance), level.variance)
    freedom = np.where(few, rules.typical_weight, level.freedom)
    own = np.where(np.isnan(stated), level.stated, stated**2)
    both = level.freedom + rules.stated_weight
    pooled = (rules.stated_weight * level.stated + level.freedom * level.variance) / both
    known = ~np.isnan(own)
    base = np.where(np.isnan(level.stated), variance, np.where(few, level.stated, np.maximum(level.stated, pooled)))
    each = np.where(known, np.maximum(own, np.where(np.isnan(level.stated) | few, 0.0, pooled)), variance)
    freedom = np.where(np.isnan(level.stated), freedom, np.where(few, rules.stated_weight, both))
    error = np.sqrt(each + base * level.leverage)
    score = normal_score((level.value - values) / np.maximum(error, LEAST), freedom)
    # A curve goes on where a metric has come to its end: what is as good as the best of the past is no drop.
    score = np.where(values >= level.best, np.minimum(score, 0.0), score)
    return np.where(level.count > 0, np.nan_to_num(score), 0.0), np.sqrt(each)


def _typical_variance(level: Floats, rules: QualityRules) -> Floats:
    """Variance of a share in a suite of the typical size (Agresti & Coull 1998: two successes and two failures are added), or of another
    metric by its level."""
    share = (np.clip(level, 0, 1) * rules.typical_samples + 2) / (rules.typical_samples + 4)
    return np.where((level >= 0) & (level <= 1), share * (1 - share) / rules.typical_samples, (rules.typical_scatter * level) ** 2)


def _fit_level(values: Floats, deviations: Floats, counted: tuple[Bools, Bools], rules: QualityRules) -> _Level:
    """Levels of series after their newest evaluations that count: the best of a constant and improving curves by Akaike's criterion.

    `counted` are the evaluations that count, and those of them before a possible drop. The penalty of a curve is `trend_penalty`, above
    Akaike's 2: several curves are tried.
    """
    kept, calm = counted
    used = kept & (np.cumsum(kept[:, ::-1], axis=1)[:, ::-1] <= rules.window)
    count = used.sum(axis=1)
    divisor = np.maximum(count, 1)
    level = np.where(used, values, 0).sum(axis=1) / divisor
    apart = np.where(used, values - level[:, None], 0)
    squares = (apart**2).sum(axis=1)
    least, leverage, improving = squares, 1.0 / divisor, np.zeros(len(values), bool)
    best, mean = divisor * np.log(np.maximum(squares, LEAST)), level
    for curve in _curves(values.shape[1], rules):
        middle = (used * curve).sum(axis=1) / divisor
        across = np.where(used, curve - middle[:, None], 0)
        spread = np.maximum((across**2).sum(axis=1), LEAST)
        slope = (across * apart).sum(axis=1) / spread
        left = np.maximum(squares - slope**2 * spread, LEAST)
        criterion = divisor * np.log(left) + rules.trend_penalty
        better = (slope > 0) & (count >= rules.min_trend) & (criterion < best)
        ahead = np.where(used, curve, -np.inf).max(axis=1, initial=-np.inf) - middle
        level = np.where(better, mean + slope * np.where(better, ahead, 0), level)
        leverage = np.where(better, 1 / divisor + np.where(better, ahead, 0) ** 2 / spread, leverage)
        least, best, improving = np.where(better, left, least), np.where(better, criterion, best), improving | better
    # Too few for a curve: the first evaluations differ by learning, so that only the newest above a possible drop is a level.
    short = count < rules.min_trend
    newest = np.where(used, values, 0)[np.arange(len(values)), _newest(calm)] if values.size else level
    level, leverage = np.where(short, newest, level), np.where(short, 1.0, leverage)
    freedom = np.maximum(count - 1.0 - improving, 1.0)
    variance = np.maximum(np.where(short, 0, least / freedom), (rules.least_scatter * level) ** 2)
    highest = np.where(used, values, -np.inf).max(axis=1, initial=-np.inf)
    return _Level(level, highest, leverage, variance, freedom, count, improving, _mean_stated(deviations, used))


def _newest(used: Bools) -> NDArray[np.int64]:
    """Place of the newest evaluation that counts."""
    return np.asarray(used.shape[1] - 1 - used[:, ::-1].argmax(axis=1), dtype=np.int64)


def _mean_stated(deviations: Floats, used: Bools) -> Floats:
    """Mean variance of the evaluations with a stated standard error; NaN where none has one."""
    stated = used & ~np.isnan(deviations)
    count = stated.sum(axis=1)
    return np.where(count > 0, np.where(stated, deviations**2, 0).sum(axis=1) / np.maximum(count, 1), math.nan)


def _curves(count: int, rules: QualityRules) -> list[Floats]:
    """Improving curves over the number of evaluations: linear, logarithmic and saturating."""
    places = np.arange(count, dtype=np.float64)
    return [places, np.log1p(places), *(-np.exp(-places / lasting) for lasting in rules.saturations)]
