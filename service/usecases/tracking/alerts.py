"""Alert rules: create, end, test and evaluate them. Alerts are delivered by `usecases.delivery`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import date, timedelta
from functools import partial
from typing import Any

from service.context import AppContext
from service.domain.deliveries import DeliveryRecord, DeliveryTarget
from service.domain.errors import InvalidRequest, NotFound
from service.domain.idempotency import IdempotencyRecord
from service.domain.teams import Principal
from service.domain.tracking.alerts import LIMITS, AlertFinding, AlertRule, RuleInputs, SpendCaps, WatchedRun
from service.domain.tracking.records import AlertRecord, AlertRuleRecord, ProgramRecord
from service.engine.tracking.alert_rules import REARM_AFTER, diff_alerts, evaluate_rule
from service.usecases.delivery.targets import slack_target, webhook_target
from service.usecases.jobs import never_stops
from service.usecases.tracking.programs import NOT_OURS, OPEN
from service.usecases.tracking.status import StatusResult, program_status

Given = Mapping[str, Any]
MAX_PENDING_TESTS = 20
MAX_RULES = 100
"""Most active rules of a program: all are evaluated every time."""
EVALUATION_INTERVAL = timedelta(minutes=5)
"""Evaluation interval of a program without events: silence and dates can raise alerts."""
MAX_PROGRAMS = 100
"""Programs evaluated in one task: the worker has other tasks."""


def create_rule(context: AppContext, program: ProgramRecord, given: Given, idempotency: IdempotencyRecord | None) -> AlertRuleRecord:
    """A new rule of a program. A webhook without a secret gets one.

    Raises InvalidRequest for a forbidden address, a malformed secret, and more rules than MAX_RULES.
    """
    if len(context.store.rules(program.id)) >= MAX_RULES:
        raise InvalidRequest(f"the program has {MAX_RULES} rules; end one of them first")
    targets = tuple(_target(context, target, f"/targets/{place}") for place, target in enumerate(given["targets"]))
    return context.store.create_rule(program, asdict(AlertRule(given["kind"], targets, **_limits(given))), context.clock(), idempotency)


def replace_rule(context: AppContext, rule: AlertRuleRecord, given: Given) -> AlertRuleRecord:
    """A new rule in the place of another, which ends; without `targets` it has those of the other, with their secrets.

    Raises InvalidRequest as `create_rule`, and NotFound where the other has ended meanwhile.
    """
    kept = rule_from_record(rule).targets
    targets = tuple(_target(context, target, f"/targets/{place}") for place, target in enumerate(given.get("targets", ())))
    body = asdict(AlertRule(given["kind"], targets or kept, **_limits(given)))
    made = context.store.replace_rule(rule, body, context.clock())
    if made is None:
        raise NotFound(NOT_OURS.format(what="alert rule"))
    return made


def find_rule(context: AppContext, who: Principal, rule_id: str) -> AlertRuleRecord:
    """An active rule of the caller's team. Raises NotFound, also for rules of other teams."""
    found = context.store.rule(who.team, rule_id)
    if found is None:
        raise NotFound(NOT_OURS.format(what="alert rule"))
    return found


def list_rules(context: AppContext, program: ProgramRecord, after: int, limit: int) -> list[AlertRuleRecord]:
    """A program's rules in force in the order of their creation, those after a number."""
    return context.store.rules(program.id, after, limit)


def list_alerts(
    context: AppContext, program: ProgramRecord, after: int, limit: int
) -> list[tuple[AlertRecord, AlertRuleRecord, list[DeliveryRecord]]]:
    """A program's alerts in the order of their creation, those after a number, each with its rule and deliveries."""
    return context.store.alerts(program.id, after, limit)


def end_rule(context: AppContext, rule: AlertRuleRecord) -> None:
    """End a rule: it is no longer judged, and its pending deliveries are dropped. Its alerts stay."""
    context.store.end_rule(rule, context.clock())


