"""Variants of a comparison: the same run with one thing in several ways."""

from __future__ import annotations

from collections.abc import Callable

from service.formats.ask.lexing.vocabulary import Name
from service.formats.ask.requests.draft import WORDS, Draft, Request, stated
from service.formats.ask.requests.echo import OPTIMIZERS
from service.formats.ask.requests.texts import count_text

MERGED = "training"
"""The section that a variant changes in part; it replaces the others."""
UNITS = {"params": "parameters", "tokens": "tokens"}


def variants_of(draft: Draft, axis: str, make: Callable[[], Request]) -> tuple[Request, list[Request]]:
    """The workload of the first value of a slot, and each value's own part with its name; `make` reads the draft."""
    said, values = draft.slots.all, draft.slots.values(axis)
    workloads = []
    for value in values:
        draft.slots.all = tuple(slot for slot in said if slot.name != axis or slot.value == value)
        workloads.append(make())
    draft.slots.all = said
    named = zip(values, workloads, strict=True)
    return _shared(workloads), [{"name": _name(axis, value), "workload": _own_part(workloads, workload)} for value, workload in named]


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
