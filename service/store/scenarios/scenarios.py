"""Scenarios and their chunks: requests, claims, tallies and results.

A scenario's state never goes back: `queued` until its first chunk is claimed, then `running`, and one of `succeeded`, `failed`,
`cancelled` at the end. A chunk is claimed with the key of the job that works on it and is held by that job's lease: chunks need no lease
of their own. A chunk's tally is stored once; a second attempt's is dropped.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, func, insert, select, update

from service.domain.audit import Change
from service.domain.idempotency import IdempotencyRecord
from service.domain.jobs import OPEN_STATES, JobState
from service.domain.scenarios import ScenarioDetail, ScenarioRecord
from service.domain.teams import DEFAULT_TEAM
from service.store.audit import record_change
from service.store.database import insert_new, sanitize_text
from service.store.deliveries import add_delivery
from service.store.idempotency import store_response
from service.store.scenarios import statements
from service.store.scenarios.statements import CHUNK_ATTEMPTS, FREE, HELD
from service.store.scenarios.tables import scenario_chunks, scenarios
from service.store.secrets import SecretRows, with_target
from service.store.tables import teams

Body = Mapping[str, Any]
REVIEW = -1
"""Chunk number of the review: the stopping check, and the result."""
RETENTION = timedelta(days=30)
"""Time between a scenario's end and its deletion."""
LOST_WORKER_ERROR = f"its worker died or hung in each of {CHUNK_ATTEMPTS} attempts"
_DELETED_AT_ONCE = 200
_ERROR_CHARS = 2000
_CLAIM_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class NewScenario:
    """A scenario to be stored; `review_at`: number of chunks before the first stopping check; `notify`: the target told of its end."""

    team: str
    kind: str
    units: int
    chunks: int
    review_at: int
    price_snapshot: str
    engine_version: str
    request: Body
    prepared: Body
    notify: Body | None = None


@dataclass(frozen=True, slots=True)
class ChunkClaim:
    """A chunk, or the review, that the job of this `single` works on."""

    scenario: str
    number: int
    review_at: int
    job_key: str


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Number of a team's open scenarios, and of the units left in them."""

    scenarios: int
    units: int


class TeamQuotaReached(Exception):
    """The team has reached its quota."""

    def __init__(self, open_work: OpenWork) -> None:
        super().__init__(f"{open_work.scenarios} scenarios, {open_work.units} units")
        self.open_work = open_work


_RECORD_COLUMNS = tuple(scenarios.c[name] for name in ScenarioRecord.__dataclass_fields__)


