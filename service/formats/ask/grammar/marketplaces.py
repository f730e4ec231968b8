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
    """The slots without a marketplace that a word for several stands for, and that has no prices."""
    known = {name.value for name in vocabulary.providers}
    return [slot for slot in slots if not (isinstance(slot.value, Name) and slot.name == "provider" and _is_unknown(slot.value, known))]


def _is_unknown(name: Name, known: set[str]) -> bool:
    return name.value in MARKETPLACES and name.value not in known
