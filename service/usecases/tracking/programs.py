"""Tracked programs and runs: create, read, change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.context import AppContext
from service.domain.errors import InvalidRequest, NotFound, StoreNotReady
from service.domain.idempotency import IdempotencyRecord
from service.domain.teams import Principal
from service.domain.tracking.archive import ProgramArchived, archive_mark
from service.domain.tracking.records import ProgramRecord, RunRecord
from service.serialization import to_builtins
from service.usecases.tracking.baseline import (
    CLOSED,
    STATED_FIELDS,
    apply_stated,
    baseline_of_plan,
    planned_run,
    replanned,
    shift_plan,
    with_gate_share,
)
from service.usecases.tracking.feedback import record_outcome

Given = Mapping[str, Any]
OPEN = "open"
DATES = ("start", "finish", "finish_range")
NOT_OURS = "there is no {what} of this id"


def check_new(context: AppContext, idempotency: IdempotencyRecord | None) -> None:
    """Raise IdempotentReplay or IdempotencyKeyReused where the idempotency key is known; before work that a repeat must not cost."""
    context.store.check_new(idempotency)


def start_program(
    context: AppContext, who: Principal, given: Given, plan: Given | None, idempotency: IdempotencyRecord | None
) -> ProgramRecord:
    """A new program. `plan` has its request and answer; stated values take precedence over it.

    Raises InvalidRequest where the dates contradict one another.
    """
    planned = baseline_of_plan(plan["answer"], plan["request"]) if plan else {}
    stated = {
        name: to_builtins(given[name]) for name in (*STATED_FIELDS, "midpoint_gate", "caps", "guardrails") if given.get(name) is not None
    }
    if "midpoint_gate" in stated:
        stated["midpoint_gate"] = with_gate_share(stated["midpoint_gate"])
    body = shift_plan(planned, stated.get("start")) | stated | {"state": OPEN}
    _check_order(body, "deadline", "/deadline")
    return context.store.create_program(who.team, body, plan, context.clock(), idempotency)


def list_programs(context: AppContext, who: Principal, state: str | None, before: int, limit: int) -> list[ProgramRecord]:
    """The caller's programs with a number below `before` (0: all), the newest first; with `state` only those in it."""
    return context.store.programs(who.team, before, limit, state)


def find_program(context: AppContext, who: Principal, program_id: str) -> ProgramRecord:
    """A program of the caller's team. Raises NotFound, also for programs of other teams."""
    found = context.store.program(who.team, program_id)
    if found is None:
        raise NotFound(NOT_OURS.format(what="program"))
    return found


def change_program(context: AppContext, who: Principal, program: ProgramRecord, given: Given, plan: Given | None = None) -> ProgramRecord:
    """The program with changed values, as `changed_body` has them; earlier versions are kept. Raises VersionConflictError after a
    concurrent change.

    Another plan, and another start, which moves the plan's dates, are followed by the tracked runs where what is planned of them is the
    plan's.
    """
    body = changed_body(program, given, plan)
    if plan is not None or given.get("start"):
        _move_runs(context, who, program, body, () if plan is not None else DATES)
    return context.store.change_program(program, body, context.clock(), who.key)


def changed_body(program: ProgramRecord, given: Given, plan: Given | None = None) -> dict[str, Any]:
    """A program's body with changed values. `plan`: request and answer of the plan that it follows then; stated values take precedence.

    Raises ProgramArchived for an archived program that is to be open, InvalidRequest for dates in the wrong order, and for a plan of a
    program that goes on with a pivot.
    """
    news = {name: to_builtins(value) for name, value in given.items()}
    if news.get("state") == OPEN and archive_mark(program) is not None:
        raise ProgramArchived(
            "the program is archived; before it is opened, who runs the service brings it back (`outlay unarchive`)", "/state"
        )
    body = {**shift_plan(program.body if plan is None else replanned(program.body, plan), news.get("start")), **news}
    _check_order(body, "deadline", "/deadline")
    return body


