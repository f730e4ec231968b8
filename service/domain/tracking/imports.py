"""What an import brings: events with what their rows say of the run they belong to, and the rows that brought none, with the reason."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace
from typing import Any

from service.domain.tracking.events import API_NAMES, EVENT_FIELDS, Event, EventType

IDENTITY_FIELDS = frozenset({"id", "type", "at", "supersedes"})
CONTENT_FIELDS = tuple(field.name for field in fields(Event) if field.name not in IDENTITY_FIELDS)
DIGEST_CHARACTERS = 32


@dataclass(frozen=True, slots=True, order=True)
class RunReference:
    """What a row says of where it belongs: ids or names of a run and of its program; empty is what it does not say."""

    run: str = ""
    program: str = ""

    @property
    def is_stated(self) -> bool:
        """Whether it says anything."""
        return bool(self.run or self.program)


@dataclass(frozen=True, slots=True)
class ImportedEvent:
    """An event and the row it came from.

    Rows are numbered as a spreadsheet shows them: a header is row 1. Where a file has no header, its first row is row 1.
    """

    row: int
    reference: RunReference
    event: Event


@dataclass(frozen=True, slots=True)
class UnmatchedRow:
    """A row that brought no event, and why."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """What a file holds. Event ids are the same whenever the same thing is told again, in whatever order of rows and file.

    An id names the thing and not its figures: where an event of this id is kept with other content, the source has restated it, and
    `make_restatement` says so. `notes` are what was taken for granted or left out.
    """

    events: tuple[ImportedEvent, ...]
    unmatched: tuple[UnmatchedRow, ...] = ()
    notes: tuple[str, ...] = ()


def drop_foreign_fields(event: Event, kept: EventType) -> Event:
    """The event without what an event of the type that is kept does not take: a correction has no more than that."""
    without: dict[str, Any] = dict.fromkeys(_foreign(event, kept))
    return replace(event, **without)


def foreign_fields_text(event: Event, kept: EventType) -> str:
    """What `drop_foreign_fields` leaves out; empty where it leaves out nothing."""
    names = ", ".join(sorted(API_NAMES.get(name, name) for name in _foreign(event, kept)))
    return f"{names} of what was kept as {kept}, which takes no such field" if names else ""


def make_restatement(event: Event, stored: Event) -> Event | None:
    """The correction that turns what is kept into what the source says now; None where they say the same, or the source says nothing.

    `stored` is the newest kept word on this event: the event itself or its newest correction, which the new correction supersedes. Its id
    follows from both, so the same restatement told twice is one. It happened when the event happened.
    """
    words = _words(event)
    if not words or words == _words(stored):  # a correction without words would take back what is kept
        return None
    return replace(event, id=f"restated-{digest(stored.id, words)}", type="correction", at=stored.at, supersedes=stored.id)


def make_retraction(stored: Event) -> Event:
    """The correction that takes a kept event back, as where a bill's row has been tagged with another run since."""
    return Event(f"withdrawn-{digest(stored.id)}", "correction", stored.at, supersedes=stored.id)


def _foreign(event: Event, kept: EventType) -> list[str]:
    takes = EVENT_FIELDS[kept].takes
    return [name for name in CONTENT_FIELDS if name not in takes and getattr(event, name) is not None]


def _words(event: Event) -> str:
    """What an event says beside its id, type and time, as text: one not-a-number then equals another."""
    content = {name: getattr(event, name) for name in CONTENT_FIELDS}
    return "|".join(f"{name}={value!r}" for name, value in content.items() if value is not None)


def digest(*parts: str) -> str:
    """A name for these texts in this order; 128 bits of SHA-256, so that no two are ever the same by chance."""
    joined = "\x1f".join(part.replace("\x1f", " ") for part in parts)
    return hashlib.sha256(joined.encode()).hexdigest()[:DIGEST_CHARACTERS]
