"""The length of a sample that is said as an average: 60k pairs, on average 1,500 tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

AVERAGE, HELP = "average", "help"
OF_EACH = frozenset("Eδ")


def with_averages(_sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with an average number of tokens after a number of samples as that of each."""
    found: list[Piece] = []
    said = [piece for piece in pieces if piece.kind != FILLER]
    sampled = {after.last for before, after in pairwise(said) if before.kind == "n" and is_sample(after)}
    after_of = {piece.first: after.kind for piece, after in pairwise(said)}
    behind = {before.last for before, after in pairwise(pieces) if before.kind == "T" and after.value == AVERAGE and after.kind == FILLER}
    averaged = False
    for piece in pieces:
        found.append(piece)
        averaged = averaged or (piece.kind == "T" and piece.last in behind and any(end <= piece.first for end in sampled))
        averaged = averaged or (piece.kind == FILLER and piece.value == AVERAGE and any(end <= piece.first for end in sampled))
        if averaged and piece.kind == "T":
            averaged = False
            if after_of.get(piece.first) not in OF_EACH:
                found.append(Piece("E", "each", piece.last, piece.last))
        elif piece.kind not in (FILLER, "n", "t"):
            averaged = False
    return found, []


def is_sample(piece: Piece) -> bool:
    """Whether a noun is that of samples; examples alone are a question for help."""
    return piece.kind == "s" or (piece.kind == "I" and piece.value == HELP)
