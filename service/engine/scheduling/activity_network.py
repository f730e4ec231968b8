"""An activity network in topological order, each activity's calendar counted from the network's start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter

import numpy as np

from service.domain.errors import InvalidRequest, UnknownName
from service.domain.schedule import Activity, ActivityNetwork, WorkCalendar
from service.engine.scheduling.calendar import HOURS_PER_DAY, CalendarClock, add_open_hours, hours_until, start_clock

# A thousand years: the last draws of a wide range stay within the dates of a calendar.
MAX_DURATION_HOURS = 1e7


@dataclass(frozen=True, slots=True)
class OrderedNetwork:
    """A network in topological order; one entry an activity.

    `predecessors` are indices, `earliest_hours` the earliest start by the activity's own date [h since the start].
    """

    start: date
    activities: tuple[Activity, ...]
    predecessors: tuple[tuple[int, ...], ...]
    clocks: tuple[CalendarClock, ...]
    earliest_hours: tuple[float, ...]


def order_network(network: ActivityNetwork) -> OrderedNetwork:
    """The network in topological order; independent of the order of `network.activities`.

    Raises
    ------
    InvalidRequest
        For equal names, a cycle, and durations or calendars out of range.
    UnknownName
        For a predecessor that is no activity.
    """
    named = _index_by_name(network)
    order = _topological_order(named)
    index = {name: place for place, name in enumerate(order)}
    activities = tuple(named[name] for name in order)
    clocks = _start_clocks(activities, network.start)
    return OrderedNetwork(
        network.start,
        activities,
        tuple(tuple(index[name] for name in activity.predecessors) for activity in activities),
        tuple(clocks[activity.calendar] for activity in activities),
        tuple(max(0.0, earliest_start_hours(activity, network.start)) for activity in activities),
    )


def earliest_start_hours(activity: Activity, start: date) -> float:
    """Earliest start by the activity's own date [h since the beginning of `start`]: the beginning of that day, for an event its end."""
    if activity.not_before is None:
        return -math.inf
    return hours_until(start, activity.not_before) + (HOURS_PER_DAY if activity.is_event else 0.0)


def median_finish_hours(net: OrderedNetwork, row: int, start_hours: float) -> float:
    """Finish of an activity that starts at `start_hours`, its queue and duration at their medians [h since the network's start]."""
    activity = net.activities[row]
    open_hours = activity.median_queue_hours + activity.median_hours
    return float(add_open_hours(net.clocks[row], np.array([start_hours]), np.array([open_hours]))[0])


def _index_by_name(network: ActivityNetwork) -> dict[str, Activity]:
    """Activities by name, sorted. Raises InvalidRequest, UnknownName."""
    named: dict[str, Activity] = {}
    for activity in network.activities:
        _check_activity(activity)
        if activity.name in named:
            raise InvalidRequest(f"two activities are called {activity.name!r}; each needs its own name", activity.pointer)
        named[activity.name] = activity
    for activity in network.activities:
        for name in activity.predecessors:
            if name not in named:
                near = tuple(get_close_matches(name, named, n=3))
                raise UnknownName(f"{activity.name!r} waits for {name!r}, but no activity has this name", activity.pointer, near)
    return dict(sorted(named.items()))


def _check_activity(activity: Activity) -> None:
    hours, queue = activity.hours, activity.queue_hours
    if hours.p10 < 0 or not hours.p90 <= MAX_DURATION_HOURS:
        raise InvalidRequest(
            f"{activity.name!r} takes {activity.duration.p10:g} to {activity.duration.p90:g} {activity.unit}; a duration must be at least 0"
            f" and at most {MAX_DURATION_HOURS:g} hours",
            activity.pointer,
        )
    if queue.p10 < 0 or not queue.p90 <= MAX_DURATION_HOURS:
        raise InvalidRequest(
            f"{activity.name!r} waits {queue.p10:g} to {queue.p90:g} hours; the wait in a queue must be at least 0 and at most"
            f" {MAX_DURATION_HOURS:g} hours",
            activity.pointer,
        )
    if not 0 <= activity.common_share <= 1:
        raise InvalidRequest(
            f"{activity.name!r} shares {activity.common_share:.0%} of its variance; it must be 0 % to 100 %", activity.pointer
        )


def _topological_order(named: Mapping[str, Activity]) -> tuple[str, ...]:
    """Names, each after all its predecessors. Raises InvalidRequest that names a cycle."""
    try:
        return tuple(TopologicalSorter({name: sorted(set(activity.predecessors)) for name, activity in named.items()}).static_order())
    except CycleError as problem:
        cycle = problem.args[1]
        raise InvalidRequest(
            f"the dependencies form a cycle: {' → '.join(cycle)}; remove one of these dependencies",
            named[cycle[0]].pointer,
        ) from problem


def _start_clocks(activities: Iterable[Activity], start: date) -> dict[WorkCalendar, CalendarClock]:
    """A clock for each calendar. Raises InvalidRequest with the pointer of the first activity whose calendar is out of range."""
    clocks: dict[WorkCalendar, CalendarClock] = {}
    for activity in activities:
        if activity.calendar not in clocks:
            try:
                clocks[activity.calendar] = start_clock(activity.calendar, start)
            except InvalidRequest as problem:
                raise problem.below(activity.pointer) from problem
    return clocks
