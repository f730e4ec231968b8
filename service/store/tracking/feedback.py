"""What finished runs teach, by team."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from sqlalchemy import delete, select

from service.domain.tracking.feedback import RunOutcome
from service.store.database import Database, insert_into
from service.store.tracking.tables import track_lessons

MOST = 1000
"""Lessons that are read: the newest."""


class FeedbackRows(Database):
    """The part of the store that remembers lessons."""

    def save_run_outcome(self, team: str, lesson: RunOutcome, now: datetime) -> None:
        """The lesson of a run, in the place of an older one of the same run."""
        with self._write() as connection:
            new = insert_into(connection, track_lessons).values(run=lesson.run, team=team, body=asdict(lesson), at=now)
            kept = {"body": new.excluded.body, "at": new.excluded.at}
            connection.execute(new.on_conflict_do_update(index_elements=["run"], set_=kept))

    def delete_run_outcome(self, run: str) -> None:
        """The run is open again: it teaches nothing until it is closed."""
        with self._write() as connection:
            connection.execute(delete(track_lessons).where(track_lessons.c.run == run))

    def run_outcomes(self, team: str) -> tuple[RunOutcome, ...]:
        """A team's lessons, the newest first."""
        query = select(track_lessons.c.body).where(track_lessons.c.team == team).order_by(track_lessons.c.at.desc()).limit(MOST)
        with self._read() as connection:
            return tuple(RunOutcome(**body) for body in connection.scalars(query))
