"""Appends to the event log in SQLite, on the driver itself: with SQLAlchemy a single event takes twice the CPU time."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Engine, PoolProxiedConnection

from service.domain.tracking.archive import ProgramArchived
from service.store.database import begin_immediately, translate_db_errors
from service.store.group_commit import GroupRefusedError
from service.store.tracking.event_rows import EventRow

ROW_BYTES = 120
"""What an event takes besides its body, and its id in row and index: other columns and other indexes, measured on SQLite."""
NO_MORE_EVENTS = "the run's program is archived: it takes no more events; who runs the service can bring it back (`outlay unarchive`)"
_NUMBERS = "UPDATE track_runs SET position = position + ?, bytes = bytes + ? WHERE key = ? AND archived_at IS NULL RETURNING position"
# Only known event ids are skipped: a position that is taken already is an error, as after a partial restore, and no duplicate.
_INSERT = (
    "INSERT INTO track_events (run, position, received_at, event, type, at, body, supersedes)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, event) DO NOTHING"
)


class Batch(NamedTuple):
    """Rows for the log of the run with that key."""

    run: int
    rows: Sequence[EventRow]
    received: int

    @property
    def bytes(self) -> int:
        """What the log takes for them, about."""
        return sum(len(row.body) + 2 * len(row.event) + ROW_BYTES for row in self.rows)


class SqliteLog:
    """One connection for the appends of a process, which take turns: it keeps the pages of the log and is never handed round."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._connection: PoolProxiedConnection | None = None

    def append_whole(self, batches: Sequence[Batch]) -> list[bool]:
        """Append batches of new rows in one transaction; where one holds known rows, nothing is written, and none of them was.

        Raises GroupRefusedError where one of several holds known rows or rows beyond the run's last position, or is of an archived run;
        ProgramArchived and sqlite3.IntegrityError for a single one.
        """
        try:
            whole = self._append_whole(batches)
        except (ProgramArchived, sqlite3.IntegrityError):
            if len(batches) > 1:
                raise GroupRefusedError from None
            raise
        if not whole and len(batches) > 1:
            raise GroupRefusedError
        return [whole for _ in batches]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.invalidate()
                self._connection = None

    def _append_whole(self, batches: Sequence[Batch]) -> bool:
        with self._lock, translate_db_errors():
            driver = self._driver()
            begin_immediately(driver)
            try:
                whole = all(append(driver, batch) == len(batch.rows) for batch in batches)
                if whole:
                    driver.commit()
            finally:
                driver.rollback()  # nothing after a commit
        return whole

    def _driver(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._engine.raw_connection()
            driver_of(self._connection).execute("PRAGMA busy_timeout=0")  # `begin_immediately` waits by itself
        return driver_of(self._connection)


def driver_of(connection: PoolProxiedConnection) -> sqlite3.Connection:
    """The driver's connection behind the pool's."""
    driver = connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        raise TypeError(f"{type(driver).__name__} is no connection of SQLite")
    return driver


def append(driver: sqlite3.Connection, batch: Batch) -> int:
    """Append rows after the run's last position; returns the number of new ones. Raises ProgramArchived and sqlite3.IntegrityError."""
    if not batch.rows:
        return 0
    count = len(batch.rows)
    numbered = driver.execute(_NUMBERS, (count, batch.bytes, batch.run)).fetchone()
    if numbered is None:
        raise ProgramArchived(NO_MORE_EVENTS)
    first = numbered[0] - count + 1
    return driver.executemany(
        _INSERT, [(batch.run, position, batch.received, *row) for position, row in enumerate(batch.rows, first)]
    ).rowcount
