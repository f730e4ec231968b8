"""Maintenance that comes back: 8 hours every 2 weeks, down Thursday and Friday of every other week."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from service.formats.ask.grammar.attributes import MAINTENANCE
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

OUTAGES = frozenset({"maintenance", "maint", "downtime", "drain", "drained"})
EVERY, SECOND = frozenset({"every", "each"}), frozenset({"other", "second"})
FORTNIGHTLY = frozenset({"fortnightly", "biweekly"})
FORTNIGHT = Duration(Fraction(2), "weeks", article=True)
WEEKDAYS = frozenset(day.lower() for day in calendar.day_abbr)
OF_RUN = frozenset("bwuaq")
"""Words that make the day behind them one of the run: by Friday."""
NAMING = frozenset("ab")
"""Words that do so behind it: Friday deadline."""
HOW_LONG = "how many hours of maintenance is that a week, such as maintenance 8 hours per week?"


def with_recurring(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a sentence about maintenance with how often it comes as a time. Without its hours, the days that it is on are asked."""
    if not OUTAGES & set(sentence.texts):
        return list(pieces), []
    found = _without_weekly(_with_times(sentence, list(pieces)))
    said = [piece for piece in found if piece.kind != FILLER]
    fixed = {after.first for before, after in pairwise(said) if before.kind in OF_RUN}
    fixed |= {before.first for before, after in pairwise(said) if after.kind in NAMING}
    times = [piece for piece in found if piece.value is FORTNIGHT]
    days = [piece for piece in found if _is_weekday(sentence, piece) and piece.first not in fixed]
    hours = [piece for piece in found if _is_in_hours(piece)]
    asked = [*days, *(times if days or not hours else [])]
    if not asked:
        return found, []
    first, last = min(piece.first for piece in asked), max(piece.last for piece in asked)
    others = [piece for piece in found if not (piece in asked or (piece.kind in ",_u" and first <= piece.first < last))]
    return others, [Doubt(sentence.part(first, last), (), HOW_LONG)]


def _without_weekly(pieces: list[Piece]) -> list[Piece]:
    """The pieces with `weekly` behind the maintenance that it stands before: weekly maintenance of 6 hours."""
    for at, (weekly, noun) in enumerate(pairwise(pieces)):
        time = pieces[at + 2] if at + 2 < len(pieces) else None
        if weekly.kind == "@" and noun.kind == "K" and noun.value == MAINTENANCE and time is not None and isinstance(time.value, Duration):
            end = time.last - 1 if time.last - time.first > 1 else time.first
            moved = replace(noun, first=weekly.first), replace(time, last=end), replace(weekly, first=end, last=time.last)
            return [*pieces[:at], *moved, *pieces[at + 3 :]]
    return pieces


def _is_weekday(sentence: Sentence, piece: Piece) -> bool:
    words = {token.text[:3] for token in sentence.tokens[piece.first : piece.last]}
    return piece.kind == "D" and bool(words & WEEKDAYS)


def _is_in_hours(piece: Piece) -> bool:
    return isinstance(piece.value, Duration) and piece.value.unit in ("minutes", "hours", "days") and not piece.value.article


def _with_times(sentence: Sentence, pieces: list[Piece]) -> list[Piece]:
    """Every 2 weeks, every other week, fortnightly: each as the time in which it comes once."""
    texts = list(sentence.texts)
    found: list[Piece] = []
    at = 0
    while at < len(pieces):
        piece, after = pieces[at], pieces[at + 1] if at + 1 < len(pieces) else None
        words = texts[piece.first : piece.first + 3]
        if piece.kind == UNKNOWN and words[0] in EVERY and after is not None and isinstance(after.value, Duration):
            found.append(replace(after, value=replace(after.value, article=True), first=piece.first))
            at += 2
        elif words[0] in FORTNIGHTLY or (words[0] in EVERY and set(words[1:2]) <= SECOND and words[2:] == ["week"]):
            end = piece.first + (1 if words[0] in FORTNIGHTLY else 3)
            found.append(Piece("U", FORTNIGHT, piece.first, end))
            at = next((here for here in range(at, len(pieces)) if pieces[here].first >= end), len(pieces))
        else:
            found.append(piece)
            at += 1
    return found
