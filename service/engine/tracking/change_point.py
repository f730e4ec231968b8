"""Drift: whether throughput, price, goodput or failures of a run have changed, with a false-alarm rate for its whole life.

Throughput and goodput are cut into days. Every way to split the days in two is tried (Page 1954, Continuous inspection schemes; Andrews
1993, Tests for parameter instability with unknown change point): the difference of the two means over its standard error, of which the
days' own first autocorrelation is part. Days far from the middle are drawn in (Huber 1964), and the scatter leans on what runs typically
have while days are few (Smyth 2004, moderated t). The largest of these statistics is a change where it passes a threshold that depends on
the number of days; thresholds are calibrated so that a run on its plan, looked at every day, ever passes one as rarely as stated (Chu,
Stinchcombe & White 1996, Monitoring structural change).

A price is constant between changes, so that a change of it is seen as it is. Interruptions are counted against what the plan allows for:
the likelihood of more of them over that of as many as planned, mixed over how many more and since when, exceeds 1/alpha with a chance of
at most alpha however often one looks (Ville 1939; Robbins 1970; Shin, Ramdas & Rinaldo 2024, E-detectors).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Quantity = Literal["throughput", "price", "goodput", "failures"]
HOURS_PER_DAY = 24.0
# A normal sample's standard deviation over its median distance from the median.
NORMAL_SCALE = 1.4826
# Evidence beyond it is no float any more.
LARGEST_EXPONENT = 300.0


@dataclass(frozen=True, slots=True)
class RunTotals:
    """A run's totals so far, one element for each time it told of itself; None where nobody told them. `at_hours` is elapsed, increasing.

    All others are running totals that never fall: `tokens_trained` counts also what a rollback lost, `productive_hours` the time in which
    the job ran, `usd` what the accelerators cost. `interruption_hours` are the elapsed hours at which it was interrupted.
    """

    at_hours: Floats
    tokens_trained: Floats
    productive_hours: Floats | None = None
    usd: Floats | None = None
    accelerator_hours: Floats | None = None
    interruption_hours: Floats | None = None


@dataclass(frozen=True, slots=True)
class PlannedRates:
    """What was planned: the price, and the interruptions that the plan allows for each elapsed hour; None where nobody said."""

    usd_per_accelerator_hour: float | None = None
    interruptions_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change before element `index` of a series: `ratio` is the level after over the level before."""

    index: int
    ratio: float
    confidence: float


@dataclass(frozen=True, slots=True)
class RateChange:
    """A quantity that is not what it was. `since_hours` is elapsed time, `change` a signed share (-0.15: a fall of 15 %).

    `confidence` is 1 less the chance that a run on its plan, looked at daily for its whole life, ever shows as much.
    """

    quantity: Quantity
    since_hours: float
    change: float
    confidence: float


@dataclass(frozen=True, slots=True)
class SplitRules:
    """How a series is split and judged. `min_before` and `min_after` are the fewest days on either side of a split.

    `clip` is how far a day may lie from the middle, in deviations. The autocorrelation leans on `typical_autocorrelation` with the weight of
    `autocorrelation_weight` days, and is held below `max_autocorrelation`.
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
    """When a quantity's statistic is a change: `thresholds` from each number of `days` on; `false_alarm_share` is that of a whole life."""

    typical_scatter: float
    false_alarm_share: float
    days: tuple[int, ...]
    thresholds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FailureRules:
    """`ratios` of interruptions over planned ones that are looked for; `dispersion` is the variance of counts over their mean."""

    ratios: tuple[float, ...]
    dispersion: float
    false_alarm_share: float


@dataclass(frozen=True, slots=True)
class DriftRules:
    """How much is a change. `false_alarm_share` is that of a run's whole life over all quantities. See data/tracking.toml.

    A day counts for throughput where the job ran `min_running_share` of it; prices within `price_tolerance` of each other are the same, and
    a price that moves on more than `floating_share` of its days is judged like throughput.
    """

    false_alarm_share: float
    min_running_share: float
    price_tolerance: float
    floating_share: float
    splits: SplitRules
    limits: Mapping[Quantity, DriftThresholds]
    failures: FailureRules
    source: str


def detect_drift(record: RunTotals, planned: PlannedRates, rules: DriftRules) -> tuple[RateChange, ...]:
    """What has changed in a run, of throughput, price, goodput and failures, by the days that are whole."""
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


def _drift(quantity: Quantity, starts: Floats, found: LevelChange | None) -> Iterator[RateChange]:
    if found:
        yield RateChange(quantity, float(starts[found.index]), found.ratio - 1, found.confidence)


def daily_values(record: RunTotals, quantity: Quantity, rules: DriftRules) -> tuple[Floats, Floats]:
    """Elapsed hours at which each whole day begins, and the quantity's value in it; days that say nothing are left out."""
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
    """The split of a series that tells most, where it tells more than chance does. None without one, or after a level of nothing."""
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
    # Beyond the threshold chances fall off like those of a normal tail.
    return LevelChange(index, since / before, 1 - limits.false_alarm_share * math.exp((limit**2 - largest**2) / 2))


