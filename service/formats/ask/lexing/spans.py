"""Spans from one day to another: 1-15 March, 1 March to 15 April, from 2027 to 2028."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from service.formats.ask.lexing.dates import (
    CALENDAR_UNITS,
    MONTHS,
    SPAN,
    CalendarPeriod,
    read_day_before,
    read_month_and_day,
    read_ordinal,
    read_period,
    read_year,
)
from service.formats.ask.lexing.slashed_days import read_slashed_day
from service.formats.ask.lexing.tokens import Token

TO = ("to", "until", "till", "til", "through", "thru")
Found = tuple[int, CalendarPeriod]


def read_span(tokens: Sequence[Token], at: int, today: date) -> Found | None:
    """The span, or the day or period, that begins at a token, and the token after it."""
    days = _read_days_of_month(tokens, at, today)
    if days is not None:
        return days
    of_name = tokens[at].text in CALENDAR_UNITS and at + 2 < len(tokens) and tokens[at + 1].text == "of"  # the month of February
    found = read_slashed_day(tokens, at, today) or read_period(tokens, at + 2 * of_name, today)
    return None if found is None else _with_its_end(tokens, _with_its_date(tokens, found, today), today)


def _with_its_date(tokens: Sequence[Token], found: Found, today: date) -> Found:
    """The day after its weekday: Monday, 29 March 2027; the weekday itself where another day follows."""
    end, period = found
    if period.repeats != "week":
        return found
    begin = end + (end < len(tokens) and tokens[end].text == ",")
    dated = read_period(tokens, begin, today) if begin < len(tokens) else None
    same = (
        dated is not None and dated[1].unit == "day" and dated[1].repeats != "week" and dated[1].first.weekday() == period.first.weekday()
    )
    return dated if dated is not None and same else found


def _with_its_end(tokens: Sequence[Token], found: Found, today: date) -> Found:
    """The span to the period after `to` or a hyphen; the period itself where none follows."""
    end, period = found
    begin = _after_joint(tokens, end)
    if begin is None:
        return found
    last = (read_year(tokens, begin) if period.unit == "year" else None) or read_period(tokens, begin, today)
    if last is None or period.choices or last[1].choices or last[1].last <= period.first:
        return found
    note = f"to the last day of the {last[1].unit}" if last[1].unit != "day" else ""
    return last[0], CalendarPeriod(period.first, last[1].last, SPAN, note=note)


def _after_joint(tokens: Sequence[Token], end: int) -> int | None:
    """The token after what joins the ends of a span: `to`, or a hyphen with or without blanks; None where there is no such thing."""
    worded = end < len(tokens) and tokens[end].text in TO
    begin = end + worded
    if begin >= len(tokens):
        return None
    apart = tokens[begin].start - tokens[begin - 1].end
    hyphened = apart == len("-") if tokens[begin].glued else apart == len(" - ")
    return begin if worded or hyphened else None


def _read_days_of_month(tokens: Sequence[Token], at: int, today: date) -> Found | None:
    """1-15 March, between 1 and 15 March, March 1-15: from the first of the days to the last."""
    of_month = tokens[at].text in MONTHS
    end, first = read_ordinal(tokens, at + of_month)
    if not first or end >= len(tokens):
        return None
    end += tokens[end].text == "of"
    between = at > 0 and tokens[at - 1].text == "between" and tokens[end : end + 1] and tokens[end].text == "and"
    begin = end + 1 if between else _after_joint(tokens, end)
    if begin is None:
        return None
    last = read_month_and_day(tokens, at, begin, today) if of_month else read_day_before(tokens, begin, today)
    if last is None or last[1].first.day <= first:
        return None
    return last[0], replace(last[1], first=last[1].first.replace(day=first), unit=SPAN, repeats="")
