"""Thousands of hours in one word: 40kh are accelerator-hours, and beside a mean time to failure a time."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.grammar.attributes import MTBF, MTTF
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

FAILING = frozenset({MTTF, MTBF})
KILO = 1000


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


def _is_kilohours(sentence: Sentence, piece: Piece) -> bool:
    texts = [token.text for token in sentence.tokens[piece.first : piece.last]]
    return piece.kind == "U" and len(texts) > 1 and texts[-2] == "k" and texts[-1].startswith("h")


def _beside(pieces: Sequence[Piece], at: int) -> list[Piece]:
    before = [piece for piece in pieces[:at] if piece.kind != FILLER][-2:]
    return [*before, *[piece for piece in pieces[at + 1 :] if piece.kind != FILLER][:2]]
