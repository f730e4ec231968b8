"""What a team has agreed to spend at a provider, which is no reservation: an Azure commit, $3M of AWS commitment."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

COMMITMENTS = frozenset({"commit", "commitment", "committed spend"})
OF_SPENDING = "read as an agreement to spend, and no reservation: prices are those of list"


def with_commitments(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without a provider's commitment that has no term."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    beside = zip(["", *(piece.kind for piece in said)], said, [*(piece.kind for piece in said[1:]), ""], strict=False)
    found = [piece for before, piece, after in beside if before == "P" and after not in ("U", "o") and _is_commitment(sentence, piece)]
    doubts = [Doubt(sentence.part(piece.first, piece.last), (), OF_SPENDING, blocking=False) for piece in found]
    return [piece for piece in pieces if piece not in found], doubts


def _is_commitment(sentence: Sentence, piece: Piece) -> bool:
    return piece.kind == "S" and sentence.part(piece.first, piece.last).lower() in COMMITMENTS
