"""A network of activities in time: the critical path, and when all of it is over, with what probability.

Dates and float are the critical path method's (Kelley and Walker 1959), over working calendars. Uncertain durations are drawn, because
the mean of a maximum is later than the maximum of the means: the closed form of PERT (Malcolm et al. 1959) follows one path and is early
where paths run side by side (MacCrimmon and Ryavec 1964). Criticality index: Van Slyke 1963.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.schedule import Activity, ActivityNetwork, LatestStart, NetworkSchedule, ScheduledActivity
from service.domain.training.estimate import FinishDates
from service.engine.scheduling.activity_network import OrderedNetwork, earliest_start_hours, order_network
from service.engine.scheduling.calendar import (
    HOURS_PER_DAY,
    TIME_TOLERANCE_HOURS,
    CalendarClock,
    add_open_hours,
    finish_day,
    hours_until,
    next_open,
    start_day,
    subtract_open_hours,
)
from service.engine.scheduling.durations import DurationDraws, sample_durations

Floats = NDArray[np.float64]
PERCENTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class ActivityTimes:
    """Moments of each activity (rows) in each draw (columns), in hours since the network's start."""

    starts: Floats
    finishes: Floats


def deadline_hours(start: date, deadline: date, pointer: str = "/deadline") -> float:
    """Hours from the start to the end of the deadline's day. Raises InvalidRequest where the deadline is before the start."""
    if deadline < start:
        raise InvalidRequest(f"the deadline {deadline} is before the start {start}; it has to be on that day or later", pointer)
    return hours_until(start, deadline) + HOURS_PER_DAY


def median_durations(net: OrderedNetwork) -> Floats:
    """Every duration and queue at its median, one column [open h]."""
    return np.array([activity.queue_hours.p50 + activity.hours.p50 for activity in net.activities]).reshape(-1, 1)


def forward_pass(net: OrderedNetwork, hours: Floats) -> ActivityTimes:
    """The earliest times: each activity begins when its date has come and the last of what it waits for is over."""
    starts, finishes = np.empty_like(hours), np.empty_like(hours)
    for row, (before, own) in enumerate(zip(net.before, net.clocks, strict=True)):
        np.maximum(net.earliest[row], finishes[before[0]] if before else 0.0, out=starts[row])
        for other in before[1:]:
            np.maximum(starts[row], finishes[other], out=starts[row])
        finishes[row] = add_open_hours(own, starts[row], hours[row])
    return ActivityTimes(starts, finishes)


def backward_pass(net: OrderedNetwork, hours: Floats, end_hours: Floats) -> ActivityTimes:
    """The latest times at which everything is still over by `end_hours` (one a draw), whatever the dates before which nothing starts."""
    starts, finishes = np.empty_like(hours), np.broadcast_to(end_hours, hours.shape).copy()
    for row in reversed(range(len(net.activities))):
        starts[row] = subtract_open_hours(net.clocks[row], finishes[row], hours[row])
        for other in net.before[row]:
            np.minimum(finishes[other], starts[row], out=finishes[other])
    return ActivityTimes(starts, finishes)


def network_end(times: ActivityTimes) -> Floats:
    """When all of it is over, one a draw [h since the start]; at once where there is nothing to do."""
    return np.asarray(times.finishes.max(axis=0, initial=0.0))


def critical_path(net: OrderedNetwork, times: ActivityTimes) -> tuple[str, ...]:
    """Names of the chain that decides the end in the first draw: back from the last to finish, each time to what it had to wait for last.

    Of equals the first by name. The chain begins where an activity waits for its date or for nothing.
    """
    starts, finishes = times.starts[:, 0], times.finishes[:, 0]
    chain: list[int] = []
    rows = tuple(range(len(net.activities)))
    while rows:
        last = min(rows, key=lambda row: (-finishes[row], net.activities[row].name))
        chain.append(last)
        rows = tuple(row for row in net.before[last] if finishes[row] == starts[last])
    return tuple(net.activities[row].name for row in reversed(chain))


def criticality_index(net: OrderedNetwork, times: ActivityTimes, end_hours: Floats) -> Floats:
    """Share of draws in which the end waits for each activity: it is the last to finish, or one that is waited for ends with it."""
    critical = times.finishes == end_hours
    for row in reversed(range(len(net.activities))):
        for other in net.before[row]:
            waited_for = (
                critical[row] if _has_single_predecessor(net, row) else critical[row] & (times.starts[row] == times.finishes[other])
            )
            critical[other] |= waited_for
    return np.asarray(np.count_nonzero(critical, axis=1) / critical.shape[1])


def total_float(net: OrderedNetwork, hours: Floats, times: ActivityTimes) -> Floats:
    """Total float of each activity in each draw: how much later it may end, in hours of the calendar, without the end moving."""
    return np.asarray(np.maximum(backward_pass(net, hours, network_end(times)).finishes - times.finishes, 0.0))


def schedule_network(network: ActivityNetwork, drawn: DurationDraws, deadline: date | None) -> NetworkSchedule:
    """Calendar, critical path and probabilities of a network, activities in the order given.

    Raises as `order_network` and `schedule_ordered`.
    """
    return schedule_ordered(order_network(network), network.activities, drawn, deadline)


