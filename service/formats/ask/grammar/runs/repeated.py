"""Numbers of runs, which are none of accelerators: 3 runs, 12 1B ablations, 1B ablations … 12 of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.asking.questions import OTHER_UNITS
from service.formats.ask.grammar.clauses import is_count
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

RUNS = "runs"
NOUNS = frozenset({"runs", "jobs", "experiments", "trials", "trainings", "training runs", "sweeps"})
"""Words that are runs behind a number, and say nothing elsewhere."""
OF_THEM = frozenset({"of them", "of em", "of 'em", "of those", "of these"})
ON = "on"
LEAST_SIZE_SCALE = 10**6


def with_numbers_of_runs(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with runs as the noun of the number before them, and of the size before that as none."""
    found = [_named(sentence, pieces, at) for at in range(len(pieces))]
    for at in range(1, len(found)):
        if found[at].value != RUNS or not _is_size(found[at - 1]):
            continue
        if at > 1 and is_count(found[at - 2]):  # 12 1B ablations
            return [*found[: at - 2], found[at - 1], found[at - 2], *found[at:]], []
        return _without_number(sentence, found, at)
    return found, []


def _named(sentence: Sentence, pieces: Sequence[Piece], at: int) -> Piece:
    """A word as runs, where a number of them stands right before it: 3 runs; not on 64 runs for."""
    piece, number = pieces[at], pieces[at - 1] if at else None
    counted = number is not None and is_count(number) and number.last == piece.first
    if piece.kind not in (FILLER, UNKNOWN) or not counted or number is None or sentence.words(piece) not in NOUNS:
        return piece
    before = sentence.texts[number.first - 1] if number.first else ""
    return piece if before == ON else replace(piece, kind="W", value=RUNS)


def _without_number(sentence: Sentence, pieces: Sequence[Piece], at: int) -> tuple[list[Piece], list[Doubt]]:
    """1B ablations: their number is said elsewhere (12 of them), or not at all."""
    found = [*pieces[:at], *pieces[at + 1 :]]
    for here, piece in enumerate(found[1:], 1):
        if here >= at and piece.kind == "g" and sentence.words(piece) in OF_THEM and is_count(found[here - 1]):
            return [*found[:here], replace(piece, kind="W", value=RUNS), *found[here + 1 :]], []
    return found, [Doubt(sentence.part(pieces[at].first, pieces[at].last), (), OTHER_UNITS[RUNS])]


def _is_size(piece: Piece) -> bool:
    return piece.kind == "n" and isinstance(piece.value, Figure) and piece.value.scale >= LEAST_SIZE_SCALE
