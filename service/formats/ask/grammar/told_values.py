"""A value told of its noun by a verb, or a word such as usually between them: our unique data is capped at 900B tokens, queue is a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from service.formats.ask.grammar.attributes import LEAD_TIME, QUEUE, UNIQUE_TOKENS
from service.formats.ask.grammar.clauses import APPROXIMATELY
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
FIGURE_OF = {UNIQUE_TOKENS: "n", QUEUE: "U", LEAD_TIME: "U"}
"""Kinds of the figures of nouns that a value is told of."""
VERBS = frozenset(
    ("is", "are", "was", "runs", "takes", "usually", "typically", "generally", "normally", "often", "currently", "mostly", "averages")
)
"""Words before a value that say that it is one, and no rate."""
HEDGES = APPROXIMATELY | frozenset(
    (
        *("at", "to", "up", "right", "now", "only", "just", "nearly", "almost", "some", "on", "average", "for", "of"),
        *("in", "the", "our", "own", "these", "those", "we", "have", "has", "time", "times", "it", "like", "there"),
        *("here", "capped", "limited", "restricted", "that", "cluster", "partition", "stuff", "data", "jobs", "="),
    )
)
OF_QUEUES = frozenset({"in", "of"})


def with_told_values(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with each such noun right before its value, and what is between them before both."""
    found = list(pieces)
    for at in range(len(found) - 1, -1, -1):
        wanted = FIGURE_OF.get(str(found[at].value), "") if found[at].kind in ("K", UNKNOWN) else ""
        end = _value_of(sentence, found, at, wanted) if wanted else 0
        if end:
            machines = [piece for piece in found[at + 1 : end] if piece.kind in "nxAI"]
            noun = replace(found[at], kind="K")
            found[at : end + 1] = [*machines, noun, _plain(found[end])]
        elif wanted == "n" and [piece.kind for piece in found[max(at - 2, 0) : at]] == ["l", "n"]:  # max 900B unique tokens
            found[at - 2] = replace(found[at - 2], kind=FILLER, value="")
    return _waits(sentence, found), []


def _value_of(sentence: Sentence, pieces: Pieces, at: int, wanted: str) -> int:
    """The place of the value behind a noun; 0 where none is told of it."""
    end, told, machine = at + 1, False, False
    while end < len(pieces) and pieces[end].kind != wanted:
        words = set(sentence.words(pieces[end]).split())
        limit = pieces[end].kind == "l" and wanted == "n"
        machine = machine or pieces[end].kind == "A"
        if not (limit or words <= VERBS | HEDGES or pieces[end].kind in ("A", "x")):
            return 0
        told = told or limit or bool(words & VERBS)
        end += 1
    return end if end < len(pieces) and told and end > at + 1 else 0


def _plain(piece: Piece) -> Piece:
    """A time that an article says as one of itself, and no rate."""
    return replace(piece, value=replace(piece.value, article=False)) if isinstance(piece.value, Duration) else piece


def _waits(sentence: Sentence, pieces: Pieces) -> list[Piece]:
    """The pieces with `a day in the queue` and `queue a day` as its time; of `3 jobs queue a day` it is a rate."""
    found = list(pieces)
    for at, (before, piece) in enumerate(pairwise(pieces), 1):
        queues = [other.kind == "K" and other.value == QUEUE for other in (before, piece)]
        if queues == [True, False] and isinstance(piece.value, Duration) and piece.value.article and (at < 2 or pieces[at - 2].kind != "n"):
            found[at] = _plain(piece)
        behind = queues == [False, True] and sentence.words(piece).split()[0] in OF_QUEUES
        if behind and isinstance(before.value, Duration):
            found[at - 1] = _plain(before)
            if at > 1 and pieces[at - 2].kind == "K" and pieces[at - 2].value == QUEUE:
                found[at] = replace(piece, kind=FILLER, value="")
    return found
