"""Figures of tracked programs that a worker has computed for metrics, so that a scrape computes none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, func, or_, select

from service.domain.tracking.records import ProgramRecord
from service.store.database import Database, insert_into
from service.store.tables import teams
from service.store.tracking.programs import PROGRAM
from service.store.tracking.tables import track_figures, track_programs, track_runs


@dataclass(frozen=True, slots=True)
class DueFigures:
    """A program whose figures are to be computed, and its number of events."""

    program: ProgramRecord
    events: int


@dataclass(frozen=True, slots=True)
class StoredFigures:
    """Figures of a program as stored, the names of its team and of itself, and when they were computed."""

    team: str
    program: str
    name: str
    body: Sequence[Any]
    at: datetime


class FigureRows(Database):
    """Storage of program figures."""

    def due_figures(self, state: str, changed_before: datetime, before: datetime, limit: int) -> list[DueFigures]:
        """Programs in a state without figures, with figures of before `before`, or with new events since others of `changed_before`.

        The longest waiting first.
        """
        events = select(func.coalesce(func.sum(track_runs.c.position), 0)).where(track_runs.c.program == track_programs.c.id)
        number, at = events.scalar_subquery(), track_figures.c.at
        changed = and_(number > track_figures.c.events, at <= changed_before)
        query = select(*PROGRAM, number.label("events")).outerjoin(track_figures, track_figures.c.program == track_programs.c.id)
        query = query.where(track_programs.c.body["state"].as_string() == state, or_(at.is_(None), at <= before, changed))
        return self._list(
            lambda events, **program: DueFigures(ProgramRecord(**program), int(events)), query.order_by(at.is_not(None), at).limit(limit)
        )

    def save_figures(self, due: DueFigures, body: Sequence[Any], now: datetime) -> None:
        """Store a program's figures in place of earlier ones."""
        values = {"events": due.events, "body": list(body), "at": now}
        with self._write() as connection:
            row = insert_into(connection, track_figures).values(program=due.program.id, **values)
            connection.execute(row.on_conflict_do_update(index_elements=["program"], set_=values))

    def figures(self, state: str, limit: int) -> list[StoredFigures]:
        """Figures of programs in a state, the newest programs first."""
        name = track_programs.c.body["name"].as_string().label("name")
        query = select(teams.c.name.label("team"), track_programs.c.id.label("program"), name, track_figures.c.body, track_figures.c.at)
        query = query.join(track_programs, track_programs.c.id == track_figures.c.program).join(teams, teams.c.id == track_programs.c.team)
        query = query.where(track_programs.c.body["state"].as_string() == state)
        return self._list(StoredFigures, query.order_by(track_programs.c.created_at.desc(), track_programs.c.id).limit(limit))

    def count_programs(self, state: str) -> int:
        """Number of programs in a state, of all teams."""
        of_state = track_programs.c.body["state"].as_string() == state
        return int(self._scalar(select(func.count()).select_from(track_programs).where(of_state)))
