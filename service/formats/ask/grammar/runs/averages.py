"""The length of a sample that is said as an average or of each, whatever it is called: 60k pairs, on average 1,500 tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from service.formats.ask.grammar.clauses import STOPS
from service.formats.ask.grammar.quantities import MOST_SAMPLE_TOKENS
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

AVERAGE, HELP = "average", "help"
OF_EACH = frozenset("Eδ")
NOUNS, MOST_NOUNS = "?K§s", 3
"""Kinds of pieces that a noun of what samples are may be read as, and how many of them: 85k chat transcripts."""
LEAST_ITEMS = 100
BEFORE_LENGTH = f",tov{FILLER}"
LENGTHS = frozenset({"length", "lengths", "long", "size", "averaging"})
SAME_WORD = 4
"""Letters that two forms of a noun begin with: transcripts, tokens per transcript."""


def with_items(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with an unknown noun between a number and a length of each as that of samples: 85k chat transcripts, avg 1,100 tokens."""
    for at, number in enumerate(pieces):
        if number.kind != "n" or not isinstance(number.value, Figure) or number.value.value < LEAST_ITEMS:
            continue
        end = _after(sentence, pieces, at + 1, NOUNS, frozenset())
        first = _after(sentence, pieces, end, BEFORE_LENGTH, LENGTHS)
        nouns = [piece for piece in pieces[at + 1 : end] if piece.kind in NOUNS]
        named = 0 < len(nouns) <= MOST_NOUNS and any(piece.kind == UNKNOWN for piece in nouns)
        if not named or [piece.kind for piece in pieces[first : first + 2]] != ["n", "T"] or not _is_shorter(pieces[first], number):
            continue
        unit = pieces[first + 1]
        behind = _end_of_each(sentence, pieces, first + 2, nouns)
        averaged = any(piece.kind == FILLER and piece.value == AVERAGE for piece in pieces[at + 1 : first + 3])
        if not behind and not averaged:
            continue
        samples, each = Piece("s", "samples", nouns[0].first, nouns[-1].last), Piece("E", "each", unit.last, max(behind, unit.last))
        between = [piece for piece in pieces[end:first] if piece.kind == "," or (piece.kind == FILLER and piece.value != AVERAGE)]
        rest = [piece for piece in pieces[first + 2 :] if piece.first >= each.last]
        return [*pieces[: at + 1], samples, *between, pieces[first], unit, each, *rest], []
    return list(pieces), []


def _after(sentence: Sentence, pieces: Sequence[Piece], at: int, kinds: str, words: frozenset[str]) -> int:
    """The piece after those of some kinds or words, and fillers, in the same sentence."""
    while at < len(pieces) and (pieces[at].kind in kinds or pieces[at].kind == FILLER or sentence.words(pieces[at]) in words):
        if sentence.words(pieces[at]) in STOPS or (pieces[at].value == AVERAGE and FILLER not in kinds):
            return at
        at += 1
    return at


def _is_shorter(length: Piece, number: Piece) -> bool:
    """Whether a number of tokens may be that of one of so many samples."""
    if not isinstance(length.value, Figure) or not isinstance(number.value, Figure):
        return False
    return length.value.value <= MOST_SAMPLE_TOKENS and length.value.value <= number.value.value


def _end_of_each(sentence: Sentence, pieces: Sequence[Piece], at: int, nouns: Sequence[Piece]) -> int:
    """The token after what says that a length is of each: each, apiece, per transcript; 0 where nothing does."""
    if at < len(pieces) and pieces[at].kind in OF_EACH:
        return pieces[at].last
    if at + 1 < len(pieces) and sentence.words(pieces[at]) in ("per", "a", "an", "/") and pieces[at + 1].kind in NOUNS:
        word = sentence.words(pieces[at + 1])[:SAME_WORD]
        return pieces[at + 1].last if any(sentence.words(piece).startswith(word) for piece in nouns) else 0
    return 0


def with_averages(_sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with an average number of tokens after a number of samples as that of each."""
    found: list[Piece] = []
    said = [piece for piece in pieces if piece.kind != FILLER]
    sampled = {after.last for before, after in pairwise(said) if before.kind == "n" and is_sample(after)}
    after_of = {piece.first: after.kind for piece, after in pairwise(said)}
    behind = {before.last for before, after in pairwise(pieces) if before.kind == "T" and after.value == AVERAGE and after.kind == FILLER}
    averaged = False
    for piece in pieces:
        found.append(piece)
        averaged = averaged or (piece.kind == "T" and piece.last in behind and any(end <= piece.first for end in sampled))
        averaged = averaged or (piece.kind == FILLER and piece.value == AVERAGE and any(end <= piece.first for end in sampled))
        if averaged and piece.kind == "T":
            averaged = False
            if after_of.get(piece.first) not in OF_EACH:
                found.append(Piece("E", "each", piece.last, piece.last))
        elif piece.kind not in (FILLER, "n", "t"):
            averaged = False
    return found, []


def is_sample(piece: Piece) -> bool:
    """Whether a noun is that of samples; examples alone are a question for help."""
    return piece.kind == "s" or (piece.kind == "I" and piece.value == HELP)
