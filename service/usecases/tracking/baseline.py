"""Baselines of programs and runs: taken from a program's plan (docs/reference/programs.md) or stated by the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import accumulate
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.programs.budget_parts import AROUND, PEOPLE, budget_part
from service.domain.programs.outcome import Guardrail, Outcome
from service.domain.programs.program import GateCriteria, MidpointGate
from service.domain.programs.tiers import TierName
from service.domain.quantities import Range
from service.domain.tracking.events import PlannedGateDates, PlannedLine, PlannedPhase, PlannedWeek, ProgramBaseline, RunBaseline
from service.domain.tracking.risks import PlannedRisk
from service.domain.training.estimate import FinishDates
from service.engine.scheduling.calendar import next_working_day
from service.presets.programs import find_program_default
from service.usecases.tracking.gates import gates_of_plan, move_day, move_range, planned_gate, shift_gate

Body = Mapping[str, Any]
STATED_FIELDS = ("name", "budget_usd", "planned_tokens", "start", "deadline")
CLOSED = "closed"
CENT_USD = 0.01
GATE_PREFIX = "gate: "
KEPT_FIGURES = ("summary", "total_usd", "lines", "price_snapshot", "engine_version", "warnings", "endings")
"""What a version of a program has of the answer of the plan that it follows, besides the baseline."""
CRITERIA = ("at_spend_share", "continue_if", "stop_if", "pivot_to")
"""What of a half-spend gate was decided up front."""
_WEEK = ("usd", "tokens", "accelerator_hours", "checkpoints")


def baseline_of_plan(answer: Body, request: Body | None) -> dict[str, Any]:
    """Budget, scope, schedule, gate and runs of a plan's answer, and holidays of its request where that is known; as JSON."""
    schedule, asked = answer["schedule"], (request or {}).get("schedule", {})
    return {
        "budget_usd": answer["total_usd"]["p50"],
        "planned_tokens": round(sum(tier["tokens"] for tier in answer["tiers"])),
        "start": schedule["start"],
        "deadline": schedule["deadline"] or schedule["finish"]["p50"],
        "finish": schedule["finish"],
        "total_usd": answer["total_usd"],
        **_shares(answer),
        "price_snapshot": answer["price_snapshot"],
        "midpoint_gate": answer["midpoint_gate"] and {name: value for name, value in answer["midpoint_gate"].items() if name != "decision"},
        "gates": list(gates_of_plan(answer, request)),
        "holidays": asked.get("holidays", []),
        "outcome": answer["outcome"],
        "risks": [_risk_of_plan(risk) for risk in answer["risks"]],
        "guardrails": (answer["outcome"] or {}).get("guardrails") or [],
        "weeks": [{"week": week["monday"], **{name: week[name] for name in _WEEK}} for week in answer["burn_plan"]],
        "runs": [_run_of_plan(tier, run, answer) for tier in answer["tiers"] for run in tier["runs"]],
        "gate_dates": [_gate_of_plan(entry) for entry in schedule["calendar"] if entry["kind"] == "gate"],
    }


def kept_plan(plan: Body) -> dict[str, Any]:
    """A plan as a version of a program has it: its request, and the figures of its answer that versions are compared by."""
    answer = plan["answer"]
    schedule = {name: answer["schedule"][name] for name in ("start", "deadline", "finish", "deadline_probability")}
    return {"request": plan["request"], "answer": {**{name: answer[name] for name in KEPT_FIGURES}, "schedule": schedule}}


def replanned(body: Body, plan: Body) -> dict[str, Any]:
    """A program's body with another plan. Its name, its caps, and what was decided up front of its half-spend gate stay.

    Raises InvalidRequest for a program that goes on with a pivot: its plan holds what was spent before.
    """
    if body.get("pivoted"):
        pivot = body["pivoted"]["program"]
        raise InvalidRequest(f"the program goes on with {pivot}: state budget and dates, the plan is the pivot's", "/plan")
    planned = baseline_of_plan(plan["answer"], plan["request"])
    decided = {gate["gate"]: gate["since"] for gate in body.get("gates", ()) if gate.get("since")}
    gates = [{**gate, "since": decided[gate["gate"]]} if gate["gate"] in decided else gate for gate in planned["gates"]]
    agreed = {name: value for name, value in (body.get("midpoint_gate") or {}).items() if name in CRITERIA}
    midpoint = {**(planned["midpoint_gate"] or {}), **agreed} or None
    guardrails = planned["guardrails"] or body.get("guardrails", [])
    return {**body, **planned, "gates": gates, "midpoint_gate": midpoint, "guardrails": guardrails, "plan": kept_plan(plan)}


