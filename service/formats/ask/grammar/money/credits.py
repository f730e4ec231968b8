"""Credits of a seller without a sign of dollars, which may be any unit of theirs: lambda used 1.4M of 3M credits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from service.formats.ask.grammar.money.unsigned_sums import is_sum
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.tokens import Piece, Sentence

CREDITS = frozenset({"credits", "credit"})
JOINTS = frozenset({"of", "out", "/", "from", "the", "our", "all"})
"""Words between what is used of credits and all of them."""
DOLLARS_OR_NOT = "how many dollars are these credits?"


def with_credits(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without sums of credits that no dollars are said of, which are asked for."""
    texts = list(sentence.texts)
    for at, piece in enumerate(pieces):
        credited = is_sum(piece) and CREDITS.intersection(texts[piece.last : piece.last + 1])
        if not credited:
            continue
        used = [one for one, other in pairwise(piece for piece in pieces[: at + 1] if piece.kind != "_") if other is piece and is_sum(one)]
        used = [one for one in used if JOINTS.issuperset(texts[one.last : piece.first])]
        first = used[0].first if used else piece.first
        figure = sentence.part(piece.first, piece.last)
        doubt = Doubt(sentence.part(first, piece.last + 1), (f"${figure} credits",), DOLLARS_OR_NOT)
        return [other for other in pieces if other is not piece and other not in used], [doubt]
    return list(pieces), []
