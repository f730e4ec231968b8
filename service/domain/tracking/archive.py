"""Archived programs: their single events are in a file, their hourly sums and decisions stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.domain.errors import DomainError
from service.domain.tracking.records import ProgramRecord

MARK = "archived"
"""Member of an archived program's body."""


class ProgramArchived(DomainError):
    """What was asked for needs single events of an archived program, or would add some."""

    status = 409
    title = "Program archived"


@dataclass(frozen=True, slots=True)
class ArchiveMark:
    """When a program was archived, and the SHA-256 of its file's lines."""

    at: datetime
    sha256: str


@dataclass(frozen=True, slots=True)
class ArchivedRun:
    """A run of an archive: its events, its hours, and the SHA-256 of these hours as the database has them."""

    id: str
    name: str
    events: int
    hours: int
    hours_sha256: str


@dataclass(frozen=True, slots=True)
class ArchiveManifest:
    """First line of an archive. `version` is that of the program; `rows` are the numbers of rows by table."""

    format: int
    engine_version: str
    made_at: str
    team: str
    program: str
    name: str
    version: int
    rows: Mapping[str, int]
    runs: tuple[ArchivedRun, ...]


def archive_mark(program: ProgramRecord) -> ArchiveMark | None:
    """The mark of an archived program; None: its events are here."""
    mark: Mapping[str, Any] | None = program.body.get(MARK)
    return None if mark is None else ArchiveMark(datetime.fromisoformat(mark["at"]), mark["sha256"])


def where_events_are(mark: ArchiveMark) -> str:
    """A sentence that says what an archived program still has, and where its single events are."""
    return (
        f"archived on {mark.at:%Y-%m-%d}: hourly sums, decisions and notes are here; single events are in the archive with the SHA-256"
        f" {mark.sha256}, which who runs the service keeps and can bring back (`outlay unarchive`)"
    )
