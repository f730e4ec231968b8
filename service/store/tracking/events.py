"""The event log: append-only, each event once. Its projections: `projections`.

Positions of a run's events have no gaps and are assigned under a lock on the run: a reader up to a position has seen everything before it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Connection, Row, String, and_, any_, bindparam, func, literal, select, text, update

from service.domain.budgets import StorageUse
from service.domain.tracking.archive import ProgramArchived
from service.domain.tracking.events import Event
from service.domain.tracking.records import LoggedEvent, RunRecord
from service.store.database import Database, chunks
from service.store.group_commit import GroupCommit
from service.store.results.tables import results
from service.store.tracking.event_rows import EventRow, event_of, event_row, is_retraction, micros, utc_datetime
from service.store.tracking.sqlite_log import NO_MORE_EVENTS, Batch, SqliteLog, append, driver_of
from service.store.tracking.tables import track_events, track_import_files, track_imports, track_programs, track_runs

LEFT = (
    "the run's single events were archived on {at:%Y-%m-%d} and are not here; the status and the report of its program have hourly sums,"
    " decisions and notes, and name the archive, which who runs the service can bring back (`outlay unarchive`)"
)
PARAMETERS = 500
"""Most parameters of one statement."""
EVENT = tuple(track_events.c[name] for name in EventRow._fields)
_TAKES_EVENTS = and_(track_runs.c.key == bindparam("run_key"), track_runs.c.archived_at.is_(None))
_LOCK = select(track_runs.c.key).where(_TAKES_EVENTS).with_for_update()
_NUMBERS = (
    update(track_runs)
    .where(_TAKES_EVENTS)
    .values(position=track_runs.c.position + bindparam("count"), bytes=track_runs.c.bytes + bindparam("bytes_more"))
    .returning(track_runs.c.position)
)
# A batch as one document takes PostgreSQL's driver a third of the time of its rows.
_IN_POSTGRESQL = text(
    "INSERT INTO track_events (run, position, received_at, event, type, at, body, supersedes)"
    " SELECT :run, :last + number, :received_at, row->>0, row->>1, CAST(row->>2 AS bigint), row->>3, row->>4"
    " FROM json_array_elements(CAST(:rows AS json)) WITH ORDINALITY AS sent(row, number) ON CONFLICT (run, event) DO NOTHING"
)


@dataclass(frozen=True, slots=True)
class AppendedEvents:
    """Ids of a batch: new ones, known ones, and known ones with another content."""

    accepted: tuple[str, ...]
    duplicates: tuple[str, ...]
    conflicts: tuple[str, ...]


class EventRows(Database):
    """Storage of events."""

    def append_events(self, run: RunRecord, events: Sequence[Event], now: datetime) -> AppendedEvents:
        """Append new events in one commit: accepted events and duplicates are durable when this returns.

        Raises ProgramArchived, and IntegrityError, SQLite's own or SQLAlchemy's, where the log holds events beyond the run's last position,
        as after a partial restore. Then nothing is stored.
        """
        batch = Batch(run.key, [event_row(event) for event in events], micros(now))
        if self._all_added(batch):
            return AppendedEvents(tuple(row.event for row in batch.rows), (), ())
        with self._write() as connection:
            if connection.execute(_LOCK, {"run_key": run.key}).first() is None:
                raise ProgramArchived(NO_MORE_EVENTS)
            stored = {row.event: EventRow._make(row) for row in rows_of(connection, run.key, [row.event for row in batch.rows])}
            added, new = _split_known(batch.rows, stored)
            appended = _append(connection, batch._replace(rows=new))
            if appended != len(new):
                raise RuntimeError(f"{appended} of {len(new)} new events of run {run.id} were appended under its lock")
        return added

    def close(self) -> None:
        """Close every connection."""
        self._sqlite_log.close()
        super().close()

    def _all_added(self, batch: Batch) -> bool:
        """Append the rows if all are new, the usual case, without a read; otherwise nothing is done. Raises ProgramArchived."""
        if self.engine.dialect.name == "sqlite":  # one writer at a time; PostgreSQL groups commits itself
            return self._grouped.write(batch)
        with self._write() as connection:
            whole = _append(connection, batch) == len(batch.rows)
            if not whole:
                connection.rollback()
        return whole

    @cached_property
    def _grouped(self) -> GroupCommit[Batch, bool]:
        return GroupCommit(self._sqlite_log.append_whole)

    @cached_property
    def _sqlite_log(self) -> SqliteLog:
        return SqliteLog(self.engine)

    def events(self, run: RunRecord, after: int, limit: int) -> list[LoggedEvent]:
        """A run's events after a position, in the order of arrival. Raises ProgramArchived."""
        columns = (*EVENT, track_events.c.position, track_events.c.received_at)
        query = select(*columns).where(track_events.c.run == run.key, track_events.c.position > after)
        with self._read() as connection:
            rows = connection.execute(query.order_by(track_events.c.position).limit(limit)).all()
            check_not_archived(connection, [run.key])
            return [LoggedEvent(row.position, event_of(row), utc_datetime(row.received_at)) for row in rows]

    def team_storage(self, team: str) -> StorageUse:
        """What a team has stored; archived events are not counted."""
        logs = select(func.coalesce(func.sum(track_runs.c.position), 0), func.coalesce(func.sum(track_runs.c.bytes), 0))
        of_team = logs.join(track_programs, track_programs.c.id == track_runs.c.program).where(track_programs.c.team == team)
        kept = select(func.coalesce(func.sum(func.length(results.c.record) + func.length(results.c.answer)), 0))
        files = select(func.coalesce(func.sum(track_imports.c.bytes), 0)).join(track_import_files)
        with self._read() as connection:
            rows, log_bytes = connection.execute(of_team.where(track_runs.c.archived_at.is_(None))).one()
            kept_bytes = connection.execute(kept.where(results.c.team == team)).scalar_one()
            file_bytes = connection.execute(files.where(track_imports.c.team == team)).scalar_one()
            return StorageUse(int(rows), int(log_bytes) + int(kept_bytes) + int(file_bytes))

    def find_events(self, run: RunRecord, ids: Sequence[str]) -> dict[str, Event]:
        """Stored events of these ids, by id."""
        with self._read() as connection:
            return {row.event: event_of(row) for row in rows_of(connection, run.key, ids)}

    def latest_revisions(self, run: RunRecord, ids: Sequence[str]) -> dict[str, Event]:
        """By event id: the event itself, or the latest correction of it."""
        with self._snapshot() as connection:
            newest = {row.event: event_of(row) for row in rows_of(connection, run.key, ids)}
            latest = dict(newest)
            while latest:
                by_id = {revision.id: event for event, revision in latest.items()}
                corrections = _corrections_of(connection, run.key, list(by_id))
                latest = {by_id[str(revision.supersedes)]: revision for revision in corrections}
                newest |= latest
            return newest

    def latest_revisions_elsewhere(self, runs: Sequence[RunRecord], ids: Sequence[str]) -> list[tuple[RunRecord, Event]]:
        """Latest revisions of events of these ids in other runs, retracted ones left out."""
        by_key = {run.key: run for run in runs}
        held: dict[int, list[str]] = defaultdict(list)
        with self._read() as connection:
            for keys in chunks(by_key, PARAMETERS):
                for chunk in chunks(ids, PARAMETERS):
                    where = (track_events.c.run.in_(keys), track_events.c.event.in_(chunk))
                    for key, event in connection.execute(select(track_events.c.run, track_events.c.event).where(*where)):
                        held[key].append(event)
        found = [
            (by_key[key], revision) for key, events in held.items() for revision in self.latest_revisions(by_key[key], events).values()
        ]
        return [(run, revision) for run, revision in found if not is_retraction(revision)]


