"""Contents of an import: events with references to their runs, and rows without an event with the reason."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from service.domain.answer_fields import HIDDEN, Doc
from service.domain.jobs import JobState
from service.domain.tracking.events import EVENT_FIELDS, Event, EventType, api_names, stated_fields

DIGEST_CHARACTERS = 32


@dataclass(frozen=True, slots=True, order=True)
class RunReference:
    """Ids or names of a run and of its program that a row states; empty where it states none."""

    run: str = ""
    program: str = ""

    @property
    def is_stated(self) -> bool:
        """Whether the row states a run or a program."""
        return bool(self.run or self.program)


@dataclass(frozen=True, slots=True)
class ImportedEvent:
    """An event and the row it came from.

    Rows are numbered as in a spreadsheet: a header is row 1. In a file without a header, the first row is row 1.
    """

    row: int
    reference: RunReference
    event: Event


@dataclass(frozen=True, slots=True)
class UnmatchedRow:
    """A row without an event, and the reason."""

    row: Annotated[int, Doc("Row as in a spreadsheet: the header is 1", minimum=1)]
    reason: Annotated[str, Doc("Why it belongs to no run", max_length=1000)]


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """Contents of a file. Event ids depend on the thing that is described, not on its figures or on the order of rows.

    A known id with other content is therefore a restatement by the source. `notes` state what was assumed or left out.
    """

    events: tuple[ImportedEvent, ...]
    unmatched: tuple[UnmatchedRow, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportJob:
    """An import that a worker does."""

    id: Annotated[str, Doc("Id of the import")]
    team: Annotated[str, HIDDEN]
    kind: Annotated[str, Doc("Kind of import")]
    state: Annotated[JobState, Doc("State, which never goes back: queued, running, then one of the others")]
    bytes: Annotated[int, Doc("Size of the file")]
    cpu_ms: Annotated[int, HIDDEN]
    progress_done: Annotated[int, HIDDEN]
    progress_total: Annotated[int, HIDDEN]
    result: Annotated[Mapping[str, Any] | None, HIDDEN]
    error: Annotated[str | None, Doc("Why it failed or what an attempt failed of, and how to go on", max_length=2000)]
    created_at: Annotated[datetime, Doc("When the file was received")]
    updated_at: Annotated[datetime, Doc("Time of the last change")]


@dataclass(frozen=True, slots=True)
class StoredParts:
    """How far an import has come: the digest of all its parts, the number of parts that are stored, their counts, and CPU time used."""

    digest: str | None
    parts: int
    counts: Mapping[str, Any]
    cpu_ms: int


def drop_foreign_fields(event: Event, stored_type: EventType) -> Event:
    """The event without fields that the stored event's type does not have: a correction takes no others."""
    without: dict[str, Any] = dict.fromkeys(_foreign(event, stored_type))
    return event._replace(**without)


def foreign_fields_text(event: Event, stored_type: EventType) -> str:
    """Names the fields that `drop_foreign_fields` drops; empty where there are none."""
    names = api_names(_foreign(event, stored_type))
    return f"{names} of an event stored as {stored_type}, which has no such field" if names else ""


def make_restatement(event: Event, stored: Event) -> Event | None:
    """The correction that turns the stored content into the source's present content; None where they agree, or the source has no content.

    `stored` is the latest revision of the event, which the correction supersedes. Its id follows from both contents, so that a repeated
    import makes the same correction. It has the time of the event.
    """
    content = _content_text(event)
    if not content or content == _content_text(stored):  # a correction without content would retract the event
        return None
    return event._replace(id=f"restated-{digest(stored.id, content)}", type="correction", at=stored.at, supersedes=stored.id)


def make_retraction(stored: Event) -> Event:
    """The correction that retracts a stored event, for example where an invoice row was moved to another run."""
    return Event(f"withdrawn-{digest(stored.id)}", "correction", stored.at, supersedes=stored.id)


def _foreign(event: Event, stored_type: EventType) -> list[str]:
    return [name for name in stated_fields(event) if name not in EVENT_FIELDS[stored_type].takes]


def _content_text(event: Event) -> str:
    """Content of an event besides id, type and time, as text, in which NaN equals NaN."""
    return "|".join(f"{name}={value!r}" for name, value in stated_fields(event).items())


def digest(*parts: str) -> str:
    """128 bits of SHA-256 over texts, as hexadecimal digits."""
    joined = "\x1f".join(part.replace("\x1f", " ") for part in parts)
    return hashlib.sha256(joined.encode()).hexdigest()[:DIGEST_CHARACTERS]
