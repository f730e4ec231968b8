"""Working-time arithmetic: adds and subtracts open hours, vectorised.

The open hours E(t) of a calendar since an origin rise with t and are flat where it is closed. Work of d open hours that starts at t is over
at the first moment with E(t) + d open hours behind it, and work that ends at f has to start at the last moment with E(f) - d: the two
inverses of E. Holidays are the caller's data.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.schedule import Closure, WeeklyWindow, WorkCalendar

Floats = NDArray[np.float64]
HOURS_PER_DAY = 24.0
HOURS_PER_WEEK = 168.0
WEEKEND = (5, 6)
# Times that differ by less are equal: rounding must not carry work that ends on a Friday over the weekend.
TIME_TOLERANCE_HOURS = 1e-6
# Up to this number of intervals all are applied, which costs less than finding those that matter.
MAX_UNFILTERED_INTERVALS = 3


@dataclass(frozen=True, slots=True)
class ClosedIntervals:
    """Disjoint closed intervals [h]: starts, starts with all earlier intervals taken out, and lengths."""

    starts: tuple[float, ...]
    open_starts: tuple[float, ...]
    hours: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CalendarClock:
    """A calendar counted from an origin.

    The origin is `origin_hours` after the beginning of its week, of whose 168 hours `open_hours` are open. `closures` are in open hours of
    such weeks since the origin's Monday.
    """

    origin_hours: float
    open_hours: float
    week: ClosedIntervals
    closures: ClosedIntervals

    @property
    def is_always_open(self) -> bool:
        """Whether open hours are wall-clock hours."""
        return not self.week.hours and not self.closures.hours


def business_calendar(holidays: Iterable[date] = (), weekend: Iterable[int] = WEEKEND) -> WorkCalendar:
    """Whole working days: closed at weekends (weekdays, 0 is Monday) and on holidays."""
    windows = tuple(WeeklyWindow(weekday, 0.0, HOURS_PER_DAY) for weekday in weekend)
    return WorkCalendar(windows, tuple(Closure(day, day) for day in holidays))


def next_working_day(day: date, holidays: Collection[date] = ()) -> date:
    """The first day from `day` on that is neither at a weekend nor a holiday; the last representable day where there is none."""
    while day < date.max and (day.weekday() in WEEKEND or day in holidays):
        day += timedelta(days=1)
    return day


def start_clock(calendar: WorkCalendar, origin: date) -> CalendarClock:
    """The calendar counted from the beginning of the day `origin`.

    Raises
    ------
    InvalidRequest
        For a calendar that never opens, and windows or closures out of range.
    """
    week = _merge_intervals(interval for window in calendar.windows for interval in _window_intervals(window))
    open_hours = HOURS_PER_WEEK - sum(week.hours)
    if open_hours <= TIME_TOLERANCE_HOURS:
        raise InvalidRequest("the calendar's weekly windows leave no hour of the week open; leave at least one open")
    origin_hours = origin.weekday() * HOURS_PER_DAY
    weekly = CalendarClock(origin_hours, open_hours, week, _merge_intervals(()))
    closures = _merge_intervals(_closure_interval(weekly, closure, origin) for closure in calendar.closures)
    return CalendarClock(origin_hours, open_hours, week, closures)


def elapsed_open_hours(clock: CalendarClock, hours: Floats) -> Floats:
    """Open hours from the origin's Monday.

    Parameters
    ----------
    clock : CalendarClock
        The calendar.
    hours : float array of any shape
        Times [h since the origin].

    Returns
    -------
    float array of the same shape
        Open hours, negative before that Monday [open h].
    """
    since_monday = hours + clock.origin_hours
    weeks = np.floor(since_monday / HOURS_PER_WEEK)
    within = _remove_intervals(clock.week, since_monday - weeks * HOURS_PER_WEEK)
    return _remove_intervals(clock.closures, weeks * clock.open_hours + within)


def add_open_hours(clock: CalendarClock, start_hours: Floats, work_hours: Floats) -> Floats:
    """When work is done.

    Parameters
    ----------
    clock : CalendarClock
        The calendar that the work follows.
    start_hours : float array of any shape
        Starts [h since the origin].
    work_hours : float array of the same shape
        Durations [open h].

    Returns
    -------
    float array of the same shape
        The first time by which the work is done [h since the origin].
    """
    if clock.is_always_open:
        return start_hours + work_hours
    return np.maximum(start_hours, _time_after(clock, elapsed_open_hours(clock, start_hours) + work_hours, TIME_TOLERANCE_HOURS))


def subtract_open_hours(clock: CalendarClock, finish_hours: Floats, work_hours: Floats) -> Floats:
    """When work has to start.

    Parameters
    ----------
    clock : CalendarClock
        The calendar that the work follows.
    finish_hours : float array of any shape
        When it has to be done [h since the origin].
    work_hours : float array of the same shape
        Durations [open h].

    Returns
    -------
    float array of the same shape
        The last time to start at [h since the origin].
    """
    if clock.is_always_open:
        return finish_hours - work_hours
    return np.minimum(finish_hours, _time_after(clock, elapsed_open_hours(clock, finish_hours) - work_hours, -TIME_TOLERANCE_HOURS))


def next_open(clock: CalendarClock, hours: Floats) -> Floats:
    """The times themselves where the calendar is open, else the next opening; array of the same shape [h since the origin]."""
    if clock.is_always_open:
        return hours
    return np.maximum(hours, _time_after(clock, elapsed_open_hours(clock, hours), -TIME_TOLERANCE_HOURS))


def hours_until(origin: date, day: date) -> float:
    """Hours from the beginning of `origin` to that of `day` [h]."""
    return (day - origin).days * HOURS_PER_DAY


def start_day(origin: date, hours: float) -> date:
    """The day of a start `hours` [h] after the beginning of `origin`."""
    return _shift_day(origin, (hours + TIME_TOLERANCE_HOURS) // HOURS_PER_DAY)


def finish_day(origin: date, hours: float) -> date:
    """The day by whose end something is over that ends `hours` [h] after the beginning of `origin`; not before `origin`."""
    return _shift_day(origin, max(0.0, -((TIME_TOLERANCE_HOURS - hours) // HOURS_PER_DAY) - 1))


def _shift_day(origin: date, days: float) -> date:
    """The day `days` after the origin, limited to the days that can be represented."""
    return origin + timedelta(days=min(max(days, (date.min - origin).days), (date.max - origin).days))


def _window_intervals(window: WeeklyWindow) -> Iterable[tuple[float, float]]:
    """A window in hours of the week, in two where it reaches into the next."""
    if not 0 <= window.weekday <= 6 or not 0 <= window.start_hour < HOURS_PER_DAY or not 0 <= window.hours <= HOURS_PER_WEEK:
        raise InvalidRequest(
            f"a window of {window.hours:g} hours from hour {window.start_hour:g} of weekday {window.weekday} is not valid: weekdays"
            " are 0 to 6, hours of the day begin below 24, windows are 0 to 168 hours long"
        )
    start = window.weekday * HOURS_PER_DAY + window.start_hour
    end = start + window.hours
    return [(start, min(end, HOURS_PER_WEEK)), (0.0, max(0.0, end - HOURS_PER_WEEK))]


def _closure_interval(weekly: CalendarClock, closure: Closure, origin: date) -> tuple[float, float]:
    """A closure in the week's open hours. Raises InvalidRequest where it ends before it begins."""
    if closure.last < closure.first:
        raise InvalidRequest(f"a closure ends on {closure.last}, before it begins on {closure.first}")
    bounds = np.array([hours_until(origin, closure.first), hours_until(origin, closure.last) + HOURS_PER_DAY])
    first, last = elapsed_open_hours(weekly, bounds)
    return float(first), float(last)


