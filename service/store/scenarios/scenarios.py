"""Scenarios and their chunks: what is to be evaluated, who has which part of it, and what has come of it.

A scenario's state never goes back: `queued` until its first chunk is claimed, `running` from then on, and one of `succeeded`, `failed`,
`cancelled` at the end. A chunk is claimed under the `single` of the job that works on it, and is held as long as that job is: there is no
second lease to renew. What a chunk gives is kept once; whoever comes second with the same brings nothing new.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, func, insert, select, update

from service.domain.idempotency import IdempotencyRecord
from service.domain.jobs import OPEN_STATES, JobState
from service.domain.scenarios import ScenarioDetail, ScenarioRecord
from service.domain.teams import DEFAULT_TEAM
from service.store.database import Database, insert_new, sanitize_text
from service.store.idempotency import store_response
from service.store.scenarios import statements
from service.store.scenarios.statements import CHUNK_ATTEMPTS, FREE, HELD
from service.store.scenarios.tables import scenario_chunks, scenarios
from service.store.tables import teams

Body = Mapping[str, Any]
REVIEW = -1
"""The number of the chunk that is no part of the work, but asks whether what is done is enough."""
KEPT_FOR = timedelta(days=30)
"""How long a scenario is kept after its end."""
LOST_WORKER_ERROR = f"its worker died or hung in each of {CHUNK_ATTEMPTS} attempts"
_FORGOTTEN_AT_ONCE = 200
_MOST_ERROR = 2000
_CLAIMS = 5


@dataclass(frozen=True, slots=True)
class NewScenario:
    """What a scenario is made of; `review_at` is the number of chunks after which it is first asked whether they are enough."""

    team: str
    kind: str
    units: int
    chunks: int
    review_at: int
    price_snapshot: str
    engine_version: str
    request: Body
    prepared: Body


@dataclass(frozen=True, slots=True)
class ChunkClaim:
    """A chunk, or the review, that the job of this `single` works on."""

    scenario: str
    number: int
    review_at: int
    single: str


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What a team has under way: how many scenarios, and how many units in them."""

    scenarios: int
    units: int


class TeamQuotaReached(Exception):
    """The team has under way what one team may."""

    def __init__(self, open_work: OpenWork) -> None:
        super().__init__(f"{open_work.scenarios} scenarios, {open_work.units} units")
        self.open_work = open_work


_ROW = tuple(scenarios.c[name] for name in ScenarioRecord.__dataclass_fields__)