class ScenarioRows(SecretRows):
    """The part of the store that holds scenarios."""

    def create_scenario(
        self, new: NewScenario, quota: OpenWork, now: datetime, idempotency: IdempotencyRecord | None = None
    ) -> ScenarioRecord:
        """A new, queued scenario of a team with this quota of open work.

        Raises IdempotentReplay and IdempotencyKeyReused for a known `idempotency` key, and TeamQuotaReached.
        """
        stamps: dict[str, Any] = {"id": str(uuid.uuid4()), "created_at": now, "updated_at": now, "error": None, "expires_at": None}
        stated = {name: getattr(new, name) for name in NewScenario.__dataclass_fields__}
        values = stated | stamps | {"state": "queued", "units_done": 0, "chunks_begun": 0}
        with self._write() as connection:
            remembered = store_response(connection, idempotency, self._sealing(connection))
            if new.team == DEFAULT_TEAM:
                insert_new(connection, teams, [{"id": new.team, "name": new.team, "created_at": now}])
            # Numbers are assigned one at a time: PostgreSQL locks the team, SQLite has a single writer.
            connection.execute(select(teams.c.id).where(teams.c.id == new.team).with_for_update())
            _check_quota(connection, new, quota)
            last = select(func.coalesce(func.max(scenarios.c.number), 0)).where(scenarios.c.team == new.team)
            values["number"] = int(connection.execute(last).scalar_one()) + 1
            sealed = None if new.notify is None else with_target(new.notify, partial(self._seal, connection))
            connection.execute(insert(scenarios).values(values | {"notify": sealed}))
            record = ScenarioRecord(**{name: values[name] for name in ScenarioRecord.__dataclass_fields__})
            record_change(connection, Change(record.team, "scenario.create", record.id, None, _state(values)), now)
            remembered(record)
        return record

    def scenario(self, team: str, scenario_id: str) -> ScenarioDetail | None:
        """A team's scenario, None where the team has none of this id."""
        query = select(*_RECORD_COLUMNS, scenarios.c.request, scenarios.c.result, scenarios.c.notify)
        with self._read() as connection:
            row = connection.execute(query.where(scenarios.c.id == scenario_id, scenarios.c.team == team)).mappings().first()
            if row is None:
                return None
            target = None if row["notify"] is None else with_target(row["notify"], self._box.open)
            return ScenarioDetail(_record(row), row["request"], row["result"], target)

    def reseal_scenarios(self, *, plain_only: bool) -> int:
        """Seal the secrets of scenarios' targets under the newest key, with `plain_only` those that are not sealed; how many were changed.

        Raises SecretsUnavailable.
        """
        change = partial(with_target, change=self._resealing(plain_only=plain_only))
        with self._write() as connection:
            return self._reseal_column(connection, scenarios, scenarios.c.notify, change)

    def scenarios(self, team: str, before: int, limit: int, state: JobState | None = None) -> list[ScenarioRecord]:
        """A team's scenarios with a number below `before` (0: all), the newest first; with `state` only those in it."""
        query = select(*_RECORD_COLUMNS).where(scenarios.c.team == team).order_by(scenarios.c.number.desc())
        if before:
            query = query.where(scenarios.c.number < before)
        if state is not None:
            query = query.where(scenarios.c.state == state)
        with self._read() as connection:
            return [_record(row) for row in connection.execute(query.limit(limit)).mappings()]

    def is_scenario_open(self, scenario_id: str) -> bool:
        """Whether the scenario has not ended."""
        query = select(scenarios.c.id).where(scenarios.c.id == scenario_id, scenarios.c.state.in_(OPEN_STATES))
        with self._read() as connection:
            return connection.scalar(query) is not None

    def find_prepared(self, scenario_id: str) -> tuple[Body, str] | None:
        """A prepared scenario as JSON, and the name of its team; None for an unknown id."""
        query = select(scenarios.c.prepared, teams.c.name).join(teams).where(scenarios.c.id == scenario_id)
        with self._read() as connection:
            row = connection.execute(query).first()
            return (row[0], row[1]) if row else None

    def cancel_scenario(self, scenario_id: str, now: datetime) -> bool:
        """Cancel a scenario; False where it has ended before."""
        with self._write() as connection:
            row = connection.execute(select(*_RECORD_COLUMNS).where(scenarios.c.id == scenario_id).with_for_update()).mappings().first()
            if row is None or not _end(connection, scenario_id, "cancelled", now):
                return False
            after = _state({**row, "state": "cancelled"})
            record_change(connection, Change(row["team"], "scenario.cancel", scenario_id, _state(dict(row)), after), now)
        return True

    def release_chunks(self, job_key: str) -> None:
        """Release the chunks that an earlier attempt of a job held."""
        mine = and_(scenario_chunks.c.claimed_by == job_key, scenario_chunks.c.done_at.is_(None))
        with self._write() as connection:
            connection.execute(update(scenario_chunks).where(mine).values(claimed_by=None))

    def claim_chunk(self, job_key: str, now: datetime) -> ChunkClaim | None:
        """Claim the next chunk: of the team with the fewest running chunks, of its oldest scenario. None where there is none."""
        for _ in range(_CLAIM_ATTEMPTS):
            with self._write() as connection:
                scenario_id = connection.scalar(statements.NEXT_SCENARIO, {"at": now})
                if scenario_id is None:
                    return None
                if claim := _claim(connection, scenario_id, job_key, now):
                    return claim
        return None

    def save_tally(self, claim: ChunkClaim, tally: str, units: int, now: datetime) -> bool:
        """Store a chunk's tally; False, and no change, where the chunk is done or the scenario has ended."""
        values = {"this": claim.scenario, "chunk": claim.number, "made": tally, "at": now}
        with self._write() as connection:
            scenario = _locked(connection, claim.scenario)
            if scenario is None or connection.execute(statements.SAVE_TALLY, values).rowcount != 1:
                return False
            connection.execute(statements.ADD_UNITS, {"this": claim.scenario, "more": units, "at": now})
            _add_review(connection, claim.scenario, scenario["review_at"])
        return True

    def tallies(self, scenario_id: str, numbers: range) -> list[str]:
        """Tallies of the chunks with these numbers, in order."""
        wanted = scenario_chunks.c.number.between(numbers.start, numbers.stop - 1)
        query = select(scenario_chunks.c.tally).where(
            scenario_chunks.c.scenario == scenario_id, wanted, scenario_chunks.c.done_at.is_not(None)
        )
        with self._read() as connection:
            return [str(tally) for tally in connection.scalars(query.order_by(scenario_chunks.c.number))]

    def postpone_review(self, claim: ChunkClaim, review_at: int) -> bool:
        """Set the next review to `review_at` chunks. False where it is set already or the scenario has ended."""
        review = and_(scenario_chunks.c.scenario == claim.scenario, scenario_chunks.c.number == REVIEW)
        with self._write() as connection:
            scenario = _locked(connection, claim.scenario)
            if scenario is None or scenario["review_at"] != claim.review_at:
                return False
            connection.execute(delete(scenario_chunks).where(review))
            connection.execute(update(scenarios).where(scenarios.c.id == claim.scenario).values(review_at=review_at))
            _add_review(connection, claim.scenario, review_at)
        return True

    def complete_scenario(self, claim: ChunkClaim, result: Body, now: datetime) -> bool:
        """Store the scenario's result; False, and no change, where it has ended before."""
        with self._write() as connection:
            return _end(connection, claim.scenario, "succeeded", now, result=dict(result))

    def fail_chunk(self, claim: ChunkClaim, reason: str, now: datetime, *, is_final: bool = False) -> None:
        """Record a failed attempt at a chunk; the last attempt, or a final error, fails the scenario."""
        error = sanitize_text(reason)[:_ERROR_CHARS]
        freed = update(scenario_chunks).where(_held_by(claim)).values(claimed_by=None, error=error).returning(scenario_chunks.c.attempts)
        with self._write() as connection:
            if _locked(connection, claim.scenario) is None:
                return
            attempts = connection.scalar(freed)
            if attempts is not None and (is_final or attempts >= CHUNK_ATTEMPTS):
                _end(connection, claim.scenario, "failed", now, error=error)

    def return_chunk(self, claim: ChunkClaim) -> None:
        """Release a chunk when its worker stops; it does not count as an attempt."""
        freed = {"claimed_by": None, "attempts": scenario_chunks.c.attempts - 1}
        with self._write() as connection:
            connection.execute(update(scenario_chunks).where(_held_by(claim)).values(freed))

    def close_exhausted(self, now: datetime) -> int:
        """Fail the scenarios with a chunk that lost its worker in every attempt; returns their number."""
        lost = and_(scenario_chunks.c.done_at.is_(None), scenario_chunks.c.attempts >= CHUNK_ATTEMPTS, ~HELD)
        query = select(scenario_chunks.c.scenario, scenario_chunks.c.error).join(scenarios).where(scenarios.c.state.in_(OPEN_STATES), lost)
        with self._read() as connection:
            if not connection.execute(query.limit(1), {"at": now}).all():
                return 0
        with self._write() as connection:
            lost_chunks = connection.execute(query, {"at": now}).all()
            return sum(_end(connection, scenario, "failed", now, error=error or LOST_WORKER_ERROR) for scenario, error in lost_chunks)

    def count_claimable_chunks(self, now: datetime, most: int) -> int:
        """Number of chunks that can be claimed, counted up to `most`."""
        ahead = select(func.coalesce(func.sum(scenarios.c.chunks - scenarios.c.chunks_begun), 0)).where(scenarios.c.state.in_(OPEN_STATES))
        freed = select(func.count()).select_from(scenario_chunks).join(scenarios).where(scenarios.c.state.in_(OPEN_STATES), FREE)
        with self._read() as connection:
            return min(most, int(connection.execute(ahead).scalar_one()) + int(connection.execute(freed, {"at": now}).scalar_one()))

    def forget_chunks(self) -> int:
        """Delete chunks of ended scenarios, some at a time; returns their number."""
        over = select(scenario_chunks.c.scenario).join(scenarios).where(scenarios.c.state.not_in(OPEN_STATES)).limit(1)
        with self._read() as connection:
            scenario = connection.scalar(over)
        if scenario is None:
            return 0
        some = select(scenario_chunks.c.number).where(scenario_chunks.c.scenario == scenario).limit(_DELETED_AT_ONCE)
        with self._write() as connection:
            mine = and_(scenario_chunks.c.scenario == scenario, scenario_chunks.c.number.in_(some))
            return connection.execute(delete(scenario_chunks).where(mine)).rowcount

    def forget_scenarios(self, now: datetime) -> int:
        """Delete expired scenarios; returns their number."""
        with self._write() as connection:
            return connection.execute(delete(scenarios).where(scenarios.c.expires_at <= now)).rowcount


