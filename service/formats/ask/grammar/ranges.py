"""Ranges (1.5-2T, 64 to 128, $5-6M, 30-40%, 3-4 weeks): read as one figure among the words around it, and then as both of its ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from service.formats.ask.grammar.slots import Doubt, Slot, plain
from service.formats.ask.lexing.dates import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece, Sentence

MOST_RATIO = 100
"""Ends that are further apart are two numbers of different things."""
UNITS = {"n": frozenset({"n", "m", "p", "U"}), "m": frozenset({"n", "m"}), "p": frozenset({"p"})}
"""Kinds of the upper end, by the kind of the lower one."""
WHOLE = frozenset({"count", "nodes", "tokens", "params", "samples"})
NOTE = "one end of a range"


@dataclass(frozen=True, slots=True)
class Range:
    """Where a range stands, and what its lower end is of its upper one, from 0 to below 1."""

    first: int
    last: int
    share: Fraction


def join_ranges(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Range]]:
    """The pieces with each range as its upper end alone, and the ranges."""
    joined: list[Piece] = []
    ranges: list[Range] = []
    for piece in pieces:
        low = _lower_end(sentence, joined, piece)
        share = None if low is None else _share(low, piece)
        if low is None or share is None:
            joined.append(piece)
            continue
        while joined and joined[-1].last > low.first:
            joined.pop()
        kind, value = piece.kind, piece.value
        if low.kind == "m" and isinstance(value, Figure):
            kind, value = "m", replace(value, unit="usd")
        joined.append(Piece(kind, value, low.first, piece.last))
        ranges.append(Range(low.first, piece.last, share))
    return joined, ranges


def _lower_end(sentence: Sentence, before: Sequence[Piece], high: Piece) -> Piece | None:
    """The figure before a hyphen, or before `to`, that a figure follows."""
    if not before:
        return None
    worded = before[-1].last - before[-1].first == 1 and sentence.tokens[before[-1].first].text == "to"
    if worded and any(piece.kind == "!" for piece in before[-4:-2]):  # double from 512 to 1024
        return None
    low = before[-2] if worded and len(before) > 1 else before[-1]
    between = sentence.text[sentence.tokens[low.last - 1].end : sentence.tokens[high.first].start].strip()
    fits = high.kind in UNITS.get(low.kind, ()) and (between == "-" or (worded and between.lower() == "to"))
    return low if fits else None


def _share(low: Piece, high: Piece) -> Fraction | None:
    """The lower end as a share of the upper one, with its scale where it has none; None where they are not the ends of a range."""
    if not isinstance(low.value, Figure) or not isinstance(high.value, Figure | Duration):
        return None
    top, scale = high.value.value, high.value.scale if isinstance(high.value, Figure) else 1
    begins = [low.value.value * scale, low.value.value] if low.value.scale == 1 else [low.value.value] if low.value.scale == scale else []
    return next((begin / top for begin in begins if 0 < begin < top <= MOST_RATIO * begin), None)


def both_ends(sentence: Sentence, slots: Iterable[Slot], ranges: Sequence[Range]) -> tuple[list[Slot], list[Doubt]]:
    """The slots with one for each end of a range; what has no such ends is asked back."""
    found = list(slots)
    doubts: list[Doubt] = []
    for part in ranges:
        own = [slot for slot in found if slot.first <= part.first and part.last <= slot.last and _ends(slot, part)]
        if len({slot.name for slot in own}) == len(own) == 1:
            at = found.index(own[0])
            found[at : at + 1] = _ends(own[0], part)
        elif own:
            doubts.append(Doubt(sentence.part(part.first, part.last), (), "a range has no place here: which number is meant?"))
        elif covering := [slot for slot in found if slot.first <= part.first and part.last <= slot.last]:
            text = sentence.part(covering[0].first, covering[0].last)
            doubts.append(Doubt(text, (), "a range has no place here: which number is meant?"))
    return found, doubts


def _ends(slot: Slot, part: Range) -> list[Slot]:
    """A slot for each end; none of what has no number."""
    note = NOTE if slot.name in WHOLE else "; ".join(text for text in (slot.note, NOTE) if text)
    return [replace(slot, value=value, note=note) for value in _values(slot, part)]


def _values(slot: Slot, part: Range) -> Iterator[object]:
    value = slot.value
    if isinstance(value, Duration):
        yield from (replace(value, value=value.value * part.share), value)
    elif isinstance(value, Fraction):
        yield from (value * part.share, value)
    elif isinstance(value, int | float):
        low = Fraction(str(value)) * part.share
        if low.denominator == 1 or slot.name not in WHOLE:
            yield from (plain(low), value)
