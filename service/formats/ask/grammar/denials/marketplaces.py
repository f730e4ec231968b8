"""Marketplaces, where hosts ask their own prices: left out, or asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.domain.ask import Kind, ReadingNote
from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.vocabulary import Name, Vocabulary

MARKETPLACES = frozenset({"vast", "tensordock"})
"""Providers all of whose offers are those of hosts (docs/reference/providers.md)."""
WITHOUT = "without_marketplaces"
LEFT_OUT = "marketplaces are left out unless one of them is named"


def left_out(excluded: Sequence[Slot], vocabulary: Vocabulary) -> list[Slot]:
    """All other providers in place of marketplaces that alone are excluded; nothing where others are, or none of them has prices."""
    names = {slot.value.value for slot in excluded if isinstance(slot.value, Name)}
    if names != MARKETPLACES:
        return []
    others = tuple(name for name in vocabulary.providers if name.value not in names)
    return [Slot(WITHOUT, others, excluded[0].first, excluded[-1].last)]


def settle(slots: Sequence[Slot], kind: Kind) -> tuple[list[Slot], list[ReadingNote]]:
    """The slots with all other providers in a question about prices; elsewhere list prices alone are taken anyway."""
    found = [slot for slot in slots if slot.name != WITHOUT]
    said = next((slot for slot in slots if slot.name == WITHOUT), None)
    if said is None or any(slot.name == "provider" for slot in slots):
        return found, []
    if kind != "price" or not isinstance(said.value, tuple):
        return found, [ReadingNote("", "list prices", LEFT_OUT)]
    note = "all that have prices but marketplaces"
    return [*found, *(replace(said, name="provider", value=name, note="" if at else note) for at, name in enumerate(said.value))], []


def with_prices(slots: Sequence[Slot], vocabulary: Vocabulary) -> list[Slot]:
    """The slots without a provider that a word for several stands for (neoclouds, marketplaces), and that has no prices."""
    known = {name.value for name in vocabulary.providers}
    of_group = [slot for slot in slots if slot.name == "provider" and slot.implied and isinstance(slot.value, Name)]
    sold = [slot for slot in of_group if isinstance(slot.value, Name) and slot.value.value in known]
    found: list[Slot] = []
    for slot in slots:
        if slot not in of_group:
            found.append(slot)
        elif slot in sold:
            names = [str(each.value.value) for each in sold if each.first == slot.first and isinstance(each.value, Name)]
            found.append(replace(slot, note=f"read as {', '.join(names)}"))
    return found
