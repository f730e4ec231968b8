"""A tracked program that goes on with the pivot of one of its gates: what is done stays, what is planned is the pivot's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.domain.programs.branches import MIDPOINT
from service.domain.teams import Principal
from service.domain.tracking.records import ProgramRecord, RunRecord
from service.domain.tracking.status import ProgramStatus, RunStatus
from service.domain.training.estimate import COMPUTE_LINE
from service.serialization import to_builtins
from service.usecases.tracking.baseline import CLOSED, baseline_of_plan, kept_plan
from service.usecases.tracking.programs import change_run
from service.usecases.tracking.status import StatusResult, program_status

Body = Mapping[str, Any]
POINTER = "/pivot_at"
PLANNED = ("finish", "price_snapshot", "outcome", "risks", "holidays")
OF_THE_PLAN = ("at_usd", "date", "tier")
"""What a midpoint gate has of the plan that it was made with."""
PERCENTILES = ("p10", "p50", "p90")


def pivot_plan(program: ProgramRecord, gate: str, start: date) -> dict[str, Any]:
    """The request of the program that a gate pivots to, from a day on.

    Raises InvalidRequest for a gate without a pivot, and for a program that has pivoted before.
    """
    if program.body.get("pivoted"):
        raise InvalidRequest(f"the program goes on with {program.body['pivoted']['program']} already; a pivot pivots no more", POINTER)
    found = next((one for one in program.body.get("gates", ()) if one["gate"] == gate), None)
    if found is None or found["pivot"] is None:
        raise InvalidRequest(
            f"no pivot of the gate {gate} is known: state it in the gate, and track the program from its plan's request", POINTER
        )
    request = {**found["pivot"], "start": start.isoformat()}
    return {name: value for name, value in request.items() if name != "deadline" or value >= request["start"]}


def followable_pivots(program: ProgramRecord) -> dict[str, str]:
    """The pivots that a program may go on with once they are decided: their names by gate."""
    if program.body.get("pivoted") or program.body["state"] == CLOSED:
        return {}
    return {gate["gate"]: gate["pivot"]["name"] for gate in program.body.get("gates", ()) if gate["pivot"] is not None}


def switch_to_pivot(context: AppContext, who: Principal, program: ProgramRecord, given: Body, plan: Body) -> ProgramRecord:
    """The program as `body_of_pivot` has it; earlier versions are kept. Runs that are tracked are closed, their plan is what they did.

    Raises InvalidRequest where no decision event says pivot.
    """
    found = program_status(context, program)
    after = body_of_pivot(found, given, plan)
    for run, standing in zip(found.runs, found.status.runs, strict=True):
        _end_run(context, who, run, standing)
    return context.store.change_program(program, after, context.clock(), who.key)


def body_of_pivot(found: StatusResult, given: Body, plan: Body) -> dict[str, Any]:
    """A program's body with the pivot's plan for what is still to be done. What is spent is added to its budget.

    `given`: the gate (`pivot_at`) and other changes; `plan`: request and answer of the pivot. Raises InvalidRequest where no decision event
    says pivot.
    """
    program, gate = found.program, given["pivot_at"]
    since = to_builtins(_decided_at(found.status, gate))
    tracked = {(run.body["tier"], run.name) for run in found.runs}
    body = _body_after(program.body, baseline_of_plan(plan["answer"], plan["request"]), found.status, tracked, plan["request"]["name"])
    news = {name: to_builtins(value) for name, value in given.items() if name not in ("pivot_at", "pivot_from")}
    pivoted = {"gate": gate, "program": plan["request"]["name"], "from": plan["request"]["start"]}
    gates = [{**one, "since": since} for one in body["gates"]]
    return {**body, "gates": gates, **news, "pivoted": pivoted, "plan": kept_plan(plan)}


def _decided_at(status: ProgramStatus, gate: str) -> datetime:
    """When a gate's newest decision said pivot."""
    standing = status.gate if gate == MIDPOINT else next((one for one in status.tier_gates if one.tier == gate), None)
    if standing is None or standing.decided != "pivot" or standing.decided_at is None:
        raise InvalidRequest(f"decide first: send a decision event of a run with the gate {gate} and the verdict pivot", POINTER)
    return standing.decided_at


def _end_run(context: AppContext, who: Principal, run: RunRecord, standing: RunStatus) -> None:
    """Close a run, and plan it as what it did: its cost and its tokens are then no part of what is still to come."""
    closed = run if run.body["state"] == CLOSED else change_run(context, who, run, {"state": CLOSED})
    compute = sum(line.usd for line in standing.spend.lines if line.line == COMPUTE_LINE)
    done: dict[str, Any] = {
        "tokens": round(standing.spend.tokens) or None,
        "usd": compute or None,
        "accelerator_hours": standing.spend.accelerator_hours or None,
        "phases": [],
        "finish_range": None,
    }
    if standing.last_event_at is not None:
        done["finish"] = standing.last_event_at.date().isoformat()
    context.store.change_run(closed, {**closed.body, "planned": {**closed.body["planned"], **done}}, context.clock(), who.key)


def _body_after(body: Body, pivot: Body, status: ProgramStatus, tracked: set[tuple[str, str]], name: str) -> dict[str, Any]:
    """The program's body with the pivot's plan after what is done."""
    sunk, done = status.spend.usd or 0.0, status.spend.tokens
    whole, midpoint = sunk + pivot["budget_usd"], body.get("midpoint_gate")
    return {
        **body,
        **{field: pivot[field] for field in PLANNED},
        "budget_usd": round(whole, 2),
        "planned_tokens": round(done + pivot["planned_tokens"]),
        "total_usd": {point: sunk + pivot["total_usd"][point] for point in PERCENTILES},
        "reserve_share": pivot.get("reserve_share", 0.0) * pivot["budget_usd"] / whole if whole else 0.0,
        "around_share": pivot.get("around_share", 0.0) * pivot["budget_usd"] / whole if whole else 0.0,
        "midpoint_gate": midpoint and {field: value for field, value in midpoint.items() if field not in OF_THE_PLAN},
        "gates": pivot["gates"],
        "weeks": [*_weeks_before(body, pivot["weeks"][0]["week"], status), *pivot["weeks"]],
        "runs": [{**run, "name": _free_name(run, tracked, name)} for run in pivot["runs"]],
    }


def _weeks_before(body: Body, first: str, status: ProgramStatus) -> Iterator[dict[str, Any]]:
    """The burn plan's weeks before the pivot's first, which hold what was used by then in the proportion that was planned."""
    weeks: Sequence[Body] = [week for week in body.get("weeks", ()) if week["week"] < first]
    used = {"usd": status.spend.usd or 0.0, "tokens": status.spend.tokens, "accelerator_hours": status.spend.accelerator_hours or 0.0}
    for week in weeks:
        shares = {name: week[name] / (sum(each[name] for each in weeks) or 1.0) for name in used}
        yield {**week, **{name: used[name] * share for name, share in shares.items()}}


def _free_name(run: Body, tracked: set[tuple[str, str]], pivot: str) -> str:
    """A planned run's name; with the pivot's where a run of the tier has it already."""
    return f"{run['name']}, {pivot}" if (run["tier"], run["name"]) in tracked else str(run["name"])
