"""Places of a question about power, energy or carbon alone: that of the grid, and no region in which a price is looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.domain.ask import Kind
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
READ_AS = "the place of the grid: no price is looked for there"


def with_grid_places(sentence: Sentence, slots: Sequence[Slot], kind: Kind) -> tuple[Slot, ...]:
    """The slots with the one region as the place of the grid, without its seller: power draw in Oslo, carbon in gcp europe-west4."""
    names = {slot.value for slot in slots if slot.name == "region" and isinstance(slot.value, Name)}
    sellers = {slot.value.value for slot in slots if slot.name == "provider" and isinstance(slot.value, Name)}
    if kind != "estimate" or len(names) != 1 or not _asks_energy(slots):
        return tuple(slots)
    name = next(iter(names))
    paid = any(slot.name in OF_PRICE for slot in slots) or OF_MONEY & {token.text for token in sentence.tokens}
    if paid or not name.provider or not sellers <= {name.provider}:
        return tuple(slots)
    placed = [slot for slot in slots if slot.name != "provider"]
    return tuple(_placed(slot, name) if slot.name == "region" else slot for slot in placed)


def _asks_energy(slots: Sequence[Slot]) -> bool:
    """Whether a figure of energy or carbon is asked for."""
    figure = any(slot.name == "figure" and str(slot.value).startswith(ENERGY) for slot in slots)
    return figure or any(slot.name == "objective" and slot.value == "carbon" for slot in slots)


def _placed(slot: Slot, name: Name) -> Slot:
    return replace(slot, name=GRID_PLACE, note="; ".join(filter(None, (name.why, READ_AS))))
