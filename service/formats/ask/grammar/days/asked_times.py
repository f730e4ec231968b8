"""Questions that name the times they choose from: is that a day or a week, hours or days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

BEFORE = frozenset({"that", "it", "this", "take", "takes", "be", "about", "like", "rather", "is", "run", "need"})
"""Words before the first of the times."""
JOINING = frozenset({"or", ",", "/"})
ENDS = frozenset({".", "?", ";", "!", ")"})
THE_ANSWER_HAS_IT = "read as asked for: the answer has the time in time.wall_clock_hours"


def with_asked_times(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without two times that a question ends with, and that it asks to choose from."""
    said = [at for at, piece in enumerate(pieces) if piece.kind != FILLER]
    for first, last in zip(said, said[2:], strict=False):
        if pieces[first].kind == pieces[last].kind == "U" and _are_asked(sentence, pieces[first], pieces[last]):
            text = sentence.part(pieces[first].first, pieces[last].last)
            found = [replace(piece, kind=FILLER, value="") if first <= at <= last else piece for at, piece in enumerate(pieces)]
            return found, [Doubt(text, (), THE_ANSWER_HAS_IT, blocking=False)]
    return list(pieces), []


def _are_asked(sentence: Sentence, one: Piece, other: Piece) -> bool:
    texts = list(sentence.texts)
    joined = set(texts[one.last : other.first]) <= JOINING and one.last < other.first
    ended = other.last == len(texts) or texts[other.last] in ENDS
    return joined and ended and one.first > 0 and texts[one.first - 1] in BEFORE
