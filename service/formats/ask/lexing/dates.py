"""Dates in words, relative to a day that is passed in: 1 March, Q3 2027, next june, end of the year."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal

from service.formats.ask.lexing.durations import MONTHS_OF, UNIT_OF, add_months, goes_on
from service.formats.ask.lexing.edges import AFTER_DAYS, EARLY, LATE, day_in_words, names_occasion, read_edge, third_of
from service.formats.ask.lexing.holidays import next_holiday
from service.formats.ask.lexing.quarters import part_of_year, read_lettered, read_short_year, read_worded
from service.formats.ask.lexing.seasons import FIRST_MONTHS, LENGTH_MONTHS, read_season
from service.formats.ask.lexing.tokens import Token

MONTHS = {name.lower(): at for at, name in enumerate(calendar.month_name) if name}
MONTHS |= {name.lower(): at for at, name in enumerate(calendar.month_abbr) if name} | {"sept": 9}
_WEEKDAYS = {name.lower(): at for at, name in enumerate(calendar.day_name)}
_WEEKDAYS |= {name[:3]: at for name, at in _WEEKDAYS.items() if name[:3] not in ("sun", "sat")} | {"tues": 1, "thurs": 3}
_ORDINALS = ("st", "nd", "rd", "th")
# "may" and "march" are words too, "sun" and "sat" nothing else here than slips.
_WORDS_TOO = frozenset({"may", "march", "mar", "sun", "sat", "sec", "dec"})
_COUNTED = frozenset({"tokens", "token", "tok", "sequences", "seqs", "samples", "images", "prompts", "steps", "gpus"})  # of 2048 tokens
_CLAUSE_ENDS = frozenset(".,;:?!)")
_BEFORE_MONTHS = frozenset(
    (
        *("by", "before", "in", "until", "till", "from", "of", "mid", "since", "after", "during", "between", "end", "early", "late"),
        *("start", "starting", "beginning", "next", "this", "to", "and", "due", "deadline", "begin"),
    )
)
DATE_WORDS = frozenset(
    {
        *MONTHS,
        *_WEEKDAYS,
        *UNIT_OF,
        *FIRST_MONTHS,
        "yesterday",
        "today",
        "tomorrow",
        "now",
        "next",
        "end",
        "mid",
        "eoy",
        "eoq",
        "eom",
        "eow",
    }
)
_MOST_DAYS_APART = 12 * 366
"""Within twelve years each day of a month was each day of the week, the 31st of months too [days]."""
CALENDAR_UNITS = ("week", "month", "quarter", "year")
LEAST_YEAR, MOST_YEAR = 2000, 2100
SPAN = "days"
"""Unit of a period from one day to another."""


@dataclass(frozen=True, slots=True)
class CalendarPeriod:
    """A day, month, quarter or year by its first and last day. `choices`: other readings, where there are several. `at_end`: the end of
    something, `note`: how else it could be meant. `repeats`: after which time there is another such day (friday, 1 March)."""

    first: date
    last: date
    unit: str = "day"
    choices: tuple[date, ...] = ()
    at_end: bool = False
    note: str = ""
    repeats: Literal["", "week", "year"] = ""


def read_period(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """The day or period that begins at a token, and the token after it."""
    words = [token.text for token in tokens[at : at + 8]]
    edge = read_edge(words)
    if edge is not None:
        length, which = edge
        found = _read_plain(tokens, at + length, today)
        if found is None:
            return None
        end, period = found
        return end, _cut(period, which)
    return _read_plain(tokens, at, today)


def _cut(period: CalendarPeriod, which: str) -> CalendarPeriod:
    middle = period.first + (period.last - period.first) // 2
    if which in (EARLY, LATE):
        return CalendarPeriod(*third_of(period.first, period.last, which), f"{which} {period.unit}", repeats=period.repeats)
    day = {"end": period.last, "start": period.first, "mid": middle}[which]
    return CalendarPeriod(day, day, "day", period.choices, at_end=which == "end", repeats=period.repeats)


def _read_plain(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    if at >= len(tokens):
        return None
    if (absolute := _read_iso(tokens, at) or _read_slashed(tokens, at)) is not None:
        return absolute
    for read in (_read_named_day, _read_quarter, _read_season, _read_day_of_next_week, _read_relative, _read_weekday, _read_month):
        found = read(tokens, at, today)
        if found is not None:
            return found
    return _read_year(tokens, at)


def _read_iso(tokens: Sequence[Token], at: int) -> tuple[int, CalendarPeriod] | None:
    parts = tokens[at].text.split("-")
    if len(parts) == 3 and parts[0].isdigit():
        day = _day(int(parts[0]), int(parts[1]), int(parts[2]))
        return None if day is None else (at + 1, CalendarPeriod(day, day))
    if (
        _is_year(tokens[at].text)
        and at + 1 < len(tokens)
        and tokens[at + 1].glued
        and tokens[at + 1].text in {f"{m:02d}" for m in range(1, 13)}
    ):
        return at + 2, _month(int(tokens[at].text), int(tokens[at + 1].text))
    return None


def _read_slashed(tokens: Sequence[Token], at: int) -> tuple[int, CalendarPeriod] | None:
    """3/15/2027, 15.3.2027; of 1/3/2027 both readings."""
    texts = [token.text for token in tokens[at : at + 5]]
    if len(texts) == 5 and texts[1] == texts[3] == "/" and all(texts[index].isdigit() for index in (0, 2, 4)):
        if (
            len(texts[4]) == 2 and not _is_year(texts[0]) and at > 0 and tokens[at - 1].text in _BEFORE_MONTHS
        ):  # by 1/3/27; elsewhere a list: 8/16/32
            texts[4] = f"{LEAST_YEAR // 100}{texts[4]}"
        first, second, year = int(texts[0]), int(texts[2]), int(texts[4])
        if _is_year(texts[0]):
            day = _day(first, second, year)
            return None if day is None else (at + 5, CalendarPeriod(day, day))
        both = [day for day in (_day(year, first, second), _day(year, second, first)) if day is not None and _is_year(texts[4])]
        if both:
            return at + 5, CalendarPeriod(both[0], both[0], choices=tuple(dict.fromkeys(both)) if len(set(both)) > 1 else ())
    return None


def _read_named_day(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """1 March, 1st of March 2027, March 1st, March 1, 2027, 2027 March 1."""
    if _is_year(tokens[at].text) and at + 2 < len(tokens) and tokens[at + 1].text in MONTHS:
        end, number = read_ordinal(tokens, at + 2)
        day = _day(int(tokens[at].text), MONTHS[tokens[at + 1].text], number) if number else None
        return None if day is None else (end, CalendarPeriod(day, day))
    return read_day_before(tokens, at, today) or read_month_and_day(tokens, at, at + 1, today)


def read_day_before(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """1 March, 1st of March 2027, the fifteenth of next month, by the 15th."""
    end, number = read_ordinal(tokens, at) if tokens[at].text.isdigit() else day_in_words(tokens, at)
    if not number or (at > 0 and tokens[at - 1].text == "week"):  # week 2 of March
        return None
    following = [token.text for token in tokens[end : end + 3]]
    if following[:1] == ["of"] and following[1:] in (["next", "month"], ["this", "month"], ["the", "month"]):
        ahead = following[1] == "next" or (following[1] == "the" and number < today.day)
        month = _period_of(today, "months", int(ahead)).first
        day = _day(month.year, month.month, number)
        return None if day is None else (end + 3, CalendarPeriod(day, day))
    if not following or (end - at == 2 and (following[0] in _CLAUSE_ENDS or following[0] in AFTER_DAYS)):
        return _next_of_number(tokens, at, end, number, today)
    end += following[0] == "of"
    named = end < len(tokens) and tokens[end].text in MONTHS
    return _with_year(tokens, end + 1, today, MONTHS[tokens[end].text], number) if named else None


def _next_of_number(tokens: Sequence[Token], at: int, end: int, number: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """By the 15th: the next such day of a month."""
    before = [token.text for token in tokens[max(at - 2, 0) : at]]
    if end - at != 2 or len(before) != 2 or before[0] not in _BEFORE_MONTHS | {"on"} or before[1] != "the":
        return None
    ahead = (today + timedelta(days=days) for days in range(63))
    day = next((day for day in ahead if day.day == number), None)
    return None if day is None else (end, CalendarPeriod(day, day, note="the next such day"))


def read_month_and_day(tokens: Sequence[Token], at: int, number_at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """March 1st, March 1, 2027, with the day at another token: of March 1-15, the 15."""
    if tokens[at].text not in MONTHS or number_at >= len(tokens):
        return None
    end, number = read_ordinal(tokens, number_at)
    runs_on = end < len(tokens) and tokens[end].glued and tokens[end].text[0].isalpha()
    return _with_year(tokens, end, today, MONTHS[tokens[at].text], number) if number and not runs_on else None


def read_ordinal(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """A day of a month, and the token after it; (at, 0) where there is none."""
    text = tokens[at].text if at < len(tokens) else ""
    if not (text.isdigit() and len(text) <= 2 and 1 <= int(text) <= 31):
        return at, 0
    ordinal = at + 1 < len(tokens) and tokens[at + 1].glued and tokens[at + 1].text in _ORDINALS
    return at + 1 + ordinal, int(text)


def _with_year(tokens: Sequence[Token], end: int, today: date, month: int, number: int) -> tuple[int, CalendarPeriod] | None:
    """The day of a month; the next one to come where no year follows."""
    stated = end + (end < len(tokens) and tokens[end].text == ",")
    if stated < len(tokens) and _is_year(tokens[stated].text) and not goes_on(tokens, stated):
        day = _day(int(tokens[stated].text), month, number)
        return None if day is None else (stated + 1, CalendarPeriod(day, day))
    end += tokens[end].text == "next" if end < len(tokens) else 0
    day = next_day(today, month, number)
    return None if day is None else (end, CalendarPeriod(day, day, repeats="year"))


def next_day(today: date, month: int, number: int) -> date | None:
    """The next day of a month and number."""
    days = (_day(year, month, number) for year in range(today.year, today.year + 9))
    return next((day for day in days if day is not None and day >= today), None)


def _read_quarter(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """Q3, Q3 2027, 2027 Q3, H1 2027, next year's Q2, the first quarter of next year, EOQ3."""
    ends = tokens[at].text == "eoq" and at + 1 < len(tokens) and tokens[at + 1].glued
    year, begin = (None, at) if ends else _stated_year(tokens, at, today) or (None, at)
    part = part_of_year(at + 2, 3, tokens[at + 1].text) if ends else None if begin >= len(tokens) else read_lettered(tokens, begin)
    worded = read_worded(tokens, begin) if part is None and begin < len(tokens) else None
    found, needs_year = worded if worded is not None else (part, False)
    if found is None:
        return None
    end, months, first_month = found
    if year is None:
        of = end + (end < len(tokens) and tokens[end].text == "of")
        year, end = _stated_year(tokens, of, today) or read_short_year(tokens, end) or (None, end)
    unit = {3: "quarter", 6: "half year"}[months]
    if year is not None:
        period = _months(year, first_month, months, unit)
    elif needs_year:
        return None
    else:
        this_year = _months(today.year, first_month, months, unit)
        period = replace(this_year if this_year.last >= today else _months(today.year + 1, first_month, months, unit), repeats="year")
    return end, _cut(period, "end") if ends else period


