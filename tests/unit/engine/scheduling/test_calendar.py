"""Working time: weekends, holidays and maintenance windows stretch work, forwards and backwards alike, and nothing falls into them."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.schedule import ALWAYS_OPEN, Closure, WeeklyWindow, WorkCalendar
from service.engine.scheduling.calendar import (
    TIME_TOLERANCE_HOURS,
    add_open_hours,
    business_calendar,
    elapsed_open_hours,
    finish_day,
    next_open,
    next_working_day,
    start_clock,
    start_day,
    subtract_open_hours,
)

MONDAY = date(2027, 1, 4)
EASTER = (date(2027, 3, 26), date(2027, 3, 29))

days = st.dates(date(2026, 1, 1), date(2029, 1, 1))
hours = st.floats(-5_000, 20_000).map(lambda value: round(value, 3))
work = st.floats(0, 3_000).map(lambda value: round(value, 3))
windows = st.builds(WeeklyWindow, st.integers(0, 6), st.integers(0, 23), st.integers(0, 30))
closures = st.builds(lambda first, length: Closure(first, first + timedelta(days=length)), days, st.integers(0, 20))
calendars = st.builds(WorkCalendar, st.lists(windows, max_size=4).map(tuple), st.lists(closures, max_size=8).map(tuple))


def done(calendar: WorkCalendar, origin: date, start_hours: float, work_hours: float) -> float:
    return float(add_open_hours(start_clock(calendar, origin), np.array([start_hours]), np.array([work_hours]))[0])


def begun(calendar: WorkCalendar, origin: date, finish_hours: float, work_hours: float) -> float:
    return float(subtract_open_hours(start_clock(calendar, origin), np.array([finish_hours]), np.array([work_hours]))[0])


def is_open(calendar: WorkCalendar, origin: date, hour: int) -> bool:
    """Whether the hour that begins then is open, read off the calendar as a person would."""
    day = origin + timedelta(days=hour // 24)
    in_week = day.weekday() * 24 + hour % 24
    shut = any((in_week - window.weekday * 24 - window.start_hour) % 168 < window.hours for window in calendar.windows)
    return not shut and not any(closure.first <= day <= closure.last for closure in calendar.closures)


@given(days, st.integers(0, 400), st.integers(1, 200), st.lists(days, max_size=30))
def test_working_days_are_counted_as_others_count_them(origin: date, start: int, length: int, holidays: list[date]) -> None:
    """Whole working days end on the day that numpy's business days end on."""
    end = done(business_calendar(holidays), origin, start * 24.0, length * 24.0)
    expected = np.busday_offset(np.datetime64(origin) + start, length - 1, roll="forward", holidays=holidays)
    assert finish_day(origin, end) == expected.astype(date)


@given(calendars, days, st.integers(0, 500), st.integers(1, 200))
def test_work_is_done_in_open_hours_only(calendar: WorkCalendar, origin: date, start: int, length: int) -> None:
    """Whole hours of work end where someone who crosses out closed hours one by one ends."""
    hour, left = start, length
    while left:
        left -= is_open(calendar, origin, hour)
        hour += 1
    assert done(calendar, origin, float(start), float(length)) == pytest.approx(hour)


@given(calendars, days, hours, work)
def test_backwards_undoes_forwards(calendar: WorkCalendar, origin: date, start: float, length: float) -> None:
    """The last start for an end is not before the start that led to it, leads to that same end, and a later one to a later end."""
    end = done(calendar, origin, start, length)
    latest = begun(calendar, origin, end, length)
    assert latest >= start - 2 * TIME_TOLERANCE_HOURS
    assert done(calendar, origin, latest, length) == pytest.approx(end, abs=4 * TIME_TOLERANCE_HOURS)
    assert done(calendar, origin, latest + 0.01, length) > end


@given(calendars, days, hours, work, st.floats(0, 500), st.floats(0, 500))
def test_later_and_longer_never_ends_earlier(
    calendar: WorkCalendar, origin: date, start: float, length: float, later: float, longer: float
) -> None:
    """Starting later, or having more to do, ends no earlier; work takes at least its own length."""
    end = done(calendar, origin, start, length)
    assert end >= start + length - TIME_TOLERANCE_HOURS
    assert done(calendar, origin, start + later, length) >= end - 2 * TIME_TOLERANCE_HOURS
    assert done(calendar, origin, start, length + longer) >= end - 2 * TIME_TOLERANCE_HOURS


@given(calendars, days, st.lists(hours, min_size=5, max_size=40))
def test_many_moments_at_once_are_each_alone(calendar: WorkCalendar, origin: date, moments: list[float]) -> None:
    """An array is answered as its elements are one by one, however many holidays lie between them."""
    own, many = start_clock(calendar, origin), np.array(moments)
    alone = [float(add_open_hours(own, many[place : place + 1], np.array([50.0]))[0]) for place in range(many.size)]
    assert add_open_hours(own, many, np.full(many.size, 50.0)).tolist() == pytest.approx(alone)


@given(days, hours, work)
def test_without_windows_time_is_time(origin: date, start: float, length: float) -> None:
    """Where nothing is ever closed, work takes exactly as long as it is."""
    assert done(ALWAYS_OPEN, origin, start, length) == start + length
    assert begun(ALWAYS_OPEN, origin, start, length) == start - length