def _check_quota(connection: Connection, new: NewScenario, quota: OpenWork) -> None:
    query = select(func.count(), func.coalesce(func.sum(scenarios.c.units - scenarios.c.units_done), 0))
    count, units = connection.execute(query.where(scenarios.c.team == new.team, scenarios.c.state.in_(OPEN_STATES))).one()
    if count >= quota.scenarios or units + new.units > quota.units:
        raise TeamQuotaReached(OpenWork(int(count), int(units)))


def _state(row: Mapping[str, Any]) -> Body:
    """What the audit trail has the digest of: nothing that workers change."""
    cancelled = row["state"] == "cancelled"
    return {name: row[name] for name in ("id", "kind", "units", "price_snapshot", "engine_version")} | {"cancelled": cancelled}


def _record(row: RowMapping) -> ScenarioRecord:
    return ScenarioRecord(**{name: row[name] for name in ScenarioRecord.__dataclass_fields__})


def _held_by(claim: ChunkClaim) -> ColumnElement[bool]:
    mine = and_(scenario_chunks.c.scenario == claim.scenario, scenario_chunks.c.number == claim.number)
    return and_(mine, scenario_chunks.c.claimed_by == claim.job_key, scenario_chunks.c.done_at.is_(None))


def _locked(connection: Connection, scenario_id: str) -> RowMapping | None:
    """Lock an open scenario until the end of the transaction, as every change of its chunks must; None where it has ended."""
    return connection.execute(statements.LOCK_SCENARIO, {"this": scenario_id}).mappings().first()


