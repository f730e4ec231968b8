"""Change-point tests of a series of days: of its level, and of a rate of failures, each with a false-alarm rate for a whole life.

Every split of the days in two is tested (Page 1954, Continuous inspection schemes; Andrews 1993, Tests for parameter instability with
unknown change point): the statistic is the difference of the two means over its standard error, which includes the days' first
autocorrelation. Outlying days are winsorized (Huber 1964), and the variance is shrunk towards the typical one while days are few (Smyth
2004, moderated t). The largest statistic is a change where it exceeds a threshold that depends on the number of days. Thresholds are
calibrated so that a series without a change, tested every day, exceeds one with the stated probability (Chu, Stinchcombe & White 1996,
Monitoring structural change).

Interruptions are compared with the plan's rate: the likelihood ratio of a higher rate, mixed over rates and start days, exceeds 1/alpha
with probability of at most alpha at any number of looks (Ville 1939; Robbins 1970; Shin, Ramdas & Rinaldo 2024, E-detectors).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NORMAL_SCALE = 1.4826  # standard deviation of a normal sample over its median absolute deviation
LARGEST_EXPONENT = 300.0  # exp() of more overflows


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of level before element `index` of a series; `ratio` is the level after over the level before."""

    index: int
    ratio: float
    confidence: float


@dataclass(frozen=True, slots=True)
class SplitRules:
    """Rules of splits: fewest days on either side, widening of the scale, and the deviations at which values are clipped.

    The autocorrelation is shrunk towards `typical_autocorrelation` with the weight of `autocorrelation_weight` days, and has a maximum.
    """

    min_before: int
    min_after: int
    widening: float
    clip: float
    typical_autocorrelation: float
    autocorrelation_weight: float
    max_autocorrelation: float


@dataclass(frozen=True, slots=True)
class DriftThresholds:
    """Thresholds of a quantity's statistic: `thresholds[i]` holds from `days[i]` days on. `false_alarm_share` is that of a whole life.

    `typical_scatter` is the least relative standard deviation of a day.
    """

    typical_scatter: float
    false_alarm_share: float
    days: tuple[int, ...]
    thresholds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FailureRules:
    """Rules of the failure test: `ratios` of actual to planned interruptions that are tested; `dispersion` is variance over mean of the
    counts."""

    ratios: tuple[float, ...]
    dispersion: float
    false_alarm_share: float


def change_point(values: Floats, splits: SplitRules, limits: DriftThresholds) -> LevelChange | None:
    """The split with the largest statistic, where that exceeds its threshold; None otherwise, or where the level before is 0.

    Parameters
    ----------
    values : (days,) float array
        A value for each day.
    splits : SplitRules
        How the series is split.
    limits : DriftThresholds
        Thresholds of the quantity.
    """
    if len(values) < splits.min_before + splits.min_after:
        return None
    statistics = split_statistics(values, splits, limits.typical_scatter)
    place = int(statistics.argmax())
    largest, limit = float(statistics[place]), threshold(len(values), limits)
    if largest <= limit:
        return None
    index = splits.min_before + place
    before, since = float(np.median(values[:index])), float(np.median(values[index:]))
    if not before:
        return None
    # Beyond the threshold the false-alarm probability falls like a normal tail.
    return LevelChange(index, since / before, 1 - limits.false_alarm_share * math.exp((limit**2 - largest**2) / 2))


def threshold(days: int, limits: DriftThresholds) -> float:
    """Threshold of the largest split statistic for a number of days."""
    return limits.thresholds[max(bisect_right(limits.days, days) - 1, 0)]


def split_statistics(values: Floats, splits: SplitRules, typical_scatter: float) -> Floats:
    """Difference of the means before and after each split, in standard errors.

    Parameters
    ----------
    values : (..., days) float array
        Series along the last axis.
    splits : SplitRules
        The first split has `min_before` values before it, the last one `min_after` values after it.
    typical_scatter : float
        Least relative standard deviation of a day [1].

    Returns
    -------
    (..., splits) float array
        Absolute statistic of each split [1] (Andrews 1993, with the moderated variance of Smyth 2004).
    """
    z = _winsorize(values, typical_scatter, splits)
    count = z.shape[-1]
    before = np.arange(splits.min_before, count - splits.min_after + 1)
    after = count - before
    sums, squares, products = z.cumsum(axis=-1), (z**2).sum(axis=-1)[..., None], (z[..., 1:] * z[..., :-1]).cumsum(axis=-1)
    total, last = sums[..., -1:], sums[..., before - 1]
    mean_before, mean_after = last / before, (total - last) / after
    within = np.maximum(squares - before * mean_before**2 - after * mean_after**2, 0)
    paired = (
        products[..., before - 2] - mean_before * (2 * last - z[..., :1] - z[..., before - 1]) + (before - 1) * mean_before**2
        + products[..., -1:] - products[..., before - 1] - mean_after * (2 * (total - last) - z[..., before] - z[..., -1:])
        + (after - 1) * mean_after**2
    )  # fmt: skip
    variance = np.maximum(within / (count - 2), 1)
    memory = _autocorrelation(paired / np.maximum(within, np.finfo(float).tiny), count, splits)
    error = np.sqrt(variance * (_mean_variance(before, memory) + _mean_variance(after, memory)))
    return np.asarray(np.abs(mean_after - mean_before) / error)