def shift_plan(planned: Body, start: str | None) -> dict[str, Any]:
    """The plan with its runs' dates, its weeks and its finish moved by the days from its own start to the tracked one."""
    if start is None or planned.get("start") is None or "runs" not in planned:
        return dict(planned)
    days = date.fromisoformat(start) - date.fromisoformat(planned["start"])
    runs = [
        {**run, **{name: move_day(run[name], days) for name in ("start", "finish")}, "finish_range": move_range(run["finish_range"], days)}
        for run in planned["runs"]
    ]
    weeks = [{**week, "week": move_day(week["week"], days)} for week in planned["weeks"]]
    gates = [shift_gate(gate, days) for gate in planned.get("gates", ())]
    dates = [
        {**gate, "start": move_day(gate["start"], days), "finish": move_range(gate["finish"], days)}
        for gate in planned.get("gate_dates", ())
    ]
    return {**planned, "runs": runs, "weeks": weeks, "finish": move_range(planned["finish"], days), "gates": gates, "gate_dates": dates}


def _run_of_plan(tier: Body, run: Body, answer: Body) -> dict[str, Any]:
    estimate, throughput = run["estimate"], run["estimate"]["throughput"]
    each, whole = throughput["tokens_per_s_per_accelerator"]["p50"], throughput["tokens_per_s"]
    dates = {entry["what"]: entry for entry in answer["schedule"]["calendar"]}.get(f"{tier['tier']}: {run['name']}", {})
    mfu, hours, sustained = throughput["mfu"]["p50"], run["accelerator_hours"]["p50"], _run_over_step_speed(estimate)
    return {
        "name": run["name"],
        "tier": tier["tier"],
        "tokens": run["tokens"],
        "accelerator_hours": hours,
        "usd": run["cost_usd"],
        "start": dates.get("start"),
        "finish": dates.get("finish"),
        "finish_range": dates.get("finish_range"),
        "float_hours": dates.get("float_hours") or 0.0,
        "accelerator": estimate["price"]["accelerator"],
        "learned_ratio": _assumed(estimate, "throughput.learned"),
        "accelerators": round(whole / each),
        "tokens_per_s": {name: whole / each * value * sustained for name, value in throughput["tokens_per_s_per_accelerator"].items()},
        "usd_per_accelerator_hour": run["cost_usd"] / hours if hours else None,
        "mfu": mfu,
        "run_over_step_speed": sustained,
        "goodput": estimate["reliability"]["goodput"],
        "interruptions": estimate["reliability"]["expected_interruptions"] * run["run_equivalents"],
        "checkpoint_interval_minutes": estimate["reliability"]["checkpoint_interval_minutes"],
        "flops_per_token": estimate["flops"]["per_token"],
        "peak_tflops": throughput["tflops_per_accelerator"] / mfu if mfu else None,
        "wall_clock_hours": run["wall_clock_hours"],
        "energy_mwh": estimate["energy"]["mwh"] * run["run_equivalents"],
        "tco2e": run["tco2e"],
        "phases": _phases(run, estimate),
    }


def _gate_of_plan(entry: Body) -> dict[str, Any]:
    return {"tier": entry["what"].removeprefix(GATE_PREFIX), "start": entry["start"], "finish": entry["finish_range"]}


def _gate_dates(gate: Body) -> PlannedGateDates:
    dates = gate["finish"]
    finish = FinishDates(*(date.fromisoformat(dates[name]) for name in ("p10", "p50", "p90")))
    return PlannedGateDates(gate["tier"], date.fromisoformat(gate["start"]), finish)


def _phases(run: Body, estimate: Body) -> list[dict[str, Any]]:
    """Phases of a run that is made once: the plan's tokens of repeats are not in the order of its phases."""
    if run["runs"] > 1:
        return []
    return [
        {"name": phase["name"], "tokens": phase["tokens"], "tokens_per_s": phase["throughput"]["effective_tokens_per_s"]}
        for phase in estimate.get("phases", ())
    ]


