"""Fiscal years, which every company begins on a day of its own: FY27, next fiscal year, financial year 2026/27."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.dates import CalendarPeriod
from service.formats.ask.lexing.tokens import Piece, Sentence

SHORT = "fy"
YEARLY = frozenset({"fiscal", "financial"})
YEAR = frozenset({"year", "years", "yr"})
BEFORE = frozenset({"this", "next", "current", "coming"})
OF_RUN = frozenset(
    {"by", "until", "till", "before", "end", "ends", "close", "due", "within", "start", "starting", "starts", "begin", "from", "after"}
)
"""Words that make a time the start or the end of a run."""
MOST_DIGITS = 4
MOST_BACK = 3
"""Words back from a fiscal year in which one of these is looked for."""
PARTS = frozenset({"quarter", "half year"})
OF_PLAN = "read as the year of a plan or budget, and no time of the run"
WHICH_DAY = "a fiscal year begins and ends on another day in every company: which day is meant?"


def with_fiscal_years(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without fiscal years; where one begins or ends a run, its day is asked for."""
    texts = list(sentence.texts)
    found = list(pieces)
    doubts: list[Doubt] = []
    for year in _years(texts):
        part = [piece for piece in found if _is_part(piece) and _touch(piece, year)]
        first, last = min([year[0], *(piece.first for piece in part)]), max([year[1], *(piece.last for piece in part)])
        within = [piece for piece in found if first < piece.last and piece.first < last]
        if not within or within[0].first < first or within[-1].last > last:
            continue
        found = [piece for piece in found if piece not in within]
        of_run = bool(part) or bool(OF_RUN.intersection(texts[max(first - MOST_BACK, 0) : first]))
        doubts.append(Doubt(sentence.part(first, last), (), WHICH_DAY if of_run else OF_PLAN, blocking=of_run))
    return found, doubts


def _is_part(piece: Piece) -> bool:
    """Whether a piece is a quarter or half year, which beside a fiscal year is a part of it: Q3 FY27."""
    return isinstance(piece.value, CalendarPeriod) and piece.value.unit in PARTS


def _touch(part: Piece, year: tuple[int, int]) -> bool:
    """Whether at most one word, such as `of`, stands between a part and its year."""
    first, last = year
    return 0 <= part.first - last <= 1 or 0 <= first - part.last <= 1


def _years(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The tokens of each fiscal year."""
    for at, text in enumerate(texts):
        named = text in YEARLY and texts[at + 1 : at + 2] and texts[at + 1] in YEAR
        end = _end_of_number(texts, at + 1 + bool(named))
        if (text == SHORT or text in YEARLY) and (named or end > at + 1):
            first = at - (at > 0 and texts[at - 1] in BEFORE)
            yield first, end


def _end_of_number(texts: Sequence[str], at: int) -> int:
    """The token after the number of a year, or of two that a slash joins; where there is none, the one that it would be."""
    at += texts[at : at + 1] == ["'"] and _is_year(texts, at + 1)
    if not _is_year(texts, at):
        return at
    return at + 3 if texts[at + 1 : at + 2] == ["/"] and _is_year(texts, at + 2) else at + 1


def _is_year(texts: Sequence[str], at: int) -> bool:
    return at < len(texts) and texts[at].isdigit() and len(texts[at]) in (MOST_DIGITS // 2, MOST_DIGITS)
