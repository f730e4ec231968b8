"""Imports that workers do: a job, how far it has come, and its file while it has not ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, case, delete, func, insert, select, update

from service.domain.jobs import OPEN_STATES
from service.domain.teams import DEFAULT_TEAM
from service.domain.tracking.imports import ImportJob, StoredParts
from service.store.database import Database, columns_of, insert_new
from service.store.jobs import is_claimable, is_held, new_job_row
from service.store.tables import jobs, teams
from service.store.tracking.programs import lock
from service.store.tracking.tables import track_import_files, track_imports

_OPEN = jobs.c.state.in_(OPEN_STATES)
_NOTHING: Mapping[str, Any] = {"digest": None, "parts": 0, "counts": {}, "cpu_ms": 0}
_FROM_JOB = ("state", "progress_done", "progress_total", "result", "error", "created_at", "updated_at")
_IMPORT = (*(track_imports.c[name] for name in ("id", "team", "kind", "bytes", "cpu_ms")), *(jobs.c[name] for name in _FROM_JOB))


@dataclass(frozen=True, slots=True)
class NewImport:
    """A file to import. `dedup_key`: of equal ones only one is open; `request`: what the job is told besides its id."""

    team: str
    job_kind: str
    kind: str
    request: Mapping[str, Any]
    content: bytes
    dedup_key: str


class ImportRows(Database):
    """Storage of imports."""

    def create_import(self, new: NewImport, most_open: int, now: datetime) -> tuple[str, bool] | None:
        """The id of the open import of this file, and whether it is new; None where the team has `most_open` others."""
        with self._write() as connection:
            if new.team == DEFAULT_TEAM:
                insert_new(connection, teams, [{"id": new.team, "name": new.team, "created_at": now}])
            lock(connection, teams, teams.c.id == new.team)
            if (known := connection.scalar(select(jobs.c.id).where(jobs.c.dedup_key == new.dedup_key))) is not None:
                return str(known), False
            count = _imports(select(func.count())).where(track_imports.c.team == new.team, _OPEN)
            if connection.execute(count).scalar_one() >= most_open:
                return None
            job = new_job_row(new.job_kind, {}, now) | {"dedup_key": new.dedup_key}
            job["payload"] = {**new.request, "import": job["id"], "team": new.team, "kind": new.kind}
            connection.execute(insert(jobs).values(job))
            row = {"id": job["id"], "team": new.team, "kind": new.kind, "bytes": len(new.content), **_NOTHING}
            connection.execute(insert(track_imports).values(row))
            connection.execute(insert(track_import_files).values(id=job["id"], content=new.content))
        return str(job["id"]), True

    def find_import(self, team: str, import_id: str) -> ImportJob | None:
        """A team's import, None where the team has none of that id."""
        query = _imports(select(*_IMPORT)).where(track_imports.c.id == import_id, track_imports.c.team == team)
        return self._find(ImportJob, query)

    def next_import(self, now: datetime) -> str | None:
        """The waiting import whose turn it is, None where none waits.

        It is of the team with the fewest at work, of several of the one that was served longest ago, and the oldest of that team.
        """
        at_work = func.sum(case((is_held(now), 1), else_=0)).label("at_work")
        last = func.max(case((jobs.c.attempt > 0, jobs.c.updated_at))).label("last")
        served = _imports(select(track_imports.c.team, at_work, last)).group_by(track_imports.c.team).subquery()
        waiting = _imports(select(jobs.c.id)).join(served, served.c.team == track_imports.c.team).where(is_claimable(now))
        found: str | None = self._scalar(
            waiting.order_by(served.c.at_work, served.c.last.nulls_first(), jobs.c.created_at, jobs.c.id).limit(1)
        )
        return found

    def imports_at_work(self, now: datetime) -> int:
        """Number of imports that workers hold."""
        return int(self._scalar(_imports(select(func.count())).where(is_held(now))))

    def waits_for_import(self, team: str, now: datetime, since: datetime) -> bool:
        """Whether another team has an import that has waited since then."""
        waiting = _imports(select(jobs.c.id)).where(track_imports.c.team != team, is_claimable(now), jobs.c.updated_at <= since)
        return self._scalar(waiting.limit(1)) is not None

    def import_content(self, import_id: str) -> bytes | None:
        """The file of an import; None where it has been deleted."""
        content = self._scalar(select(track_import_files.c.content).where(track_import_files.c.id == import_id))
        return None if content is None else bytes(content)

    def stored_parts(self, import_id: str) -> StoredParts | None:
        """How far an import has come, None for an unknown one."""
        return self._find(StoredParts, select(*columns_of(track_imports, StoredParts)).where(track_imports.c.id == import_id))

    def save_parts(self, import_id: str, stored: StoredParts) -> None:
        """Note how far an import has come. An attempt that has lost its lease changes nothing of a later one that has come further."""
        further = (track_imports.c.digest != stored.digest) | track_imports.c.digest.is_(None) | (track_imports.c.parts <= stored.parts)
        values = {"digest": stored.digest, "parts": stored.parts, "counts": dict(stored.counts), "cpu_ms": stored.cpu_ms}
        self._change(update(track_imports).where(track_imports.c.id == import_id, further).values(values))

    def drop_import_files(self) -> int:
        """Delete the files of imports that have ended; returns their number."""
        with self._read() as connection:  # most of the time there is none, and nothing is to be locked for that
            ended = list(connection.scalars(_imports(select(track_import_files.c.id), files=True).where(~_OPEN)))
        return self._change(delete(track_import_files).where(track_import_files.c.id.in_(ended))) if ended else 0


def _imports(query: Select[Any], *, files: bool = False) -> Select[Any]:
    """The query over imports with their jobs, with `files` over those that have one."""
    joined = track_imports.join(jobs, jobs.c.id == track_imports.c.id)
    if files:
        joined = joined.join(track_import_files, track_import_files.c.id == track_imports.c.id)
    return query.select_from(joined)
