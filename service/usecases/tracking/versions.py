"""Versions of a tracked program: who changed it and when, and what each was held to by the plan that it followed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from service.context import AppContext
from service.domain.errors import NotFound
from service.domain.quantities import Range
from service.domain.tracking.records import ProgramRecord, ProgramVersion
from service.engine.numerics.ranges import probability_below

Body = Mapping[str, Any]
TERMS = ("name", "state", "budget_usd", "planned_tokens", "start", "deadline", "caps", "guardrails", "midpoint_gate", "pivoted")
SAID_BY_TERMS = ("name", "start", "deadline", "midpoint_gate")
"""Fields of a plan's request that a program has of its own."""
OF_BUDGET_AND_START = ("at_usd", "date", "tier")
"""Fields of the half-spend gate that follow from others."""
KEYS = ("name", "tier", "metric")
"""Fields by which entries of a list are known."""


def list_versions(context: AppContext, program: ProgramRecord, limit: int) -> list[ProgramVersion]:
    """A program's versions, the newest first."""
    return context.store.program_versions(program.id, limit)


def body_of_version(context: AppContext, program: ProgramRecord, version: int) -> Body:
    """A program as of a version. Raises NotFound."""
    found = program.body if version == program.version else context.store.body_of_version(program.id, version)
    if found is None:
        raise NotFound("the program has no version of this number")
    return found


def followed_plan(context: AppContext, program: ProgramRecord, body: Body | None = None) -> Body | None:
    """Request and figures of the plan that a program follows, or followed with that body; None where it has none.

    The request is None where the program was given a plan's answer.
    """
    own: Body | None = (program.body if body is None else body).get("plan")
    return context.store.first_plan(program.id) if own is None else own


def stated_by(body: Body, plan: Body | None) -> dict[str, Any]:
    """What is stated of a program: its own fields, and those of its plan's request. Entries of lists stand under their names."""
    stated = {name: body[name] for name in TERMS if body.get(name) is not None}
    if gate := stated.get("midpoint_gate"):
        stated["midpoint_gate"] = {name: value for name, value in gate.items() if name not in OF_BUDGET_AND_START}
    asked = (plan or {}).get("request")
    request = {name: value for name, value in (asked or {}).items() if name not in SAID_BY_TERMS}
    named: dict[str, Any] = _by_name({**stated, "plan": request} if request else stated)
    return named


def figures_of(body: Body, plan: Body | None) -> dict[str, Any]:
    """The figures of a program's plan against its own budget and deadline, under the names of a plan's answer."""
    if plan is None or not body.get("total_usd"):  # as of programs of earlier versions of the service
        return {}
    answer, total, budget = plan["answer"], body["total_usd"], body.get("budget_usd")
    summary = _summary_of_pivoted(body) if body.get("pivoted") else answer.get("summary")
    return {
        **{name: answer.get(name) for name in ("lines", "price_snapshot", "engine_version")},
        "summary": summary,
        "warnings": answer.get("warnings", ()),
        "schedule": {"deadline_probability": _chance_of_deadline(body, answer["schedule"])},
        "budget_probability": None if budget is None or not total["p50"] else probability_below(budget, Range(**total)),
    }


def _summary_of_pivoted(body: Body) -> dict[str, float | None]:
    """Cost and end of a program with its pivot: the pivot's plan is what comes after what was spent."""
    days = _days(body["start"], body["finish"]["p50"]) - 1 if body.get("start") else None
    return {"p50_usd": body["total_usd"]["p50"], "p50_finish_days": days}


def _chance_of_deadline(body: Body, schedule: Body) -> float | None:
    """The plan's probability; by the percentiles of the finish where start or deadline are others than it was planned with."""
    start, deadline = body.get("start"), body.get("deadline")
    if (start, deadline) == (schedule["start"], schedule["deadline"]):
        known: float | None = schedule.get("deadline_probability")
        return known
    if start is None or deadline is None or not body.get("finish"):
        return None
    days = {point: _days(start, day) for point, day in body["finish"].items()}
    return probability_below(_days(start, deadline), Range(**days))


def _days(start: str, end: str) -> int:
    """Days from one to another, both included."""
    return (date.fromisoformat(end) - date.fromisoformat(start)).days + 1


def _by_name(node: Any) -> Any:
    """A value with each list of entries as an object by their names, so that an entry is the same one wherever it stands."""
    if isinstance(node, Mapping):
        return {name: _by_name(value) for name, value in node.items()}
    if not isinstance(node, list):
        return node
    for key in KEYS:
        named = {entry[key]: entry for entry in node if isinstance(entry, Mapping) and isinstance(entry.get(key), str)}
        if node and len(named) == len(node):
            return {name: _by_name({field: value for field, value in entry.items() if field != key}) for name, entry in named.items()}
    return [_by_name(entry) for entry in node]
