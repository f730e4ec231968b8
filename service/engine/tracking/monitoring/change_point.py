"""Drift: change-point tests of a run's throughput, price, goodput and failures, with a false-alarm rate for the run's whole life.

Throughput and goodput are averaged by day. Every split of the days in two is tested (Page 1954, Continuous inspection schemes; Andrews
1993, Tests for parameter instability with unknown change point): the statistic is the difference of the two means over its standard
error, which includes the days' first autocorrelation. Outlying days are winsorized (Huber 1964), and the variance is shrunk towards the
typical one while days are few (Smyth 2004, moderated t). The largest statistic is a change where it exceeds a threshold that depends on
the number of days. Thresholds are calibrated so that a run on its plan, tested every day, exceeds one with the stated probability
(Chu, Stinchcombe & White 1996, Monitoring structural change).

A price is constant between changes, so that its steps are detected directly. Interruptions are compared with the plan's rate: the
likelihood ratio of a higher rate, mixed over rates and start days, exceeds 1/alpha with probability of at most alpha at any number of looks
(Ville 1939; Robbins 1970; Shin, Ramdas & Rinaldo 2024, E-detectors).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.tracking.status import DriftQuantity

Floats = NDArray[np.float64]
HOURS_PER_DAY = 24.0
NORMAL_SCALE = 1.4826  # standard deviation of a normal sample over its median absolute deviation
LARGEST_EXPONENT = 300.0  # exp() of more overflows


@dataclass(frozen=True, slots=True)
class RunTotals:
    """Running totals of a run, one element for each report; None where the run never reported them.

    `at_hours` is elapsed time, increasing. The others never fall: `tokens_trained` includes tokens lost to rollbacks, `productive_hours` is
    the time in which the job ran, `usd` the cost of its accelerators. `interruption_hours` are the elapsed hours of its interruptions.
    """

    at_hours: Floats
    tokens_trained: Floats
    productive_hours: Floats | None = None
    usd: Floats | None = None
    accelerator_hours: Floats | None = None
    interruption_hours: Floats | None = None


@dataclass(frozen=True, slots=True)
class PlannedRates:
    """Planned price [USD per accelerator-hour] and planned interruptions [per elapsed hour]; None where not planned."""

    usd_per_accelerator_hour: float | None = None
    interruptions_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of level before element `index` of a series; `ratio` is the level after over the level before."""

    index: int
    ratio: float
    confidence: float


@dataclass(frozen=True, slots=True)
class RateChange:
    """A quantity that has changed. `since_hours` is elapsed time, `change` a signed share (-0.15: a fall of 15 %).

    `confidence` is 1 less the probability that a run on its plan, tested daily for its whole life, ever shows as large a change.
    """

    quantity: DriftQuantity
    since_hours: float
    change: float
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


@dataclass(frozen=True, slots=True)
class DriftRules:
    """Rules of all drift tests. `false_alarm_share` is that of a run's whole life over all quantities; see data/tracking.toml.

    A day counts for throughput where the job ran at least `min_running_share` of it. Prices within `price_tolerance` of each other are
    equal; a price that changes on more than `floating_share` of its days is tested like throughput.
    """

    false_alarm_share: float
    min_running_share: float
    price_tolerance: float
    floating_share: float
    splits: SplitRules
    limits: Mapping[DriftQuantity, DriftThresholds]
    failures: FailureRules
    source: str


def detect_drift(record: RunTotals, planned: PlannedRates, rules: DriftRules) -> tuple[RateChange, ...]:
    """Changes of a run's throughput, price, goodput and failures, from its whole days; methods and sources: see the module.

    Parameters
    ----------
    record : RunTotals
        Running totals of the run.
    planned : PlannedRates
        Planned price and failure rate.
    rules : DriftRules
        Thresholds and tolerances.

    Returns
    -------
    tuple of RateChange
        At most one change a quantity.
    """
    return tuple(_drifts(record, planned, rules))


