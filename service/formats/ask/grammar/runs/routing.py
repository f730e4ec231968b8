"""Experts of a token, as routers are called: 64 experts top-8, top 2 of 8 experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

EXPERTS, OF_TOKEN = "model.experts", "model.experts_per_token"
TOP = "top"
MOST_OF_TOKEN = 64
RANKED = frozenset({"option", "options", "offer", "offers", "choice", "choices", "result", "results", "cheapest", "best", "fastest"})
SOLD = frozenset({"cloud", "clouds", "provider", "providers", "vendor", "vendors", "seller", "sellers", "gpus", "ways"})
"""Words behind a number of what is ranked, and no experts: the top 3 options."""


def with_routing(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with `top` before a number as the experts of a token, where a number of experts is said."""
    said = any(piece.kind == "K" and piece.value == EXPERTS for piece in pieces)
    if not said or any(piece.value == OF_TOKEN for piece in pieces):
        return list(pieces), []
    found = list(pieces)
    for at, piece in enumerate(pieces[:-1]):
        top = piece.kind in (UNKNOWN, FILLER) and sentence.words(piece) == TOP
        behind = {token.text for token in sentence.tokens[pieces[at + 1].last : pieces[at + 1].last + 1]}
        if top and _is_number(pieces[at + 1]) and not behind & (RANKED | SOLD):
            found[at] = replace(piece, kind="K", value=OF_TOKEN)
            found.insert(at, Piece(",", "comma", piece.first, piece.first))
            return found, []
    return found, []


def _is_number(piece: Piece) -> bool:
    figure = piece.value
    return piece.kind == "n" and isinstance(figure, Figure) and figure.value.denominator == 1 and 0 < figure.value <= MOST_OF_TOKEN
