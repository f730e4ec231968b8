"""Whether a reservation pays off, which is weighed against renting by the hour: nothing is bought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.money.unsigned_sums import TRAINED
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

COMMITMENT = "commitment"
"""The value of words that ask whether to reserve or lease."""
PAYING = frozenset(
    {"pay off", "pays off", "pay back", "pays for itself", "pay for itself", "break even", "breakeven", "break-even", "break even point"}
)


SENSIBLE = frozenset({"sense", "sensible", "worthwhile", "wise", "reasonable", "worth", "pays"})
"""Words that ask whether it is a good idea."""


def with_commitment_asked(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a word of paying off as a question of the reservation, where one is said and no purchase is."""
    asking = [piece for piece in pieces if piece.kind == "I" and str(piece.value).startswith("buy_or_rent")]
    words = {sentence.words(piece) for piece in asking}
    reserved = any(piece.kind == "S" and str(piece.value).startswith("reserved") for piece in pieces)
    bought = any(piece.kind == "K" and piece.value == "capex" for piece in pieces)
    if reserved and not bought and not asking:
        return _with_sense(sentence, pieces), []
    if not words or not words <= PAYING or not reserved or bought:
        return list(pieces), []
    return [replace(piece, value=COMMITMENT) if piece in asking else piece for piece in pieces], []


def _with_sense(sentence: Sentence, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with a word that asks whether a reservation makes sense as that question, where nothing is trained."""
    trained = any(piece.kind in TRAINED for piece in pieces)
    words = [at for at, piece in enumerate(pieces) if piece.kind in (FILLER, UNKNOWN, "c") and sentence.words(piece) in SENSIBLE]
    if trained or not words or not any(piece.kind == "A" for piece in pieces):
        return list(pieces)
    return [replace(piece, kind="I", value=COMMITMENT) if at == words[0] else piece for at, piece in enumerate(pieces)]
