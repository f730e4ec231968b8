"""Durations in words: 6 weeks, 3y, a year, 30d, half a year, 6 weeks from now."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction

from service.formats.ask.lexing.numbers import read_figure
from service.formats.ask.lexing.tokens import Token

_UNIT_WORDS = {
    "seconds": ("sec", "secs", "second", "seconds"),
    "minutes": ("min", "mins", "minute", "minutes"),
    "hours": ("h", "hr", "hrs", "hour", "hours"),
    "days": ("d", "day", "days"),
    "weeks": ("w", "wk", "wks", "week", "weeks", "fortnight"),
    "months": ("mo", "mos", "month", "months", "mth", "mths"),
    "quarters": ("quarter", "quarters"),
    "years": ("y", "yr", "yrs", "year", "years"),
}
UNIT_OF = {word: unit for unit, words in _UNIT_WORDS.items() for word in words}
_DAYS = {"seconds": Fraction(1, 86400), "minutes": Fraction(1, 1440), "hours": Fraction(1, 24), "days": Fraction(1), "weeks": Fraction(7)}
MONTHS_OF = {"months": 1, "quarters": 3, "years": 12}
DAYS_PER_MONTH = Fraction(36525, 1200)


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds to years; `of_calendar`: from today on (6 weeks from now), `article`: a day, a rate where no word is before it."""

    value: Fraction
    unit: str
    of_calendar: bool = False
    article: bool = False

    @property
    def days(self) -> float:
        """Its length, with months of 30.4375 days [days]."""
        return float(self.value * (_DAYS.get(self.unit) or MONTHS_OF[self.unit] * DAYS_PER_MONTH))

    @property
    def years(self) -> float:
        """Its length in years of 12 months; days count 365.25 a year [years]."""
        months = MONTHS_OF.get(self.unit)
        return float(self.value * Fraction(months, 12)) if months else self.days / 365.25

    def after(self, day: date) -> date:
        """The day that is that much later; the last possible day where there is none."""
        try:
            if self.unit in MONTHS_OF and (self.value * MONTHS_OF[self.unit]).denominator == 1:
                return add_months(day, int(self.value * MONTHS_OF[self.unit]))
            return day + timedelta(days=int(self.days))
        except (OverflowError, ValueError):
            return date.max


def add_months(day: date, months: int) -> date:
    """The same day of the month so many months later, or the month's last. Raises ValueError beyond the calendar."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def read_duration(tokens: Sequence[Token], at: int) -> tuple[int, Duration] | None:
    """A number with a unit of time, and the token after it: 6 weeks, 3y, a year, 30d, half a year."""
    spoken = _read_spoken_duration([token.text for token in tokens[at : at + 3]])
    if spoken is not None:
        return at + spoken[0], spoken[1]
    read = read_figure(tokens, at)
    if read is None or read[0] >= len(tokens):
        return None
    end, figure = read
    word = tokens[end].text
    named = end + 1 < len(tokens) and tokens[end + 1].text[0].isdigit()  # 64 H 100
    loose = len(word) == 1 and ((not tokens[end].glued and (word == "w" or named)) or goes_on(tokens, end))
    after = [token.text for token in tokens[end + 1 : end + 3]]
    rolling = after[:1] in (["to"], ["by"]) and after[1:] == [word]  # 2.25 month to month
    recorded = after[after[:1] == ["of"] :][:1] in (["audio"], ["video"], ["speech"])
    if figure.unit or figure.scale > 1000 or word not in UNIT_OF or loose or recorded or rolling or tokens[end].written == "W":  # watts
        return None
    of_calendar = after in (["from", "now"], ["from", "today"])
    return end + 1 + 2 * of_calendar, Duration(figure.value, UNIT_OF[word], of_calendar)


def _read_spoken_duration(words: Sequence[str]) -> tuple[int, Duration] | None:
    """A year, a fortnight, half a year: how many words, and the duration. `an hour` is a unit of prices."""
    unit = UNIT_OF.get(words[1], "") if len(words) > 1 and len(words[1]) > 1 else ""
    if words[0] in ("a", "an", "one") and unit and unit != "hours":
        return 2, Duration(Fraction(2 if words[1] == "fortnight" else 1), unit, article=words[0] != "one")
    if list(words[:2]) == ["half", "a"] and words[2:] and words[2] in ("year", "month"):
        return 3, Duration(Fraction(1, 2), UNIT_OF[words[2]])
    return None


def goes_on(tokens: Sequence[Token], at: int) -> bool:
    """Whether the token runs into the next one: of `2027b`, the year."""
    return at + 1 < len(tokens) and tokens[at + 1].glued and tokens[at + 1].text[0].isalnum()
