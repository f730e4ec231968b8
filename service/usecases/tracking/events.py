"""Append events to a run: accepted, duplicate, or rejected with a reason.

Of corrections, those with fields that the corrected event's type does not have are rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.tracking.events import EVENT_FIELDS, Event, api_names, stated_fields
from service.domain.tracking.records import LoggedEvent, RunRecord
from service.usecases.storage import check_storage

MAX_CLOCK_LEAD = timedelta(hours=24)
"""Accepted lead of a sender's clock."""
MAX_CHAIN_LENGTH = 50
"""Longest chain of corrections that is followed; beyond it a correction is accepted, and foreign fields have no effect."""
CONFLICT = "an event of this id is stored with another content; send a correction that supersedes it"
AHEAD = "lies more than 24 h ahead of the server's clock, {now:%Y-%m-%dT%H:%M:%SZ}"
ITSELF = "a correction cannot supersede itself"


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """An event that is not stored, and the reason."""

    id: Annotated[str, Doc("Id of the event")]
    reason: Annotated[str, Doc("Why it was refused", max_length=1000)]


@dataclass(frozen=True, slots=True)
class AppendResult:
    """Result of a batch. Accepted events and duplicates are durable."""

    accepted: Annotated[int, Doc("Events that were stored")]
    duplicates: Annotated[int, Doc("Events that were stored before")]
    rejected: Annotated[tuple[RejectedEvent, ...], Doc("Events that were refused")]


def list_events(context: AppContext, run: RunRecord, after: int, limit: int) -> list[LoggedEvent]:
    """A run's log in the order of arrival, the events after a position. Raises ProgramArchived."""
    return context.store.events(run, after, limit)


def append_events(context: AppContext, run: RunRecord, batch: Sequence[Event | RejectedEvent]) -> AppendResult:
    """Append events to a run's log, idempotent by id. Accepted events and duplicates are durable when this returns.

    What was rejected when it was read is part of the answer. Raises StorageBudgetUsedUp, ProgramArchived and StoreUnavailable.
    """
    check_storage(context, run.team)
    events = [event for event in batch if isinstance(event, Event)]
    now = context.clock()
    latest = now + MAX_CLOCK_LEAD
    rejected = [event for event in batch if isinstance(event, RejectedEvent)]
    rejected += [RejectedEvent(event.id, AHEAD.format(now=now)) for event in events if event.at > latest]
    in_time = [event for event in events if event.at <= latest]
    rejected += [RejectedEvent(event.id, ITSELF) for event in in_time if event.supersedes == event.id]
    consistent = [event for event in in_time if event.supersedes != event.id]
    foreign = _invalid_corrections(context, run, consistent)
    rejected += [RejectedEvent(consistent[place].id, reason) for place, reason in foreign.items()]
    valid = [event for place, event in enumerate(consistent) if place not in foreign]
    added = context.store.append_events(run, valid, now)
    rejected += [RejectedEvent(event_id, CONFLICT) for event_id in added.conflicts]
    return AppendResult(len(added.accepted), len(added.duplicates), tuple(rejected))


def _invalid_corrections(context: AppContext, run: RunRecord, events: Sequence[Event]) -> dict[int, str]:
    """Reasons to reject corrections of a batch, by index. Known corrections and those of unknown events are accepted."""
    stating = [(place, event) for place, event in enumerate(events) if event.type == "correction" and stated_fields(event)]
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
    foreign = [name for name in stated_fields(correction) if name not in takes]
    if foreign:
        yield f"{api_names(foreign)}: not taken by an event of type {corrected.type}, which takes {api_names(takes)}"