def test_a_review_over_easter() -> None:
    """Ten working days from Monday, 22 March 2027 end after two holidays and two weekends, on Tuesday, 6 April."""
    origin = date(2027, 3, 22)
    assert finish_day(origin, done(business_calendar(EASTER), origin, 0.0, 240.0)) == date(2027, 4, 6)
    assert finish_day(origin, done(business_calendar(), origin, 0.0, 240.0)) == date(2027, 4, 2)


@given(days, st.lists(days, max_size=30))
def test_the_first_working_day_is_the_one_that_others_find(day: date, holidays: list[date]) -> None:
    """A working day is itself; of a weekend or a holiday it is the next that is neither, as numpy's business days have it."""
    assert next_working_day(day, holidays) == np.busday_offset(day, 0, roll="forward", holidays=holidays).astype(date)


def test_where_no_working_day_is_left_it_is_the_last_day_there_is() -> None:
    """The calendar ends: a holiday on its last day has no day after it."""
    assert next_working_day(date.max, [date.max]) == date.max


def test_another_weekend() -> None:
    """Where Friday and Saturday are off, work that is due after Thursday is done on Sunday."""
    thursday = date(2027, 1, 7)
    assert finish_day(thursday, done(business_calendar(weekend=(4, 5)), thursday, 0.0, 48.0)) == date(2027, 1, 10)


def test_maintenance_takes_its_hours_of_every_week() -> None:
    """A machine that is down for 4 hours each Wednesday takes 336 hours and three windows for 332 hours' work begun on a Wednesday."""
    calendar = WorkCalendar((WeeklyWindow(2, 8.0, 4.0),))
    wednesday = date(2027, 1, 6)
    assert done(calendar, wednesday, 0.0, 328.0) == pytest.approx(336.0)
    assert done(calendar, wednesday, 0.0, 336.0) == pytest.approx(344.0)
    assert done(calendar, wednesday, 0.0, 337.0) == pytest.approx(349.0)


def test_a_window_across_the_weeks_end_is_one() -> None:
    """A window from Sunday 22:00 on for six hours closes Monday's first four as well; those that overlap count once."""
    calendar = WorkCalendar((WeeklyWindow(6, 22.0, 6.0), WeeklyWindow(0, 2.0, 2.0)))
    assert done(calendar, MONDAY, 0.0, 162.0) == pytest.approx(166.0)
    assert done(calendar, MONDAY, 0.0, 163.0) == pytest.approx(173.0)


def test_an_upgrade_stops_the_machine_for_days() -> None:
    """A run of five days with a three-day upgrade in it takes eight."""
    calendar = WorkCalendar(closures=(Closure(date(2027, 1, 6), date(2027, 1, 8)),))
    assert done(calendar, MONDAY, 0.0, 120.0) == 192.0


def test_rounding_carries_no_work_over_the_weekend() -> None:
    """Fifty pieces of 2.4 hours are five working days, and end on the Friday."""
    own, moment = start_clock(business_calendar(), MONDAY), np.array([0.0])
    for _ in range(50):
        moment = add_open_hours(own, moment, np.array([2.4]))
    assert finish_day(MONDAY, float(moment[0])) == date(2027, 1, 8)


def test_work_that_is_ready_on_a_saturday_starts_on_monday() -> None:
    """The moment at which a calendar opens is shown as the start; an open moment is itself."""
    own = start_clock(business_calendar(), MONDAY)
    assert next_open(own, np.array([5 * 24 + 3.0, 50.0])).tolist() == pytest.approx([168.0, 50.0])


def test_no_work_takes_no_time() -> None:
    """An event at a weekend is over at the weekend."""
    assert done(business_calendar(), MONDAY, 130.0, 0.0) == 130.0
    assert begun(business_calendar(), MONDAY, 130.0, 0.0) == 130.0


def test_open_hours_of_a_year() -> None:
    """2027 from its first Monday on has 260 working days in 52 weeks, less the holidays."""
    own = start_clock(business_calendar(EASTER), MONDAY)
    assert elapsed_open_hours(own, np.array([52 * 168.0]))[0] == pytest.approx(258 * 24)


def test_midnight_ends_a_day() -> None:
    """What ends at midnight was over on the day before and what starts then starts on the new one; nothing ends before the origin."""
    assert finish_day(MONDAY, 24.0) == MONDAY
    assert finish_day(MONDAY, 24.1) == MONDAY + timedelta(days=1)
    assert finish_day(MONDAY, 0.0) == MONDAY
    assert start_day(MONDAY, 24.0) == MONDAY + timedelta(days=1)
    assert finish_day(MONDAY, 1e12) == date.max


@pytest.mark.parametrize(
    ("calendar", "message"),
    [
        (business_calendar(weekend=range(7)), "no hour of the week open"),
        (WorkCalendar(closures=(Closure(date(2027, 1, 8), date(2027, 1, 6)),)), "before it begins"),
        (WorkCalendar((WeeklyWindow(7, 0.0, 4.0),)), "is not valid: weekdays"),
        (WorkCalendar((WeeklyWindow(0, 24.0, 4.0),)), "is not valid: weekdays"),
        (WorkCalendar((WeeklyWindow(0, 0.0, -1.0),)), "is not valid: weekdays"),
    ],
)
def test_a_calendar_that_cannot_be_is_refused(calendar: WorkCalendar, message: str) -> None:
    """Closed all week, ended before begun, or outside the week: the message says which."""
    with pytest.raises(InvalidRequest, match=message):
        start_clock(calendar, MONDAY)
