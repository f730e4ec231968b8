"""Ranges (1.5-2T, 64 to 128, $5-6M, 30-40%, 3-4 weeks) and lists of bare figures (7B or 13B).

Each is read as its last figure among the words around it, and then as all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from service.formats.ask.grammar.slots import Doubt, Slot, plain
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece, Sentence

MOST_RATIO = 100
"""Ends that are further apart are two numbers of different things."""
UNITS = {"n": frozenset({"n", "m", "p", "U"}), "m": frozenset({"n", "m"}), "p": frozenset({"p"})}
"""Kinds of the upper end, by the kind of the lower one."""
WHOLE = frozenset({"count", "nodes", "racks", "tokens", "params", "samples"})
NOTE = "one end of a range"
DOUBLED = "of a range, doubled from one end to the other"
COUNTED = frozenset({"count", "nodes"})
EITHER = frozenset({"or", "vs", "versus", "vs.", "against", "v"})
"""Words between figures of which one is taken."""
NOUNS = frozenset("TQVsef")
"""Kinds of nouns whose rules read lists of figures by themselves."""
LEAST_SCALE = 10**6
APART = 50
"""Figures of one list are not further apart."""

LEAST_PER_PARAMETER = 5
"""Of 20B/800B the second is the tokens; of 7B/13B, which are nearer, both are sizes."""


@dataclass(frozen=True, slots=True)
class Range:
    """Where a range stands, and what its lower end is of its upper one, from 0 to below 1.

    `listed`: no range but a list of figures, whose others are `shares` of the last one.
    """

    first: int
    last: int
    shares: tuple[Fraction, ...]
    listed: bool = False


def join_ranges(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Range]]:
    """The pieces with each range, and each list of bare figures, as its last figure alone; and what they are."""
    joined: list[Piece] = []
    ranges: list[Range] = []
    for at, piece in enumerate(pieces):
        found = _range(sentence, joined, piece) or _list(sentence, pieces, at)
        if found is None:
            joined.append(piece)
            continue
        whole, part = found
        while joined and joined[-1].last > whole.first:
            joined.pop()
        joined.append(whole)
        ranges = [*(other for other in ranges if other.last <= part.first or not part.listed), part]
    return joined, ranges


def _range(sentence: Sentence, before: Sequence[Piece], high: Piece) -> tuple[Piece, Range] | None:
    """The range that a figure is the upper end of, as one piece."""
    low = _lower_end(sentence, before, high)
    share = None if low is None else _share(low, high)
    if low is None or share is None:
        return None
    kind, value = high.kind, high.value
    if low.kind == "m" and isinstance(value, Figure):
        kind, value = "m", replace(value, unit="usd")
    return Piece(kind, value, low.first, high.last), Range(low.first, high.last, (share,))


def _list(sentence: Sentence, pieces: Sequence[Piece], at: int) -> tuple[Piece, Range] | None:
    """The list of bare figures that a figure ends, as one piece."""
    last = pieces[at]
    others = _listed_before(sentence, pieces[:at], pieces[at : at + 2]) if last.kind == "n" else []
    if not others:
        return None
    shares = tuple(_number(other) / _number(last) for other in others)
    return replace(last, first=others[0].first), Range(others[0].first, last.last, shares, listed=True)


def _listed_before(sentence: Sentence, before: Sequence[Piece], rest: Sequence[Piece]) -> list[Piece]:
    """The figures that a bare one ends a list of: 7B or 13B, 1B, 3B and 7B; none where it ends no list, or a noun follows."""
    last, noun = rest[0], rest[1].kind if len(rest) > 1 else ""
    found: list[Piece] = []
    joints: list[str] = []
    at = len(before)
    while at >= 2 and before[at - 1].kind == "," and _is_alike(before[at - 2], last):
        found.insert(0, before[at - 2])
        joints.append(sentence.words(before[at - 1]))
        at -= 2
    of_two = (joints[:1] != [","] or len(found) > 1) and bool(set(joints) & EITHER or any(piece.value == "compare" for piece in before))
    if joints == ["/"]:
        of_two = _number(last) < LEAST_PER_PARAMETER * _number(found[0])
    return found if found and of_two and noun not in NOUNS else []


def _is_alike(piece: Piece, last: Piece) -> bool:
    """Whether two bare figures may be of the same thing: both in billions, of a like size."""
    one, other = piece.value, last.value
    if piece.kind != "n" or last.kind != "n" or not isinstance(one, Figure) or not isinstance(other, Figure):
        return False
    return one.scale == other.scale >= LEAST_SCALE and max(one.value, other.value) <= APART * min(one.value, other.value)


def _number(piece: Piece) -> Fraction:
    assert isinstance(piece.value, Figure)
    return piece.value.value


def _lower_end(sentence: Sentence, before: Sequence[Piece], high: Piece) -> Piece | None:
    """The figure before a hyphen, or before `to`, that a figure follows."""
    if not before:
        return None
    worded = before[-1].last - before[-1].first == 1 and sentence.texts[before[-1].first] == "to"
    if worded and any(piece.kind == "!" for piece in before[-4:-2]):  # double from 512 to 1024
        return None
    low = before[-2] if worded and len(before) > 1 else before[-1]
    named = worded_between(sentence, before)
    low = before[-2] if named else low
    if high.kind not in UNITS.get(low.kind, ()):
        return None
    between = sentence.text[sentence.tokens[low.last - 1].end : sentence.tokens[high.first].start].strip()
    fits = between == "-" or (worded and between.lower() == "to") or (named and high.kind == "n")
    return low if fits else None


def worded_between(sentence: Sentence, before: Sequence[Piece]) -> bool:
    """Whether a range is worded by `between` and `and` before its upper end."""
    if len(before) < len(("between", "low", "and")):
        return False
    return sentence.words(before[-1]) == "and" and sentence.words(before[-3]) == "between"


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
    if part.listed:
        return [replace(slot, value=value) for value in _values(slot, part)]
    if doubles := _doubles(slot, part):
        return [replace(slot, value=value, note=DOUBLED) for value in doubles]
    note = NOTE if slot.name in WHOLE else "; ".join(text for text in (slot.note, NOTE) if text)
    return [replace(slot, value=value, note=note) for value in _values(slot, part)]


def _doubles(slot: Slot, part: Range) -> list[int]:
    """Numbers of accelerators from one end of a range to the other, each twice the one before: 64-256 GPUs; none of other ranges."""
    ends = list(_values(slot, part))
    if slot.name not in COUNTED or len(ends) != 2 or not all(isinstance(end, int) for end in ends):
        return []
    low, high = (int(str(end)) for end in ends)
    steps = (high // low).bit_length() - 1
    return [low << step for step in range(steps + 1)] if steps > 1 and low << steps == high else []


def _values(slot: Slot, part: Range) -> Iterator[object]:
    value = slot.value
    if isinstance(value, Duration):
        yield from (*(replace(value, value=value.value * share) for share in part.shares), value)
    elif isinstance(value, Fraction):
        yield from (*(value * share for share in part.shares), value)
    elif isinstance(value, int | float):
        others = [Fraction(str(value)) * share for share in part.shares]
        if slot.name not in WHOLE or all(other.denominator == 1 for other in others):
            yield from (*(plain(other) for other in others), value)
