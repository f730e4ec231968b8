"""Days that have a name: Christmas, Easter Monday, Thanksgiving."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from dateutil.easter import easter
from dateutil.relativedelta import TH, relativedelta

FIXED = {("christmas",): (12, 25), ("xmas",): (12, 25), ("new", "year"): (1, 1), ("new", "years"): (1, 1)}
OF_EASTER = {("easter", "monday"): 1, ("good", "friday"): -2, ("easter", "sunday"): 0, ("easter",): 0}
"""Days after Easter Sunday."""
THANKSGIVING = ("thanksgiving",)
NOVEMBER = 11


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
        fourth: date = date(year, NOVEMBER, 1) + relativedelta(weekday=TH(4))
        return fourth
    sunday: date = easter(year)
    return sunday + timedelta(days=OF_EASTER[named])
