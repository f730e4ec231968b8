"""Gates of a tracked program's plan: taken from the plan's answer with their ways on, and moved with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from service.domain.programs.branches import MIDPOINT
from service.domain.programs.program import GateCriteria
from service.domain.quantities import Range
from service.domain.tracking.gates import PlannedBranch, PlannedGate
from service.domain.training.estimate import FinishDates
from service.usecases.programs.pivots import pivot_request

Body = Mapping[str, Any]
FIGURES = ("branch", "program", "cost_usd", "expected_cost_usd", "finish", "outcome_probability", "expected_value_usd")


def gates_of_plan(answer: Body, request: Body | None) -> Iterator[dict[str, Any]]:
    """The gates of a plan's answer as JSON; with the request of each one's pivot where the plan's request is known."""
    asked = {tier["tier"]: tier.get("gate", {}) for tier in (request or {}).get("tiers", ())}
    asked[MIDPOINT] = (request or {}).get("midpoint_gate", {})
    gates = [*((tier["tier"], tier["gate"]) for tier in answer["tiers"]), (MIDPOINT, answer["midpoint_gate"])]
    for name, gate in gates:
        # Answers of earlier versions have no decisions.
        if gate and gate.get("decision"):
            pivot = asked.get(name, {}).get("pivot")
            yield {
                "gate": name,
                "day": gate["date"]["p50"] if name != MIDPOINT else gate["date"],
                "continue_if": gate["continue_if"],
                "stop_if": gate["stop_if"],
                "branches": [{field: branch[field] for field in FIGURES} for branch in gate["decision"]["branches"]],
                "pivot": None if pivot is None or request is None else pivot_request(request, pivot, ""),
            }


def planned_gate(gate: Body) -> PlannedGate:
    """A gate from its JSON."""
    go, stop = (GateCriteria(**gate[name]) if gate[name] else None for name in ("continue_if", "stop_if"))
    since = datetime.fromisoformat(gate["since"]) if gate.get("since") else None
    return PlannedGate(gate["gate"], date.fromisoformat(gate["day"]), go, stop, tuple(map(_branch, gate["branches"])), since)


def shift_gate(gate: Body, by: timedelta) -> dict[str, Any]:
    """A gate with its day and the ends of its ways on moved."""
    branches = [{**branch, "finish": move_range(branch["finish"], by)} for branch in gate["branches"]]
    return {**gate, "day": move_day(gate["day"], by), "branches": branches}


def move_range(finish: Body | None, by: timedelta) -> dict[str, str | None] | None:
    """Percentiles of a day, moved; None stays."""
    return None if finish is None else {name: move_day(day, by) for name, day in finish.items()}


def move_day(day: str | None, by: timedelta) -> str | None:
    """A day in JSON, moved; None stays."""
    return None if day is None else (date.fromisoformat(day) + by).isoformat()


def _branch(branch: Body) -> PlannedBranch:
    cost, finish = branch["cost_usd"], branch["finish"]
    days = FinishDates(*(date.fromisoformat(finish[name]) for name in ("p10", "p50", "p90"))) if finish else None
    return PlannedBranch(**{**branch, "cost_usd": Range(**cost) if cost else None, "finish": days})
