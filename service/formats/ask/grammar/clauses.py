"""Clauses of a sentence, and what is asked of their pieces in many places: is it a count, the price of an hour, is the run one of RL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.formats.ask.grammar.quantities import LEAST_PER_HOUR_USD, MOST_PER_HOUR_USD
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

STOPS = frozenset({".", "?", ";"})
"""What ends a clause of several parts."""
PAUSES = frozenset({",", ".", "?", ";", "!"})
"""What ends a part of a clause."""
APPROXIMATELY = frozenset({"about", "around", "~", "roughly", "approx", "approximately"})
"""Words before a figure that say that it is not exact."""


def triples(pieces: Sequence[Piece]) -> Iterator[tuple[Piece, Piece, Piece]]:
    """Each three pieces that follow one another."""
    return zip(pieces, pieces[1:], pieces[2:], strict=False)


def clauses(sentence: Sentence, pieces: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """Where each clause begins and ends, its mark included."""
    begin = 0
    for at, piece in enumerate(pieces):
        if piece.kind == FILLER and sentence.words(piece) in STOPS:
            yield begin, at + 1
            begin = at + 1
    if begin < len(pieces):
        yield begin, len(pieces)


def is_within(sentence: Sentence, piece: Piece, match: re.Match[str]) -> bool:
    """Whether a match in the sentence's text covers a piece."""
    return match.start() <= sentence.tokens[piece.first].start and sentence.tokens[piece.last - 1].end <= match.end()


def is_count(piece: Piece) -> bool:
    """Whether a piece is a number that can be one of accelerators."""
    figure = piece.value
    return piece.kind == "n" and isinstance(figure, Figure) and figure.scale <= 1000 and figure.value.denominator == 1


def is_cents(piece: Piece) -> bool:
    """Whether a piece is a number with decimals that can be the price of an accelerator-hour in dollars."""
    figure = piece.value
    decimals = piece.kind == "n" and isinstance(figure, Figure) and figure.scale == 1 and figure.value.denominator > 1
    return decimals and isinstance(figure, Figure) and LEAST_PER_HOUR_USD <= figure.value < MOST_PER_HOUR_USD


def is_reinforcement(pieces: Sequence[Piece]) -> bool:
    """Whether a run of reinforcement learning is said."""
    return any(piece.kind == "Y" and piece.value == "rl" for piece in pieces)
