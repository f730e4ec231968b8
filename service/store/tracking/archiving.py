"""Events of programs that leave for a file and come back; the rows of runs, their hours and all else stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, delete, func, select, update

from service.domain.errors import VersionConflictError
from service.domain.tracking.records import ProgramRecord, RunRecord
from service.store.database import Database, insert_into
from service.store.tracking.programs import lock, save_version
from service.store.tracking.tables import track_events, track_hours, track_programs, track_runs

Row = Mapping[str, Any]
ROWS_AT_ONCE = 1000
_EVENT = [column for column in track_events.c if column.name != "run"]


@dataclass(frozen=True, slots=True)
class ProgramLog:
    """A program and its runs as rows in one state of the database, from which hours and events can be read."""

    connection: Connection
    program: Row
    runs: Sequence[Row]

    def hours(self, run: int) -> dict[int, str]:
        """Texts of the run's projected hours, in their order."""
        query = select(track_hours.c.hour, track_hours.c.body).where(track_hours.c.run == run).order_by(track_hours.c.hour)
        return {row.hour: row.body for row in self.connection.execute(query)}

    def events(self, run: int) -> Iterator[Row]:
        """The run's events without its key: first corrections in the order of arrival, then the others in the order of their times."""
        of_run = select(*_EVENT).where(track_events.c.run == run)
        corrections = of_run.where(track_events.c.supersedes.is_not(None)).order_by(track_events.c.position)
        others = of_run.where(track_events.c.supersedes.is_(None)).order_by(track_events.c.at, track_events.c.position)
        for query in (corrections, others):
            with self.connection.execution_options(yield_per=ROWS_AT_ONCE).execute(query) as result:
                yield from (dict(row) for row in result.mappings())


class ArchiveRows(Database):
    """Archiving. What a kill leaves half done is marked as archived, and each step can be repeated."""

    @contextmanager
    def program_log(self, program_id: str) -> Iterator[ProgramLog]:
        """One state of a program and its runs."""
        with self._snapshot() as connection:
            program = connection.execute(select(track_programs).where(track_programs.c.id == program_id)).mappings().one()
            runs = connection.execute(select(track_runs).where(track_runs.c.program == program_id).order_by(track_runs.c.number)).mappings()
            yield ProgramLog(connection, dict(program), [dict(run) for run in runs])

    def mark_archived(self, program: ProgramRecord, positions: Mapping[str, int], body: Row, now: datetime, by: str | None) -> None:
        """Refuse events of the program's runs from now on, and give it a new body.

        Raises VersionConflictError unless the program is at its version, and each run at its position in `positions`, all of it projected.
        """
        with self._write() as connection:
            lock(connection, track_programs, track_programs.c.id == program.id)
            for run, position in positions.items():
                whole = and_(track_runs.c.position == position, track_runs.c.folded == position, track_runs.c.archived_at.is_(None))
                marked = update(track_runs).where(track_runs.c.id == run, whole).values(archived_at=now)
                if connection.execute(marked).rowcount != 1:
                    raise VersionConflictError(run)
            unmarked = and_(track_runs.c.program == program.id, track_runs.c.archived_at.is_(None))
            if connection.scalar(select(func.count()).where(unmarked)):
                raise VersionConflictError(program.id)
            save_version(connection, "program.archive", program, {"body": dict(body)}, now, by)

    def drop_archived_events(self, run: RunRecord, after: int, upto: int) -> None:
        """Delete an archived run's events after one position, up to another. Raises VersionConflictError for a run that is not archived."""
        position = track_events.c.position
        with self._write() as connection:
            _lock_archived(connection, run)
            connection.execute(delete(track_events).where(track_events.c.run == run.key, position > after, position <= upto))

    def put_archived_events(self, run: RunRecord, rows: Sequence[Row]) -> None:
        """Put events back into an archived run; those that are there stay. Raises VersionConflictError for a run that is not archived."""
        with self._write() as connection:
            _lock_archived(connection, run)
            new = insert_into(connection, track_events).on_conflict_do_nothing(index_elements=["run", "position"])
            connection.execute(new, [{**row, "run": run.key} for row in rows])

    def end_archive(self, program: ProgramRecord, body: Row, now: datetime, by: str | None) -> None:
        """Let the runs take events again, and give the program a new body.

        Raises VersionConflictError unless the program is at its version and all events of its archived runs are back.
        """
        archived = and_(track_runs.c.program == program.id, track_runs.c.archived_at.is_not(None))
        with self._write() as connection:
            lock(connection, track_programs, track_programs.c.id == program.id)
            runs = connection.execute(select(track_runs.c.key, track_runs.c.position).where(archived).with_for_update()).all()
            for key, position in runs:
                if connection.scalar(select(func.count()).select_from(track_events).where(track_events.c.run == key)) != position:
                    raise VersionConflictError(program.id)
            connection.execute(update(track_runs).where(archived).values(archived_at=None))
            save_version(connection, "program.unarchive", program, {"body": dict(body)}, now, by)


def _lock_archived(connection: Connection, run: RunRecord) -> None:
    archived = and_(track_runs.c.key == run.key, track_runs.c.archived_at.is_not(None))
    if connection.execute(select(track_runs.c.key).where(archived).with_for_update()).first() is None:
        raise VersionConflictError(run.id)