def _append(connection: Connection, batch: Batch) -> int:
    """Append rows after the run's last position, which this locks; returns the number of new rows. Raises ProgramArchived."""
    if connection.dialect.name == "sqlite":
        return append(driver_of(connection.connection), batch)
    if not batch.rows:
        return 0
    count = len(batch.rows)
    last = connection.execute(_NUMBERS, {"run_key": batch.run, "count": count, "bytes_more": batch.bytes}).scalar_one_or_none()
    if last is None:
        raise ProgramArchived(NO_MORE_EVENTS)
    sent = {"run": batch.run, "last": last - count, "received_at": batch.received, "rows": json.dumps(batch.rows, ensure_ascii=False)}
    return connection.execute(_IN_POSTGRESQL, sent).rowcount


def check_not_archived(connection: Connection, runs: Sequence[int]) -> None:
    """Raise ProgramArchived where a run is archived; after its events were read, since they leave after this is known."""
    for chunk in chunks(runs, PARAMETERS):
        query = select(track_runs.c.archived_at).where(track_runs.c.key.in_(chunk), track_runs.c.archived_at.is_not(None))
        if (at := connection.scalar(query.limit(1))) is not None:
            raise ProgramArchived(LEFT.format(at=at))


def rows_of(connection: Connection, run: int, ids: Sequence[str]) -> Iterator[Row[Any]]:
    """Rows of the log with these ids, with the columns EVENT."""
    for chunk in chunks(ids, PARAMETERS):
        query = select(*EVENT).where(track_events.c.run == run, _one_of(connection, track_events.c.event, chunk))
        yield from connection.execute(query)


def _one_of(connection: Connection, column: ColumnElement[str], names: Sequence[str]) -> ColumnElement[bool]:
    """PostgreSQL gets the names as one array, so that the statement is the same for any number of names and is prepared once."""
    if connection.dialect.name == "postgresql":
        return column == any_(literal(names, ARRAY(String)))
    return column.in_(names)


def _split_known(rows: Sequence[EventRow], stored: dict[str, EventRow]) -> tuple[AppendedEvents, list[EventRow]]:
    new: list[EventRow] = []
    duplicates: list[str] = []
    conflicts: list[str] = []
    for row in rows:
        known = stored.get(row.event)
        if known is None:
            stored[row.event] = row
            new.append(row)
        else:
            (duplicates if known == row else conflicts).append(row.event)
    return AppendedEvents(tuple(row.event for row in new), tuple(duplicates), tuple(conflicts)), new


def _corrections_of(connection: Connection, run: int, ids: Sequence[str]) -> list[Event]:
    """Corrections that supersede one of the ids, oldest first."""
    found: list[Event] = []
    for chunk in chunks(ids, PARAMETERS):
        query = select(*EVENT).where(track_events.c.run == run, _one_of(connection, track_events.c.supersedes, chunk))
        found += [event_of(row) for row in connection.execute(query.order_by(track_events.c.at, track_events.c.event))]
    return found