def _run_over_step_speed(estimate: Body) -> float:
    """What a whole run sustains of its step speed while no interruption stops it and it waits for no capacity."""
    throughput, goodput, time = estimate["throughput"], estimate["reliability"]["goodput"], estimate["time"]
    count = throughput["tokens_per_s"] / throughput["tokens_per_s_per_accelerator"]["p50"]
    held_share = time["accelerator_hours"]["p50"] / (count * time["wall_clock_hours"]["p50"])
    return float(throughput["effective_tokens_per_s"] / (throughput["tokens_per_s"] * goodput * held_share))


def _risk_of_plan(risk: Body) -> dict[str, Any]:
    days = risk.get("days")
    return {
        "name": risk["name"],
        "state": risk.get("state", "open"),
        "loss_usd": risk["loss_usd"],
        "expected_loss_usd": risk["expected_loss_usd"],
        "days": days["p50"] if days else 0.0,
    }


def _shares(answer: Body) -> dict[str, Any]:
    """Shares of the budget in reserve, and around the runs by line, and the spread of what the runs cost."""
    total, reserve = answer["total_usd"]["p50"], answer["envelope"]["reserve_usd"]
    if not total:
        return {}
    runs = sum(run["cost_usd"] for tier in answer["tiers"] for run in tier["runs"])
    others = [line for line in answer["lines"] if budget_part(line["line"]) in (AROUND, PEOPLE)]
    return {
        "reserve_share": reserve / total,
        "around_share": (total - reserve - runs) / total,
        "lines": [{"line": line["line"], "share": line["usd"] / total} for line in others],
        "cost_spread": _spread([tier["usd"] for tier in answer["tiers"]]),
    }


def _spread(ranges: Sequence[Body]) -> dict[str, float] | None:
    """The sum of ranges relative to its median; errors of the runs are taken as fully correlated."""
    sums = {name: sum(each[name] for each in ranges) for name in ("p10", "p50", "p90")}
    return {name: usd / sums["p50"] for name, usd in sums.items()} if sums["p50"] > 0 else None


def _assumed(estimate: Body, field: str) -> Any:
    return next((one["value"] for one in estimate["assumptions"] if one["field"] == field), None)


def program_baseline(body: Body, first: Body) -> ProgramBaseline:
    """The baseline from a program's newest and first bodies."""
    gate, outcome, total, finish = (body.get(name) for name in ("midpoint_gate", "outcome", "total_usd", "finish"))
    return ProgramBaseline(
        name=body["name"],
        budget_usd=body.get("budget_usd"),
        planned_tokens=body.get("planned_tokens"),
        start=_day(body.get("start")),
        deadline=_day(body.get("deadline")),
        weeks=tuple(PlannedWeek(date.fromisoformat(week["week"]), *(week[name] for name in _WEEK)) for week in body.get("weeks", ())),
        midpoint_gate=_gate(gate) if gate else None,
        outcome=_outcome(outcome) if outcome else None,
        original_tokens=first.get("planned_tokens"),
        total_usd=Range(**total) if total else None,
        reserve_share=body.get("reserve_share", 0.0),
        around_share=body.get("around_share", 0.0),
        lines=tuple(PlannedLine(**line) for line in body.get("lines", ())),
        cost_spread=Range(**body["cost_spread"]) if body.get("cost_spread") else None,
        closed=body["state"] == CLOSED,
        runs=tuple(_planned(run, run["name"], run["tier"], closed=False) for run in body.get("runs", ())),
        finish=_finish_dates(finish),
        gate_dates=tuple(_gate_dates(gate) for gate in body.get("gate_dates", ())),
        guardrails=tuple(Guardrail(one["metric"], one["floor"]) for one in body.get("guardrails") or ()),
        risks=tuple(PlannedRisk(**risk) for risk in body.get("risks", ())),
        gates=tuple(planned_gate(gate) for gate in body.get("gates", ())),
    )


def with_gate_share(gate: Body) -> dict[str, Any]:
    """The midpoint gate with the default share of the budget where none is stated."""
    return {"at_spend_share": find_program_default("at_spend_share").value, **gate}


