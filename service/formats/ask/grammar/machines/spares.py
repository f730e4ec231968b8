"""Spares by their number: two of them as hot spares, 1024 H100 + 32 hot spares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.formats.ask.grammar.attributes import SPARES
from service.formats.ask.grammar.machines.nodes import NODES, RACKS, size_of
from service.formats.ask.grammar.quantities import figures, span_of
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name

NUMBER = "spares"
WITHIN = frozenset({"which", "including", "incl", "kept", "held", "reserved", "them", "those", "these"})
"""Words by which spares are a part of the accelerators that are said."""
BESIDE = frozenset({"+", "plus", "additional", "extra", "besides", "another", "and"})
"""Words by which they come on top."""
MOST_BEFORE = 2
"""Words before a number of spares in which these are looked for."""
OF_THEM = "a run has one number of accelerators: are the spares a part of it, or besides it?"
DECIMALS = 6
NODES_OF = re.compile(r"nodes of (\d+)")
MACHINES = frozenset({"node", "nodes", "machine", "machines", "server", "servers", "box", "boxes"})
ACCELERATORS = frozenset({"gpu", "gpus", "card", "cards", "accelerator", "accelerators", "chips"})


def of_number(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """32 hot spares, 2 spare nodes, two of them as spares."""
    number = figures(pieces)[0]
    if pieces[-1].value == SPARES and number.value.denominator == 1 and number.scale == 1 and number.value >= 1:
        yield Slot(NUMBER, int(number.value), *span_of(pieces))


def settle(sentence: Sentence, slots: Sequence[Slot]) -> tuple[list[Slot], list[Doubt]]:
    """The slots with a number of spares as their share of the accelerators that work, and with these as the number."""
    spares = [slot for slot in slots if slot.name == NUMBER]
    counts = [slot for slot in slots if slot.name in ("count", NODES, RACKS)]
    if not spares:
        return list(slots), []
    found, read = [slot for slot in slots if slot not in spares], _read(sentence, slots, spares, counts)
    text = sentence.part(spares[0].first, spares[-1].last)
    if read is None:
        return found, [Doubt(text, (f"of which {text}", f"plus {text}"), OF_THEM)]
    working, share = read
    note = f"{text}: {share * 100:.4g}% of those that work"
    return [*(working if slot is counts[0] else slot for slot in found), replace(spares[0], name=SPARES, value=share, note=note)], []


def _read(sentence: Sentence, slots: Sequence[Slot], spares: Sequence[Slot], counts: Sequence[Slot]) -> tuple[Slot, float] | None:
    """The accelerators or nodes that work, and the share of spares over them; None where it is not said which they are."""
    if len(spares) > 1 or len(counts) != 1 or not isinstance(counts[0].value, int) or not isinstance(spares[0].value, int):
        return None
    count, number = counts[0], spares[0].value * _size(sentence, slots, spares[0], counts[0])
    begin = max(count.last, spares[0].first - MOST_BEFORE)
    words = set(sentence.texts[begin : spares[0].last])
    within, beside = bool(words & WITHIN), bool(words & BESIDE)
    if within and number < counts[0].value:
        value = counts[0].value - number
        return replace(count, value=value, note=f"{counts[0].value:,} without {number:,} spares"), round(number / value, DECIMALS)
    return (count, round(number / counts[0].value, DECIMALS)) if beside and not within else None


def _size(sentence: Sentence, slots: Sequence[Slot], spares: Slot, count: Slot) -> int:
    """How many of what is counted a spare is: the accelerators of a node where nodes are said."""
    words = set(sentence.texts[spares.first : spares.last])
    sized = NODES_OF.search(count.note)
    if sized is not None and not words & ACCELERATORS:
        return int(sized.group(1))
    names = [slot.value for slot in slots if slot.name == "accelerator" and isinstance(slot.value, Name)]
    return size_of(names[0], NODES) if words & MACHINES and names and count.name == "count" else 1
