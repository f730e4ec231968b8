"""Validation of corrections: fields that the corrected event's type does not have are rejected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from service.context import AppContext
from service.domain.tracking.events import API_NAMES, EVENT_FIELDS, Event
from service.domain.tracking.records import RunRecord

MAX_CHAIN_LENGTH = 50
"""Longest chain of corrections that is followed; beyond it a correction is accepted, and foreign fields have no effect."""


def invalid_corrections(context: AppContext, run: RunRecord, events: Sequence[Event]) -> dict[int, str]:
    """Reasons to reject corrections of a batch, by index. Known corrections and those of unknown events are accepted."""
    stating = [(place, event) for place, event in enumerate(events) if event.type == "correction" and _stated(event)]
    if not stating:
        return {}
    stored = _stored_corrections(context, run, events)
    # Of several events with one id the log keeps the first.
    known = {event.id: event for event in reversed(events)} | stored
    return {place: reason for place, event in stating if event.id not in stored for reason in _reasons(event, known)}


def _stored_corrections(context: AppContext, run: RunRecord, events: Sequence[Event]) -> dict[str, Event]:
    """Corrections of the batch that the log holds, and the events that these correct."""
    corrections = [event for event in events if event.type == "correction"]
    wanted = {name for event in corrections for name in (event.id, str(event.supersedes))}
    found: dict[str, Event] = {}
    for _ in range(MAX_CHAIN_LENGTH):
        new = context.store.find_events(run, sorted(wanted))
        found |= new
        wanted = {event.supersedes for event in new.values() if event.supersedes} - found.keys()
        if not wanted:
            break
    return found


def _reasons(correction: Event, known: Mapping[str, Event]) -> Iterator[str]:
    """At most one reason."""
    corrected: Event | None = correction
    for _ in range(MAX_CHAIN_LENGTH):
        if corrected is None or corrected.type != "correction":
            break
        corrected = known.get(str(corrected.supersedes))
    if corrected is None or corrected.type == "correction":
        return
    takes = EVENT_FIELDS[corrected.type].takes
    foreign = [name for name in _stated(correction) if name not in takes]
    if foreign:
        yield f"{_names(foreign)}: not taken by an event of type {corrected.type}, which takes {_names(takes)}"


def _stated(correction: Event) -> list[str]:
    takes = EVENT_FIELDS["correction"].takes
    return [name for name in takes if name != "supersedes" and getattr(correction, name) is not None]


def _names(fields: Sequence[str]) -> str:
    return ", ".join(sorted(API_NAMES.get(name, name) for name in fields))
