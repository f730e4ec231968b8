"""Chances of going over a budget: blowing a 750k budget, over budget of 750k, busting our $2M."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.grammar.money.unsigned_sums import COUNTED, in_dollars, is_sum
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.tokens import Piece, Sentence

EXCEEDING = frozenset(
    (
        *("over", "above", "exceed", "exceeds", "exceeding", "blow", "blows", "blowing", "bust", "busts", "busting", "break", "breaks"),
        *("breaking", "through", "past", "beyond", "overshoot", "overshooting", "overrun", "overrunning", "overspend", "overspending"),
        *("overspent", "breach", "breaches", "breaching"),
    )
)
PLACED = frozenset({"over", "above", "through", "past", "beyond", "break", "breaking", "breaks"})
"""Of these, words that say other things too."""
BUDGETS = frozenset({"budget", "cap", "limit", "ceiling", "envelope"})
OF_BUDGETS = frozenset({"a", "an", "the", "our", "my", "this", "that", "of", "its", ":", "is", "="})
"""Words between a word of going over and the sum."""


def with_overruns(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The chance of blowing a 750k budget, over budget of 750k, busting $2M: more than the sum, in dollars."""
    found = list(pieces)
    if not any(piece.kind == "I" and piece.value == "chance" for piece in pieces):
        return found, []
    texts = list(sentence.texts)
    for at, piece in enumerate(pieces):
        first = _overrun(texts, piece.first) if is_sum(piece) or piece.kind == "m" else -1
        after = pieces[at + 1 : at + 2]
        if first < 0 or (piece.kind == "n" and any(other.kind in COUNTED for other in after)):
            continue
        budget = [other for other in after if BUDGETS.intersection(texts[other.first : other.last])]
        last = budget[0].last if budget else piece.last
        plain = piece.kind == "n" and not BUDGETS.intersection(texts[first:last])
        if plain and texts[first] in PLACED:
            continue
        others = [other for other in found if other.last <= first or other.first >= last]
        found = sorted([*others, Piece("v", "over", first, piece.first), in_dollars(piece)], key=lambda other: other.first)
    return found, []


def _overrun(texts: Sequence[str], sum_of: int) -> int:
    """The token of going over before a sum, with nothing but a budget and articles between; -1 where there is none."""
    at = sum_of - 1
    while at >= 0 and texts[at] in OF_BUDGETS | BUDGETS:
        at -= 1
    return at if at >= 0 and texts[at] in EXCEEDING else -1
