"""Hours in short: 40kh are accelerator-hours, or a time to failure, as a bare 30k beside MTTF is; a checkpoint every hour is every 1 h."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from service.formats.ask.grammar.attributes import MTBF, MTTF
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import UNIT_OF, Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

INTERVAL, EVERY = "checkpoint_interval_minutes", ("every", "each", "per")
UNITS = "h_?"
"""Kinds of pieces that a unit of time alone is."""
FAILING = frozenset({MTTF, MTBF})
KILO = 1000
"""A number without a unit beside a mean time to failure is in hours from this value on."""
OF_OTHERS = "AgNCxTQWsehHKVf"
"""Kinds of pieces behind a number that it is of."""


def with_kilohours(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with thousands of hours as accelerator-hours, where no time to a failure stands beside them."""
    found: list[Piece] = []
    for at, piece in enumerate(pieces):
        beside = [other.value for other in _beside(pieces, at)]
        if _is_kilohours(sentence, piece) and isinstance(piece.value, Duration) and not FAILING.intersection(map(str, beside)):
            number = Piece("n", Figure(piece.value.value, KILO), piece.first, piece.last - 1)
            found += [number, Piece("h", "accelerator hours", piece.last - 1, piece.last)]
        else:
            found.append(piece)
    return found, []


def with_unit_times(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a unit behind how often something is saved as one of it: checkpoint every hour."""
    found = list(pieces)
    for at, (piece, after) in enumerate(pairwise(pieces), 1):
        unit = UNIT_OF.get(sentence.words(after), "")
        if piece.kind == "K" and piece.value == INTERVAL and sentence.words(piece).endswith(EVERY) and unit and after.kind in UNITS:
            found[at] = replace(after, kind="U", value=Duration(Fraction(1), unit))
    return found, []


def with_bare_hours(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a bare number beside a mean time to failure as hours, where it is of nothing else: mttf 30k, 30k mttf."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    for at, piece in enumerate(said):
        if piece.kind != "K" or piece.value not in FAILING:
            continue
        here = at + 1 + (at + 1 < len(said) and said[at + 1].kind in "=tb")
        after = said[here] if here < len(said) else None
        last = here + 1 == len(said) or said[here + 1].kind not in OF_OTHERS
        before = said[at - 1] if at else None
        number = after if _is_number(after) and last else before if _is_number(before) and (after is None or after.kind == ",") else None
        if number is not None and isinstance(number.value, Figure):
            time = replace(number, kind="U", value=Duration(number.value.value, "hours"))
            doubt = Doubt(sentence.part(number.first, number.last), (), "read as hours", blocking=False)
            return [time if other is number else other for other in pieces], [doubt]
    return list(pieces), []


def _is_number(piece: Piece | None) -> bool:
    """Whether a piece is a bare number that can be one of hours between failures."""
    if piece is None or piece.kind != "n" or not isinstance(piece.value, Figure):
        return False
    return piece.value.scale <= KILO <= piece.value.value


def _is_kilohours(sentence: Sentence, piece: Piece) -> bool:
    texts = list(sentence.texts[piece.first : piece.last])
    return piece.kind == "U" and len(texts) > 1 and texts[-2] == "k" and texts[-1].startswith("h")


def _beside(pieces: Sequence[Piece], at: int) -> list[Piece]:
    before = [piece for piece in pieces[:at] if piece.kind != FILLER][-2:]
    return [*before, *[piece for piece in pieces[at + 1 :] if piece.kind != FILLER][:2]]