def try_rule(context: AppContext, rule: AlertRuleRecord) -> AlertRecord:
    """Send a test alert to all targets of a rule. Raises InvalidRequest while MAX_PENDING_TESTS deliveries of earlier ones are pending."""
    if context.store.pending_tests(rule) >= MAX_PENDING_TESTS:
        raise InvalidRequest(f"{MAX_PENDING_TESTS} test deliveries of this rule are pending; read why under the program's alerts")
    text = f"this is a test of an alert rule ({rule.body['kind']})"
    return context.store.record_test_alert(rule, AlertFinding("test", "a test", text, {}), context.clock())


def rule_from_record(row: AlertRuleRecord) -> AlertRule:
    """The rule of a stored record."""
    return AlertRule(row.body["kind"], tuple(DeliveryTarget(**target) for target in row.body["targets"]), **_limits(row.body))


def evaluate_due(context: AppContext, stopping: Callable[[], bool] = never_stops) -> None:
    """Evaluate the programs with new events, and those not evaluated for EVALUATION_INTERVAL."""
    now = context.clock()
    for evaluation in context.store.due_evaluations(now - EVALUATION_INTERVAL, MAX_PROGRAMS):
        if stopping():
            return
        if context.store.claim_evaluation(evaluation, now) and evaluation.program.body["state"] == OPEN:
            evaluate_program(context, evaluation.program)


def evaluate_program(context: AppContext, program: ProgramRecord) -> list[AlertRecord]:
    """Evaluate all rules of a program; returns the new alerts. Their deliveries are stored when this returns."""
    now = context.clock()
    rows = context.store.rules(program.id)
    rules = [rule_from_record(row) for row in rows]
    tracked = program_status(context, program, now)
    team_usd = _team_usd(context, tracked) if any(rule.team_usd is not None for rule in rules) else None
    new: list[AlertRecord] = []
    for row, rule in zip(rows, rules, strict=True):
        found = evaluate_rule(rule, _rule_inputs(context, tracked, rule, team_usd))
        new += context.store.record_alerts(row, partial(diff_alerts, rule.kind, found, now=now), now, now - REARM_AFTER)
    return new


def _rule_inputs(context: AppContext, tracked: StatusResult, rule: AlertRule, team_usd: float | None) -> RuleInputs:
    body = tracked.program.body
    caps = body.get("caps") or {}
    return RuleInputs(
        status=tracked.status,
        budget_usd=body.get("budget_usd"),
        deadline=date.fromisoformat(body["deadline"]) if body.get("deadline") else None,
        caps=SpendCaps(caps.get("program_usd"), caps.get("run_usd"), rule.team_usd),
        runs=tuple(WatchedRun(run.id, run.body["state"] == OPEN) for run in tracked.runs),
        team_usd=team_usd,
        gate_overdue=_gate_overdue(context, tracked, rule),
    )


def _gate_overdue(context: AppContext, tracked: StatusResult, rule: AlertRule) -> bool | None:
    """Whether the gate has been due and undecided for as long as the rule states."""
    if rule.days is None:
        return None
    if not tracked.status.gate.due or not rule.days:
        return tracked.status.gate.due
    return program_status(context, tracked.program, tracked.status.as_of - timedelta(days=rule.days)).status.gate.due


def _team_usd(context: AppContext, tracked: StatusResult) -> float:
    """Known spend over all programs of the team [USD]."""
    others = [one for one in context.store.team_programs(tracked.program.team) if one.id != tracked.program.id]
    moment = tracked.status.as_of
    spends = [tracked.status.spend.usd, *(program_status(context, other, moment).status.spend.usd for other in others)]
    return math.fsum(usd for usd in spends if usd is not None)


def _limits(given: Given) -> dict[str, Any]:
    return {name: given[name] for name in LIMITS if given.get(name) is not None} | {"shares": tuple(sorted(set(given.get("shares", ()))))}


def _target(context: AppContext, given: Given, pointer: str) -> DeliveryTarget:
    if "slack" in given:
        return slack_target(context, given["slack"], given.get("server"), f"{pointer}/slack")
    return webhook_target(context, given["webhook"], given.get("secret"), f"{pointer}/webhook", f"{pointer}/secret")
