"""Parts of a price that are paid at its start, in words: all paid up front, half prepaid, no upfront."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

UPFRONT = "upfront_share"
SHARES: Mapping[str, int] = {
    **dict.fromkeys(("all", "everything", "fully", "entirely", "completely", "full", "whole"), 100),
    "half": 50,
    **dict.fromkeys(("no", "nothing", "zero", "without"), 0),
}
"""Words of a part, in percent."""
PAYING = frozenset({"paid", "in", "of", "it", "the", "is", "payable", "due", "to", "be", "term", "will", "as"})
"""Words between that and the upfront payment."""
MOST_BETWEEN = 5
RATES = (*(["a"], ["per"], ["each"], ["every"], ["by"], ["/"], ["next"], ["this"], ["from"]), *(["over"], ["in"], ["since"], ["until"]))
"""Words behind `down` of a change in a time."""


def with_upfront(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with such a part as a percentage before its noun."""
    texts = list(sentence.texts)
    pieces = _with_down(texts, pieces)
    nouns = [piece for piece in pieces if piece.value == UPFRONT and piece.kind in (UNKNOWN, "K")]
    found = list(pieces)
    for noun in nouns if any(_is_price(piece) for piece in pieces) else ():
        found = _with_share(texts, found, noun)
    return found, []


def _with_down(texts: Sequence[str], pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with `30% down` as such a part; 30% down each year is a change."""
    shares = {piece.last for piece in pieces if piece.kind == "p"}
    return [
        replace(piece, kind="K", value=UPFRONT)
        if piece.kind == UNKNOWN
        and texts[piece.first] == "down"
        and piece.first in shares
        and texts[piece.last : piece.last + 1] not in RATES
        else piece
        for piece in pieces
    ]


def _is_price(piece: Piece) -> bool:
    """Whether a piece states a price, or asks whether to buy."""
    figure = piece.value
    cents = piece.kind == "n" and isinstance(figure, Figure) and figure.scale == 1 and figure.value.denominator > 1
    return piece.kind == "m" or cents or (piece.kind == "I" and str(piece.value).startswith("buy_or_rent"))


def _with_share(texts: Sequence[str], pieces: list[Piece], noun: Piece) -> list[Piece]:
    """The pieces with the word of a part before its noun as a percentage; those of a figure as they are."""
    at = pieces.index(noun)
    if any(piece.kind in "np" for piece in pieces[max(at - 1, 0) : at + 2]):
        return pieces
    word = next((here for here in range(noun.first - 1, max(noun.first - MOST_BETWEEN, 0) - 1, -1) if texts[here] not in PAYING), -1)
    if word >= 0 and texts[word] in SHARES:
        return _replaced(pieces, noun, word, SHARES[texts[word]])
    if texts[noun.last : noun.last + 2] == ["in", "full"]:
        return _replaced(pieces, replace(noun, last=noun.last + 2), noun.first, SHARES["full"])
    return pieces


def _replaced(pieces: Sequence[Piece], noun: Piece, word: int, percent: int) -> list[Piece]:
    """The pieces with those from a word to the end of the noun as a percentage and its attribute."""
    others = [piece for piece in pieces if piece.last <= word or piece.first >= noun.last]
    middle = min(word + 1, noun.last - 1)
    made = [Piece("p", Figure(Fraction(percent), unit="percent"), word, middle), Piece("K", UPFRONT, middle, noun.last)]
    return sorted([*others, *made], key=lambda piece: piece.first)
