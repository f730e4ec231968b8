"""Append events to a run: accepted, duplicate, or rejected with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from service.context import AppContext
from service.domain.tracking.events import Event
from service.domain.tracking.records import LoggedEvent, RunRecord
from service.usecases.tracking.corrections import invalid_corrections

MAX_CLOCK_LEAD = timedelta(hours=24)
"""Accepted lead of a sender's clock."""
CONFLICT = "an event of this id is stored with another content; send a correction that supersedes it"
AHEAD = "lies more than 24 h ahead of the server's clock, {now:%Y-%m-%dT%H:%M:%SZ}"
ITSELF = "a correction cannot supersede itself"


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """An event that is not stored, and the reason."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class AppendResult:
    """Counts of a batch of events."""

    accepted: int
    duplicates: int
    rejected: tuple[RejectedEvent, ...]


def list_events(context: AppContext, run: RunRecord, after: int, limit: int) -> list[LoggedEvent]:
    """A run's log in the order of arrival, the events after a position."""
    return context.store.events(run, after, limit)


def append_events(context: AppContext, run: RunRecord, events: Sequence[Event]) -> AppendResult:
    """Append events to a run's log, idempotent by id. Accepted events and duplicates are durable when this returns.

    Raises StoreUnavailable.
    """
    now = context.clock()
    latest = now + MAX_CLOCK_LEAD
    rejected = [RejectedEvent(event.id, AHEAD.format(now=now)) for event in events if event.at > latest]
    in_time = [event for event in events if event.at <= latest]
    rejected += [RejectedEvent(event.id, ITSELF) for event in in_time if event.supersedes == event.id]
    consistent = [event for event in in_time if event.supersedes != event.id]
    foreign = invalid_corrections(context, run, consistent)
    rejected += [RejectedEvent(consistent[place].id, reason) for place, reason in foreign.items()]
    valid = [event for place, event in enumerate(consistent) if place not in foreign]
    added = context.store.append_events(run, valid, now)
    rejected += [RejectedEvent(event_id, CONFLICT) for event_id in added.conflicts]
    return AppendResult(len(added.accepted), len(added.duplicates), tuple(rejected))