def threshold(days: int, limits: DriftThresholds) -> float:
    """What a statistic of so many days has to pass."""
    return limits.thresholds[max(bisect_right(limits.days, days) - 1, 0)]


def split_statistics(values: Floats, splits: SplitRules, typical_scatter: float) -> Floats:
    """How far apart the means before and after each split are, in standard errors. Series lie along the last axis.

    The first split leaves `splits.before` values before it, the last one `splits.after` after it.
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
    """Values as deviations from their median, none further out than `clip`. The deviation, of which a change of level is no part, is that
    between neighbours (von Neumann 1941), and some more: neighbours are alike.
    """
    middle = np.median(values, axis=-1, keepdims=True)
    typical = np.maximum(typical_scatter * np.abs(middle), np.finfo(float).tiny)
    between = np.median(np.abs(np.diff(values, axis=-1)), axis=-1, keepdims=True)
    deviation = np.maximum(NORMAL_SCALE / math.sqrt(2) * between, typical)
    return np.asarray(np.clip((values - middle) / (splits.widening * deviation), -splits.clip, splits.clip))


def _autocorrelation(correlation: Floats, count: int, splits: SplitRules) -> Floats:
    """First autocorrelation: an estimate from few values is too low (Kendall 1954) and uncertain, and leans on the typical one."""
    corrected = correlation + (2 + 3 * np.maximum(correlation, 0)) / count
    leaning = (count * corrected + splits.autocorrelation_weight * splits.typical_autocorrelation) / (count + splits.autocorrelation_weight)
    return np.asarray(np.clip(leaning, 0, splits.max_autocorrelation), dtype=np.float64)


def _mean_variance(length: NDArray[np.int64], memory: Floats) -> Floats:
    """Variance of the mean of so many values of an autoregressive series of variance 1."""
    lasting = (1 + memory) / (1 - memory)
    return np.asarray((lasting - 2 * memory * (1 - memory**length) / (length * (1 - memory) ** 2)) / length)


def price_change(values: Floats, planned: float | None, rules: DriftRules) -> LevelChange | None:
    """The last change of a price [USD per accelerator-hour] that is constant between changes; from the first day, against the plan.

    A price that floats is judged like throughput.
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
    """The day since which there are more interruptions than planned, where chance would hardly ever have as many."""
    evidence = failure_evidence(counts, planned_a_day, rules)
    if not evidence.size or evidence.sum() <= 1 / rules.false_alarm_share:
        return None
    index = int(evidence.argmax())
    ratio = float(counts[index:].sum() / (planned_a_day * (len(counts) - index)))
    return LevelChange(index, ratio, 1 - 1 / float(evidence.sum()))


def failure_evidence(counts: Floats, planned_a_day: float, rules: FailureRules) -> Floats:
    """For each day, what likelihood more interruptions since it have over the planned ones, times the day's weight.

    Days lie along the last axis. Counts that cluster say less than their number: they and the planned ones are divided by `dispersion`.
    """
    ratios = np.array(rules.ratios)[:, None]
    days = (counts[..., None, :] * np.log(ratios) - (ratios - 1) * planned_a_day) / rules.dispersion
    since = days[..., ::-1].cumsum(axis=-1)[..., ::-1]
    return np.asarray(_start_weights(counts.shape[-1]) * np.exp(np.minimum(since, LARGEST_EXPONENT)).mean(axis=-2))


def _start_weights(days: int) -> Floats:
    """Half on the first day, the other half over all days that may ever come, by the root of their number."""
    later = 0.5 * math.sqrt(8) * (1 / np.sqrt(np.arange(days) + 7) - 1 / np.sqrt(np.arange(days) + 8))
    return np.where(np.arange(days) == 0, 0.5, later)


def daily_interruptions(record: RunTotals, interruption_hours: Floats) -> tuple[Floats, Floats]:
    """Elapsed hours at which each whole day begins, and the interruptions in it."""
    bounds = _bounds(record)
    return bounds[:-1], np.diff(np.searchsorted(np.sort(interruption_hours), bounds)).astype(np.float64)


def _bounds(record: RunTotals) -> Floats:
    """Elapsed hours at which whole days begin and end."""
    days = int((record.at_hours[-1] - record.at_hours[0]) // HOURS_PER_DAY)
    return np.asarray(record.at_hours[0] + HOURS_PER_DAY * np.arange(days + 1))


def _gained(record: RunTotals, totals: Floats | None, bounds: Floats) -> Floats:
    """What a total grew by in each day; where nobody told it, hours of the day."""
    at = np.interp(bounds, record.at_hours, record.at_hours if totals is None else totals)
    return np.asarray(at[1:] - at[:-1])
