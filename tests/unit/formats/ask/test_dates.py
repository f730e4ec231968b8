"""Dates and durations in words, from a Monday in November."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.ask.lexing.clock import read_clock
from service.formats.ask.lexing.dates import read_period
from service.formats.ask.lexing.durations import add_months, read_duration
from service.formats.ask.lexing.holidays import next_holiday
from service.formats.ask.lexing.tokens import normalise, tokenise

TODAY = date(2026, 11, 23)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2027-03-01", "2027-03-01", "2027-03-01"),
        ("2027-06", "2027-06-01", "2027-06-30"),
        ("1 March", "2027-03-01", "2027-03-01"),
        ("March 1st, 2027", "2027-03-01", "2027-03-01"),
        ("15/3/2027", "2027-03-15", "2027-03-15"),
        ("June 2027", "2027-06-01", "2027-06-30"),
        ("june next year", "2027-06-01", "2027-06-30"),
        ("next june", "2027-06-01", "2027-06-30"),
        ("november", "2026-11-01", "2026-11-30"),
        ("next november", "2027-11-01", "2027-11-30"),
        ("Q3 2027", "2027-07-01", "2027-09-30"),
        ("q1", "2027-01-01", "2027-03-31"),
        ("3Q27", "2027-07-01", "2027-09-30"),
        ("Q3 '27", "2027-07-01", "2027-09-30"),
        ("next year's Q2", "2027-04-01", "2027-06-30"),
        ("third quarter of 2028", "2028-07-01", "2028-09-30"),
        ("last quarter of 2027", "2027-10-01", "2027-12-31"),
        ("second half of next year", "2027-07-01", "2027-12-31"),
        ("1H27", "2027-01-01", "2027-06-30"),
        ("EOQ3", "2027-09-30", "2027-09-30"),
        ("1h30", "", ""),
        ("first half", "", ""),
        ("H1 2027", "2027-01-01", "2027-06-30"),
        ("end of Q2 2027", "2027-06-30", "2027-06-30"),
        ("mid march 2027", "2027-03-16", "2027-03-16"),
        ("end of the year", "2026-12-31", "2026-12-31"),
        ("eoq", "2026-12-31", "2026-12-31"),
        ("next quarter", "2027-01-01", "2027-03-31"),
        ("next month", "2026-12-01", "2026-12-31"),
        ("tomorrow", "2026-11-24", "2026-11-24"),
        ("friday", "2026-11-27", "2026-11-27"),
        ("christmas", "2026-12-25", "2026-12-25"),
        ("easter", "2027-03-28", "2027-03-28"),
        ("easter monday", "2027-03-29", "2027-03-29"),
        ("good friday", "2027-03-26", "2027-03-26"),
        ("thanksgiving", "2026-11-26", "2026-11-26"),
        ("spring 2027", "2027-03-01", "2027-05-31"),
        ("spring next year", "2027-03-01", "2027-05-31"),
        ("the summer of 2027", "", ""),
        ("next summer", "2027-06-01", "2027-08-31"),
        ("this winter", "2026-12-01", "2027-02-28"),
        ("fall", "", ""),
        ("end of winter 2026", "2027-02-28", "2027-02-28"),
        ("Friday next week", "2026-12-04", "2026-12-04"),
        ("next week on Monday", "2026-11-30", "2026-11-30"),
        ("early march", "2027-03-01", "2027-03-11"),
        ("late june", "2027-06-21", "2027-06-30"),
        ("2027-02-30", "", ""),
        ("31 June", "", ""),
    ],
)
def test_a_date_is_read_to_its_end(text: str, first: str, last: str) -> None:
    tokens = tokenise(normalise(text))
    read = read_period(tokens, 0, TODAY)
    if not first:
        assert read is None
        return
    assert read is not None
    assert read[0] == len(tokens)
    assert (read[1].first.isoformat(), read[1].last.isoformat()) == (first, last)


def test_a_day_and_month_in_either_order_has_both_readings() -> None:
    read = read_period(tokenise("3/4/2027"), 0, TODAY)
    assert read is not None
    assert read[1].choices == (date(2027, 3, 4), date(2027, 4, 3))


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("6 weeks", "2027-01-04"),
        ("3y", "2029-11-23"),
        ("a year", "2027-11-23"),
        ("half a year", "2027-05-23"),
        ("18 months", "2028-05-23"),
        ("30d", "2026-12-23"),
        ("a fortnight", "2026-12-07"),
        ("48 hours", "2026-11-25"),
    ],
)
def test_a_duration_counts_from_a_day(text: str, day: str) -> None:
    read = read_duration(tokenise(text), 0)
    assert read is not None
    assert read[1].after(TODAY).isoformat() == day


@given(day=st.dates(date(1990, 1, 1), date(2090, 1, 1)), months=st.integers(0, 120))
def test_months_later_is_the_same_day_or_the_last_of_the_month(day: date, months: int) -> None:
    later = add_months(day, months)
    assert (later.year - day.year) * 12 + later.month - day.month == months
    assert later.day == day.day or (later + timedelta(days=1)).day == 1


@pytest.mark.parametrize(
    ("year", "day"),
    [(2019, "2019-04-21"), (2025, "2025-04-20"), (2028, "2028-04-16"), (2030, "2030-04-21"), (2035, "2035-03-25"), (2038, "2038-04-25")],
)
def test_easter_is_the_sunday_of_its_year(year: int, day: str) -> None:
    assert next_holiday(["easter"], date(year, 1, 1)) == (1, date.fromisoformat(day))


@pytest.mark.parametrize(
    ("text", "read"),
    [("10am", True), ("3:30 pm", True), ("17:00 cet", True), ("13 pm", False), ("17:00", False), ("24:00 utc", False), ("10 amps", False)],
)
def test_a_time_of_the_day_has_a_half_or_a_zone(text: str, read: bool) -> None:
    tokens = tokenise(normalise(text))
    assert read_clock(tokens, 0) == (len(tokens) if read else None)
