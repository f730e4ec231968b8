"""The length of a sample that is told after their number: 25k examples x 2 epochs, examples are ~1500 tok; avg length 1500 tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from service.formats.ask.grammar.clauses import APPROXIMATELY, is_reinforcement
from service.formats.ask.grammar.runs.averages import is_sample
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
VERBS = frozenset({"is", "are", "average", "averages", "averaging", "run", "have", "has", "at", "=", ":", "being", "run about"})
"""Words between samples and the length of each."""
LENGTH = frozenset({"length", "lengths", "len", "size", "long"})
HEDGES = APPROXIMATELY | {"on", "average", "avg", "mean", "typically", "usually", "median", "of", "some", "each", "the", "with", "a", "an"}
MOST_TOKENS = 2**20


def with_lengths_told(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a number of tokens that is told of samples, whose number is said before, as that of each of them."""
    if is_reinforcement(pieces) or any(piece.kind == "W" and piece.value == "prompts" for piece in pieces):
        return list(pieces), []
    found = list(pieces)
    for at in range(len(pieces) - 1, 1, -1):
        if pieces[at].kind == "T" and _is_length(pieces[at - 1]) and _is_counted(pieces[: at - 1]):
            found = _told(sentence, found, at)
    return found, []


def _told(sentence: Sentence, pieces: Pieces, at: int) -> list[Piece]:
    """The pieces with the tokens before a place as those of each sample, where words beside them say so."""
    first, of_samples, verb = at - 1, False, False
    while first and (words := set(sentence.words(pieces[first - 1]).split())):
        noun = is_sample(pieces[first - 1]) and pieces[first - 2].kind not in ("n", "@") and first > 1
        if not noun and not words <= VERBS | HEDGES | LENGTH:
            break
        verb, of_samples = verb or bool(words & VERBS), of_samples or (noun and verb) or bool(words & LENGTH)
        first -= 1
    after = pieces[at + 1 : at + 2]
    each = [piece.kind for piece in after] == ["E"] and pieces[at - 2].kind == ","
    adjacent = [piece.kind for piece in pieces[max(at - 4, 0) : at - 1]][-2:] == ["s", ","]
    if not of_samples and (not each or adjacent):
        return list(pieces)
    kept = pieces[:first] if of_samples else pieces[: at - 1]
    behind = pieces[at + 1 + (each or [piece.kind for piece in after] in (["E"], ["δ"])) :]
    end = after[0].last if len(behind) < len(pieces) - at - 1 else pieces[at].last
    return [*kept, pieces[at - 1], pieces[at], Piece("δ", "each sample", end, end), *behind]


def _is_length(piece: Piece) -> bool:
    figure = piece.value
    return piece.kind == "n" and isinstance(figure, Figure) and not figure.unit and 1 <= figure.value <= MOST_TOKENS


def _is_counted(pieces: Pieces) -> bool:
    """Whether a number of samples is said among pieces."""
    return any(before.kind == "n" and is_sample(after) for before, after in pairwise(pieces))
