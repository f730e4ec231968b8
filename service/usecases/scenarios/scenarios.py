"""Scenarios for their callers: submit, list, find, cancel and delete expired ones. `worker` evaluates them."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import timedelta

from service.context import AppContext
from service.domain.deliveries import DeliveryTarget
from service.domain.errors import DomainError, InvalidRequest, NotFound
from service.domain.idempotency import IdempotencyRecord
from service.domain.jobs import JobState
from service.domain.scenarios import EndNotice, ScenarioDetail, ScenarioRecord
from service.domain.teams import Principal
from service.presets.version import engine_version
from service.store import NewScenario, OpenWork, TeamQuotaReached
from service.usecases.delivery.targets import address_host, webhook_target
from service.usecases.resolution.feedback import FeedbackCache, context_for_team
from service.usecases.scenarios.codec import pack_prepared
from service.usecases.scenarios.registry import MOST_CHUNKS, Body, PreparedScenario, ScenarioRequest, load_kind
from service.usecases.scenarios.worker import KIND, enqueue_workers
from service.usecases.tracking.programs import NOT_OURS

TEAM_QUOTA = OpenWork(scenarios=100, units=10**10)
"""Most open scenarios of a team, and most trials, cells or evaluations left in them."""
JOB_RETENTION = timedelta(days=1)


class TeamQuotaExceeded(DomainError):
    """The team has reached its quota of open scenarios or evaluations."""

    status = 429
    title = "Too much under way"


def submit(
    context: AppContext,
    who: Principal,
    request: ScenarioRequest,
    request_json: Body,
    idempotency: IdempotencyRecord | None = None,
    *,
    notify: DeliveryTarget | None = None,
) -> ScenarioRecord:
    """A new scenario, stored and readable when this returns, whether or not a worker is alive. `request_json`: the whole request as sent,
    stored without its `notify`, which may hold secrets; `notify`: the target that is told of the end.

    Raises DomainErrors with pointers into the request, TeamQuotaExceeded, Repeated and IdempotencyKeyReused. A repeated request has its
    first answer, whatever prices and lessons are by now.
    """
    context.store.check_new(idempotency)
    prepared = load_kind(request.kind).prepare(context_for_team(context, FeedbackCache(context.store), who), request)
    _check_size(prepared)
    try:
        record = context.store.create_scenario(_new_scenario(who, prepared, request_json, notify), TEAM_QUOTA, context.clock(), idempotency)
    except TeamQuotaReached as full:
        raise TeamQuotaExceeded(_quota_text(full.open_work, prepared)) from None
    enqueue_workers(context)
    return record


def webhook_of(context: AppContext, notify: Body | None) -> DeliveryTarget | None:
    """The target of a request's `notify`, None without. Raises InvalidRequest for a forbidden address or a malformed secret."""
    if notify is None:
        return None
    return webhook_target(context, notify["url"], notify.get("secret"), "/notify/url", "/notify/secret")


def find_scenario(context: AppContext, who: Principal, scenario_id: str) -> ScenarioDetail:
    """A scenario of the caller's team. Raises NotFound, also for another team's."""
    scenario = context.store.scenario(who.team, scenario_id)
    if scenario is None:
        raise NotFound(NOT_OURS.format(what="scenario"))
    return scenario if scenario.target is None else replace(scenario, notify=_notice(context, scenario_id, scenario.target))


def list_scenarios(context: AppContext, who: Principal, state: JobState | None, before: int, limit: int) -> list[ScenarioRecord]:
    """The team's scenarios with a number below `before` (0: all), the newest first; with `state` only those in it."""
    return context.store.scenarios(who.team, before, limit, state)


def cancel_scenario(context: AppContext, who: Principal, scenario_id: str) -> ScenarioDetail:
    """Cancel a scenario unless it has ended. Workers notice within 2 s. Raises NotFound."""
    scenario = find_scenario(context, who, scenario_id)
    context.store.cancel_scenario(scenario.row.id, context.clock())
    return find_scenario(context, who, scenario_id)


def forget_scenarios(context: AppContext) -> int:
    """Delete expired scenarios, and jobs that evaluated scenarios and ended a day ago; returns the number of scenarios."""
    now = context.clock()
    context.store.forget_jobs(KIND, now - JOB_RETENTION)
    return context.store.forget_scenarios(now)


def _new_scenario(who: Principal, prepared: PreparedScenario, request_json: Body, notify: DeliveryTarget | None) -> NewScenario:
    return NewScenario(
        team=who.team,
        kind=prepared.kind,
        units=prepared.units,
        chunks=prepared.chunks,
        review_at=min((*prepared.checkpoints, prepared.chunks)),
        price_snapshot=prepared.snapshot,
        engine_version=engine_version(),
        request={name: value for name, value in request_json.items() if name != "notify"},
        prepared=pack_prepared(prepared),
        notify=None if notify is None else asdict(notify),
    )


def _notice(context: AppContext, scenario_id: str, target: Body) -> EndNotice:
    host, made = address_host(target["url"]), context.store.delivery_of_scenario(scenario_id)
    return (
        EndNotice(host, None, 0, None, None) if made is None else EndNotice(host, made.state, made.attempts, made.last_error, made.sent_at)
    )


def _check_size(prepared: PreparedScenario) -> None:
    if not 1 <= prepared.chunks <= MOST_CHUNKS:
        raise ValueError(f"a scenario of kind {prepared.kind} has {prepared.chunks} chunks; it may have 1 to {MOST_CHUNKS}")
    if prepared.units > TEAM_QUOTA.units:
        raise InvalidRequest(f"this scenario needs {prepared.units:g} evaluations; at most {TEAM_QUOTA.units:g} are allowed")


def _quota_text(work: OpenWork, prepared: PreparedScenario) -> str:
    if work.scenarios >= TEAM_QUOTA.scenarios:
        return f"the team has {work.scenarios} unfinished scenarios and may have {TEAM_QUOTA.scenarios}; wait until one ends, or cancel one"
    return (
        f"the team's unfinished scenarios need {work.units:g} evaluations and this one {prepared.units:g}; a team may have "
        f"{TEAM_QUOTA.units:g} together: wait until one ends, or cancel one"
    )
