"""Statements that run for every chunk, built once.

Building a statement takes longer than SQLite takes to run it, and all other writers would wait for it. Parameters: `at` is the time,
`this` the scenario, `chunk` the number of its chunk, `by` the key of the job that claims it, `made` its tally.
"""

from __future__ import annotations

from sqlalchemy import Select, and_, bindparam, exists, func, insert, or_, select, update

from service.domain.jobs import OPEN_STATES
from service.store.scenarios.tables import scenario_chunks, scenarios
from service.store.tables import UtcTime, jobs

CHUNK_ATTEMPTS = 3
"""Attempts at a chunk that may end in failure or a lost worker."""
AT = bindparam("at", type_=UtcTime)
HELD = exists(
    select(jobs.c.id)
    .where(jobs.c.dedup_key == scenario_chunks.c.claimed_by, jobs.c.state == "running", jobs.c.lease_expires_at > AT)
    .correlate(scenario_chunks)
)
"""Whether the job that claimed a chunk holds its lease."""
FREE = and_(scenario_chunks.c.done_at.is_(None), scenario_chunks.c.attempts < CHUNK_ATTEMPTS, ~HELD)
"""Whether a chunk that was begun is free to be claimed again."""
_OF_THIS = scenario_chunks.c.scenario == bindparam("this")
_THIS = scenarios.c.id == bindparam("this")
_CHUNK = and_(_OF_THIS, scenario_chunks.c.number == bindparam("chunk"))


def _next_scenario() -> Select[str]:
    others = scenarios.alias()
    busy = select(func.count()).select_from(scenario_chunks.join(others, others.c.id == scenario_chunks.c.scenario))
    busy = busy.where(others.c.team == scenarios.c.team, scenario_chunks.c.done_at.is_(None), HELD).correlate(scenarios)
    freed = exists(select(scenario_chunks.c.number).where(scenario_chunks.c.scenario == scenarios.c.id, FREE).correlate(scenarios))
    ready = and_(scenarios.c.state.in_(OPEN_STATES), or_(scenarios.c.chunks_begun < scenarios.c.chunks, freed))
    return select(scenarios.c.id).where(ready).order_by(busy.scalar_subquery(), scenarios.c.created_at, scenarios.c.id).limit(1)


NEXT_SCENARIO = _next_scenario()
"""The oldest open scenario with a claimable chunk, of the team with the fewest running chunks."""
LOCK_SCENARIO = (
    select(scenarios.c.chunks, scenarios.c.chunks_begun, scenarios.c.review_at)
    .where(_THIS, scenarios.c.state.in_(OPEN_STATES))
    .with_for_update()
)
"""Locks an open scenario until the end of the transaction."""
FIRST_FREE_CHUNK = select(func.min(scenario_chunks.c.number)).where(_OF_THIS, FREE)
"""The first of its chunks that is free to be claimed again."""
CLAIM_AGAIN = update(scenario_chunks).where(_CHUNK).values(claimed_by=bindparam("by"), attempts=scenario_chunks.c.attempts + 1)
CLAIM_NEW = insert(scenario_chunks).values(scenario=bindparam("this"), number=bindparam("chunk"), claimed_by=bindparam("by"), attempts=1)
BEGIN_CHUNK = update(scenarios).where(_THIS).values(state="running", chunks_begun=bindparam("begun"), updated_at=AT)
"""Sets the number of chunks that are begun."""
SAVE_TALLY = (
    update(scenario_chunks).where(_CHUNK, scenario_chunks.c.done_at.is_(None)).values(done_at=AT, tally=bindparam("made"), claimed_by=None)
)
ADD_UNITS = update(scenarios).where(_THIS).values(units_done=scenarios.c.units_done + bindparam("more"), updated_at=AT)
"""Adds to the number of units that are done."""
COUNT_DONE = (
    select(func.count())
    .select_from(scenario_chunks)
    .where(_OF_THIS, scenario_chunks.c.number.between(0, bindparam("last")), scenario_chunks.c.done_at.is_not(None))
)
"""Number of its chunks up to `last` that are done."""
