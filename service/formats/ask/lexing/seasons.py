"""Seasons, of the northern half of the earth: spring 2027, next summer, spring next year."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

FIRST_MONTHS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The month that each of three begins with, as meteorologists count them (World Meteorological Organization)."""
LENGTH_MONTHS = 3
MONTHS_PER_YEAR = 12
YEAR_DIGITS = 4
NEXT, THIS = ("next", "nxt"), ("this", "coming")
BEFORE = frozenset({"by", "in", "the", "before", "until", "till", "from", "during", "early", "late", "mid", "end", "of"})


def read_season(texts: Sequence[str], before: str, today: date) -> tuple[int, int, int] | None:
    """How many words name a season, and the year and month that it begins in; None of such words alone, as prices that fall.

    `texts`: words from it on, `before`: the word before them.
    """
    named = texts[0] in (*NEXT, *THIS)
    month = FIRST_MONTHS.get(texts[named] if len(texts) > named else "", 0)
    if not month:
        return None
    length = named + 1
    following = list(texts[length : length + 2])
    if following in (["next", "year"], ["this", "year"]):
        return length + 2, today.year + (following[0] == "next"), month
    stated = following[1:] if following[:1] == ["of"] else following
    if stated and stated[0].isdigit() and len(stated[0]) == YEAR_DIGITS:
        return length + len(following) - len(stated) + 1, int(stated[0]), month
    if not named and before not in BEFORE:
        return None
    if texts[0] not in NEXT and month + LENGTH_MONTHS - MONTHS_PER_YEAR > today.month:  # the winter that began last December
        return length, today.year - 1, month
    over = (month + LENGTH_MONTHS - 1 < today.month) or (month <= today.month and texts[0] in NEXT)
    return length, today.year + over, month