def _winsorize(values: Floats, typical_scatter: float, splits: SplitRules) -> Floats:
    """Deviations from the median, clipped at `clip`, in the scale of neighbours' differences (von Neumann 1941), widened."""
    middle = np.median(values, axis=-1, keepdims=True)
    typical = np.maximum(typical_scatter * np.abs(middle), np.finfo(float).tiny)
    between = np.median(np.abs(np.diff(values, axis=-1)), axis=-1, keepdims=True)
    deviation = np.maximum(NORMAL_SCALE / math.sqrt(2) * between, typical)
    with np.errstate(over="ignore"):  # values of which most are zero have no scale: an infinite deviation is clipped as any other
        deviations = (values - middle) / (splits.widening * deviation)
    return np.asarray(np.clip(deviations, -splits.clip, splits.clip))


def _autocorrelation(correlation: Floats, count: int, splits: SplitRules) -> Floats:
    """First autocorrelation, corrected for its bias in short series (Kendall 1954) and shrunk towards the typical one."""
    corrected = correlation + (2 + 3 * np.maximum(correlation, 0)) / count
    leaning = (count * corrected + splits.autocorrelation_weight * splits.typical_autocorrelation) / (count + splits.autocorrelation_weight)
    return np.asarray(np.clip(leaning, 0, splits.max_autocorrelation), dtype=np.float64)


def _mean_variance(length: NDArray[np.int64], memory: Floats) -> Floats:
    """Variance of the mean of `length` values of a first-order autoregressive series of variance 1."""
    lasting = (1 + memory) / (1 - memory)
    return np.asarray((lasting - 2 * memory * (1 - memory**length) / (length * (1 - memory) ** 2)) / length)


def more_failures(counts: Floats, planned_a_day: float, rules: FailureRules) -> LevelChange | None:
    """The day since which interruptions exceed the plan, where the evidence exceeds 1 / `false_alarm_share`; None otherwise (Ville 1939).

    Parameters
    ----------
    counts : (days,) float array
        Interruptions of each day.
    planned_a_day : float
        Planned interruptions a day.
    rules : FailureRules
        Ratios that are tested, dispersion, false-alarm share.

    Returns
    -------
    LevelChange or None
        Day index, ratio [1] and confidence [1].
    """
    evidence = failure_evidence(counts, planned_a_day, rules)
    if not evidence.size or evidence.sum() <= 1 / rules.false_alarm_share:
        return None
    index = int(evidence.argmax())
    ratio = float(counts[index:].sum() / (planned_a_day * (len(counts) - index)))
    return LevelChange(index, ratio, 1 - 1 / float(evidence.sum()))


def failure_evidence(counts: Floats, planned_a_day: float, rules: FailureRules) -> Floats:
    """Weighted likelihood ratio of a higher interruption rate since each day over the planned rate.

    Parameters
    ----------
    counts : (..., days) float array
        Interruptions of each day.
    planned_a_day : float
        Planned interruptions a day.
    rules : FailureRules
        Counts and plan are divided by `dispersion`, because clustered counts are less informative.

    Returns
    -------
    (..., days) float array
        Evidence for a change on each day [1]; the sum over days is an e-value.
    """
    ratios = np.array(rules.ratios)[:, None]
    days = (counts[..., None, :] * np.log(ratios) - (ratios - 1) * planned_a_day) / rules.dispersion
    since = days[..., ::-1].cumsum(axis=-1)[..., ::-1]
    return np.asarray(_start_weights(counts.shape[-1]) * np.exp(np.minimum(since, LARGEST_EXPONENT)).mean(axis=-2))


def _start_weights(days: int) -> Floats:
    """Prior weights of the start day: half on the first day, half on all later days, falling with the root of their number."""
    later = 0.5 * math.sqrt(8) * (1 / np.sqrt(np.arange(days) + 7) - 1 / np.sqrt(np.arange(days) + 8))
    return np.where(np.arange(days) == 0, 0.5, later)
