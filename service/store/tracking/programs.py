"""Tracked programs and runs. Every version is kept in `track_revisions`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, func, insert, select, update

from service.domain.audit import Change
from service.domain.errors import VersionConflictError
from service.domain.idempotency import IdempotencyRecord
from service.domain.teams import DEFAULT_TEAM
from service.domain.tracking.records import ProgramRecord, ProgramVersion, RunRecord
from service.store.audit import record_change
from service.store.database import Database, columns_of, insert_new
from service.store.idempotency import store_response
from service.store.tables import api_keys, teams
from service.store.tracking.tables import track_programs, track_revisions, track_runs

Body = Mapping[str, Any]
_Tracked = TypeVar("_Tracked", ProgramRecord, RunRecord)

MOST_RUNS_REMEMBERED = 10_000
PROGRAM, RUN = columns_of(track_programs, ProgramRecord), columns_of(track_runs, RunRecord)


class TrackRows(Database):
    """Storage of programs and runs. Every read names the team: records of other teams are not found."""

    def create_program(
        self, team: str, body: Body, plan: Body | None, now: datetime, idempotency: IdempotencyRecord | None = None
    ) -> ProgramRecord:
        """A new program of a team. Raises IdempotentReplay and IdempotencyKeyReused for a known idempotency key."""
        with self._write() as connection:
            remembered = store_response(connection, idempotency)
            if team == DEFAULT_TEAM:
                insert_new(connection, teams, [{"id": team, "name": team, "created_at": now}])
            lock(connection, teams, teams.c.id == team)
            number = next_number(connection, track_programs.c.number, track_programs.c.team == team)
            values = _new(body, now) | {"team": team, "number": number, "plan": plan, "judged_events": 0}
            connection.execute(insert(track_programs).values(values))
            _revise(connection, values)
            made = ProgramRecord(**{name: values[name] for name in ProgramRecord.__dataclass_fields__})
            record_change(connection, Change(team, "program.create", made.id, None, _state(made)), now)
            remembered(made)
        return made

    def program(self, team: str, program_id: str) -> ProgramRecord | None:
        """A team's program, None where the team has none of that id."""
        return self._find(ProgramRecord, select(*PROGRAM).where(track_programs.c.id == program_id, track_programs.c.team == team))

    def programs(self, team: str, before: int, limit: int, state: str | None = None) -> list[ProgramRecord]:
        """A team's programs with a number below `before` (0: all), the newest first; with `state` only those in it."""
        query = select(*PROGRAM).where(track_programs.c.team == team)
        if before:
            query = query.where(track_programs.c.number < before)
        if state is not None:
            query = query.where(track_programs.c.body["state"].as_string() == state)
        return self._list(ProgramRecord, query.order_by(track_programs.c.number.desc()).limit(limit))

    def change_program(self, program: ProgramRecord, body: Body, now: datetime, by: str | None) -> ProgramRecord:
        """The program with a new body. Raises VersionConflictError where `program` is not its newest version."""
        with self._write() as connection:
            return save_version(connection, "program.change", program, {"body": dict(body)}, now, by)

    def create_run(
        self, program: ProgramRecord, name: str, body: Body, now: datetime, idempotency: IdempotencyRecord | None = None
    ) -> RunRecord:
        """A new run of a program. Raises IdempotentReplay and IdempotencyKeyReused for a known idempotency key."""
        with self._write() as connection:
            remembered = store_response(connection, idempotency)
            lock(connection, track_programs, track_programs.c.id == program.id)
            number = next_number(connection, track_runs.c.number, track_runs.c.program == program.id)
            place = {"team": program.team, "program": program.id, "number": number, "name": name}
            values = _new(body, now) | place | {"position": 0, "folded": 0, "archived_at": None}
            key = connection.execute(insert(track_runs).values(values).returning(track_runs.c.key)).scalar_one()
            _revise(connection, values)
            made = RunRecord(key=key, **{name: values[name] for name in RunRecord.__dataclass_fields__ if name != "key"})
            record_change(connection, Change(made.team, "run.create", made.id, None, _state(made)), now)
            remembered(made)
        return made

    def run(self, team: str, run_id: str) -> RunRecord | None:
        """A team's run, None where the team has none of that id."""
        return self._find(RunRecord, select(*RUN).where(track_runs.c.id == run_id, track_runs.c.team == team))

    def run_as_first_read(self, team: str, run_id: str) -> RunRecord | None:
        """As `run`, but read once by this process: only its key, id, program, team and number are sure to be the present ones."""
        if (team, run_id) not in self._runs_read:
            found = self.run(team, run_id)
            if found is None:
                return None
            if len(self._runs_read) >= MOST_RUNS_REMEMBERED:
                self._runs_read.clear()
            self._runs_read[team, run_id] = found
        return self._runs_read[team, run_id]

    @cached_property
    def _runs_read(self) -> dict[tuple[str, str], RunRecord]:
        return {}

    def runs(self, program_id: str, after: int = 0, limit: int | None = None) -> list[RunRecord]:
        """A program's runs in the order in which they were made, those after a number."""
        query = select(*RUN).where(track_runs.c.program == program_id, track_runs.c.number > after)
        return self._list(RunRecord, query.order_by(track_runs.c.number).limit(limit))

    def team_programs(self, team: str) -> list[ProgramRecord]:
        """All programs of a team."""
        return self._list(ProgramRecord, select(*PROGRAM).where(track_programs.c.team == team))

    def team_runs(self, team: str) -> list[RunRecord]:
        """All runs of a team."""
        return self._list(RunRecord, select(*RUN).where(track_runs.c.team == team))

    def change_run(self, run: RunRecord, body: Body, now: datetime, by: str | None) -> RunRecord:
        """The run with a new body. Raises VersionConflictError where `run` is not its newest version."""
        with self._write() as connection:
            return save_version(connection, "run.change", run, {"body": dict(body), "name": body["name"]}, now, by)

    def first_body(self, object_id: str) -> Body:
        """The first version of a program or run."""
        body = self.body_of_version(object_id, 1)
        assert body is not None
        return body

    def body_of_version(self, object_id: str, version: int) -> Body | None:
        """A version of a program or run; None where there is none of that number."""
        query = select(track_revisions.c.body).where(track_revisions.c.id == object_id, track_revisions.c.version == version)
        body: Body | None = self._scalar(query)
        return body

    def program_versions(self, program_id: str, limit: int) -> list[ProgramVersion]:
        """A program's versions, the newest first."""
        columns = (track_revisions.c.version, track_revisions.c.at, api_keys.c.name.label("by"))
        joined = track_revisions.outerjoin(api_keys, api_keys.c.id == track_revisions.c.by)
        query = select(*columns).select_from(joined).where(track_revisions.c.id == program_id)
        return self._list(ProgramVersion, query.order_by(track_revisions.c.version.desc()).limit(limit))

    def first_plan(self, program_id: str) -> Body | None:
        """Request and answer of the plan that a program was started with; None where it was started without."""
        plan: Body | None = self._scalar(select(track_programs.c.plan).where(track_programs.c.id == program_id))
        return plan


