"""Which part of a period is meant: its end, beginning, middle, first or last third."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

EARLY, LATE = "early", "late"


def read_edge(words: Sequence[str]) -> tuple[int, str] | None:
    """`end of`, `start of the`, `mid`: how many words, and which part of the period."""
    parts = {"end": "end", "beginning": "start", "start": "start", "mid": "mid", "middle": "mid", "close": "end", EARLY: EARLY, LATE: LATE}
    at = int(words[0] == "the" and len(words) > 1)
    which = parts.get(words[at])
    if which is None or len(words) < at + 2:
        return None
    length = at + 1
    if words[length] == "of":
        length += 1
    elif which == "start":
        return None
    return (length + (words[length : length + 1] == ["the"]), which) if length < len(words) else None


def third_of(first: date, last: date, which: str) -> tuple[date, date]:
    """The first and last day of the first third of a period, or of its last."""
    length = (last - first) // 3
    return (first, first + length) if which == EARLY else (last - length, last)
