"""Questions of what more accelerators do, where the numbers that are compared are said besides: 2x the GPUs, double the cards."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from service.formats.ask.grammar.clauses import clauses, is_count
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

MULTIPLES = {"double": 2, "doubling": 2, "twice": 2, "triple": 3, "quadruple": 4}
TIMES = frozenset({"x the", "times the", "x as", "times as"})
OF_SCALING = frozenset({FILLER, UNKNOWN, *"!gANOI,xti#v"})
"""Kinds of pieces of a question what more accelerators do."""
MACHINES = "gAN"
JOINTS = frozenset({"to", "or", "vs", "versus", "and", ",", "/", "-", "against"})
ANSWERED = "answered by the comparison of the numbers that are said"


def scaling_questions(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """Would 2x the GPUs halve the time; double the gpus, 256 to 512 h100: the numbers alone."""
    for begin, end in clauses(sentence, pieces):
        clause, rest = pieces[begin:end], [*pieces[:begin], *pieces[end:]]
        factor = _factor_of_clause(sentence, clause)
        if factor and _are_apart(sentence, rest, factor):
            return rest, [_answered(sentence, clause[0].first, clause[-2].last if len(clause) > 1 else clause[-1].last)]
    for at, piece in enumerate(pieces):
        factor = _factor(sentence, pieces, at) if piece.kind == "!" else None
        noun = next((here for here in range(at + 1, len(pieces)) if pieces[here].kind != FILLER), len(pieces))
        if factor is None or noun == len(pieces) or pieces[noun].kind not in MACHINES:
            continue
        first = at - (sentence.words(piece) in TIMES)
        rest = [*pieces[:first], *pieces[noun + 1 :]]
        if _are_apart(sentence, rest, factor):
            return rest, [_answered(sentence, pieces[first].first, pieces[noun].last)]
    return list(pieces), []


def _answered(sentence: Sentence, first: int, last: int) -> Doubt:
    return Doubt(sentence.part(first, last), (), ANSWERED, blocking=False)


def _factor_of_clause(sentence: Sentence, clause: Sequence[Piece]) -> Fraction | None:
    """How many times as many accelerators a clause asks about, and nothing else."""
    at = next((at for at, piece in enumerate(clause) if piece.kind == "!"), None)
    if at is None or sentence.words(clause[-1]) != "?":
        return None
    others = [piece for here, piece in enumerate(clause) if here != at - 1 or sentence.words(clause[at]) not in TIMES]
    return None if any(piece.kind not in OF_SCALING for piece in others) else _factor(sentence, clause, at)


def _factor(sentence: Sentence, pieces: Sequence[Piece], at: int) -> Fraction | None:
    """How many times as many words say: 2 x the, double."""
    word, before = sentence.words(pieces[at]), pieces[at - 1] if at else None
    if word in TIMES and before is not None and isinstance(before.value, Figure):
        return before.value.value
    return Fraction(MULTIPLES[word]) if word in MULTIPLES else None


def _are_apart(sentence: Sentence, pieces: Sequence[Piece], factor: Fraction) -> bool:
    """Whether two numbers are said together of which one is so many times the other, and accelerators beside them."""
    counts = [at for at, piece in enumerate(pieces) if is_count(piece)]
    for one, other in pairwise(counts):
        joint = set(sentence.texts[pieces[one].last : pieces[other].first])
        near = {piece.kind for piece in (*pieces[max(one - 2, 0) : one], *pieces[one + 1 : other], *pieces[other + 1 : other + 3])}
        values = sorted(figure.value for at in (one, other) if isinstance(figure := pieces[at].value, Figure))
        joined = all(kind in (FILLER, ",", "A", "g", "x") for kind in (piece.kind for piece in pieces[one + 1 : other]))
        if joined and joint & JOINTS and near & set(MACHINES) and values[1] == factor * values[0]:
            return True
    return False
