"""A number without a noun as that of the one accelerator that prices are asked of: any H100 on lambda? need 64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.money.unsigned_sums import TRAINED
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece, Sentence

NEEDING = frozenset({"need", "needs", "want", "wants", "require", "requires", "needing", "wanting"})
ROUGHLY = frozenset({"about", "around", "roughly", "approximately", "only", "just", "some", "like", "maybe", "~", "at", "least"})
"""Words between such a word and its number."""
ENDS = frozenset({".", "?", "!", ",", ";", "for", "in", "by", "from", "until", "till", "starting", "asap", "now", "please", "pls"})
"""What may stand behind a number that has no noun."""
OTHER = frozenset("gNCmQ")
"""Kinds of pieces of which another number may be."""


def with_needed(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the word before such a number as its noun."""
    kinds = [piece.kind for piece in pieces]
    if kinds.count("A") != 1 or kinds.count("n") != 1 or OTHER.intersection(kinds) or TRAINED.intersection(kinds):
        return list(pieces), []
    need = _need(sentence, pieces[kinds.index("n")])
    return [replace(piece, kind="g", value="gpus") if piece.first == need else piece for piece in pieces], []


def _need(sentence: Sentence, number: Piece) -> int:
    """The token of the word by which a number that has no noun is needed; -1 where there is none."""
    figure, texts = number.value, list(sentence.texts)
    at = number.first - 1
    while at >= 0 and texts[at] in ROUGHLY:
        at -= 1
    whole = isinstance(figure, Figure) and figure.value.denominator == 1 and figure.value > 1
    alone = number.last == len(texts) or texts[number.last] in ENDS
    return at if whole and alone and at >= 0 and texts[at] in NEEDING else -1
