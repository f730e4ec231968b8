"""Working time: from a moment over so many open hours to another, forwards and backwards, for arrays of moments at once.

A calendar's open hours since an origin are a rising function of the moment, flat where it is closed. Work that begins at t and takes d is
over at the first moment with E(t) + d open hours behind it, and has to begin at the last with E(end) - d: the two inverses of E.
Holidays are the caller's: which days a team has off is data, not arithmetic.
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
MAX_UNFILTERED_INTERVALS = 3
HOURS_PER_DAY = 24.0
HOURS_PER_WEEK = 168.0
WEEKEND = (5, 6)
# Sums of hours that differ by less are the same moment: rounding must not carry work that ends on a Friday over the weekend.
TIME_TOLERANCE_HOURS = 1e-6


@dataclass(frozen=True, slots=True)
class ClosedIntervals:
    """Closed stretches that do not touch: where each starts, with the others in and with all earlier ones taken out, and its length [h]."""

    starts: tuple[float, ...]
    opened: tuple[float, ...]
    hours: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CalendarClock:
    """A calendar ready for arithmetic: the origin is `since_monday` hours into a week that is open `elapsed_open_hours` of its 168.

    `closures` are counted in open hours of such weeks since the origin's Monday.
    """

    since_monday: float
    open_hours: float
    week: ClosedIntervals
    closures: ClosedIntervals

    @property
    def never_closes(self) -> bool:
        return not self.week.hours and not self.closures.hours


def business_calendar(holidays: Iterable[date] = (), weekend: Iterable[int] = WEEKEND) -> WorkCalendar:
    """Whole working days: closed at weekends (weekdays, 0 is Monday) and on holidays."""
    windows = tuple(WeeklyWindow(weekday, 0.0, HOURS_PER_DAY) for weekday in weekend)
    return WorkCalendar(windows, tuple(Closure(day, day) for day in holidays))


def next_working_day(day: date, holidays: Collection[date] = ()) -> date:
    """The first working day from a day on, neither at a weekend nor a holiday; the last day there is where none is left."""
    while day < date.max and (day.weekday() in WEEKEND or day in holidays):
        day += timedelta(days=1)
    return day


def start_clock(calendar: WorkCalendar, origin: date) -> CalendarClock:
    """The calendar counted from the beginning of the day `origin`. Raises InvalidRequest where it never opens or a window is none."""
    week = _merge_intervals(stretch for window in calendar.windows for stretch in _window_intervals(window))
    open_hours = HOURS_PER_WEEK - sum(week.hours)
    if open_hours <= TIME_TOLERANCE_HOURS:
        raise InvalidRequest("the calendar's weekly windows leave no hour of the week open; at least one has to be")
    since_monday = origin.weekday() * HOURS_PER_DAY
    weekly = CalendarClock(since_monday, open_hours, week, _merge_intervals(()))
    closures = _merge_intervals(_closure_interval(weekly, closure, origin) for closure in calendar.closures)
    return CalendarClock(since_monday, open_hours, week, closures)


def elapsed_open_hours(clock: CalendarClock, hours: Floats) -> Floats:
    """Open hours from the origin's Monday to moments [h since the origin]; below 0 before it."""
    since = hours + clock.since_monday
    weeks = np.floor(since / HOURS_PER_WEEK)
    return _remove_intervals(clock.closures, weeks * clock.open_hours + _remove_intervals(clock.week, since - weeks * HOURS_PER_WEEK))


def add_open_hours(clock: CalendarClock, start_hours: Floats, work_hours: Floats) -> Floats:
    """The first moment at which work [open h] that begins at `start_hours` is done [h since the origin]."""
    if clock.never_closes:
        return start_hours + work_hours
    return np.maximum(start_hours, _moment_after(clock, elapsed_open_hours(clock, start_hours) + work_hours, TIME_TOLERANCE_HOURS))


def subtract_open_hours(clock: CalendarClock, finish_hours: Floats, work_hours: Floats) -> Floats:
    """The last moment at which work [open h] has to begin to be done by `finish_hours` [h since the origin]."""
    if clock.never_closes:
        return finish_hours - work_hours
    return np.minimum(finish_hours, _moment_after(clock, elapsed_open_hours(clock, finish_hours) - work_hours, -TIME_TOLERANCE_HOURS))


def next_open(clock: CalendarClock, hours: Floats) -> Floats:
    """The moments themselves where the calendar is open, else the next at which it opens."""
    return hours if clock.never_closes else np.maximum(hours, _moment_after(clock, elapsed_open_hours(clock, hours), -TIME_TOLERANCE_HOURS))


