"""Times of depreciation without their unit, which is years: depreciated over five."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.attributes import DEPRECIATION
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

MOST_YEARS = 15
"""No accelerator is depreciated over a longer time [years]."""
COUNTED = frozenset("TQVAgNsefhHWIx%p")
"""Kinds of nouns of which a figure before them is a number."""


def with_depreciation(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a plain number behind `depreciated over` as years."""
    found = list(pieces)
    for at, piece in enumerate(pieces[:-1]):
        over = piece.value == DEPRECIATION and sentence.texts[piece.last - 1] == "over"
        figure = pieces[at + 1].value
        if not over or pieces[at + 1].kind != "n" or not isinstance(figure, Figure) or figure.scale > 1 or figure.value > MOST_YEARS:
            continue
        after = next((other.kind for other in pieces[at + 2 :] if other.kind != FILLER), "")
        if after not in COUNTED:
            found[at + 1] = replace(pieces[at + 1], kind="U", value=Duration(figure.value, "years"))
    return found, []
