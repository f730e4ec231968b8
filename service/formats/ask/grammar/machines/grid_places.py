"""Places of a question about power, energy or carbon alone: that of the grid, and no region in which a price is looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.asking.intents import DATA, GROUPS, MODEL
from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.tokens import Sentence
from service.formats.ask.lexing.vocabulary import Name

GRID_PLACE = "grid_place"
ENERGY = "energy"
OF_PRICE = frozenset({"price_per_hour", "max_price_per_hour", "pricing", "money", "money_at", "budget_usd", "usd_per_kwh"})
"""Slots of what is paid, which a place can be that of."""
OF_MONEY = frozenset(
    (
        *("cost", "costs", "price", "prices", "priced", "$", "usd", "dollar", "dollars", "bill", "money", "spend", "budget", "pay"),
        *("cheap", "cheaper", "cheapest", "expensive", "rate", "rates", "invoice", "quote", "bucks"),
    )
)
"""Words that ask for what is paid."""
WEIGHED = frozenset({"ways", "max_tco2e", "probability", "program"})
"""Slots of what is weighed, or kept to."""
LARGEST = ("aws", "azure", "gcp", "")
"""Sellers whose regions stand for the grid of a city before those of others."""
READ_AS = "the place of the grid: no price is looked for there"


def with_grid_places(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots of a question about one run with its place as that of the grid: power draw in Oslo, carbon in gcp europe-west4."""
    places = [slot for slot in slots if slot.name in ("region", "jurisdiction") and isinstance(slot.value, Name)]
    sellers = {slot.value.value for slot in slots if slot.name == "provider" and isinstance(slot.value, Name)}
    one = len({(slot.first, slot.last) for slot in places}) == 1
    if not one or not _asks_energy(slots) or not _is_one_run(slots) or _is_paid(sentence, slots):
        return list(slots)
    places.sort(key=lambda slot: isinstance(slot.value, Name) and slot.value.provider not in LARGEST)
    name, others = places[0].value, [slot.value.value for slot in places[1:] if isinstance(slot.value, Name)]
    assert isinstance(name, Name)
    country = places[0].name == "jurisdiction"
    if (country and (others or name.value in GROUPS or sellers)) or (not country and (not name.provider or not sellers <= {name.provider})):
        return list(slots)
    if others and not all(isinstance(slot.value, Name) and slot.value.why for slot in places):  # us-east, which is many places
        return list(slots)
    placed = replace(
        places[0],
        name=GRID_PLACE,
        note="; ".join(filter(None, (name.why, READ_AS, f"others there: {', '.join(others)}" if others else ""))),
    )
    kept = [slot for slot in slots if slot.name != "provider" and slot not in places[1:]]
    return [placed if slot is places[0] else slot for slot in kept]


def _asks_energy(slots: Sequence[Slot]) -> bool:
    """Whether a figure of energy or carbon is asked for."""
    figure = any(slot.name == "figure" and str(slot.value).startswith(ENERGY) for slot in slots)
    return figure or any(slot.name == "objective" and slot.value == "carbon" for slot in slots)


def _is_one_run(slots: Sequence[Slot]) -> bool:
    """Whether one machine trains one model, and nothing is weighed or limited."""
    names = {slot.name for slot in slots}
    asked = {slot.value for slot in slots if slot.name == "intent"}
    machines = {slot.value for slot in slots if slot.name == "accelerator"}
    counts = {slot.value for slot in slots if slot.name in ("count", "nodes", "racks")}
    trained = names & {*MODEL, *DATA}
    return bool(trained) and len(machines) == len(counts) == 1 and asked <= {"estimate"} and not names & WEIGHED


def _is_paid(sentence: Sentence, slots: Sequence[Slot]) -> bool:
    """Whether what is paid is said, or asked for."""
    return any(slot.name in OF_PRICE for slot in slots) or bool(OF_MONEY & set(sentence.texts))
