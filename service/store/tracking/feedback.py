"""Outcomes of finished runs, by team."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from sqlalchemy import delete, select

from service.domain.tracking.feedback import RunOutcome
from service.store.database import Database, insert_into
from service.store.tracking.tables import track_lessons

MOST = 1000
"""Most outcomes that are read: the newest."""


class FeedbackRows(Database):
    """Storage of run outcomes."""

    def save_run_outcome(self, team: str, outcome: RunOutcome, now: datetime) -> None:
        """Store the outcome of a run, in place of an older one."""
        with self._write() as connection:
            new = insert_into(connection, track_lessons).values(run=outcome.run, team=team, body=asdict(outcome), at=now)
            values = {"body": new.excluded.body, "at": new.excluded.at}
            connection.execute(new.on_conflict_do_update(index_elements=["run"], set_=values))

    def delete_run_outcome(self, run: str) -> None:
        """Delete the outcome of a run that was opened again."""
        self._change(delete(track_lessons).where(track_lessons.c.run == run))

    def run_outcomes(self, team: str) -> tuple[RunOutcome, ...]:
        """Outcomes of a team, newest first."""
        query = select(track_lessons.c.body).where(track_lessons.c.team == team).order_by(track_lessons.c.at.desc()).limit(MOST)
        with self._read() as connection:
            return tuple(RunOutcome(**body) for body in connection.scalars(query))