def _claim(connection: Connection, scenario_id: str, job_key: str, now: datetime) -> ChunkClaim | None:
    scenario = _locked(connection, scenario_id)
    if scenario is None:
        return None
    number = connection.scalar(statements.FIRST_FREE_CHUNK, {"this": scenario_id, "at": now})
    if number is not None:
        connection.execute(statements.CLAIM_AGAIN, {"this": scenario_id, "chunk": number, "by": job_key})
        return ChunkClaim(scenario_id, number, scenario["review_at"], job_key)
    number = scenario["chunks_begun"]
    if number >= scenario["chunks"]:
        return None
    connection.execute(statements.CLAIM_NEW, {"this": scenario_id, "chunk": number, "by": job_key})
    connection.execute(statements.BEGIN_CHUNK, {"this": scenario_id, "begun": number + 1, "at": now})
    return ChunkClaim(scenario_id, number, scenario["review_at"], job_key)


def _add_review(connection: Connection, scenario_id: str, review_at: int) -> None:
    """Add the review when all chunks before it are done."""
    if connection.scalar(statements.COUNT_DONE, {"this": scenario_id, "last": review_at - 1}) == review_at:
        insert_new(connection, scenario_chunks, [{"scenario": scenario_id, "number": REVIEW, "attempts": 0}])


def _end(connection: Connection, scenario_id: str, state: JobState, now: datetime, **values: object) -> bool:
    """End a scenario, and store the message about it; False where it has ended before."""
    change = update(scenarios).where(scenarios.c.id == scenario_id, scenarios.c.state.in_(OPEN_STATES))
    ended = {"state": state, "updated_at": now, "expires_at": now + RETENTION, **values}
    row = connection.execute(change.values(ended).returning(scenarios.c.team, scenarios.c.notify)).first()
    if row is not None and row.notify is not None:
        add_delivery(connection, row.team, now, scenario=scenario_id)
    return row is not None
