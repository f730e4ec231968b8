"""What metrics show of the database: waiting work, and its size."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select, text

from service.store.database import Database
from service.store.jobs import count_open_jobs
from service.store.tables import deliveries, heartbeats
from service.store.tracking.tables import track_runs

_FILES = ("", "-wal", "-shm")
"""Endings of SQLite's files."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Work that waits. `jobs` are counts by state, where `lost` ones have an expired lease; times are of the oldest, None: there is none.

    `events` are those that no worker has summed up into hours.
    """

    jobs: Mapping[str, int]
    oldest_job: datetime | None
    deliveries: int
    oldest_delivery: datetime | None
    events: int
    workers: int


class MetricRows(Database):
    """Statements for metrics; each takes some milliseconds, however much has been done before."""

    def backlog(self, now: datetime, alive_since: datetime) -> Backlog:
        """What waits now; workers count that were heard of since then."""
        with self._read() as connection:
            waiting = connection.execute(count_open_jobs(now)).all()
            pending = deliveries.c.state == "pending"
            undelivered, oldest = connection.execute(select(func.count(), func.min(deliveries.c.due_at)).where(pending)).one()
            events = connection.scalar(select(func.coalesce(func.sum(track_runs.c.position - track_runs.c.folded), 0)))
            workers = connection.scalar(select(func.count()).select_from(heartbeats).where(heartbeats.c.at >= alive_since))
        counts = {state: number for state, number, _ in waiting}
        oldest_job = min((since for _, _, since in waiting if since is not None), default=None)
        return Backlog(counts, oldest_job, undelivered, oldest, int(events or 0), int(workers or 0))

    def size_bytes(self) -> int:
        """Size of the database with its log."""
        if self.engine.dialect.name == "postgresql":
            return int(self._scalar(text("SELECT pg_database_size(current_database())")))
        total = 0
        for ending in _FILES:
            with suppress(FileNotFoundError):
                total += Path(f"{self.engine.url.database}{ending}").stat().st_size
        return total