def _merge_intervals(intervals: Iterable[tuple[float, float]]) -> ClosedIntervals:
    """Sorted intervals, merged where they touch, without empty ones."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(interval for interval in intervals if interval[1] > interval[0]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    starts, hours = tuple(start for start, _ in merged), tuple(end - start for start, end in merged)
    return ClosedIntervals(starts, tuple(start - sum(hours[:index]) for index, start in enumerate(starts)), hours)


def _time_after(clock: CalendarClock, open_hours: Floats, tolerance_hours: float) -> Floats:
    """The time with `open_hours` behind it [h since the origin]; at a closure its beginning for a positive tolerance, else its end."""
    weekly = _insert_intervals(clock.closures, open_hours, tolerance_hours)
    weeks = np.floor((weekly - tolerance_hours) / clock.open_hours)
    within = _insert_intervals(clock.week, weekly - weeks * clock.open_hours, tolerance_hours)
    return np.asarray(weeks * HOURS_PER_WEEK + within - clock.origin_hours)


def _remove_intervals(intervals: ClosedIntervals, hours: Floats) -> Floats:
    """Hours without the closed intervals before them."""
    lowest, highest = _bounds(intervals, hours)
    passed, inside = 0.0, hours
    for start, length in zip(intervals.starts, intervals.hours, strict=True):
        if start + length <= lowest:
            passed += length
        elif start < highest:
            inside = inside - np.minimum(np.maximum(hours - start, 0.0), length)
    return inside - passed if passed else inside


def _insert_intervals(intervals: ClosedIntervals, hours: Floats, tolerance_hours: float) -> Floats:
    """Open hours with the closed intervals before them added; the tolerance decides on those at the very time."""
    lowest, highest = _bounds(intervals, hours)
    passed, inside = 0.0, hours
    for open_start, length in zip(intervals.open_starts, intervals.hours, strict=True):
        edge = open_start + tolerance_hours
        if edge < lowest:
            passed += length
        elif edge < highest:
            inside = inside + length * (hours > edge)
    return inside + passed if passed else inside


def _bounds(intervals: ClosedIntervals, hours: Floats) -> tuple[float, float]:
    """The least and the largest of the hours, which spare array operations for years of holidays outside them; infinite where few intervals
    are cheaper to apply than to filter.
    """
    few = len(intervals.hours) <= MAX_UNFILTERED_INTERVALS or not hours.size
    return (-math.inf, math.inf) if few else (float(hours.min()), float(hours.max()))
