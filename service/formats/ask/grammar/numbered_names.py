"""A number that is part of a name: Reviewer 2 wants a baseline, phase 2 is a 7B, ticket 4312."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
NUMBERED = frozenset(
    (
        *(
            "reviewer",
            "referee",
            "ticket",
            "milestone",
            "phase",
            "team",
            "section",
            "chapter",
            "appendix",
            "experiment",
            "ablation",
            "item",
        ),
        *("slide", "workstream", "iteration", "round", "draft", "paper", "proposal", "scenario", "task", "study", "workpackage", "wp"),
        *("deliverable", "objective", "aim", "hypothesis", "topic", "project", "cohort", "wave", "attempt", "take", "jira", "epic", "page"),
    )
)
"""Nouns that a number behind them names one of."""
MOST_NUMBER = 99_999
COUNTING = frozenset("AgNTQWsxhHeEfCVUKpmILδ")
"""Kinds of pieces that a number before them counts."""
NAME = "read as a name, and its number as no quantity"


def with_numbered_names(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question about a run without nouns that a number names one of."""
    if not any(is_trained(piece) for piece in pieces) or any(piece.kind == "G" for piece in pieces):
        return list(pieces), []
    names = [at for at in range(len(pieces) - 1) if _is_name(sentence, pieces, at)]
    found = [piece for at, piece in enumerate(pieces) if at not in names and at - 1 not in names]
    texts = (sentence.part(pieces[at].first, pieces[at + 1].last) for at in names)
    return found, [Doubt(text, (), NAME, blocking=False) for text in texts]


def _is_name(sentence: Sentence, pieces: Pieces, at: int) -> bool:
    """Whether a piece is such a noun, and a bare number that counts nothing follows it."""
    number = pieces[at + 1].value
    words, before = sentence.words(pieces[at]), pieces[at - 1].kind if at else ""
    plain = isinstance(number, Figure) and not number.unit and number.scale == 1 and not number.several and number.value.denominator == 1
    if pieces[at].kind in "nKAM" or words not in NUMBERED or before == "n" or not isinstance(number, Figure) or not plain:
        return False
    after = next((piece.kind for piece in pieces[at + 2 :] if piece.kind != FILLER or sentence.words(piece) in (",", ":")), "")
    return (
        number.value <= MOST_NUMBER
        and after not in COUNTING
        and pieces[at + 1].kind == "n"
        and pieces[at + 1].last - pieces[at + 1].first == 1
    )