def _read_season(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """Spring 2027, next summer, the fall: three months."""
    found = read_season([token.text for token in tokens[at : at + 4]], tokens[at - 1].text if at else "", today)
    if found is None or not LEAST_YEAR <= found[1] < MOST_YEAR:
        return None
    length, year, month = found
    period = _months(year, month, LENGTH_MONTHS, "season")
    stated = any(token.text.isdigit() or token.text == "year" for token in tokens[at : at + length])
    return at + length, replace(period, note=f"read as {period.first} to {period.last}", repeats="" if stated else "year")


def _stated_year(tokens: Sequence[Token], at: int, today: date) -> tuple[int, int] | None:
    """A year, as a number or as `next year`, and the token after it."""
    words = [token.text for token in tokens[at : at + 2]]
    if words[:1] and _is_year(words[0]):
        return int(words[0]), at + 1
    if len(words) < 2 or words[1] != "year" or words[0] not in (*_NEXT, "this"):
        return None
    return today.year + (words[0] in _NEXT), at + 2


_DAYS_AHEAD = {"yesterday": -1, "today": 0, "tonight": 0, "now": 0, "tomorrow": 1}
_END_CODES = {"eoy": "years", "eoq": "quarters", "eom": "months", "eow": "weeks"}
_NEXT, _LAST = ("next", "nxt"), ("last", "previous")


def _read_holiday(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """Christmas, Easter 2027: the next one to come where no year follows."""
    words = [token.text for token in tokens[at : at + 2]]
    found = next_holiday(words, today)
    if found is None:
        return None
    stated = _stated_year(tokens, at + found[0], today)
    if stated is None:
        return None if _is_dated(tokens, at + found[0]) else (at + found[0], CalendarPeriod(found[1], found[1], repeats="year"))
    _, day = next_holiday(words, date(stated[0], 1, 1)) or found
    return stated[1], CalendarPeriod(day, day)


def _read_relative(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """Today, tomorrow, next month, this quarter, year end, eoy."""
    first, second = [*(token.text for token in tokens[at : at + 2]), ""][:2]
    if first in _DAYS_AHEAD:
        return at + 1, CalendarPeriod(day := today + timedelta(days=_DAYS_AHEAD[first]), day)
    if (holiday := _read_holiday(tokens, at, today)) is not None:
        return holiday
    if first in _END_CODES:
        return at + 1, _cut(_period_of(today, _END_CODES[first], 0), "end")
    if first in CALENDAR_UNITS and second == "end":
        return at + 2, _cut(_period_of(today, UNIT_OF[first], 0), "end")
    of_period = at + 2 < len(tokens) and tokens[at + 2].text == "of" and first in _LAST  # the last quarter of 2026
    if first in (*_NEXT, *_LAST, "this", "current") and second in CALENDAR_UNITS and not of_period:
        return at + 2, _period_of(today, UNIT_OF[second], (first in _NEXT) - (first in _LAST))
    after_edge = at > 0 and tokens[at - 1].text in ("of", "the")
    return (at + 1, _period_of(today, UNIT_OF[first], 0)) if after_edge and first in CALENDAR_UNITS else None


def _is_dated(tokens: Sequence[Token], end: int) -> bool:
    """Whether a date follows a holiday, which is then its day: Easter Monday, 29 March 2027."""
    following = [token.text for token in tokens[end : end + 4] if token.text not in (",", "on", "(", "-")]
    return any(text in MONTHS for text in following[:2])


def _period_of(today: date, unit: str, ahead: int) -> CalendarPeriod:
    """The week, month, quarter or year of today, or one so many later."""
    if unit == "weeks":
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=ahead)
        return CalendarPeriod(monday, monday + timedelta(days=6), "week")
    months = MONTHS_OF[unit]
    begin = add_months(date(today.year, (today.month - 1) // months * months + 1, 1), ahead * months)
    return _months(begin.year, begin.month, months, unit.removesuffix("s"))


def _read_weekday(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """The day of that name that is next to come."""
    named = tokens[at].text in (*_NEXT, "this", "coming", "last")
    begin = at + named
    if begin >= len(tokens) or tokens[begin].text not in _WEEKDAYS:
        return None
    the_13th = begin + 1 + (begin + 1 < len(tokens) and tokens[begin + 1].text == "the")
    if not named and the_13th > begin + 1 and (ordinal := read_ordinal(tokens, the_13th))[1]:
        return ordinal[0], _weekday_on(today, _WEEKDAYS[tokens[begin].text], ordinal[1])
    ahead = (_WEEKDAYS[tokens[begin].text] - today.weekday() - 1) % 7 + 1
    day = today + timedelta(days=ahead - 7 * (tokens[at].text == "last" and ahead > 0))
    note = f"the first to come; a week later is {day + timedelta(weeks=1)}" if tokens[at].text in _NEXT else ""
    return begin + 1, CalendarPeriod(day, day, note=note, repeats="" if named else "week")


def _read_day_of_next_week(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """Friday next week, next week on Friday: the day of the week that begins with the Monday to come."""
    texts = [token.text for token in tokens[at : at + 4]]
    after = 3 if texts[2:3] and texts[2] in ("on", "of") else 2
    if len(texts) > 2 and texts[0] in _WEEKDAYS and texts[1] in _NEXT and texts[2] == "week":
        weekday, length = texts[0], 3
    elif len(texts) > after and texts[0] in _NEXT and texts[1] == "week" and texts[after] in _WEEKDAYS:
        weekday, length = texts[after], after + 1
    else:
        return None
    monday = today - timedelta(days=today.weekday()) + timedelta(weeks=1)
    day = monday + timedelta(days=_WEEKDAYS[weekday])
    return at + length, CalendarPeriod(day, day)


def _weekday_on(today: date, weekday: int, number: int) -> CalendarPeriod:
    """Friday the 13th: the next day of the month of that number that is such a day."""
    days = (today + timedelta(days=ahead) for ahead in range(_MOST_DAYS_APART))
    day = next(day for day in days if day.day == number and day.weekday() == weekday)
    return CalendarPeriod(day, day)


def _read_month(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """June, next june, June 2027, june next year."""
    begin = at + (tokens[at].text in (*_NEXT, "this", "coming"))
    word = tokens[begin].text if begin < len(tokens) else ""
    if word not in MONTHS:
        return None
    month, end = MONTHS[word], begin + 1
    following = [token.text for token in tokens[end : end + 2]]
    if following and _is_year(following[0]) and not goes_on(tokens, end):
        return end + 1, _month(int(following[0]), month)
    if following in (["next", "year"], ["this", "year"]):
        return end + 2, _month(today.year + (following[0] == "next"), month)
    dated = at > 0 and (tokens[at - 1].text in _BEFORE_MONTHS or names_occasion(tokens, at))
    if word in _WORDS_TOO and begin == at and not dated:
        return None
    year = today.year if month > today.month or (month == today.month and tokens[at].text not in _NEXT) else today.year + 1
    return end, replace(_month(year, month), repeats="year")


def _read_year(tokens: Sequence[Token], at: int) -> tuple[int, CalendarPeriod] | None:
    """A year, where a word before it asks for a date; else it may as well be a count."""
    counted = at + 1 < len(tokens) and tokens[at + 1].text in _COUNTED
    counted = counted or (at > 1 and tokens[at - 1].text == "of" and tokens[at - 2].text in _COUNTED)  # sequences of 2048
    alone = at > 0 and tokens[at - 1].text == "for" and (at + 1 == len(tokens) or tokens[at + 1].text in _CLAUSE_ENDS)  # for 2027.
    asked = alone or (at > 0 and tokens[at - 1].text in _BEFORE_MONTHS - {"to", "and"} and not counted)
    return read_year(tokens, at) if asked else None


def read_year(tokens: Sequence[Token], at: int) -> tuple[int, CalendarPeriod] | None:
    """A year, whatever stands before it."""
    if not _is_year(tokens[at].text) or goes_on(tokens, at):
        return None
    return at + 1, _months(int(tokens[at].text), 1, 12, "year")


def _is_year(text: str) -> bool:
    return len(text) == 4 and text.isdigit() and LEAST_YEAR <= int(text) < MOST_YEAR


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _month(year: int, month: int) -> CalendarPeriod:
    return _months(year, month, 1, "month")


def _months(year: int, month: int, count: int, unit: str) -> CalendarPeriod:
    first = date(year, month, 1)
    return CalendarPeriod(first, add_months(first, count) - timedelta(days=1), unit)
