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
from service.domain.schedule import Activity, LatestStart, Network, Schedule, ScheduledActivity
from service.domain.training.estimate import FinishDates
from service.engine.scheduling.activity_network import Linked, fixed_hours, linked
from service.engine.scheduling.calendar import (
    HOURS_PER_DAY,
    MOMENT_HOURS,
    Clock,
    finish,
    finish_day,
    hours_until,
    latest_start,
    opens,
    start_day,
)
from service.engine.scheduling.durations import Deviations, drawn_hours

Floats = NDArray[np.float64]
PERCENTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class Times:
    """Moments of each activity (rows) in each draw (columns), in hours since the network's start."""

    starts: Floats
    finishes: Floats


def deadline_hours(start: date, deadline: date, pointer: str = "/deadline") -> float:
    """Hours from the start to the end of the deadline's day. Raises InvalidRequest where the deadline is before the start."""
    if deadline < start:
        raise InvalidRequest(f"the deadline {deadline} is before the start {start}; it has to be on that day or later", pointer)
    return hours_until(start, deadline) + HOURS_PER_DAY


def median_hours(net: Linked) -> Floats:
    """Every duration and queue at its median, one column [open h]."""
    return np.array([activity.queue_hours.p50 + activity.hours.p50 for activity in net.activities]).reshape(-1, 1)


def forward(net: Linked, hours: Floats) -> Times:
    """The earliest times: each activity begins when its date has come and the last of what it waits for is over."""
    starts, finishes = np.empty_like(hours), np.empty_like(hours)
    for row, (before, own) in enumerate(zip(net.before, net.clocks, strict=True)):
        np.maximum(net.earliest[row], finishes[before[0]] if before else 0.0, out=starts[row])
        for other in before[1:]:
            np.maximum(starts[row], finishes[other], out=starts[row])
        finishes[row] = finish(own, starts[row], hours[row])
    return Times(starts, finishes)


def backward(net: Linked, hours: Floats, end_hours: Floats) -> Times:
    """The latest times at which everything is still over by `end_hours` (one a draw), whatever the dates before which nothing starts."""
    starts, finishes = np.empty_like(hours), np.broadcast_to(end_hours, hours.shape).copy()
    for row in reversed(range(len(net.activities))):
        starts[row] = latest_start(net.clocks[row], finishes[row], hours[row])
        for other in net.before[row]:
            np.minimum(finishes[other], starts[row], out=finishes[other])
    return Times(starts, finishes)


def network_end(times: Times) -> Floats:
    """When all of it is over, one a draw [h since the start]; at once where there is nothing to do."""
    return np.asarray(times.finishes.max(axis=0, initial=0.0))


def critical_path(net: Linked, times: Times) -> tuple[str, ...]:
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


def criticality(net: Linked, times: Times, end_hours: Floats) -> Floats:
    """Share of draws in which the end waits for each activity: it is the last to finish, or one that is waited for ends with it."""
    critical = times.finishes == end_hours
    for row in reversed(range(len(net.activities))):
        for other in net.before[row]:
            waited_for = critical[row] if _follows(net, row) else critical[row] & (times.starts[row] == times.finishes[other])
            critical[other] |= waited_for
    return np.asarray(np.count_nonzero(critical, axis=1) / critical.shape[1])


def float_hours(net: Linked, hours: Floats, times: Times) -> Floats:
    """Total float of each activity in each draw: how much later it may end, in hours of the calendar, without the end moving."""
    return np.asarray(np.maximum(backward(net, hours, network_end(times)).finishes - times.finishes, 0.0))


def schedule(network: Network, drawn: Deviations, deadline: date | None) -> Schedule:
    """The network's calendar, critical path and chances, activities in the order given. Raises as `linked` and `schedule_linked`."""
    return schedule_linked(linked(network), network.activities, drawn, deadline)


def schedule_linked(net: Linked, activities: Iterable[Activity], drawn: Deviations, deadline: date | None) -> Schedule:
    """`schedule` of a network that is linked already, its activities in the order given here.

    Raises what `deadline_hours` raises, KeyError for an activity that was not drawn.
    """
    times, certain = forward(net, drawn_hours(net, drawn)), forward(net, median_hours(net))
    ends, end = _percentiles(times.finishes), network_end(times)
    figures = zip(
        net.activities,
        net.clocks,
        _median_starts(net, times, ends[:, PERCENTILES.index(0.5)]),
        ends,
        float_hours(net, median_hours(net), certain)[:, 0],
        criticality(net, times, end),
        strict=True,
    )
    found = {row[0].name: _scheduled(net.start, *row) for row in figures}
    return Schedule(
        tuple(found[activity.name] for activity in activities),
        critical_path(net, certain),
        _finish_dates(net.start, _percentiles(end[np.newaxis])[0]),
        None if deadline is None else _share_by(end, deadline_hours(net.start, deadline)),
    )


