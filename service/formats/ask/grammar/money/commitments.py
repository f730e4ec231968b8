"""What a team has agreed to spend at a provider, which is no reservation: an Azure commit, $3M of AWS commitment."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

COMMITMENTS = frozenset({"commit", "commitment", "committed spend"})
ENDING = frozenset({"runs", "run", "expires", "expire", "expiring", "ends", "end", "ending", "lapses", "valid"})
CLAUSE_ENDS = frozenset({".", "?", ";", ",", ":"})
OF_SPENDING = "read as an agreement to spend, and no reservation: prices are those of list"


def with_commitments(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without a provider's commitment that has no term."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    beside = zip(["", *(piece.kind for piece in said)], said, [*(piece.kind for piece in said[1:]), ""], strict=False)
    found = [piece for before, piece, after in beside if before == "P" and after not in ("U", "o") and _is_commitment(sentence, piece)]
    ends = [_end_of_term(sentence, pieces, piece) for piece in found]
    doubts = [
        Doubt(sentence.part(piece.first, end.last if end else piece.last), (), OF_SPENDING, blocking=False)
        for piece, end in zip(found, ends, strict=True)
    ]
    return [piece for piece in pieces if piece not in (*found, *ends)], doubts


def _end_of_term(sentence: Sentence, pieces: Sequence[Piece], commitment: Piece) -> Piece | None:
    """The day on which a commitment ends, which is none of the run: runs out in June."""
    day = next((piece for piece in pieces if piece.kind == "D" and piece.first >= commitment.last), None)
    between = [] if day is None else [token.text for token in sentence.tokens[commitment.last : day.first]]
    return day if ENDING.intersection(between) and not CLAUSE_ENDS.intersection(between) else None


def _is_commitment(sentence: Sentence, piece: Piece) -> bool:
    return piece.kind == "S" and sentence.words(piece) in COMMITMENTS