class ScenarioRows(Database):
    """The part of the store that remembers scenarios."""

    def create_scenario(self, new: NewScenario, most: OpenWork, now: datetime, kept: IdempotencyRecord | None = None) -> ScenarioRecord:
        """A new, queued scenario of a team that may have `most` under way.

        Raises IdempotentReplay and IdempotencyKeyReused where `kept` was met before, TeamIsFull.
        """
        stamps: dict[str, Any] = {"id": str(uuid.uuid4()), "created_at": now, "updated_at": now, "error": None, "expires_at": None}
        stated = {name: getattr(new, name) for name in NewScenario.__dataclass_fields__}
        values = stated | stamps | {"state": "queued", "units_done": 0, "chunks_begun": 0}
        with self._write() as connection:
            remembered = store_response(connection, kept)
            if new.team == DEFAULT_TEAM:
                insert_new(connection, teams, [{"id": new.team, "name": new.team, "created_at": now}])
            # numbers are given one at a time: PostgreSQL waits on the team, SQLite has one writer anyway
            connection.execute(select(teams.c.id).where(teams.c.id == new.team).with_for_update())
            _check_room(connection, new, most)
            last = select(func.coalesce(func.max(scenarios.c.number), 0)).where(scenarios.c.team == new.team)
            values["number"] = int(connection.execute(last).scalar_one()) + 1
            connection.execute(insert(scenarios).values(values))
            made = ScenarioRecord(**{name: values[name] for name in ScenarioRecord.__dataclass_fields__})
            remembered(made)
        return made

    def scenario(self, team: str, scenario_id: str) -> ScenarioDetail | None:
        """A team's scenario, None where the team has none of that id."""
        query = select(*_ROW, scenarios.c.request, scenarios.c.result)
        with self._read() as connection:
            found = connection.execute(query.where(scenarios.c.id == scenario_id, scenarios.c.team == team)).mappings().first()
            return ScenarioDetail(_row(found), found["request"], found["result"]) if found else None

    def scenarios(self, team: str, after: int, limit: int) -> list[ScenarioRecord]:
        """A team's scenarios in the order in which they were made, those after a number."""
        query = select(*_ROW).where(scenarios.c.team == team, scenarios.c.number > after).order_by(scenarios.c.number)
        with self._read() as connection:
            return [_row(found) for found in connection.execute(query.limit(limit)).mappings()]

    def is_scenario_open(self, scenario_id: str) -> bool:
        """Whether the scenario is not over."""
        query = select(scenarios.c.id).where(scenarios.c.id == scenario_id, scenarios.c.state.in_(OPEN_STATES))
        with self._read() as connection:
            return connection.scalar(query) is not None

    def find_prepared(self, scenario_id: str) -> tuple[Body, str] | None:
        """What the workers are told of a scenario, and the name of its team; None where there is none."""
        query = select(scenarios.c.prepared, teams.c.name).join(teams).where(scenarios.c.id == scenario_id)
        with self._read() as connection:
            found = connection.execute(query).first()
            return (found[0], found[1]) if found else None

    def cancel_scenario(self, scenario_id: str, now: datetime) -> bool:
        """End a scenario that nobody wants any more, at once; False where it was over before."""
        with self._write() as connection:
            return _over(connection, scenario_id, "cancelled", now)

    def release_chunks(self, single: str) -> None:
        """A job begins again: what its last attempt held is held by nobody."""
        mine = and_(scenario_chunks.c.claimed_by == single, scenario_chunks.c.done_at.is_(None))
        with self._write() as connection:
            connection.execute(update(scenario_chunks).where(mine).values(claimed_by=None))

    def claim_chunk(self, single: str, now: datetime) -> ChunkClaim | None:
        """The next thing to do: of the team with the least under way, of its oldest scenario. None where nobody is needed."""
        for _ in range(_CLAIMS):
            with self._write() as connection:
                found = connection.scalar(statements.NEXT_SCENARIO, {"at": now})
                if found is None:
                    return None
                if claim := _claimed(connection, found, single, now):
                    return claim
        return None

    def save_tally(self, claim: ChunkClaim, tally: str, units: int, now: datetime) -> bool:
        """Keep what a chunk of so many units gave; False, and nothing changed, where that is known or wanted no more."""
        kept = {"this": claim.scenario, "chunk": claim.number, "made": tally, "at": now}
        with self._write() as connection:
            scenario = _locked(connection, claim.scenario)
            if scenario is None or connection.execute(statements.SAVE_TALLY, kept).rowcount != 1:
                return False
            connection.execute(statements.ADD_UNITS, {"this": claim.scenario, "more": units, "at": now})
            _call_review(connection, claim.scenario, scenario["review_at"])
        return True

    def tallies(self, scenario_id: str, numbers: range) -> list[str]:
        """What the chunks of these numbers gave, in their order."""
        wanted = scenario_chunks.c.number.between(numbers.start, numbers.stop - 1)
        query = select(scenario_chunks.c.tally).where(
            scenario_chunks.c.scenario == scenario_id, wanted, scenario_chunks.c.done_at.is_not(None)
        )
        with self._read() as connection:
            return [str(tally) for tally in connection.scalars(query.order_by(scenario_chunks.c.number))]

    def postpone_review(self, claim: ChunkClaim, review_at: int) -> bool:
        """What was reviewed is not enough: the next review is after so many chunks. False where that is known or wanted no more."""
        review = and_(scenario_chunks.c.scenario == claim.scenario, scenario_chunks.c.number == REVIEW)
        with self._write() as connection:
            scenario = _locked(connection, claim.scenario)
            if scenario is None or scenario["review_at"] != claim.review_at:
                return False
            connection.execute(delete(scenario_chunks).where(review))
            connection.execute(update(scenarios).where(scenarios.c.id == claim.scenario).values(review_at=review_at))
            _call_review(connection, claim.scenario, review_at)
        return True

    def complete_scenario(self, claim: ChunkClaim, result: Body, now: datetime) -> bool:
        """The scenario's result; False, and nothing changed, where it was over before."""
        with self._write() as connection:
            return _over(connection, claim.scenario, "succeeded", now, result=dict(result))

    def fail_chunk(self, claim: ChunkClaim, reason: str, now: datetime, *, is_final: bool = False) -> None:
        """An attempt at a chunk failed: with the last one, or one that no other would better, the scenario has failed."""
        told = sanitize_text(reason)[:_MOST_ERROR]
        freed = update(scenario_chunks).where(_held_by(claim)).values(claimed_by=None, error=told).returning(scenario_chunks.c.attempts)
        with self._write() as connection:
            if _locked(connection, claim.scenario) is None:
                return
            attempts = connection.scalar(freed)
            if attempts is not None and (is_final or attempts >= CHUNK_ATTEMPTS):
                _over(connection, claim.scenario, "failed", now, error=told)

    def return_chunk(self, claim: ChunkClaim) -> None:
        """The worker shuts down, or somebody else needs it: the next one takes the chunk, and no attempt is used up."""
        freed = {"claimed_by": None, "attempts": scenario_chunks.c.attempts - 1}
        with self._write() as connection:
            connection.execute(update(scenario_chunks).where(_held_by(claim)).values(freed))

    def close_exhausted(self, now: datetime) -> int:
        """End the scenarios of which a chunk has lost its worker too often; returns how many."""
        lost = and_(scenario_chunks.c.done_at.is_(None), scenario_chunks.c.attempts >= CHUNK_ATTEMPTS, ~HELD)
        query = select(scenario_chunks.c.scenario, scenario_chunks.c.error).join(scenarios).where(scenarios.c.state.in_(OPEN_STATES), lost)
        with self._read() as connection:
            if not connection.execute(query.limit(1), {"at": now}).all():
                return 0
        with self._write() as connection:
            found = connection.execute(query, {"at": now}).all()
            return sum(_over(connection, scenario, "failed", now, error=error or LOST_WORKER_ERROR) for scenario, error in found)

    def count_claimable_chunks(self, now: datetime, most: int) -> int:
        """For how many workers there is something to do, counted up to `most`."""
        ahead = select(func.coalesce(func.sum(scenarios.c.chunks - scenarios.c.chunks_begun), 0)).where(scenarios.c.state.in_(OPEN_STATES))
        freed = select(func.count()).select_from(scenario_chunks).join(scenarios).where(scenarios.c.state.in_(OPEN_STATES), FREE)
        with self._read() as connection:
            return min(most, int(connection.execute(ahead).scalar_one()) + int(connection.execute(freed, {"at": now}).scalar_one()))

    def forget_chunks(self) -> int:
        """Forget chunks of scenarios that are over, some at a time; returns how many."""
        over = select(scenario_chunks.c.scenario).join(scenarios).where(scenarios.c.state.not_in(OPEN_STATES)).limit(1)
        with self._read() as connection:
            scenario = connection.scalar(over)
        if scenario is None:
            return 0
        some = select(scenario_chunks.c.number).where(scenario_chunks.c.scenario == scenario).limit(_FORGOTTEN_AT_ONCE)
        with self._write() as connection:
            mine = and_(scenario_chunks.c.scenario == scenario, scenario_chunks.c.number.in_(some))
            return connection.execute(delete(scenario_chunks).where(mine)).rowcount

    def forget_scenarios(self, now: datetime) -> int:
        """Forget the scenarios whose time is up; returns how many."""
        with self._write() as connection:
            return connection.execute(delete(scenarios).where(scenarios.c.expires_at <= now)).rowcount


