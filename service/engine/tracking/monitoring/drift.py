"""Drift of a run: the changes of its throughput, price, goodput and failures, found in the values of its whole days.

Throughput and goodput are averaged by day, and tested for a change of level (`change_point`). A price is constant between changes, so that
its steps are detected directly. Interruptions are counted by day, and compared with the plan's rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from service.domain.tracking.status import DriftQuantity
from service.engine.tracking.monitoring.change_point import (
    DriftThresholds,
    FailureRules,
    Floats,
    LevelChange,
    SplitRules,
    change_point,
    more_failures,
)

HOURS_PER_DAY = 24.0


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
class RateChange:
    """A quantity that has changed. `since_hours` is elapsed time, `change` a signed share (-0.15: a fall of 15 %).

    `confidence` is 1 less the probability that a run on its plan, tested daily for its whole life, ever shows as large a change.
    """

    quantity: DriftQuantity
    since_hours: float
    change: float
    confidence: float


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
    """Changes of a run's throughput, price, goodput and failures, from its whole days; methods and sources: see `change_point`.

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
