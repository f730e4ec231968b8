"""What a book of prices is made of: the providers' newest snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """One provider's part of a book: its snapshot, when that was taken, and the provider's present state."""

    provider: str
    snapshot: str
    taken_at: datetime
    verified_at: datetime | None
    fresh_for_s: int | None
    failures: int


@dataclass(frozen=True, slots=True)
class BookManifest:
    """A book's name and its parts by provider; no name where nothing is stored.

    `teams` are present team prices of operators' price files by the team's name, `quotes` those of the teams' own; no book contains them.
    """

    book: str | None
    parts: tuple[SnapshotRef, ...]
    teams: Mapping[str, SnapshotRef] = field(default_factory=dict)
    quotes: Mapping[str, SnapshotRef] = field(default_factory=dict)

    def of_team(self, team: str) -> tuple[SnapshotRef, ...]:
        """What a team has of its own; the later part has precedence."""
        return tuple(part[team] for part in (self.teams, self.quotes) if team in part)


EMPTY_MANIFEST = BookManifest(None, ())
