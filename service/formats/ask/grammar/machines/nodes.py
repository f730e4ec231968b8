"""Machines that are counted: nodes, racks, and how many accelerators they have."""

from __future__ import annotations

from collections.abc import Iterator

from service.formats.ask.grammar.machines.priced_machines import MOST_PER_MACHINE
from service.formats.ask.grammar.quantities import MOST_COUNT, Pieces, accelerator_slots, accelerators, chosen_of, figures, span_of
from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.vocabulary import Name

NODES, RACKS, ONE = "nodes", "racks", "node"
UNCLEAR = "unclear_nodes"
"""So many machines, or machines of so many."""
LEAST_LISTED = 2
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
    elif chosen and _is_one_machine(pieces):
        yield Slot("count", int(counts[0].value), *span_of(pieces), note=f"one node of {int(counts[0].value)}")
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


def _is_one_machine(pieces: Pieces) -> bool:
    """Whether a number before an accelerator and a word for one machine is what it has: our 8 H100 node, but 1 H100 node, 8 H100 nodes."""
    count, size = figures(pieces)[0].value, size_of(chosen_of(pieces)[0].name, machine_name(pieces))
    return [piece.kind for piece in pieces] == ["n", "A", "N"] and 1 < count <= size and pieces[-1].value == ONE


def alternative_nodes(pieces: Pieces) -> Iterator[Slot]:
    """2 nodes vs 4 nodes of 8 H100: each number of nodes, of the size that is said once."""
    *numbers, size = _numbers(pieces)
    if 1 <= size <= MOST_PER_MACHINE and all(1 <= number <= MOST_COUNT // size for number in numbers):
        yield from _each_number(pieces, sorted(numbers), size)


def nodes_of_each(pieces: Pieces) -> Iterator[Slot]:
    """2 nodes of H100, 8 each: what each of them has."""
    of_each = figures(pieces)[1]
    if pieces[-1].value == "each" and of_each.scale == 1 and of_each.value <= MOST_OF_NODE and not of_each.unit:
        yield from nodes(pieces)


def listed_nodes(pieces: Pieces) -> Iterator[Slot]:
    """4/8/16 nodes of H100, nodes=4,8, 8xH100 nodes: 4,8: each number of them."""
    if pieces[1].kind in "xA" and figures(pieces[:1]) and figures(pieces)[0].value > MOST_OF_NODE:  # 1T, H100 nodes: 4, 8
        pieces = pieces[next(at for at, piece in enumerate(pieces) if piece.kind == "A") :]
    at = next(at for at, piece in enumerate(pieces) if piece.kind == "N")
    if any(piece.kind == "n" for piece in pieces[at:]):
        yield from _nodes_of_list(pieces, _numbers(pieces[:at]), _numbers(pieces[at:]))
        return
    said = pieces[_rising_from([piece for piece in pieces[:at] if piece.kind != "A"]) :]
    numbers = _numbers(said)
    if len(numbers) >= LEAST_LISTED:
        yield from _each_number(said, numbers, 0)


def _nodes_of_list(pieces: Pieces, sizes: list[int], numbers: list[int]) -> Iterator[Slot]:
    """Numbers behind the name of nodes; of `nodes=8, 64 H100` the second is that of the accelerators."""
    size, chosen = (sizes or [0])[-1], chosen_of(pieces)
    usual = size_of(chosen[0].name, machine_name(pieces)) if chosen else 0
    repeated = bool(usual) and numbers != [] and numbers[-1] == numbers[0] * usual
    if len(numbers) + len(sizes) >= LEAST_LISTED and not repeated:
        yield from _each_number(pieces, numbers, size)


def _each_number(said: Pieces, numbers: list[int], size: int) -> Iterator[Slot]:
    """A slot for each number of a list that rises, and the accelerator."""
    chosen, what = chosen_of(said), machine_name(said)
    size = size or (size_of(chosen[0].name, what) if chosen else 0)
    if numbers != sorted(set(numbers)) or not all(0 < number <= MOST_COUNT for number in numbers):
        return
    for number in numbers:
        if size:
            yield Slot("count", number * size, *span_of(said), note=f"{number:,} {what} of {size}")
        else:
            yield Slot(what, number, *span_of(said))
    yield from accelerator_slots(said)


def _rising_from(pieces: Pieces) -> int:
    """Where the last numbers of a list begin that rise, none of thousands: of 7B, 1T, 4, 8 the 4."""
    at = len(pieces)
    least = MOST_COUNT
    while at > 0 and pieces[at - 1].kind in "n,x":
        figure = pieces[at - 1].value
        if isinstance(figure, Figure):
            if figure.scale > 1 or figure.value.denominator > 1 or figure.value > least:
                break
            least = int(figure.value)
        at -= 1
    return next((here for here in range(at, len(pieces)) if pieces[here].kind == "n"), len(pieces))


def _numbers(pieces: Pieces) -> list[int]:
    """The numbers of pieces, those of a list without blanks each; none where one is not whole."""
    found = [value for figure in figures(pieces) for value in (figure.several or (figure.value,))]
    return [int(value) for value in found] if all(value.denominator == 1 for value in found) else []


def machine_name(pieces: Pieces) -> str:
    """What machines are counted: nodes or racks."""
    return RACKS if any(piece.value == RACKS for piece in pieces) else NODES


def size_of(name: Name, machine: str) -> int:
    """Accelerators of a usual machine; 0 of a rack, where they differ."""
    return name.per_rack if machine == RACKS else name.per_node


def machines_of(pieces: Pieces) -> Iterator[Slot]:
    """Four 8xH100 servers, ten 8-GPU H100 servers, two 8xH100: so many machines of so many each."""
    machines, of_each = figures(pieces)
    numbers = [machines.value, of_each.value]
    beside = pieces[0].last == pieces[1].first and not of_each.spoken  # 12 of our 64 H100 nodes, two fifty six
    named = beside and (pieces[-1].kind == "N" or (machines.spoken and any(piece.kind == "x" for piece in pieces)))
    whole = all(number.denominator == 1 and number >= 1 for number in numbers) and machines.scale == of_each.scale == 1
    if named and whole and of_each.value <= MOST_PER_MACHINE and machines.value * of_each.value <= MOST_COUNT:
        note = f"{int(machines.value):,} nodes of {int(of_each.value)}"
        yield Slot("count", int(machines.value * of_each.value), *span_of(pieces), note=note)
        yield from accelerator_slots(pieces)


def listed_machines(pieces: Pieces) -> Iterator[Slot]:
    """4 or 8 8xH100 nodes: 32 and 64 accelerators."""
    at = max(at for at, piece in enumerate(pieces) if piece.kind == "n")
    numbers, of_each = _numbers(pieces[:at]), figures(pieces[at : at + 1])[0]
    if of_each.scale == 1 and 1 <= of_each.value <= MOST_PER_MACHINE:
        yield from _each_number(pieces, numbers, int(of_each.value))


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