def effective_gate(program: Body) -> dict[str, Any] | None:
    """The midpoint gate under the present budget and start.

    A plan states the gate's amount, day and tier. With another budget it falls in the week in which the burn plan reaches the amount, if
    any, on the first working day; never before the start. The tier is known for the plan's own day and amount only.
    """
    decided, budget = program.get("midpoint_gate"), program.get("budget_usd")
    if decided is None:
        return None
    gate = with_gate_share(decided)
    if budget is None or gate.get("at_usd") is None:
        return gate
    due = gate["at_spend_share"] * budget
    as_planned = abs(due - gate["at_usd"]) < CENT_USD
    week = _week_due(program, due)
    same_week = as_planned or (week is not None and week == _week_due(program, gate["at_usd"]))
    day = _working_day(program, gate.get("date") if same_week else week)
    if as_planned and day == gate.get("date"):
        return gate
    return {**gate, "at_usd": gate["at_usd"] if as_planned else round(due, 2), "date": day, "tier": None}


def _week_due(program: Body, usd: float) -> str | None:
    """Monday of the week in which the burn plan reaches the amount; None where it never does."""
    weeks = program.get("weeks", ())
    spent = accumulate(week["usd"] for week in weeks)
    return next((week["week"] for week, sum_usd in zip(weeks, spent, strict=True) if sum_usd > usd - CENT_USD), None)


def _working_day(program: Body, day: str | None) -> str | None:
    """The first working day from a day on, not before the program's start; holidays are those of the plan's request, where it is known."""
    if day is None:
        return None
    first = max(day, program.get("start") or day)
    holidays = {date.fromisoformat(each) for each in program.get("holidays", ())}
    return next_working_day(date.fromisoformat(first), holidays).isoformat()


def planned_run(program: Body, tier: str | None, name: str) -> dict[str, Any]:
    """The plan of the run of that tier and name; empty where the program's plan has none."""
    found = (run for run in program.get("runs", ()) if (run["tier"], run["name"]) == (tier, name))
    return {key: value for key, value in next(found, {}).items() if key not in ("tier", "name")}


def apply_stated(planned: Body, stated: Body) -> dict[str, Any]:
    """The plan with stated values on top; the price of an accelerator-hour follows where cost and hours are known."""
    given = {**planned, **{name: value for name, value in stated.items() if value is not None}}
    if given.get("usd") and given.get("accelerator_hours") and {"usd", "accelerator_hours"} & stated.keys():
        given["usd_per_accelerator_hour"] = given["usd"] / given["accelerator_hours"]
    return given


def run_baseline(run: Body, program: Body) -> RunBaseline:
    """The plan of a run; runs of a closed program are closed."""
    return _planned(run["planned"], run["name"], run.get("tier"), closed=CLOSED in (run["state"], program["state"]))


def _planned(planned: Body, name: str, tier: TierName | None, *, closed: bool) -> RunBaseline:
    given = {field: value for field, value in planned.items() if field in RunBaseline.__dataclass_fields__}
    given |= {"name": name, "tier": tier, "closed": closed}
    for field in ("start", "finish"):
        given[field] = _day(given.get(field))
    for field in ("tokens_per_s", "wall_clock_hours"):
        given[field] = Range(**given[field]) if given.get(field) else None
    given["finish_range"] = _finish_dates(given.get("finish_range"))
    given["phases"] = tuple(PlannedPhase(**phase) for phase in given.get("phases", ()))
    return RunBaseline(**given)


def _finish_dates(finish: Body | None) -> FinishDates | None:
    return FinishDates(*(date.fromisoformat(finish[name]) for name in ("p10", "p50", "p90"))) if finish else None


def _day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def _gate(gate: Body) -> MidpointGate:
    criteria = {name: GateCriteria(**(gate.get(name) or {})) for name in ("continue_if", "stop_if")}
    return MidpointGate(with_gate_share(gate)["at_spend_share"], criteria["continue_if"], criteria["stop_if"], gate.get("pivot_to"))


def _outcome(outcome: Body) -> Outcome:
    improvement = outcome["target"] - outcome["baseline"]
    point = improvement / outcome["points"] if outcome["points"] else 1.0
    return Outcome(
        metric=outcome["metric"],
        baseline=outcome["baseline"],
        target=outcome["target"],
        point=point,
        decision=outcome.get("decision"),
        value_usd_per_point=outcome.get("value_usd_per_point"),
        guardrails=tuple(Guardrail(**guardrail) for guardrail in outcome.get("guardrails", ())),
    )
