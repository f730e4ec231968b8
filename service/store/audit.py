"""The audit trail: written in the transaction of the change, chained by digests, never changed. Triggers refuse UPDATE and DELETE."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Index, Integer, String, Table, insert, select, update

from service.actor import ACTOR
from service.domain.audit import FIRST_PREVIOUS, AuditEntry, AuditFilter, Change, body_digest, entry_body, state_digest
from service.store.database import Database, columns_of, insert_into
from service.store.tables import UtcTime, metadata

audit_entries = Table(
    "audit_entries",
    metadata,
    Column("team", String(36), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", UtcTime, nullable=False),
    Column("operation", String(64), nullable=False),
    Column("object", String(200), nullable=False),
    Column("via", String(16), nullable=False),
    Column("key", String(16)),
    Column("user", String(200)),
    Column("address", String(64)),
    Column("request", String(64)),
    Column("before", String(64)),
    Column("after", String(64)),
    Column("previous", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
    Index("audit_entries_by_object", "team", "object", "number"),
    Index("audit_entries_by_key", "team", "key", "number"),
    Index("audit_entries_by_time", "team", "at", "number"),
)
audit_heads = Table(
    "audit_heads",
    metadata,
    Column("team", String(36), primary_key=True),
    Column("number", Integer, nullable=False),
    Column("digest", String(64), nullable=False),
)
"""Number and digest of each team's newest entry. Its row is locked last in a transaction, so that no two wait for each other."""

_ENTRY = columns_of(audit_entries, AuditEntry)


class AuditRows(Database):
    """Reading the trail. Every read names the team."""

    def audit_entries(self, team: str, before: int, limit: int, wanted: AuditFilter) -> list[AuditEntry]:
        """A team's entries with a number below `before` (0: all), the newest first."""
        query = select(*_ENTRY).where(audit_entries.c.team == team, *_conditions(wanted))
        if before:
            query = query.where(audit_entries.c.number < before)
        return self._list(AuditEntry, query.order_by(audit_entries.c.number.desc()).limit(limit))

    def audit_head(self, team: str) -> tuple[int, str]:
        """Number and digest of a team's newest entry as they are kept apart from the entries; 0 and zeros where it has none."""
        query = select(audit_heads.c.number, audit_heads.c.digest).where(audit_heads.c.team == team)
        return self._find(lambda number, digest: (number, digest), query) or (0, FIRST_PREVIOUS)


def record_change(connection: Connection, change: Change, at: datetime) -> None:
    """Append a change to the team's trail, at the end of the transaction that makes it."""
    first = {"team": change.team, "number": 1, "digest": FIRST_PREVIOUS}
    claim = insert_into(connection, audit_heads).values(first)
    claim = claim.on_conflict_do_update(index_elements=["team"], set_={"number": audit_heads.c.number + 1})
    number, previous = connection.execute(claim.returning(audit_heads.c.number, audit_heads.c.digest)).one()
    entry = _entry(change, at.astimezone(UTC), number, previous)
    connection.execute(insert(audit_entries).values(asdict(entry)))
    connection.execute(update(audit_heads).where(audit_heads.c.team == change.team).values(digest=entry.digest))


def _entry(change: Change, at: datetime, number: int, previous: str) -> AuditEntry:
    made: dict[str, Any] = {
        "team": change.team,
        "number": number,
        "at": at,
        "operation": change.operation,
        "object": change.object,
        **asdict(ACTOR.get()),
        "before": state_digest(change.before),
        "after": state_digest(change.after),
        "previous": previous,
    }
    return AuditEntry(**made, digest=body_digest(entry_body(AuditEntry(**made, digest=""))))


def _conditions(wanted: AuditFilter) -> list[ColumnElement[bool]]:
    same = {"object": wanted.object, "key": wanted.key, "operation": wanted.operation}
    found: list[ColumnElement[bool]] = [audit_entries.c[name] == value for name, value in same.items() if value is not None]
    if wanted.since is not None:
        found.append(audit_entries.c.at >= wanted.since)
    if wanted.until is not None:
        found.append(audit_entries.c.at < wanted.until)
    return found