def _move_runs(context: AppContext, who: Principal, program: ProgramRecord, body: Given, only: Sequence[str]) -> None:
    """Give tracked runs with the plan's values those of the new plan: the values of `only`, or all of runs that are open.

    A repeat changes nothing.
    """
    for run in context.store.runs(program.id):
        tier, name, planned = run.body["tier"], run.name, run.body["planned"]
        old, new = (planned_run(each, tier, name) for each in (program.body, body))
        moving = only if only else new.keys()
        moved = {field: new[field] for field in moving if old.get(field) != new.get(field) and planned.get(field) == old.get(field)}
        if moved and (only or run.body["state"] == OPEN):
            context.store.change_run(run, {**run.body, "planned": {**planned, **moved}}, context.clock(), who.key)


def start_run(context: AppContext, program: ProgramRecord, given: Given, idempotency: IdempotencyRecord | None) -> RunRecord:
    """A new run of a program. Raises InvalidRequest for a closed program and for planned dates in the wrong order."""
    if program.body["state"] == CLOSED:
        raise InvalidRequest("the program is closed; open it before it gets another run")
    tier, stated = given.get("tier"), to_builtins(given.get("planned", {}))
    planned = apply_stated(planned_run(program.body, tier, given["name"]), stated)
    body = {"name": given["name"], "tier": tier, "state": OPEN, "planned": planned, "price_snapshot": program.body.get("price_snapshot")}
    _check_order(body["planned"], "finish", "/planned/finish")
    return context.store.create_run(program, given["name"], body, context.clock(), idempotency)


def list_runs(context: AppContext, program: ProgramRecord, after: int = 0, limit: int | None = None) -> list[RunRecord]:
    """A program's runs in the order of their creation, those after a number."""
    return context.store.runs(program.id, after, limit)


def team_runs(context: AppContext, who: Principal) -> list[RunRecord]:
    """All runs of the caller's team."""
    return context.store.team_runs(who.team)


def find_run(context: AppContext, who: Principal, run_id: str) -> RunRecord:
    """A run of the caller's team. Raises NotFound."""
    return _found_run(context.store.run(who.team, run_id))


def find_run_of_log(context: AppContext, who: Principal, run_id: str) -> RunRecord:
    """A run of the caller's team as this process has first read it: what names its log never changes. Raises NotFound."""
    return _found_run(context.store.run_as_first_read(who.team, run_id))


def _found_run(found: RunRecord | None) -> RunRecord:
    if found is None:
        raise NotFound(NOT_OURS.format(what="run"))
    return found


def change_run(context: AppContext, who: Principal, run: RunRecord, given: Given) -> RunRecord:
    """The run with changed values; earlier versions are kept. Raises VersionConflictError after a concurrent change."""
    news = {name: to_builtins(value) for name, value in given.items()}
    body = {**run.body, **news, "planned": apply_stated(run.body["planned"], news.get("planned", {}))}
    _check_order(body["planned"], "finish", "/planned/finish")
    changed = context.store.change_run(run, body, context.clock(), who.key)
    if body["state"] == CLOSED:
        record_outcome(context, find_program(context, who, run.program), changed)
    elif run.body["state"] == CLOSED:
        context.store.delete_run_outcome(run.id)
    return changed


def unready_reason(context: AppContext) -> str | None:
    """Why the database cannot be used for tracking, None where it can."""
    if context.store.absent():
        return "no program is tracked yet; start one by `outlay track start` or POST /v1/track/programs"
    try:
        context.store.check_head()
    except StoreNotReady as error:
        return str(error)
    return None


def _check_order(dates: Given, last: str, pointer: str) -> None:
    start, end = dates.get("start"), dates.get(last)
    if start and end and end < start:
        raise InvalidRequest(f"the {last} lies before the start, {start}", pointer)