def _drifts(record: RunTotals, planned: PlannedRates, rules: DriftRules) -> Iterator[RateChange]:
    judged = rules.limits if len(_bounds(record)) > rules.splits.min_before + rules.splits.min_after else {}
    for quantity, limits in judged.items():
        starts, values = daily_values(record, quantity, rules)
        yield from _drift(quantity, starts, change_point(values, rules.splits, limits))
    starts, prices = daily_values(record, "price", rules)
    yield from _drift("price", starts, price_change(prices, planned.usd_per_accelerator_hour, rules))
    if record.interruption_hours is not None and planned.interruptions_per_hour:
        starts, counts = daily_interruptions(record, record.interruption_hours)
        yield from _drift("failures", starts, more_failures(counts, planned.interruptions_per_hour * HOURS_PER_DAY, rules.failures))


def _drift(quantity: DriftQuantity, starts: Floats, found: LevelChange | None) -> Iterator[RateChange]:
    if found:
        yield RateChange(quantity, float(starts[found.index]), found.ratio - 1, found.confidence)


def daily_values(record: RunTotals, quantity: DriftQuantity, rules: DriftRules) -> tuple[Floats, Floats]:
    """Daily values of a quantity; days without information are left out.

    Parameters
    ----------
    record : RunTotals
        Running totals of the run.
    quantity : Quantity
        throughput [tokens per running hour], goodput [1] or price [USD per accelerator-hour].
    rules : DriftRules
        `min_running_share` decides which days count for throughput.

    Returns
    -------
    starts, values : (days,) float arrays
        Elapsed hours at which each day begins, and the day's value.
    """
    bounds = _bounds(record)
    running = _gained(record, record.productive_hours, bounds)
    if quantity == "goodput":
        value, telling = running / HOURS_PER_DAY, np.full(len(running), record.productive_hours is not None)
    elif quantity == "throughput":
        telling = running >= rules.min_running_share * HOURS_PER_DAY
        value = _gained(record, record.tokens_trained, bounds) / np.where(telling, running, 1)
    else:
        hours = _gained(record, record.accelerator_hours, bounds)
        telling = (hours > 0) & (record.usd is not None) & (record.accelerator_hours is not None)
        value = _gained(record, record.usd, bounds) / np.where(telling, hours, 1)
    return bounds[:-1][telling], value[telling]


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


def price_change(values: Floats, planned: float | None, rules: DriftRules) -> LevelChange | None:
    """The last step of a price that is constant between changes; a step on the first day is relative to the plan.

    Parameters
    ----------
    values : (days,) float array
        Price of each day [USD per accelerator-hour].
    planned : float or None
        Planned price [USD per accelerator-hour].
    rules : DriftRules
        Tolerance of equal prices. A floating price is tested like throughput.
    """
    if not len(values):
        return None
    same = np.abs(values - values[-1]) <= rules.price_tolerance * values[-1]
    moved = np.abs(np.diff(values)) > rules.price_tolerance * values[:-1]
    if moved.sum() > max(2, rules.floating_share * len(values)):
        return change_point(values, rules.splits, rules.limits["throughput"])
    index = 0 if same.all() else int(np.flatnonzero(~same)[-1]) + 1
    before = float(np.median(values[:index])) if index else planned
    if not before or abs(values[-1] / before - 1) <= rules.price_tolerance:
        return None
    return LevelChange(index, float(values[-1] / before), 1.0)


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


def daily_interruptions(record: RunTotals, interruption_hours: Floats) -> tuple[Floats, Floats]:
    """Elapsed hours at which each whole day begins, and the number of interruptions in it.

    Parameters
    ----------
    record : RunTotals
        Its `at_hours` set the days.
    interruption_hours : (interruptions,) float array
        Elapsed hours.

    Returns
    -------
    starts, counts : (days,) float arrays
    """
    bounds = _bounds(record)
    return bounds[:-1], np.diff(np.searchsorted(np.sort(interruption_hours), bounds)).astype(np.float64)


def _bounds(record: RunTotals) -> Floats:
    """Elapsed hours at which whole days begin and end."""
    days = int((record.at_hours[-1] - record.at_hours[0]) // HOURS_PER_DAY)
    return np.asarray(record.at_hours[0] + HOURS_PER_DAY * np.arange(days + 1))


def _gained(record: RunTotals, totals: Floats | None, bounds: Floats) -> Floats:
    """Growth of a running total in each day; of a total that was never reported, the hours of the day."""
    at = np.interp(bounds, record.at_hours, record.at_hours if totals is None else totals)
    return np.asarray(at[1:] - at[:-1])
