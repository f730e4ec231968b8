"""Checkpoints that are kept, and for how long: keep the last 10 checkpoints for 12 months."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

KEPT, RETENTION = "storage.checkpoints_kept", "storage.retention_months"
CHECKPOINTS = frozenset({"checkpoints", "ckpts", "checkpoint", "ckpt", "snapshots"})
KEEPING = frozenset({"keep", "keeping", "kept", "keeps", "retain", "retaining", "retained", "store", "stored", "archived"})
STORED = frozenset({"storage", "storage.dataset_tb", "storage.usd_per_tb_month"})
TERABYTES = "terabytes"
OF_DATA = KEEPING | {"dataset", "datasets", "data", "storage", "archive", "archived", "for", "over"}
"""Words between what is stored and how long."""
RETAINING = frozenset({"retain", "retains", "retaining", "retained", "archive", "archived", "archiving"})
KEPT_THINGS = (
    OF_DATA
    | CHECKPOINTS
    | frozenset({"it", "them", "all", "everything", "of", "the", "those", "these", "that", "this", "both", "around", "about", "on", "disk"})
)
"""Words between a verb of keeping and how long."""
MOST_BEFORE = 3
"""Words before a number of terabytes in which one of keeping is looked for."""
MONTHS_PER_YEAR = 12


def kept_checkpoints(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with checkpoints that are kept as their number and the months that they, or other data, are."""
    found, doubts = _with_checkpoints(sentence, pieces)
    if any(piece.kind == "K" and piece.value == RETENTION for piece in found):
        return found, doubts
    found, of_verbs = _with_kept_for(sentence, found)
    return found, [*doubts, *of_verbs]


def _with_checkpoints(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with checkpoints that are kept, and the months beside them or beside what is stored."""
    found, doubts = _with_retention(sentence, pieces)
    found, of_data = _with_stored(sentence, found)
    doubts += of_data
    said = [piece for piece in found if piece.kind != FILLER or sentence.words(piece) in KEEPING]
    for at, noun in enumerate(said):
        whole = noun.kind == "K" and noun.value == KEPT
        if not whole and not (noun.kind == UNKNOWN and sentence.words(noun) in CHECKPOINTS):
            continue
        number = said[at - 1] if at and said[at - 1].kind == "n" else None
        verb = next((piece for piece in said[max(at - 3, 0) : at + 2] if sentence.words(piece) in KEEPING), None)
        after = next((piece for piece in said[at + 1 : at + 4] if piece.kind not in (FILLER, UNKNOWN, "o")), None)
        time = after if after is not None and _is_plain(after) else None
        if (whole or verb is not None) and (number is not None or time is not None):
            return _replaced(found, noun, number, verb, time), [*doubts, *_noted(sentence, time)]
    return found, doubts


def _replaced(pieces: Sequence[Piece], noun: Piece, number: Piece | None, verb: Piece | None, time: Piece | None) -> list[Piece]:
    """The pieces with those of kept checkpoints as fields."""
    parts = [piece for piece in (noun, number, verb, time) if piece is not None]
    first, last = min(piece.first for piece in parts), max(piece.last for piece in parts)
    made = [] if number is None else [number, Piece("K", KEPT, number.last, noun.last)]
    made += [] if time is None else _retained(time)
    return sorted([*(piece for piece in pieces if piece.last <= first or piece.first >= last), *made], key=lambda piece: piece.first)


def _with_retention(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with 6 months of retention as a field."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    for at, noun in enumerate(said):
        times = [piece for piece in (*said[max(at - 1, 0) : at], *said[at + 1 : at + 2]) if _is_plain(piece)]
        if sentence.words(noun) == "retention" and times:
            others = [piece for piece in pieces if piece not in (noun, times[0])]
            return sorted([*others, *_retained(times[0])], key=lambda piece: piece.first), list(_noted(sentence, times[0]))
    return list(pieces), []


def _with_kept_for(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the time behind a verb of keeping as a field: retain for a year; keep it all for 6 months, beside what is stored."""
    texts = list(sentence.texts)
    stored = any(piece.kind == "K" and piece.value in (KEPT, *STORED) for piece in pieces)
    for at, text in enumerate(texts):
        if text not in (KEEPING | RETAINING if stored else RETAINING):
            continue
        time = next((piece for piece in pieces if piece.first > at and piece.kind == "U"), None)
        between = set(texts[at + 1 : time.first]) if time is not None else set()
        if time is None or not _is_plain(time) or not between <= KEPT_THINGS:
            continue
        verbs = [piece for piece in pieces if piece.kind == UNKNOWN and at <= piece.first < time.first]
        others = [piece for piece in pieces if piece not in (time, *verbs)]
        return sorted([*others, *_retained(time)], key=lambda piece: piece.first), list(_noted(sentence, time))
    return list(pieces), []


def _with_stored(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the time for which data are stored as a field: 60 TB of storage for 6 months, a 40 TB dataset kept 12 months."""
    texts = list(sentence.texts)
    for noun in pieces:
        stored = noun.kind == "K" and noun.value in STORED
        if not stored and not (noun.kind == "W" and noun.value == TERABYTES):
            continue
        time = next((piece for piece in pieces if piece.first >= noun.last and piece.kind == "U"), None)
        if time is None or not _is_plain(time):
            continue
        between = texts[noun.last : time.first]
        keeps = stored or bool(KEEPING.intersection([*texts[max(noun.first - MOST_BEFORE, 0) : noun.first], *between]))
        if keeps and OF_DATA.issuperset(between):
            verbs = [piece for piece in pieces if piece.kind == UNKNOWN and noun.last <= piece.first < time.first]
            others = [piece for piece in pieces if piece not in (time, *verbs)]
            return sorted([*others, *_retained(time)], key=lambda piece: piece.first), list(_noted(sentence, time))
    return list(pieces), []


def _noted(sentence: Sentence, time: Piece | None) -> Iterator[Doubt]:
    """What a time in days or weeks is read as, which is kept for months."""
    if time is not None and isinstance(time.value, Duration) and time.value.unit not in ("months", "years"):
        yield Doubt(sentence.part(time.first, time.last), (), f"read as {float(_months(time)):g} months", blocking=False)


def _is_plain(time: Piece) -> bool:
    """Whether a time is a length of several tokens: 12 months, a year."""
    return time.kind == "U" and isinstance(time.value, Duration) and not time.value.of_calendar and time.last - time.first > 1


def _retained(time: Piece) -> list[Piece]:
    """A time as a number of months."""
    return [replace(time, kind="n", value=Figure(_months(time)), last=time.last - 1), Piece("K", RETENTION, time.last - 1, time.last)]


def _months(time: Piece) -> Fraction:
    assert isinstance(time.value, Duration)
    return Fraction(str(round(time.value.years * MONTHS_PER_YEAR, 2)))
