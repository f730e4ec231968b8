"""Days that a run has to make: can we still make 31 January."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

MAKING = frozenset({"make", "makes", "making", "reach", "reaches", "beat"})
ARTICLES = frozenset({"the", "our", "my", "a"})
DEADLINE = "b"


def with_made_days(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a word of making, right before a day, as one of a deadline."""
    found = list(pieces)
    for at, piece in enumerate(pieces):
        after = [other for other in pieces[at + 1 : at + 4] if sentence.words(other) not in ARTICLES][:2]
        day = bool(after) and after[0].kind == "D" and (len(after) == 1 or after[1].kind != UNKNOWN)  # the 1 June payment
        if sentence.words(piece) in MAKING and day:
            found[at] = replace(piece, kind=DEADLINE, value="by")
    return found, []
