"""Scenarios as their callers see them: asked for, looked at, cancelled, forgotten. What workers do of them is in `scenario_work`."""

from __future__ import annotations

from datetime import timedelta

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest, NotFound
from service.domain.idempotency import IdempotencyRecord
from service.domain.scenarios import ScenarioDetail, ScenarioRecord
from service.domain.teams import Principal
from service.presets.version import engine_version
from service.store import NewScenario, OpenWork, TeamQuotaReached
from service.usecases.scenarios.codec import pack_prepared
from service.usecases.scenarios.registry import MOST_CHUNKS, Body, PreparedScenario, ScenarioRequest, load_kind
from service.usecases.scenarios.worker import KIND, enqueue_workers
from service.usecases.tracking.programs import NOT_OURS

TEAM_QUOTA = OpenWork(scenarios=100, units=10**10)
"""What one team may have under way at once: scenarios, and trials, cells or evaluations in them."""
JOBS_KEPT = timedelta(days=1)


class TeamQuotaExceeded(DomainError):
    """The team has as much under way as one team may."""

    status = 429
    title = "Too much under way"


def submit(
    context: AppContext, who: Principal, given: ScenarioRequest, request: Body, kept: IdempotencyRecord | None = None
) -> ScenarioRecord:
    """A new scenario, safe and readable when this returns, whether or not a worker is there. `request` is the whole of it as it came.

    Raises DomainErrors with pointers into the request, TooMuchOpen, Repeated and IdempotencyKeyReused. What was accepted before
    is repeated whatever the prices are by now.
    """
    context.store.check_new(kept)
    prepared = load_kind(given.kind).prepare(context.priced_for(who.team_name), given)
    _check_size(prepared)
    try:
        made = context.store.create_scenario(_new(who, prepared, request), TEAM_QUOTA, context.clock(), kept)
    except TeamQuotaReached as full:
        raise TeamQuotaExceeded(_too_much(full.open_work, prepared)) from None
    enqueue_workers(context)
    return made


def find_scenario(context: AppContext, who: Principal, scenario_id: str) -> ScenarioDetail:
    """A scenario of the caller's team. Raises NotFound: another team's is as unknown as none."""
    found = context.store.scenario(who.team, scenario_id)
    if found is None:
        raise NotFound(NOT_OURS.format(what="scenario"))
    return found


def cancel_scenario(context: AppContext, who: Principal, scenario_id: str) -> ScenarioDetail:
    """End a scenario; one that is over stays as it is. Workers notice within 2 s. Raises NotFound."""
    found = find_scenario(context, who, scenario_id)
    context.store.cancel_scenario(found.row.id, context.clock())
    return find_scenario(context, who, scenario_id)


def forget_scenarios(context: AppContext) -> int:
    """Forget the scenarios that were over long enough, and the jobs of those who worked on them; returns how many scenarios."""
    now = context.clock()
    context.store.forget_jobs(KIND, now - JOBS_KEPT)
    return context.store.forget_scenarios(now)


def _new(who: Principal, prepared: PreparedScenario, request: Body) -> NewScenario:
    return NewScenario(
        team=who.team,
        kind=prepared.kind,
        units=prepared.units,
        chunks=prepared.chunks,
        review_at=min((*prepared.checkpoints, prepared.chunks)),
        price_snapshot=prepared.snapshot,
        engine_version=engine_version(),
        request=request,
        prepared=pack_prepared(prepared),
    )


def _check_size(prepared: PreparedScenario) -> None:
    if not 1 <= prepared.chunks <= MOST_CHUNKS:
        raise ValueError(f"a scenario of kind {prepared.kind} came in {prepared.chunks} chunks; 1 to {MOST_CHUNKS} are taken")
    if prepared.units > TEAM_QUOTA.units:
        raise InvalidRequest(f"this would be {prepared.units:g} evaluations; a scenario has at most {TEAM_QUOTA.units:g}")


def _too_much(work: OpenWork, prepared: PreparedScenario) -> str:
    if work.scenarios >= TEAM_QUOTA.scenarios:
        return f"the team has {work.scenarios} scenarios under way, and may have {TEAM_QUOTA.scenarios}; wait for one to end, or cancel one"
    return (
        f"the team's scenarios have {work.units:g} evaluations ahead of them, with this one's {prepared.units:g} more than the "
        f"{TEAM_QUOTA.units:g} that a team may have; wait for one to end, or cancel one"
    )
