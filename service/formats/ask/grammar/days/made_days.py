"""Days that a run has to make: can we still make 31 January."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.tokens import Piece, Sentence

MAKING = frozenset({"make", "makes", "making", "reach", "reaches", "beat"})
ARTICLES = frozenset({"the", "our", "my", "a"})
DEADLINE = "b"


def with_made_days(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a word of making, right before a day, as one of a deadline."""
    found = list(pieces)
    for at, piece in enumerate(pieces):
        after = [other for other in pieces[at + 1 : at + 3] if sentence.words(other) not in ARTICLES][:1]
        if sentence.words(piece) in MAKING and after and after[0].kind == "D":
            found[at] = replace(piece, kind=DEADLINE, value="by")
    return found, []
