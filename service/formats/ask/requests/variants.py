"""Variants of a comparison: the same run with one thing in several ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.vocabulary import Name
from service.formats.ask.requests.draft import WORDS, Draft, Request, stated
from service.formats.ask.requests.echo import OPTIMIZERS
from service.formats.ask.requests.texts import count_text

MERGED = "training"
"""The section that a variant changes in part; it replaces the others."""
SIZE, OF_SIZE = "params", frozenset({"active_params", "experts", "experts_per_token"})
UNITS = {"params": "parameters", "tokens": "tokens"}


def variants_of(draft: Draft, axis: str, make: Callable[[], Request]) -> tuple[Request, list[Request]]:
    """The workload of the first value of a slot, and each value's own part with its name; `make` reads the draft."""
    said, values = draft.slots.all, draft.slots.values(axis)
    workloads = []
    for value in values:
        own = tuple(slot for slot in said if slot.name != axis or slot.value == value)
        draft.slots.all = own if axis != SIZE else tuple(slot for slot in own if slot.name not in OF_SIZE or _size_of(said, slot) == value)
        workloads.append(make())
    draft.slots.all = said
    named = zip(values, workloads, strict=True)
    return _shared(workloads), [{"name": _name(axis, value), "workload": _own_part(workloads, workload)} for value, workload in named]


def _size_of(said: Sequence[Slot], part: Slot) -> object:
    """The size that what is active or the experts are of: the one before, else the first."""
    sizes = [slot for slot in said if slot.name == SIZE]
    before = [slot for slot in sizes if slot.first < part.first]
    return (before or sizes[:1])[-1].value


def _shared(workloads: list[Request]) -> Request:
    """The first workload, which a comparison needs whole, without the members of its training section that others have otherwise."""
    first, *others = workloads
    training = first.get(MERGED, {}).items()
    common = {name: value for name, value in training if all(other.get(MERGED, {}).get(name) == value for other in others)}
    return stated(**{**first, MERGED: common})


def _own_part(workloads: list[Request], workload: Request) -> Request:
    """What the workloads do not have alike, of one of them."""
    own = {name: section for name, section in workload.items() if any(other.get(name) != section for other in workloads)}
    if MERGED in own:
        shared = _shared(workloads).get(MERGED, {})
        own[MERGED] = {name: value for name, value in own[MERGED].items() if name not in shared}
    return own


def _name(axis: str, value: object) -> str:
    """A value in the words of the echo."""
    if isinstance(value, Name):
        return value.value
    if axis in UNITS and isinstance(value, int | float):
        return f"{count_text(value)} {UNITS[axis]}"
    if axis == "seq_len" and isinstance(value, int):
        return f"sequence length {count_text(value)}"
    return OPTIMIZERS.get(str(value), WORDS.get(str(value), str(value)))