def schedule_ordered(net: OrderedNetwork, activities: Iterable[Activity], drawn: DurationDraws, deadline: date | None) -> NetworkSchedule:
    """`schedule_network` of a network that is linked already, its activities in the order given here.

    Raises what `deadline_hours` raises, KeyError for an activity that was not drawn.
    """
    times, certain = forward_pass(net, sample_durations(net, drawn)), forward_pass(net, median_durations(net))
    ends, end = _percentiles(times.finishes), network_end(times)
    figures = zip(
        net.activities,
        net.clocks,
        _median_starts(net, times, ends[:, PERCENTILES.index(0.5)]),
        ends,
        total_float(net, median_durations(net), certain)[:, 0],
        criticality_index(net, times, end),
        strict=True,
    )
    found = {row[0].name: _schedule_activity(net.start, *row) for row in figures}
    return NetworkSchedule(
        tuple(found[activity.name] for activity in activities),
        critical_path(net, certain),
        _finish_dates(net.start, _percentiles(end[np.newaxis])[0]),
        None if deadline is None else _share_in_time(end, deadline_hours(net.start, deadline)),
    )


def deadline_probability(network: ActivityNetwork, drawn: DurationDraws, deadline: date) -> float:
    """Probability that the network is over by the end of the deadline's day. Raises as `schedule_network`."""
    net = order_network(network)
    return _share_in_time(network_end(forward_pass(net, sample_durations(net, drawn))), deadline_hours(net.start, deadline))


def latest_network_start(network: ActivityNetwork, drawn: DurationDraws, deadline: date, wanted: float) -> LatestStart:
    """The last day to begin on so that everything is over by the deadline's end with the `wanted` probability (above 0, at most 1).

    Each draw is scheduled backwards once: it is in time from every start up to the earliest of its latest starts, and from none where
    a fixed date is later than the activity's own. The network's `start` only is what hours are counted from. Raises as `order_network`,
    InvalidRequest for a probability that is none.
    """
    if not 0 < wanted <= 1:
        raise InvalidRequest(f"a probability of {wanted:g} is wanted; it has to be above 0 and at most 1")
    net = order_network(network)
    hours = sample_durations(net, drawn)
    end = np.full(hours.shape[1], hours_until(net.start, deadline) + HOURS_PER_DAY)
    latest = backward_pass(net, hours, end).starts
    fixed = np.array([earliest_start_hours(activity, net.start) for activity in net.activities])
    in_time = (latest >= fixed[:, np.newaxis] - TIME_TOLERANCE_HOURS).all(axis=0)
    first = np.minimum(latest.min(axis=0, initial=math.inf), end - HOURS_PER_DAY)
    return _latest_start(net.start, np.where(in_time, first, -math.inf), wanted)


def _percentiles(rows: Floats) -> Floats:
    """What at least 10, 50 and 90 % of each row's draws do not exceed: values that were drawn, none between them."""
    low, middle, high = (_order_index(share, rows.shape[1]) for share in PERCENTILES)
    found = np.empty((len(rows), 3))
    for row, draws in enumerate(rows):  # in halves and one by one: to sort them all at once takes twice as long
        halved = np.partition(draws, middle)
        below, above = np.partition(halved[: middle + 1], low), np.partition(halved[middle:], high - middle)
        found[row] = below[low], halved[middle], above[high - middle]
    return found


def _median_starts(net: OrderedNetwork, times: ActivityTimes, median_finishes: Floats) -> list[float]:
    """Medians of the starts: what waits for one other activity alone starts when that is over."""
    middle = _order_index(0.5, times.starts.shape[1])
    return [
        float(median_finishes[before[0]] if _has_single_predecessor(net, row) else np.partition(times.starts[row], middle)[middle])
        for row, before in enumerate(net.before)
    ]


def _has_single_predecessor(net: OrderedNetwork, row: int) -> bool:
    """Whether an activity begins whenever one other is over."""
    return len(net.before[row]) == 1 and net.earliest[row] == 0


def _order_index(share: float, draws: int) -> int:
    """Where in sorted draws the least value is that a share of them does not exceed."""
    return max(0, math.ceil(share * draws - TIME_TOLERANCE_HOURS) - 1)


def _share_in_time(end_hours: Floats, limit_hours: float) -> float:
    return float(np.mean(end_hours <= limit_hours + TIME_TOLERANCE_HOURS))


def _latest_start(start: date, last_hours: Floats, wanted: float) -> LatestStart:
    """The last of whole days from which enough draws are in time. Negative infinite hours are in time from no day."""
    days = np.sort(np.floor((last_hours + TIME_TOLERANCE_HOURS) / HOURS_PER_DAY))
    best = float(np.mean(np.isfinite(days)))
    day = float(days[days.size - 1 - _order_index(wanted, days.size)])
    if not math.isfinite(day):
        return LatestStart(None, best, best)
    return LatestStart(start_day(start, day * HOURS_PER_DAY), float(np.mean(days >= day)), best)


def _finish_dates(start: date, hours: Floats) -> FinishDates:
    return FinishDates(*(finish_day(start, float(moment)) for moment in hours))


def _schedule_activity(
    start: date, activity: Activity, own: CalendarClock, begins: float, ends: Floats, slack_hours: float, index: float
) -> ScheduledActivity:
    """What is answered of one activity; one that is ready at a weekend is said to start when its calendar opens."""
    opened = begins if activity.is_event else float(next_open(own, np.array([begins]))[0])
    return ScheduledActivity(
        name=activity.name,
        start=finish_day(start, begins) if activity.is_event else start_day(start, opened),
        finish=_finish_dates(start, ends),
        start_hours=opened,
        finish_hours=float(ends[1]),
        float_hours=float(slack_hours),
        criticality=float(index),
    )