def finish_probability(network: Network, drawn: Deviations, deadline: date) -> float:
    """Probability that the network is over by the end of the deadline's day. Raises as `schedule`."""
    net = linked(network)
    return _share_by(network_end(forward(net, drawn_hours(net, drawn))), deadline_hours(net.start, deadline))


def latest_network_start(network: Network, drawn: Deviations, deadline: date, wanted: float) -> LatestStart:
    """The last day to begin on so that everything is over by the deadline's end with the `wanted` probability (above 0, at most 1).

    Each draw is scheduled backwards once: it is in time from every start up to the earliest of its latest starts, and from none where
    a fixed date is later than the activity's own. The network's `start` only is what hours are counted from. Raises as `linked`,
    InvalidRequest for a probability that is none.
    """
    if not 0 < wanted <= 1:
        raise InvalidRequest(f"a probability of {wanted:g} is wanted; it has to be above 0 and at most 1")
    net = linked(network)
    hours = drawn_hours(net, drawn)
    end = np.full(hours.shape[1], hours_until(net.start, deadline) + HOURS_PER_DAY)
    latest = backward(net, hours, end).starts
    fixed = np.array([fixed_hours(activity, net.start) for activity in net.activities])
    in_time = (latest >= fixed[:, np.newaxis] - MOMENT_HOURS).all(axis=0)
    first = np.minimum(latest.min(axis=0, initial=math.inf), end - HOURS_PER_DAY)
    return _latest(net.start, np.where(in_time, first, -math.inf), wanted)


def _percentiles(rows: Floats) -> Floats:
    """What at least 10, 50 and 90 % of each row's draws do not exceed: values that were drawn, none between them."""
    low, middle, high = (_place(share, rows.shape[1]) for share in PERCENTILES)
    found = np.empty((len(rows), 3))
    for row, draws in enumerate(rows):  # in halves and one by one: to sort them all at once takes twice as long
        halved = np.partition(draws, middle)
        below, above = np.partition(halved[: middle + 1], low), np.partition(halved[middle:], high - middle)
        found[row] = below[low], halved[middle], above[high - middle]
    return found


def _median_starts(net: Linked, times: Times, median_finishes: Floats) -> list[float]:
    """Medians of the starts: what waits for one other activity alone starts when that is over."""
    middle = _place(0.5, times.starts.shape[1])
    return [
        float(median_finishes[before[0]] if _follows(net, row) else np.partition(times.starts[row], middle)[middle])
        for row, before in enumerate(net.before)
    ]


def _follows(net: Linked, row: int) -> bool:
    """Whether an activity begins whenever one other is over."""
    return len(net.before[row]) == 1 and net.earliest[row] == 0


def _place(share: float, draws: int) -> int:
    """Where in sorted draws the least value is that a share of them does not exceed."""
    return max(0, math.ceil(share * draws - MOMENT_HOURS) - 1)


def _share_by(end_hours: Floats, limit_hours: float) -> float:
    return float(np.mean(end_hours <= limit_hours + MOMENT_HOURS))


def _latest(start: date, last_hours: Floats, wanted: float) -> LatestStart:
    """The last of whole days from which enough draws are in time. Negative infinite hours are in time from no day."""
    days = np.sort(np.floor((last_hours + MOMENT_HOURS) / HOURS_PER_DAY))
    best = float(np.mean(np.isfinite(days)))
    day = float(days[days.size - 1 - _place(wanted, days.size)])
    if not math.isfinite(day):
        return LatestStart(None, best, best)
    return LatestStart(start_day(start, day * HOURS_PER_DAY), float(np.mean(days >= day)), best)


def _finish_dates(start: date, hours: Floats) -> FinishDates:
    return FinishDates(*(finish_day(start, float(moment)) for moment in hours))


def _scheduled(
    start: date, activity: Activity, own: Clock, begins: float, ends: Floats, slack_hours: float, index: float
) -> ScheduledActivity:
    """What is answered of one activity; one that is ready at a weekend is said to start when its calendar opens."""
    opened = begins if activity.is_event else float(opens(own, np.array([begins]))[0])
    return ScheduledActivity(
        name=activity.name,
        start=finish_day(start, begins) if activity.is_event else start_day(start, opened),
        finish=_finish_dates(start, ends),
        start_hours=opened,
        finish_hours=float(ends[1]),
        float_hours=float(slack_hours),
        criticality=float(index),
    )
