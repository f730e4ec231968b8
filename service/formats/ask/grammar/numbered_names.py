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
        *("version", "release", "generation", "gen", "po", "purchase order", "invoice", "contract", "lot", "work package"),
        *("deliverable", "objective", "aim", "hypothesis", "topic", "project", "cohort", "wave", "attempt", "take", "jira", "epic", "page"),
    )
)
"""Nouns that a number behind them names one of."""
SITES = frozenset({"rack", "row", "aisle", "hall", "building", "room", "floor", "site", "cell", "bay", "cage", "zone", "pod"})
"""Nouns of places in a data centre, which a number names one of."""
VERSIONS = frozenset({"version", "release", "generation", "gen"})
"""Those whose number may have a point."""
MOST_NUMBER = 99_999
COUNTING = frozenset("AgNTQWsxhHeEfCVUKpmILδ")
"""Kinds of pieces that a number before them counts."""
NAME = "read as a name, and its number as no quantity"


def with_numbered_names(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question about a run without nouns that a number names one of."""
    of_program = any(piece.kind == "G" for piece in pieces)
    if not any(is_trained(piece) for piece in pieces) and not of_program:
        return list(pieces), []
    nouns = SITES if of_program else NUMBERED | SITES
    names = [at for at in range(len(pieces) - 1) if _is_name(sentence, pieces, at, nouns)]
    versions = [at for at in range(len(pieces)) if not of_program and _is_version(sentence, pieces, at)]
    found = [piece for at, piece in enumerate(pieces) if at not in (*names, *versions) and at - 1 not in names]
    spans = [*((at, at + 1) for at in names), *((at, at) for at in versions)]
    texts = (sentence.part(pieces[first].first, pieces[last].last) for first, last in spans)
    return found, [Doubt(text, (), NAME, blocking=False) for text in texts]


def _is_version(sentence: Sentence, pieces: Pieces, at: int) -> bool:
    """Whether a TPU's name is the version of a model, beside another accelerator: our 7B v2, v2 of the model."""
    text = sentence.words(pieces[at])
    if pieces[at].kind != "A" or len(text) != len("v2") or text[0] != "v":
        return False
    others = any(piece.kind == "A" and piece is not pieces[at] for piece in pieces)
    sized = at > 0 and is_trained(pieces[at - 1]) and pieces[at - 1].last == pieces[at].first
    following = list(sentence.texts[pieces[at].last : pieces[at].last + 2])
    return others and (sized or following in (["of", "the"], ["of", "our"], ["of", "my"]))


def _is_name(sentence: Sentence, pieces: Pieces, at: int, nouns: frozenset[str]) -> bool:
    """Whether a piece is such a noun, and a bare number that counts nothing follows it."""
    number, words = pieces[at + 1].value, sentence.words(pieces[at])
    if words not in nouns:
        return False
    before = pieces[at - 1].kind if at else ""
    plain = isinstance(number, Figure) and not number.unit and number.scale == 1 and not number.several
    whole = isinstance(number, Figure) and (number.value.denominator == 1 or words in VERSIONS)
    if pieces[at].kind in "nKAM" or not whole or before == "n" or not isinstance(number, Figure) or not plain:
        return False
    after = next((piece.kind for piece in pieces[at + 2 :] if piece.kind != FILLER or sentence.words(piece) in (",", ":")), "")
    return (
        number.value <= MOST_NUMBER
        and after not in (COUNTING - {"I", "K"} if words in SITES else COUNTING)
        and pieces[at + 1].kind == "n"
        and pieces[at + 1].last - pieces[at + 1].first == 1
    )
