"""Words beside what they change nothing of: renew a contract or buy, a plus before tokens, how much goodput is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

RENEW, PLUS = "renew", "+"
REMAINING = frozenset({"left", "remaining"})
GOODPUT = "goodput"
MOST_BETWEEN = 3
APART = 20
"""Of two figures so far apart the first is a size, and no tokens that the second is added to."""
RENEWED = "read as renting on"
ADDED = "read as the tokens that are trained on"


def with_renewals(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """Renew the lease or buy: renting on, where buying is weighed against it."""
    bought = any(piece.kind == "I" and str(piece.value).startswith("buy_or_rent") for piece in pieces)
    quoted = len([piece for piece in pieces if isinstance(piece.value, Figure) and piece.value.value.denominator > 1]) > 1
    renewed = [piece for piece in pieces if (bought or quoted) and piece.kind == "d" and sentence.words(piece) == RENEW]
    doubts = [Doubt(sentence.part(piece.first, piece.last), (), RENEWED, blocking=False) for piece in renewed]
    return [replace(piece, kind=FILLER, value="") if piece in renewed else piece for piece in pieces], doubts


def with_added(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """Llama-3-8b +150B tokens: what is trained on, where no other tokens are said that they are added to."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    for at, piece in enumerate(said[:-2]):
        kinds = "".join(after.kind for after in said[at + 1 : at + 4])
        added = piece.kind == UNKNOWN and sentence.words(piece) == PLUS and kinds.startswith(("nT", "n?T"))
        if added and sum(other.kind == "T" for other in said) == 1 and not _is_sum(said[max(at - 1, 0) : at], said[at + 1]):
            text = sentence.part(piece.first, said[at + 1].last)
            found = [replace(other, kind=FILLER, value="") if other is piece else other for other in pieces]
            return found, [Doubt(text, (), ADDED, blocking=False)]
    return list(pieces), []


def _is_sum(before: Sequence[Piece], added: Piece) -> bool:
    """Whether a figure stands before the plus that may be of the same things."""
    return any(
        isinstance(piece.value, Figure) and isinstance(added.value, Figure) and piece.value.value * APART > added.value.value
        for piece in before
    )


def without_remaining(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without `left` behind the goodput that is asked for, and without `remaining` before a number of tokens."""
    found = list(pieces)
    for at, piece in enumerate(pieces):
        before = pieces[max(at - MOST_BETWEEN, 0) : at]
        after = [other.kind for other in pieces[at + 1 : at + 3]]
        of_tokens = after == ["n", "T"] and not any(other.kind in "np" for other in before)
        if piece.kind == "c" and sentence.words(piece) in REMAINING and (of_tokens or any(other.value == GOODPUT for other in before)):
            found[at] = replace(piece, kind=FILLER, value="")
    return found, []
