"""Planned spend by calendar month, with its percentiles over draws of the calendar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.domain.schedule import ZERO_HOURS, PlannedMonth, PlannedSpending
from service.engine.numerics.quantiles import range_quantiles
from service.engine.scheduling.activity_network import OrderedNetwork
from service.engine.scheduling.burn_plan import month_end_hours, spend_by_month
from service.engine.scheduling.calendar import TIME_TOLERANCE_HOURS, finish_day
from service.engine.scheduling.critical_path import ActivityTimes, forward_pass, network_end, percentile_hours
from service.engine.scheduling.durations import DurationDraws, sample_durations, stratified_normals

Floats = NDArray[np.float64]
ZERO = Decimal("0.00")
LATE_MONTHS = 24
"""Most months after the last planned one: draws later than these are rarer than one in ten, or of no plan."""


def monthly_spend(
    net: OrderedNetwork, draws: DurationDraws, spendings: Sequence[PlannedSpending], total: Range
) -> tuple[PlannedMonth, ...]:
    """Planned spend of each month, and its percentiles.

    Parameters
    ----------
    net : OrderedNetwork
        The plan's activities.
    draws : DurationDraws
        Their deviations.
    spendings : sequence of PlannedSpending
        Amounts [USD] with start and finish by medians [h since the start]. What an activity spends goes with its duration without queue,
        from the end of its queue on; what has no activity is spent evenly until the program's end.
    total : Range
        The whole spend [USD]: draws that last longer cost more, and all of them together are distributed so.

    Returns
    -------
    tuple of PlannedMonth
        Every month from the first spending to the last, and on to the p90 of the program's end; `usd` adds up to the amounts in cents.
        Percentiles are values that were drawn [USD].
    """
    planned = {month.month: month.usd for month in spend_by_month(net.start, spendings)}
    if not planned:
        return ()
    hours = sample_durations(net, draws)
    own = sample_durations(_without_queues(net), draws) if any(each.queue_hours.p90 for each in net.activities) else hours
    times = forward_pass(net, hours)
    months = list(_months(net, min(planned), max(planned), float(percentile_hours(network_end(times)[np.newaxis])[0, -1])))
    starts, finishes, usd = _drawn_spending(net, (times, hours - own, own), spendings)
    usd *= _cost_factors(usd.sum(axis=0), total)
    by_then = _spent((starts, finishes, usd), [month_end_hours(net.start, *month) for month in months])
    drawn, drawn_by_then = percentile_hours(np.diff(by_then, axis=0, prepend=0.0)), percentile_hours(by_then)
    names = [f"{year}-{month:02}" for year, month in months]
    amounts = [planned.get(name, ZERO) for name in names]
    rows = zip(names, amounts, drawn, accumulate(amounts), drawn_by_then, strict=True)
    return tuple(PlannedMonth(name, amount, _range(low), by, _range(high)) for name, amount, low, by, high in rows)


def _without_queues(net: OrderedNetwork) -> OrderedNetwork:
    return replace(net, activities=tuple(replace(activity, queue_hours=ZERO_HOURS) for activity in net.activities))


def _months(net: OrderedNetwork, first: str, last: str, late_hours: float) -> Iterator[tuple[int, int]]:
    """Years and months from the first planned one to the last, and some more where late draws still spend."""
    begin, planned = (int(name[:-3]) * 12 + int(name[-2:]) - 1 for name in (first, last))
    late = finish_day(net.start, late_hours)
    for month in range(begin, max(planned, min(planned + LATE_MONTHS, late.year * 12 + late.month - 1)) + 1):
        yield month // 12, month % 12 + 1


def _drawn_spending(
    net: OrderedNetwork, drawn: tuple[ActivityTimes, Floats, Floats], spendings: Sequence[PlannedSpending]
) -> tuple[Floats, Floats, Floats]:
    """Start and finish [h] and amount [USD] of each spending, (spendings, draws). `drawn`: times, queues and own durations [h]."""
    times, queues, own = drawn
    rows = {activity.name: row for row, activity in enumerate(net.activities)}
    shape = (len(spendings), own.shape[1])
    starts, finishes, usd = np.zeros(shape), np.empty(shape), np.empty(shape)
    end = network_end(times)
    for place, spending in enumerate(spendings):
        if not spending.activity:
            finishes[place], usd[place] = end, float(spending.usd)
            continue
        row = rows[spending.activity]
        median = net.activities[row].median_hours
        np.minimum(times.starts[row] + queues[row], times.finishes[row], out=starts[place])
        finishes[place] = times.finishes[row]
        usd[place] = float(spending.usd) * (own[row] / median if median else 1.0)
    return starts, finishes, usd


def _cost_factors(usd: Floats, total: Range) -> Floats:
    """Factor of each draw's spend, (draws,) [USD], with which the draws in their order are distributed as the total [1]."""
    ranks = usd.argsort(kind="stable").argsort(kind="stable")
    wanted = range_quantiles(total, stratified_normals(usd.size)[ranks])
    return np.asarray(np.divide(wanted, usd, out=np.ones_like(usd), where=usd > 0))


def _spent(drawn: tuple[Floats, Floats, Floats], ends: Sequence[float]) -> Floats:
    """Spend by each moment [h], (moments, draws) [USD]; at one moment where both ends of a spending are equal."""
    order = np.argsort(drawn[1].max(axis=1), kind="stable")
    starts, finishes, usd = (rows[order] for rows in drawn)
    first, last = starts.min(axis=1), finishes.max(axis=1)
    whole = np.concatenate((np.zeros((1, usd.shape[1])), np.cumsum(usd, axis=0)))
    by_then = np.empty((len(ends), usd.shape[1]))
    for place, end in enumerate(ends):  # What is over in every draw is added up once, and what begins later is left out.
        over = int(np.searchsorted(last, end, side="right"))
        rows = over + np.flatnonzero(first[over:] < end)
        shares = np.clip((end - starts[rows]) / np.maximum(finishes[rows] - starts[rows], TIME_TOLERANCE_HOURS), 0.0, 1.0)
        by_then[place] = whole[over] + np.einsum("ij,ij->j", shares, usd[rows])
    return by_then


def _range(percentiles: Floats) -> Range:
    return Range(*(round(float(usd), 2) for usd in percentiles))
