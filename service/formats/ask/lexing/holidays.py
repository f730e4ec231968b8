"""Days that have a name: Christmas, Easter Monday, Thanksgiving."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

FIXED = {("christmas",): (12, 25), ("xmas",): (12, 25), ("new", "year"): (1, 1), ("new", "years"): (1, 1)}
OF_EASTER = {("easter", "monday"): 1, ("good", "friday"): -2, ("easter", "sunday"): 0, ("easter",): 0}
"""Days after Easter Sunday."""
THANKSGIVING = ("thanksgiving",)
NOVEMBER, THURSDAY, WEEKS_BEFORE_FOURTH, DAYS_PER_WEEK = 11, 3, 3, 7


def next_holiday(words: Sequence[str], today: date) -> tuple[int, date] | None:
    """How many words name a holiday, and its next day."""
    for named in (*FIXED, *OF_EASTER, THANKSGIVING):
        if tuple(words[: len(named)]) == named:
            days = (_day_of(named, year) for year in (today.year, today.year + 1))
            return len(named), next(day for day in days if day >= today)
    return None


def _day_of(named: tuple[str, ...], year: int) -> date:
    if named in FIXED:
        return date(year, *FIXED[named])
    if named == THANKSGIVING:
        first = date(year, NOVEMBER, 1)
        return first + timedelta(days=(THURSDAY - first.weekday()) % DAYS_PER_WEEK, weeks=WEEKS_BEFORE_FOURTH)
    return _easter(year) + timedelta(days=OF_EASTER[named])


def _easter(year: int) -> date:
    """Easter Sunday in the Gregorian calendar (J.-M. Oudin 1940, in: Explanatory Supplement to the Astronomical Almanac, 1992)."""
    century = year // 100
    golden = year % 19
    epact = (century - century // 4 - (century - (century - 17) // 25) // 3 + 19 * golden + 15) % 30
    epact -= (epact // 28) * (1 - (epact // 28) * (29 // (epact + 1)) * ((21 - golden) // 11))
    weekday = (year + year // 4 + epact + 2 - century + century // 4) % 7
    since = epact - weekday
    month = 3 + (since + 40) // 44
    return date(year, month, since + 28 - 31 * (month // 4))
