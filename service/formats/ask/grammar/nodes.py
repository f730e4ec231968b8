"""Machines that are counted: nodes, racks, and how many accelerators they have."""

from __future__ import annotations

from collections.abc import Iterator

from service.formats.ask.grammar.quantities import MOST_COUNT, Pieces, accelerator_slots, accelerators, chosen_of, figures, span_of
from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.vocabulary import Name

NODES, RACKS, ONE = "nodes", "racks", "node"
UNCLEAR = "unclear_nodes"
"""So many machines, or machines of so many."""
MOST_OF_NODE = 1000
"""No node has more accelerators."""


def nodes(pieces: Pieces) -> Iterator[Slot]:
    """16 nodes of 8 H100, 16 DGX H100, 4 nodes: as many accelerators as they have."""
    counts, chosen = figures(pieces), chosen_of(pieces)
    if any(count.value.denominator != 1 or count.value > MOST_COUNT for count in counts[:1]) or counts[-1].value.denominator != 1:
        return
    if len(counts) == 2 and counts[1].value > MOST_OF_NODE:  # 16 nodes. 7B on 1T tokens
        at = next(at for at, piece in enumerate(pieces) if piece.kind == "N")
        yield Slot("nodes", int(counts[0].value), *span_of(pieces[: at + 1]))
        return
    if len(counts) == 2:
        note = f"{int(counts[0].value):,} nodes of {int(counts[1].value)}"
        yield Slot("count", int(counts[0].value * counts[1].value), *span_of(pieces), note=note)
    elif chosen:
        what = machine_name(pieces)
        size = size_of(chosen[0].name, what)
        if not size:
            return
        note = f"{int(counts[0].value):,} {what} of {size}, as is usual for {chosen[0].name.value}"
        yield Slot("count", int(counts[0].value * size), *span_of(pieces), note=note)
    else:
        yield Slot(machine_name(pieces), int(counts[0].value), *span_of(pieces))
    yield from accelerator_slots(pieces)


def machine_name(pieces: Pieces) -> str:
    """What machines are counted: nodes or racks."""
    return RACKS if any(piece.value == RACKS for piece in pieces) else NODES


def size_of(name: Name, machine: str) -> int:
    """Accelerators of a usual machine; 0 of a rack, where they differ."""
    return name.per_rack if machine == RACKS else name.per_node


def times_machines(pieces: Pieces) -> Iterator[Slot]:
    """16x H100 nodes: so many nodes; 8xH100 node: one of eight; 8x H100 nodes may be either."""
    count, chosen = figures(pieces)[0], chosen_of(pieces)[0]
    size = size_of(chosen.name, machine_name(pieces))
    if pieces[-1].value == ONE and count.value <= size:
        yield from accelerators(pieces)
    elif count.value == size:
        yield Slot(UNCLEAR, int(count.value), *span_of(pieces))
        yield from accelerator_slots(pieces)
    else:
        yield from nodes(pieces)
