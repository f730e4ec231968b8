"""Sums in other currencies: all of them are asked for at once, and the rest of the sentence is read as if they were of dollars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.asking.questions import QUESTIONS
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece, Sentence

FOREIGN, DOLLARS = "€", "m"
"""Kinds of pieces."""


def in_dollars(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with sums of other currencies as dollars, and what to ask about them."""
    sums = [piece for piece in pieces if piece.kind == FOREIGN and isinstance(piece.value, Figure)]
    text = ", ".join(dict.fromkeys(sentence.part(piece.first, piece.last) for piece in sums))
    doubts = [Doubt(text, (), QUESTIONS[FOREIGN])] if sums else []
    return [_as_dollars(piece) if piece in sums else piece for piece in pieces], doubts


def _as_dollars(piece: Piece) -> Piece:
    assert isinstance(piece.value, Figure)
    return replace(piece, kind=DOLLARS, value=replace(piece.value, unit="usd"))
