"""Critical path method over working calendars, and the probability of a deadline by simulation.

Dates and float are the critical path method's (Kelley and Walker 1959). Uncertain durations are drawn, because the mean of a maximum is
later than the maximum of the means: the closed form of PERT (Malcolm et al. 1959) follows one path and is early where paths run in
parallel (MacCrimmon and Ryavec 1964).
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
    """Starts and finishes, (activities, draws) each [h since the network's start]."""

    starts: Floats
    finishes: Floats


def deadline_hours(start: date, deadline: date, pointer: str = "/deadline") -> float:
    """End of the deadline's day [h since the beginning of `start`]. Raises InvalidRequest where it is before the start."""
    if deadline < start:
        raise InvalidRequest(f"the deadline {deadline} is before the start {start}; it must be on that day or later", pointer)
    return hours_until(start, deadline) + HOURS_PER_DAY


def median_durations(net: OrderedNetwork) -> Floats:
    """Medians of durations with queues, (activities, 1) [open h]."""
    return np.array([activity.median_queue_hours + activity.median_hours for activity in net.activities]).reshape(-1, 1)


def forward_pass(net: OrderedNetwork, hours: Floats) -> ActivityTimes:
    """Earliest times.

    Parameters
    ----------
    net : OrderedNetwork
        The network.
    hours : (activities, draws) float array
        Durations with queues [open h].

    Returns
    -------
    ActivityTimes
        Each activity starts at the latest of its own date and its predecessors' finishes [h since the start].

    References
    ----------
    Kelley and Walker 1959.
    """
    starts, finishes = np.empty_like(hours), np.empty_like(hours)
    for row, (predecessors, clock) in enumerate(zip(net.predecessors, net.clocks, strict=True)):
        np.maximum(net.earliest_hours[row], finishes[predecessors[0]] if predecessors else 0.0, out=starts[row])
        for other in predecessors[1:]:
            np.maximum(starts[row], finishes[other], out=starts[row])
        finishes[row] = add_open_hours(clock, starts[row], hours[row])
    return ActivityTimes(starts, finishes)


def backward_pass(net: OrderedNetwork, hours: Floats, end_hours: Floats) -> ActivityTimes:
    """Latest times, without regard to the activities' own dates.

    Parameters
    ----------
    net : OrderedNetwork
        The network.
    hours : (activities, draws) float array
        Durations with queues [open h].
    end_hours : (draws,) float array
        When everything is over [h since the start].

    Returns
    -------
    ActivityTimes
        Each activity finishes at the earliest latest start of its successors, the last ones at the end [h since the start].

    References
    ----------
    Kelley and Walker 1959.
    """
    starts, finishes = np.empty_like(hours), np.broadcast_to(end_hours, hours.shape).copy()
    for row in reversed(range(len(net.activities))):
        starts[row] = subtract_open_hours(net.clocks[row], finishes[row], hours[row])
        for other in net.predecessors[row]:
            np.minimum(finishes[other], starts[row], out=finishes[other])
    return ActivityTimes(starts, finishes)


def network_end(times: ActivityTimes) -> Floats:
    """When everything is over, (draws,) [h since the start]; 0 for an empty network."""
    return np.asarray(times.finishes.max(axis=0, initial=0.0))


def critical_path(net: OrderedNetwork, times: ActivityTimes) -> tuple[str, ...]:
    """Names of the chain that decides the end in the first draw, in order.

    It goes back from the last finish, each time to the predecessor that finished last, the first by name of equals, until an activity that
    waits for its own date or for nothing.
    """
    starts, finishes = times.starts[:, 0], times.finishes[:, 0]
    chain: list[int] = []
    rows = tuple(range(len(net.activities)))
    while rows:
        last = min(rows, key=lambda row: (-finishes[row], net.activities[row].name))
        chain.append(last)
        rows = tuple(row for row in net.predecessors[last] if finishes[row] == starts[last])
    return tuple(net.activities[row].name for row in reversed(chain))


def criticality_index(net: OrderedNetwork, times: ActivityTimes, end_hours: Floats) -> Floats:
    """Criticality index.

    Parameters
    ----------
    net : OrderedNetwork
        The network.
    times : ActivityTimes
        Earliest times [h since the start].
    end_hours : (draws,) float array
        When everything is over [h since the start].

    Returns
    -------
    (activities,) float array
        Share of draws in which the end waits for the activity [1].

    References
    ----------
    Van Slyke 1963.
    """
    critical = times.finishes == end_hours
    for row in reversed(range(len(net.activities))):
        for other in net.predecessors[row]:
            always = _has_single_predecessor(net, row)
            critical[other] |= critical[row] if always else critical[row] & (times.starts[row] == times.finishes[other])
    return np.asarray(np.count_nonzero(critical, axis=1) / critical.shape[1])


def total_float(net: OrderedNetwork, hours: Floats, times: ActivityTimes) -> Floats:
    """Total float: how much later each activity may end without moving the end.

    Parameters
    ----------
    net : OrderedNetwork
        The network.
    hours : (activities, draws) float array
        Durations with queues [open h].
    times : ActivityTimes
        Earliest times [h since the start].

    Returns
    -------
    (activities, draws) float array
        Latest less earliest finish, closed hours included [h].

    References
    ----------
    Kelley and Walker 1959.
    """
    return np.asarray(np.maximum(backward_pass(net, hours, network_end(times)).finishes - times.finishes, 0.0))


def schedule_network(net: OrderedNetwork, activities: Iterable[Activity], draws: DurationDraws, deadline: date | None) -> NetworkSchedule:
    """Dates, critical path and probabilities of a network.

    Parameters
    ----------
    net : OrderedNetwork
        The network.
    activities : iterable of Activity
        Its activities in the order of the result.
    draws : DurationDraws
        Deviations of these activities.
    deadline : date or None
        Met by what is over by the end of that day.

    Returns
    -------
    NetworkSchedule
        Percentiles over the draws; float and critical path with every duration at its median.

    Raises
    ------
    InvalidRequest
        For a deadline before the start.
    KeyError
        For an activity without draws.
    """
    medians = median_durations(net)
    times, median_times = forward_pass(net, sample_durations(net, draws)), forward_pass(net, medians)
    finishes, end = percentile_hours(times.finishes), network_end(times)
    columns = zip(
        net.activities,
        net.clocks,
        _median_starts(net, times, finishes[:, PERCENTILES.index(0.5)]),
        finishes,
        total_float(net, medians, median_times)[:, 0],
        criticality_index(net, times, end),
        strict=True,
    )
    scheduled = {row[0].name: _schedule_activity(net.start, *row) for row in columns}
    return NetworkSchedule(
        tuple(scheduled[activity.name] for activity in activities),
        critical_path(net, median_times),
        finish_dates(net.start, percentile_hours(end[np.newaxis])[0]),
        None if deadline is None else share_in_time(end, deadline_hours(net.start, deadline)),
    )


def deadline_probability(network: ActivityNetwork, draws: DurationDraws, deadline: date) -> float:
    """Probability that the network is over by the end of the deadline's day [1].

    Raises
    ------
    InvalidRequest, UnknownName
        As `order_network` and `deadline_hours`.
    """
    net = order_network(network)
    return share_in_time(network_end(forward_pass(net, sample_durations(net, draws))), deadline_hours(net.start, deadline))


def latest_network_start(network: ActivityNetwork, draws: DurationDraws, deadline: date, probability: float) -> LatestStart:
    """The last day to start on that meets a deadline.

    Each draw is scheduled backwards once: it is in time from every start up to the earliest of its latest starts, and from none where an
    activity's own date is later than its latest start.

    Parameters
    ----------
    network : ActivityNetwork
        Its `start` is only the day from which hours are counted.
    draws : DurationDraws
        Deviations of its activities.
    deadline : date
        Everything is over by the end of that day.
    probability : float
        To reach, above 0 and at most 1 [1].

    Returns
    -------
    LatestStart
        The day and its probability, and the best probability that any start has [1].

    Raises
    ------
    InvalidRequest
        For a probability out of range, and as `order_network`.
    UnknownName
        As `order_network`.
    """
    if not 0 < probability <= 1:
        raise InvalidRequest(f"the probability {probability:g} is not valid; it must be above 0 and at most 1")
    net = order_network(network)
    hours = sample_durations(net, draws)
    end = np.full(hours.shape[1], hours_until(net.start, deadline) + HOURS_PER_DAY)
    latest = backward_pass(net, hours, end).starts
    own_dates = np.array([earliest_start_hours(activity, net.start) for activity in net.activities])
    in_time = (latest >= own_dates[:, np.newaxis] - TIME_TOLERANCE_HOURS).all(axis=0)
    first = np.minimum(latest.min(axis=0, initial=math.inf), end - HOURS_PER_DAY)
    return _latest_start(net.start, np.where(in_time, first, -math.inf), probability)


def percentile_hours(rows: Floats) -> Floats:
    """(rows, 3) array of each row's p10, p50 and p90: values that were drawn, not interpolated."""
    low, middle, high = (_order_index(share, rows.shape[1]) for share in PERCENTILES)
    percentiles = np.empty((len(rows), 3))
    for row, draws in enumerate(rows):  # Partition of halves, row by row, takes half the time of sorting all rows at once.
        halved = np.partition(draws, middle)
        below, above = np.partition(halved[: middle + 1], low), np.partition(halved[middle:], high - middle)
        percentiles[row] = below[low], halved[middle], above[high - middle]
    return percentiles


def _median_starts(net: OrderedNetwork, times: ActivityTimes, median_finishes: Floats) -> list[float]:
    """Median starts [h since the start]; with a single predecessor that is its median finish."""
    middle = _order_index(0.5, times.starts.shape[1])
    return [
        float(median_finishes[predecessors[0]] if _has_single_predecessor(net, row) else np.partition(times.starts[row], middle)[middle])
        for row, predecessors in enumerate(net.predecessors)
    ]


def _has_single_predecessor(net: OrderedNetwork, row: int) -> bool:
    """Whether an activity always starts when one other is over."""
    return len(net.predecessors[row]) == 1 and net.earliest_hours[row] == 0


def _order_index(share: float, draws: int) -> int:
    """Index, in sorted draws, of the least value that is at least as large as a share of them."""
    return max(0, math.ceil(share * draws - TIME_TOLERANCE_HOURS) - 1)


def share_in_time(end_hours: Floats, limit_hours: float) -> float:
    """Share of draws that are over by a limit [1]; (draws,) and limit in hours since the same moment."""
    return float(np.mean(end_hours <= limit_hours + TIME_TOLERANCE_HOURS))


def _latest_start(start: date, last_hours: Floats, probability: float) -> LatestStart:
    """The last whole day from which enough draws are in time; -inf hours are in time from no day."""
    days = np.sort(np.floor((last_hours + TIME_TOLERANCE_HOURS) / HOURS_PER_DAY))
    best = float(np.mean(np.isfinite(days)))
    day = float(days[days.size - 1 - _order_index(probability, days.size)])
    if not math.isfinite(day):
        return LatestStart(None, best, best)
    return LatestStart(start_day(start, day * HOURS_PER_DAY), float(np.mean(days >= day)), best)


def finish_dates(start: date, hours: Floats) -> FinishDates:
    """Days of percentiles [h since the beginning of `start`]."""
    return FinishDates(*(finish_day(start, float(finish)) for finish in hours))


def _schedule_activity(
    start: date, activity: Activity, clock: CalendarClock, start_hours: float, finishes: Floats, float_hours: float, criticality: float
) -> ScheduledActivity:
    """An activity's dates; where it could start in closed time it starts when its calendar opens.

    One that by medians does not take place, at midnight, starts on the day that it ends on.
    """
    opening = start_hours if activity.is_event else float(next_open(clock, np.array([start_hours]))[0])
    finish = finish_dates(start, finishes)
    return ScheduledActivity(
        name=activity.name,
        start=finish_day(start, start_hours) if activity.is_event else min(start_day(start, opening), finish.p50),
        finish=finish,
        start_hours=opening,
        finish_hours=float(finishes[1]),
        float_hours=float(float_hours),
        criticality=float(criticality),
    )
