"""What is asked of the database for every chunk, put together once.

Putting a statement together takes longer than SQLite takes to answer it, and everybody else who writes would wait for that. Parameters:
`at` is the time, `this` the scenario, `chunk` its chunk's number, `by` the `single` of the job that claims it, `made` its tally.
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
"""Whether the job that claimed a chunk is still being worked on."""
FREE = and_(scenario_chunks.c.done_at.is_(None), scenario_chunks.c.attempts < CHUNK_ATTEMPTS, ~HELD)
"""Whether a chunk that was begun waits for somebody to go on."""
_OF_THIS = scenario_chunks.c.scenario == bindparam("this")
_THIS = scenarios.c.id == bindparam("this")
_CHUNK = and_(_OF_THIS, scenario_chunks.c.number == bindparam("chunk"))


def _fairest() -> Select[str]:
    others = scenarios.alias()
    busy = select(func.count()).select_from(scenario_chunks.join(others, others.c.id == scenario_chunks.c.scenario))
    busy = busy.where(others.c.team == scenarios.c.team, scenario_chunks.c.done_at.is_(None), HELD).correlate(scenarios)
    freed = exists(select(scenario_chunks.c.number).where(scenario_chunks.c.scenario == scenarios.c.id, FREE).correlate(scenarios))
    ready = and_(scenarios.c.state.in_(OPEN_STATES), or_(scenarios.c.chunks_begun < scenarios.c.chunks, freed))
    return select(scenarios.c.id).where(ready).order_by(busy.scalar_subquery(), scenarios.c.created_at, scenarios.c.id).limit(1)


NEXT_SCENARIO = _fairest()
"""The open scenario with something to do that is next: of the team with the fewest chunks being worked on, the oldest."""
LOCK_SCENARIO = (
    select(scenarios.c.chunks, scenarios.c.chunks_begun, scenarios.c.review_at)
    .where(_THIS, scenarios.c.state.in_(OPEN_STATES))
    .with_for_update()
)
"""The scenario for as long as the transaction lasts, if it is not over."""
FIRST_FREE_CHUNK = select(func.min(scenario_chunks.c.number)).where(_OF_THIS, FREE)
"""The first of its chunks that was begun and waits for somebody to go on."""
CLAIM_AGAIN = update(scenario_chunks).where(_CHUNK).values(claimed_by=bindparam("by"), attempts=scenario_chunks.c.attempts + 1)
CLAIM_NEW = insert(scenario_chunks).values(scenario=bindparam("this"), number=bindparam("chunk"), claimed_by=bindparam("by"), attempts=1)
BEGIN_CHUNK = update(scenarios).where(_THIS).values(state="running", chunks_begun=bindparam("begun"), updated_at=AT)
"""So many of its chunks are begun."""
SAVE_TALLY = (
    update(scenario_chunks).where(_CHUNK, scenario_chunks.c.done_at.is_(None)).values(done_at=AT, tally=bindparam("made"), claimed_by=None)
)
ADD_UNITS = update(scenarios).where(_THIS).values(units_done=scenarios.c.units_done + bindparam("more"), updated_at=AT)
"""So many more of its units are done."""
COUNT_DONE = (
    select(func.count())
    .select_from(scenario_chunks)
    .where(_OF_THIS, scenario_chunks.c.number.between(0, bindparam("last")), scenario_chunks.c.done_at.is_not(None))
)
"""How many of its chunks up to the last are done."""