def _check_room(connection: Connection, new: NewScenario, most: OpenWork) -> None:
    query = select(func.count(), func.coalesce(func.sum(scenarios.c.units - scenarios.c.units_done), 0))
    count, units = connection.execute(query.where(scenarios.c.team == new.team, scenarios.c.state.in_(OPEN_STATES))).one()
    if count >= most.scenarios or units + new.units > most.units:
        raise TeamQuotaReached(OpenWork(int(count), int(units)))


def _row(found: RowMapping) -> ScenarioRecord:
    return ScenarioRecord(**{name: found[name] for name in ScenarioRecord.__dataclass_fields__})


def _held_by(claim: ChunkClaim) -> ColumnElement[bool]:
    mine = and_(scenario_chunks.c.scenario == claim.scenario, scenario_chunks.c.number == claim.number)
    return and_(mine, scenario_chunks.c.claimed_by == claim.single, scenario_chunks.c.done_at.is_(None))


def _locked(connection: Connection, scenario_id: str) -> RowMapping | None:
    """The scenario for as long as the transaction lasts, if it is not over. Whoever changes its chunks takes it first."""
    return connection.execute(statements.LOCK_SCENARIO, {"this": scenario_id}).mappings().first()


def _claimed(connection: Connection, scenario_id: str, single: str, now: datetime) -> ChunkClaim | None:
    scenario = _locked(connection, scenario_id)
    if scenario is None:
        return None
    number = connection.scalar(statements.FIRST_FREE_CHUNK, {"this": scenario_id, "at": now})
    if number is not None:
        connection.execute(statements.CLAIM_AGAIN, {"this": scenario_id, "chunk": number, "by": single})
        return ChunkClaim(scenario_id, number, scenario["review_at"], single)
    number = scenario["chunks_begun"]
    if number >= scenario["chunks"]:
        return None
    connection.execute(statements.CLAIM_NEW, {"this": scenario_id, "chunk": number, "by": single})
    connection.execute(statements.BEGIN_CHUNK, {"this": scenario_id, "begun": number + 1, "at": now})
    return ChunkClaim(scenario_id, number, scenario["review_at"], single)


def _call_review(connection: Connection, scenario_id: str, review_at: int) -> None:
    """Where all chunks are done that the next review is about, let somebody make it."""
    if connection.scalar(statements.COUNT_DONE, {"this": scenario_id, "last": review_at - 1}) == review_at:
        insert_new(connection, scenario_chunks, [{"scenario": scenario_id, "number": REVIEW, "attempts": 0}])


def _over(connection: Connection, scenario_id: str, state: JobState, now: datetime, **values: object) -> bool:
    """End a scenario, unless it has ended before."""
    change = update(scenarios).where(scenarios.c.id == scenario_id, scenarios.c.state.in_(OPEN_STATES))
    ended = {"state": state, "updated_at": now, "expires_at": now + KEPT_FOR, **values}
    return connection.execute(change.values(ended)).rowcount == 1