def save_version(connection: Connection, operation: str, row: _Tracked, values: dict[str, Any], now: datetime, by: str | None) -> _Tracked:
    """The row's next version with these values, at the end of a transaction. Raises VersionConflictError where `row` is not the newest."""
    table = track_programs if isinstance(row, ProgramRecord) else track_runs
    version = row.version + 1
    change = update(table).where(table.c.id == row.id, table.c.version == row.version)
    done = change.values(values | {"version": version, "updated_at": now}).returning(*columns_of(table, type(row)))
    changed = connection.execute(done).mappings().first()
    if changed is None:
        raise VersionConflictError(row.id)
    revision = {"id": row.id, "version": version, "body": values["body"], "at": now, "by": by}
    connection.execute(insert(track_revisions).values(revision))
    made = type(row)(**changed)
    record_change(connection, Change(row.team, operation, row.id, _state(row), _state(made)), now)
    return made


def _state(row: ProgramRecord | RunRecord) -> Body:
    """What the audit trail has the digest of."""
    return {"id": row.id, "version": row.version, "body": row.body}


def _new(body: Body, now: datetime) -> dict[str, Any]:
    return {"id": str(uuid.uuid4()), "version": 1, "body": dict(body), "created_at": now, "updated_at": now}


def next_number(connection: Connection, number: ColumnElement[int], where: ColumnElement[bool]) -> int:
    """One more than the highest number there, 1 for the first; the caller holds a lock."""
    return int(connection.scalar(select(func.coalesce(func.max(number), 0)).where(where)) or 0) + 1


def lock(connection: Connection, table: Table, which: Any) -> None:
    """Numbers are assigned one at a time: PostgreSQL locks the parent's row, SQLite has one writer."""
    connection.execute(select(table.c.id).where(which).with_for_update())


def _revise(connection: Connection, values: Mapping[str, Any]) -> None:
    revision = {"id": values["id"], "version": 1, "body": values["body"], "at": values["created_at"], "by": None}
    connection.execute(insert(track_revisions).values(revision))
