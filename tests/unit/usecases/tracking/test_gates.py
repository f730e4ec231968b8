"""Gates of a tracked program: the ways on of its plan with actual figures, and what criteria and figures recommend."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from service.config import load_settings
from service.container import build_context
from service.domain.programs.branches import GateBranch, GateDecision
from service.domain.quantities import Range
from service.domain.tracking.events import ProgramBaseline
from service.domain.tracking.status import CompletionForecast, EarnedValue, GateStatus, Spend
from service.domain.training.estimate import FinishDates
from service.engine.tracking.branches import GateActuals
from service.engine.tracking.gate import GateInputs, GateRules, assess_gate, assess_tier_gates
from service.engine.tracking.runs.history import Decision, Evaluation
from service.schemas.programs.presenters import present_program
from service.schemas.programs.request import ProgramRequestSchema
from service.usecases.programs.plan import plan_program
from service.usecases.tracking.baseline import baseline_of_plan, program_baseline, shift_plan
from tests.unit.engine.tracking_builders import at
from tests.unit.usecases.programs.test_branches import PIVOT, request

RULES = GateRules(0.5, 0.9, 0.7, "by default")
END = FinishDates(date(2027, 6, 1), date(2027, 6, 20), date(2027, 7, 30))
Body = dict[str, Any]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> tuple[Body, Body]:
    """The request of a plan with a pivot after validation, and its answer."""
    place = tmp_path_factory.mktemp("plan")
    context = build_context(load_settings({"OUTLAY_DATA_DIR": str(place), "OUTLAY_OFFLINE": "1"}))
    context.store.migrate()
    asked = request(pivot=PIVOT, committed_usd=3000, continue_if={"metric_at_least": 0.64})
    return asked, present_program(plan_program(context, ProgramRequestSchema().load(asked)))


def tracked(plan: tuple[Body, Body], **changes: Any) -> ProgramBaseline:
    body = baseline_of_plan(plan[1], plan[0]) | {"name": "tracked", "state": "open"}
    return replace(program_baseline(body, body), **changes)


def inputs(left: Range | None, *, metric: float | None = 0.66, cpi: float = 1.0, decisions: tuple[Decision, ...] = ()) -> GateInputs:
    nothing = dict.fromkeys(EarnedValue.__slots__)
    earned = EarnedValue(**{**nothing, "cpi": cpi, "bac_usd": 200_000.0, "basis": "x", "unknown": ()})  # type: ignore[arg-type]
    forecast = CompletionForecast(None, END, None, left, None, "history")
    evaluations = [] if metric is None else [Evaluation(at(5), "helpdesk-eval", metric)]
    return GateInputs(Spend(150_000.0, 1.0, 1.0), earned, evaluations, decisions, GateActuals(150_000.0, forecast, at(90)))


def branch(decision: GateDecision | None, name: str) -> GateBranch:
    assert decision is not None
    return next(each for each in decision.branches if each.branch == name)


def planned_branch(plan: tuple[Body, Body], name: str, gate: int = 1) -> Body:
    return next(each for each in plan[1]["tiers"][gate]["gate"]["decision"]["branches"] if each["branch"] == name)


def test_continuing_costs_what_the_forecast_still_has(plan: tuple[Body, Body]) -> None:
    """Its range and its end; over the gates ahead in the plan's proportion, against the plan's worth."""
    left = Range(80_000.0, 100_000.0, 150_000.0)
    found = branch(assess_tier_gates(tracked(plan), inputs(left), {"prototype", "validation"})[1].decision, "continue")
    planned = planned_branch(plan, "continue")
    assert (found.cost_usd, found.finish) == (left, END)
    assert found.expected_cost_usd == pytest.approx(100_000 * planned["expected_cost_usd"] / planned["cost_usd"]["p50"], abs=0.02)
    worth = planned["expected_value_usd"] + planned["expected_cost_usd"]
    assert found.expected_value_usd == pytest.approx(worth - (found.expected_cost_usd or 0.0), abs=0.02)


def test_as_planned_the_figures_are_the_plans(plan: tuple[Body, Body]) -> None:
    """Where the forecast has what the plan had, every way on is worth what it was planned to be worth."""
    found = assess_tier_gates(tracked(plan), inputs(Range(**planned_branch(plan, "continue")["cost_usd"])), {"validation"})[1]
    for name in ("continue", "pivot", "stop"):
        assert branch(found.decision, name).expected_value_usd == pytest.approx(planned_branch(plan, name)["expected_value_usd"], abs=0.02)


def test_a_pivot_begins_now(plan: tuple[Body, Body]) -> None:
    """It takes what it was planned to take, as many days later as the gate is."""
    gate = assess_tier_gates(tracked(plan), inputs(Range.exactly(1e5)), {"validation"})[1]
    found, planned = branch(gate.decision, "pivot"), planned_branch(plan, "pivot")
    late = at(90).date() - date.fromisoformat(plan[1]["tiers"][1]["gate"]["date"]["p50"])
    assert found.finish is not None
    assert found.finish.p50 == date.fromisoformat(planned["finish"]["p50"]) + late
    assert found.cost_usd == Range(**planned["cost_usd"])


def test_stopping_costs_what_is_committed_and_what_is_spent_is_sunk(plan: tuple[Body, Body]) -> None:
    """Today, whatever was planned."""
    gate = assess_tier_gates(tracked(plan), inputs(Range.exactly(1e5)), {"validation"})[1]
    found = branch(gate.decision, "stop")
    assert gate.decision
    assert gate.decision.sunk_usd == 150_000
    assert (found.cost_usd, found.finish) == (Range.exactly(3000.0), FinishDates(*[at(90).date()] * 3))


def test_a_tiers_gate_is_due_when_its_runs_are_over(plan: tuple[Body, Body]) -> None:
    """Before that it has its ways on but no recommendation; a decision event closes it."""
    program, left = tracked(plan), Range.exactly(1e5)
    open_gate = assess_tier_gates(program, inputs(left), {"prototype"})[1]
    assert (open_gate.due, open_gate.recommendation) == (False, None)
    assert open_gate.decision is not None
    due = assess_tier_gates(program, inputs(left), {"prototype", "validation"})[1]
    assert (due.tier, due.due, due.recommendation) == ("validation", True, "continue")
    for name in ("validation", "gate: validation", "Validation gate"):
        closed = assess_tier_gates(program, inputs(left, decisions=(Decision(at(80), name, "continue"),)), {"validation"})[1]
        assert (closed.due, closed.decided) == (False, "continue")
    other = inputs(left, decisions=(Decision(at(80), "prototype", "stop"),))
    assert assess_tier_gates(program, other, {"validation"})[1].due


def test_criteria_agreed_up_front_prevail_over_the_figures(plan: tuple[Body, Body]) -> None:
    """The metric keeps its bound, so that the criteria say continue where more is expected of the pivot; both are told."""
    found = assess_tier_gates(tracked(plan), inputs(Range.exactly(1e5), metric=0.66), {"validation"})[1]
    assert found.decision is not None
    assert (found.decision.by_criteria, found.decision.by_figures, found.recommendation) == ("continue", "pivot", "continue")
    assert "helpdesk-eval 0.66 is at least 0.64" in found.reasons
    assert "The two differ: the criteria say continue, the figures pivot" in found.reasons[-1]
    missed = assess_tier_gates(tracked(plan), inputs(Range.exactly(1e5), metric=0.6), {"validation"})[1]
    assert missed.recommendation == "pivot"
    assert "differ" not in missed.reasons[-1]


def test_actual_costs_change_what_the_figures_say(plan: tuple[Body, Body]) -> None:
    """A rest that costs more than the outcome is worth is not gone on with."""
    program = tracked(plan)
    dear = assess_tier_gates(program, inputs(Range.exactly(5e6)), {"validation"})[1].decision
    assert dear is not None
    assert dear.by_figures == "pivot"
    assert branch(dear, "continue").expected_value_usd is not None


def half_spend(program: ProgramBaseline, **given: Any) -> GateStatus:
    return assess_gate(program, inputs(**given), RULES)[0]


def test_the_half_spend_gate_follows_criteria_and_figures(plan: tuple[Body, Body]) -> None:
    """Agreed criteria prevail; without any the figures do, and it is said."""
    program, left = tracked(plan, budget_usd=200_000.0), Range.exactly(8e4)
    agreed = half_spend(program, left=left, cpi=0.6)
    assert (agreed.due, agreed.recommendation) == (True, "stop")
    assert agreed.decision
    assert agreed.decision.by_figures == "continue"
    assert "the criteria count: they were agreed up front" in agreed.reasons[-1]
    default = half_spend(replace(program, midpoint_gate=None), left=left, cpi=0.6)
    assert default.recommendation == "continue"
    assert "the figures count: no criteria were agreed up front" in default.reasons[-1]


def test_without_a_plan_the_criteria_decide_alone(plan: tuple[Body, Body]) -> None:
    """As before there were ways on."""
    found = half_spend(tracked(plan, budget_usd=200_000.0, gates=()), left=Range.exactly(8e4), cpi=0.6)
    assert (found.recommendation, found.decision) == ("stop", None)
    assert found.reasons == ("CPI 0.6 is below 0.7",)


def test_a_program_without_a_forecast_says_so(plan: tuple[Body, Body]) -> None:
    """What is still to be spent is not known, and nothing is recommended by figures."""
    found = assess_tier_gates(tracked(plan), inputs(None), {"validation"})[1].decision
    assert found is not None
    assert (found.by_figures, branch(found, "continue").cost_usd) == (None, None)
    assert "no forecast yet" in branch(found, "continue").statement


def test_gates_move_with_the_plan(plan: tuple[Body, Body]) -> None:
    """By the days from the plan's start to the tracked one."""
    body = baseline_of_plan(plan[1], plan[0])
    start = date.fromisoformat(body["start"]) + timedelta(days=10)
    before, after = body["gates"][1], shift_plan(body, start.isoformat())["gates"][1]
    assert date.fromisoformat(after["day"]) - date.fromisoformat(before["day"]) == timedelta(days=10)


def test_an_answer_of_an_earlier_version_is_tracked_without_ways_on(plan: tuple[Body, Body]) -> None:
    """It has no decisions."""
    answer = {**plan[1], "midpoint_gate": None, "tiers": [{**tier, "gate": None} for tier in plan[1]["tiers"]]}
    assert baseline_of_plan(answer, None)["gates"] == []
