"""Machines that are spoken of by what they hold: $310k per node (8 GPUs), 32 of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from service.formats.ask.grammar.keyed import PER_NODE
from service.formats.ask.grammar.quantities import LEAST_CAPEX_USD, capex_of_machine, figures
from service.formats.ask.grammar.slots import Slot, plain
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name

OF_MACHINE, OF_ALL = "price_of_machine", "price_of_all"
"""Slots of what an hour of a machine costs, or of all accelerators."""
FOR_SEVERAL = " an hour for "
"""What is noted of the price of one that follows from such a price."""
LEAST_OF_ONE_USD, MOST_OF_ONE_USD = 0.2, 6
"""No accelerator costs less an hour; all in, a sum that is no larger may be the price of one [USD per hour]."""
NODES_OF = re.compile(r" (?:nodes|racks) of (\d+)")
"""What a number of accelerators says of its machines."""
MOST_PER_HOUR_USD = 1000
MOST_PER_MACHINE = 72
"""No machine that is sold as one has more accelerators."""
PRONOUNS = frozenset({"them", "those", "these"})


def capex_of_sized_machine(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """$310k per node (8 GPUs): what a machine costs, and how many accelerators it has."""
    price, size = list(capex_of_machine(pieces[:-2])), figures(pieces)[-1]
    if price and size.scale == 1 and size.value.denominator == 1 and 1 < size.value <= MOST_PER_MACHINE:
        yield replace(price[0], last=pieces[-1].last)
        yield Slot("machine_of", int(size.value), pieces[0].first, pieces[-1].last)


def price_of_machine(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """$12/hr per node, $12 per node hour, $12 an hour for all of them: what an hour of a machine costs, or of all."""
    figure, whole = figures(pieces)[0], next(str(piece.value) for piece in pieces if piece.kind == "L")
    hourly = any(piece.kind == "H" for piece in pieces) or "hours" in whole or (figure.unit == "usd" and figure.value < LEAST_CAPEX_USD)
    name = {"per machine": OF_MACHINE, "machine hours": OF_MACHINE, "all": OF_ALL, "hours of all": OF_ALL}.get(whole)
    name = ("price_per_hour" if figure.value <= MOST_OF_ONE_USD else OF_ALL) if whole == "hours all in" else name
    if name and hourly and figure.scale == 1 and figure.value <= MOST_PER_HOUR_USD:
        yield Slot(name, plain(figure.value), pieces[0].first, pieces[-1].last)


def prices_of_one(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with the hour of a machine, or of all accelerators, as that of one, where their number is known; else as it was said."""
    return [_of_one(slot, slots) if slot.name in (OF_MACHINE, OF_ALL) else slot for slot in slots]


def _of_one(price: Slot, slots: Sequence[Slot]) -> Slot:
    counts = {slot.value for slot in slots if slot.name == "count" and isinstance(slot.value, int)}
    size = (next(iter(counts)) if len(counts) == 1 else 0) if price.name == OF_ALL else _size_of_machine(slots, counts)
    if not size or not isinstance(price.value, int | float):
        return price
    if price.value / size < LEAST_OF_ONE_USD and price.name == OF_MACHINE:
        return price
    if price.value / size < LEAST_OF_ONE_USD:
        return replace(price, name="price_per_hour", note="read as the price of one: that of all would be too small")
    what = "all" if price.name == OF_ALL else "a machine"
    return replace(
        price, name="price_per_hour", value=round(price.value / size, 6), note=f"${price.value:,}{FOR_SEVERAL}{what} of {size:,}"
    )


def _size_of_machine(slots: Sequence[Slot], counts: set[int]) -> int:
    """Accelerators of a machine, as it is said, else the usual number, where that of all of them is a multiple of it; 0 if unknown."""
    said = {int(found.group(1)) for slot in slots if slot.name == "count" and (found := NODES_OF.search(slot.note))}
    said |= {slot.value for slot in slots if slot.name in ("machine_of", PER_NODE) and isinstance(slot.value, int)}
    usual = {slot.value.per_node for slot in slots if slot.name == "accelerator" and isinstance(slot.value, Name)}
    sizes = said or usual
    size = next(iter(sizes)) if len(sizes) == 1 else 0
    return size if size and all(count % size == 0 for count in counts) else 0


def of_machines(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots with `32 of them` as machines, where the price of one is said and no other number."""
    counts = [slot for slot in slots if slot.name == "count"]
    if len(counts) != 1 or not any(slot.name == "capex_of_machine" for slot in slots) or any(slot.name == "nodes" for slot in slots):
        return list(slots)
    said = sentence.texts[counts[0].last - 1]
    return [replace(slot, name="nodes") if slot is counts[0] and said in PRONOUNS else slot for slot in slots]


def parts_of_fleet(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots with `two of them` as no number to weigh, where the number of all is said before it: it is asked what they are."""
    counts = [slot for slot in slots if slot.name in ("count", "nodes", "racks")]
    texts = list(sentence.texts)
    named = {(slot.first, slot.last) for slot in slots if slot.name == "accelerator"}  # the pronoun stands for one
    of_them = [slot for slot in counts if texts[slot.last - 2 : slot.last - 1] == ["of"] and texts[slot.last - 1] in PRONOUNS]
    parts = [slot for slot in of_them if (slot.first, slot.last) not in named]
    if len(parts) == len(counts):
        return list(slots)
    return [replace(slot, name="part_of_fleet") if slot in parts else slot for slot in slots]


def pairs_of(slots: Sequence[Slot]) -> list[tuple[Name, int]]:
    """Accelerators with their numbers, where several are weighed and each has its own: 512 H100 or 256 B200."""
    named = {(slot.first, slot.last): slot.value for slot in slots if slot.name == "accelerator"}
    counted = {(slot.first, slot.last): slot.value for slot in slots if slot.name == "count"}
    pairs = [(name, count) for at, name in named.items() if isinstance(name, Name) and isinstance(count := counted.get(at), int)]
    paired = len(pairs) == len(named) == len(counted)
    several = len({name.value for name, _ in pairs}) > 1 and len({count for _, count in pairs}) > 1
    return list(dict.fromkeys(pairs)) if paired and several else []


def of_types(slots: Sequence[Slot]) -> list[Slot]:
    """The slots without the sizes of several instance types, which say no number: aws p5 and azure nd h100 v5; of a provider once."""
    implied = [slot for slot in slots if slot.name == "count" and slot.implied and slot.note]
    kept = [slot for slot in slots if len(implied) < 2 or slot not in implied]
    sellers: dict[str, Slot] = {}
    for slot in kept:
        if slot.name == "provider" and isinstance(slot.value, Name):
            sellers.setdefault(slot.value.value, slot)
    return [_of_seller(slot, sellers) if slot.name == "provider" else slot for slot in kept]


def _of_seller(slot: Slot, sellers: Mapping[str, Slot]) -> Slot:
    """The slot with the name by which its provider is said first."""
    first = sellers.get(slot.value.value) if isinstance(slot.value, Name) else None
    return slot if first is None else replace(slot, value=first.value)
