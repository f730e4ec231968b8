"""What a pronoun stands for: 512 of those, half of that, twice that, under that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.clauses import PAUSES, is_within
from service.formats.ask.grammar.runs.generation import GENERATION_COUNT
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

MULTIPLES = {
    **{f"{one} half": Fraction(1, 2) for one in ("a", "one")},
    **{f"{one} third": Fraction(1, 3) for one in ("a", "one")},
    **{f"{one} quarter": Fraction(1, 4) for one in ("a", "one")},
    "half": Fraction(1, 2),
    "two thirds": Fraction(2, 3),
    "three quarters": Fraction(3, 4),
    "twice": Fraction(2),
    "double": Fraction(2),
    "thrice": Fraction(3),
    "triple": Fraction(3),
}
_THAT = r"(?:that|this|those|these|them|it|as many|that (?:many|number|amount|budget))"
_MULTIPLE = re.compile(
    rf"\b(?:(?P<part>{'|'.join(MULTIPLES)})|(?P<times>\d{{1,2}})(?:x| ?times)) (?:of )?{_THAT}\b"
    r"(?! (?:long|fast|speed|price|rate|time|much|many))"
)
_LIMITED = re.compile(
    r"\b(?:under|below|within|less than|no more than|at most|up to|over|above|more than) (?:that|this)"
    r"(?= ?(?:[,.;?!]|$)| (?:budget|amount|sum|time|price))"
)
EITHER = frozenset({"or", "vs", "versus", "and", "had", "to", "what", "against"})
USING = frozenset(
    (
        *("use", "using", "uses", "on", "with", "only", "just", "take", "taking", "spend", "spending", "need", "needs", "run", "about"),
        *("at", "get", "have", "had", "to", "or", "vs", "versus", "against"),
    )
)
"""Words right before a multiple of a number; those of EITHER are near it if the number itself is meant besides."""
NEAR = 4
COUNTED, NOUNS = "AgN", "AgNTQ"
LIMITS = "mUDl"
"""Kinds of pieces that something is under: a sum, a time, a day, a limit by its word."""
_TYPE = re.compile(f"C|N[o{FILLER}]?A|AN")
"""Kinds of pieces of a type of machine: p5.48xlarge, dgx h100, nodes of h100, h100 servers."""
UNKNOWN_THAT = "of what, or how much is it: say the number"

PRONOUNS = frozenset({"those", "these", "them", "such", "that kind"})


def with_pronouns(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with `512 of those` as 512 of the accelerator that is named before, if another accelerator has its own number."""
    named = [at for at, piece in enumerate(pieces) if piece.kind == "A"]
    found = list(pieces)
    typed = _of_machine_types(sentence, pieces)
    if typed:
        return typed, []
    for at, piece in enumerate(pieces):
        before = [here for here in named if here < at]
        after = [here for here in named if here > at]
        if not _is_number(piece) or len({_name(pieces[here]) for here in before}) != 1 or not after:
            continue
        end = _end(sentence, piece.last)
        bare = not _is_number(pieces[before[-1] - 1]) if before[-1] else True
        other = _name(pieces[after[0]]) != _name(pieces[before[-1]]) and _is_number(pieces[after[0] - 1])
        if end and bare and other:
            within = [each for each in pieces if piece.last <= each.first and each.last <= end]
            named_again = Piece("A", pieces[before[-1]].value, piece.last, end)
            found = [each for each in found if each not in within and each is not pieces[before[-1]]]
            return sorted([*found, named_again], key=lambda each: each.first), []
    return found, []