def hours_until(origin: date, day: date) -> float:
    """Hours from the beginning of `origin` to that of `day`."""
    return (day - origin).days * HOURS_PER_DAY


def start_day(origin: date, hours: float) -> date:
    """The day on which something starts `hours` after the beginning of `origin`."""
    return _shift_day(origin, (hours + TIME_TOLERANCE_HOURS) // HOURS_PER_DAY)


def finish_day(origin: date, hours: float) -> date:
    """The day by whose end something is over: what ends at midnight is of the day before, and nothing ends before `origin`."""
    return _shift_day(origin, max(0.0, -((TIME_TOLERANCE_HOURS - hours) // HOURS_PER_DAY) - 1))


def _shift_day(origin: date, days: float) -> date:
    """So many days after the origin; the calendar's first or last day where that is beyond it."""
    return origin + timedelta(days=min(max(days, (date.min - origin).days), (date.max - origin).days))


def _window_intervals(window: WeeklyWindow) -> Iterable[tuple[float, float]]:
    """A window in hours of the week, in two where it reaches into the next."""
    if not 0 <= window.weekday <= 6 or not 0 <= window.start_hour < HOURS_PER_DAY or not 0 <= window.hours <= HOURS_PER_WEEK:
        raise InvalidRequest(
            f"a window of {window.hours:g} hours from hour {window.start_hour:g} of weekday {window.weekday} is no part of a week: weekdays"
            " are 0 to 6, hours of the day begin below 24, windows are 0 to 168 hours long"
        )
    start = window.weekday * HOURS_PER_DAY + window.start_hour
    end = start + window.hours
    return [(start, min(end, HOURS_PER_WEEK)), (0.0, max(0.0, end - HOURS_PER_WEEK))]


def _closure_interval(weekly: CalendarClock, closure: Closure, origin: date) -> tuple[float, float]:
    """A closure in the week's open hours. Raises InvalidRequest where it ends before it begins."""
    if closure.last < closure.first:
        raise InvalidRequest(f"a closure ends on {closure.last}, before it begins on {closure.first}")
    ends = np.array([hours_until(origin, closure.first), hours_until(origin, closure.last) + HOURS_PER_DAY])
    first, last = elapsed_open_hours(weekly, ends)
    return float(first), float(last)


def _merge_intervals(stretches: Iterable[tuple[float, float]]) -> ClosedIntervals:
    """Stretches in order, those that touch as one, those without length left out."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(stretch for stretch in stretches if stretch[1] > stretch[0]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    starts, hours = tuple(start for start, _ in merged), tuple(end - start for start, end in merged)
    return ClosedIntervals(starts, tuple(start - sum(hours[:index]) for index, start in enumerate(starts)), hours)


def _moment_after(clock: CalendarClock, opened: Floats, slack_hours: float) -> Floats:
    """The moment with so many open hours behind it [h since the origin]: where the calendar closes there, the closing with slack above 0,
    the opening with slack below 0.
    """
    weekly = _insert_intervals(clock.closures, opened, slack_hours)
    weeks = np.floor((weekly - slack_hours) / clock.open_hours)
    within = _insert_intervals(clock.week, weekly - weeks * clock.open_hours, slack_hours)
    return np.asarray(weeks * HOURS_PER_WEEK + within - clock.since_monday)


def _remove_intervals(gaps: ClosedIntervals, hours: Floats) -> Floats:
    """Hours with the gaps that lie before them taken out."""
    lowest, highest = _bounds(gaps, hours)
    passed, inside = 0.0, hours
    for start, length in zip(gaps.starts, gaps.hours, strict=True):
        if start + length <= lowest:
            passed += length
        elif start < highest:
            inside = inside - np.minimum(np.maximum(hours - start, 0.0), length)
    return inside - passed if passed else inside


def _insert_intervals(gaps: ClosedIntervals, hours: Floats, slack_hours: float) -> Floats:
    """Hours with the gaps put back in that lie before them, those at the very moment as the slack says."""
    lowest, highest = _bounds(gaps, hours)
    passed, inside = 0.0, hours
    for opened, length in zip(gaps.opened, gaps.hours, strict=True):
        edge = opened + slack_hours
        if edge < lowest:
            passed += length
        elif edge < highest:
            inside = inside + length * (hours > edge)
    return inside + passed if passed else inside


def _bounds(gaps: ClosedIntervals, hours: Floats) -> tuple[float, float]:
    """The least and the largest of the hours. Years of holidays lie outside what is asked for, and cost one number and not an array's work;
    of few gaps all are looked at, which costs less than this look.
    """
    few = len(gaps.hours) <= MAX_UNFILTERED_INTERVALS or not hours.size
    return (-math.inf, math.inf) if few else (float(hours.min()), float(hours.max()))