def _of_machine_types(sentence: Sentence, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with a type of machine behind its number, which follows it: p5.48xlarge, 8 of them; dgx h100, 4 of those."""
    types = [found.span() for found in _TYPE.finditer("".join(piece.kind for piece in pieces))]
    first, last = types[0] if len(types) == 1 else (len(pieces), len(pieces))
    number = next((piece for piece in pieces[last:] if _is_number(piece) and _end(sentence, piece.last)), None)
    priced = any(piece.kind == "L" for piece in pieces)  # what a node costs, and has
    others = any(piece.kind == "A" for piece in [*pieces[:first], *pieces[last:]])
    if number is None or priced or others or (first and pieces[first - 1].kind in "nx"):
        return []
    end = _end(sentence, number.last)
    named = [piece for piece in pieces[first:last] if piece.kind in "CNA"]
    moved = [replace(piece, first=end - len(named) + at, last=end - len(named) + at + 1) for at, piece in enumerate(named)]
    kept = [piece for piece in pieces if piece not in pieces[first:last] and not number.last <= piece.first < end]
    return sorted([*kept, *moved], key=lambda piece: piece.first)


def _end(sentence: Sentence, at: int) -> int:
    """The token after `of those`; 0 where it does not follow."""
    texts = list(sentence.texts[at : at + 2])
    return at + 2 if texts[:1] == ["of"] and texts[1:] and texts[1] in PRONOUNS else 0


def _is_number(piece: Piece) -> bool:
    return piece.kind == "n" and isinstance(piece.value, Figure) and piece.value.value.denominator == 1


def _name(piece: Piece) -> str:
    return piece.value.name.value if isinstance(piece.value, Chosen) else ""


def with_multiples(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with `half of that` as half of the number before it, where that number has a noun: beside it, or in its place."""
    match = _MULTIPLE.search(sentence.lower)
    within = [piece for piece in pieces if match is not None and is_within(sentence, piece, match)]
    covered = sum(piece.last - piece.first for piece in within)
    whole = match is not None and covered == sum(match.start() <= token.start < match.end() for token in sentence.tokens)
    if match is None or not within or not whole or any(piece.value == GENERATION_COUNT for piece in pieces):
        return list(pieces), []
    times = Fraction(match["times"]) if match["times"] else MULTIPLES[match["part"]]
    others = [piece for piece in pieces if piece not in within]
    first, last = within[0].first, within[-1].last
    named = _whole(pieces, first, plural=match[0].endswith(("those", "these", "them", "many")))
    number, noun = (named[0] if named else None), named[1:]
    value = number.value.value * times if number is not None and isinstance(number.value, Figure) else Fraction(0)
    before = list(sentence.texts[max(first - NEAR, 0) : first])
    if number is None or value.denominator > 1 or last - first < 1 + len(noun) or not USING.intersection(before[-1:]):
        return others, [Doubt(sentence.part(first, last), (), UNKNOWN_THAT)]
    both = EITHER.intersection(before[max((at + 1 for at, text in enumerate(before) if text in PAUSES), default=0) :])
    others = [piece for piece in others if both or piece not in (number, *noun)]
    assert isinstance(number.value, Figure)
    made = replace(number, value=replace(number.value, value=value, several=()), first=first, last=last - len(noun))
    counted = [replace(piece, first=last - 1, last=last) for piece in noun]
    text = sentence.part(number.first, (*noun, number)[0].last)
    doubt = Doubt(sentence.part(first, last), (), f"read as {int(value):,}, from {text}", blocking=False)
    return sorted([*others, made, *counted], key=lambda piece: piece.first), [doubt]


def _whole(pieces: Sequence[Piece], end: int, *, plural: bool) -> list[Piece]:
    """The last figure before a token, with its noun; nothing where it has none.

    Half of them is a part of things that are counted. Half of that may be a part of a sum too, so that it is none where both are said.
    """
    figures = [at for at, piece in enumerate(pieces) if piece.last <= end and isinstance(piece.value, Figure)]
    sums = [at for at in figures if pieces[at].kind == "m"]
    if not plural and sums and len(sums) < len(figures) and any(piece.kind in COUNTED for piece in pieces[: figures[-1] + 3]):
        return []
    for at in reversed(figures):
        noun = [piece for piece in pieces[at + 1 : at + 3] if piece.last <= end and piece.kind in (COUNTED if plural else NOUNS)][:1]
        if noun or not plural:
            return [pieces[at], *noun] if noun or pieces[at].kind == "m" else []
    return []


def with_limits(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without `under that` where a sum, a time or a day is said before; else it is asked what that is."""
    match = _LIMITED.search(sentence.lower)
    within = [piece for piece in pieces if match is not None and is_within(sentence, piece, match)]
    if match is None or not within or any(piece.kind in LIMITS and piece.last <= within[0].first for piece in pieces):
        return list(pieces), []
    return [piece for piece in pieces if piece not in within], [Doubt(match[0], (), UNKNOWN_THAT)]
