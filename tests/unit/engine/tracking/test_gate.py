"""The half-spend gate: when it is due, what closes it, and what the criteria make of the figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.domain.programs.outcome import Outcome
from service.domain.programs.program import GateCriteria, MidpointGate
from service.domain.tracking.events import ProgramBaseline
from service.domain.tracking.status import EarnedValue, GateStatus, Spend
from service.engine.tracking.gate import GateInputs, GateRules, assess_gate
from service.engine.tracking.runs.history import Decision, Evaluation
from tests.unit.engine.tracking_builders import PROGRAM, at

RULES = GateRules(0.5, 0.9, 0.7, "by default")
GATE = MidpointGate(0.5, GateCriteria(metric_at_least=0.65, cpi_at_least=0.9), GateCriteria(cpi_below=0.7), "3B")
GATED = replace(PROGRAM, midpoint_gate=GATE, outcome=Outcome("helpdesk", 0.61, 0.7, 0.01))


def figures(usd: float | None = 600.0, cpi: float | None = 1.0, metric: float | None = 0.66, **other: object) -> GateInputs:
    nothing = dict.fromkeys(EarnedValue.__slots__)
    earned = EarnedValue(**{**nothing, "cpi": cpi, "bac_usd": 1000.0, "basis": "x", "unknown": ()})  # type: ignore[arg-type]
    evaluations = [] if metric is None else [Evaluation(at(5), "helpdesk", metric)]
    found = GateInputs(Spend(usd, 1.0, 1.0), earned, evaluations, [])
    return replace(found, **other)  # type: ignore[arg-type]


def judged(program: ProgramBaseline = GATED, **given: object) -> GateStatus:
    return assess_gate(program, figures(**given), RULES)[0]  # type: ignore[arg-type]


def test_before_half_is_spent_it_is_not_due() -> None:
    """And says when it will be."""
    found = judged(usd=499.0)
    assert (found.due, found.recommendation, found.due_usd) == (False, "not_due", 500.0)
    assert found.reasons == ("499 USD are spent, the gate is due at 500 (50% of the budget)",)


def test_it_is_due_at_a_share_of_the_whole_budget() -> None:
    """Its reserve included, as the plan has it; of what the runs were planned to cost where no budget is stated."""
    assert judged(replace(GATED, budget_usd=1250.0, reserve_share=0.2)).due_usd == 625.0
    assert judged(replace(GATED, budget_usd=None)).due_usd == 500.0


@pytest.mark.parametrize(
    ("cpi", "metric", "recommendation", "reason"),
    [
        (0.95, 0.66, "continue", "CPI 0.95 is at least 0.9"),
        (0.9, 0.65, "continue", "helpdesk 0.65 is at least 0.65"),
        (0.8, 0.66, "pivot", "CPI 0.8 is below 0.9"),
        (0.95, 0.6, "pivot", "helpdesk 0.6 is below 0.65"),
        (0.62, 0.66, "stop", "CPI 0.62 is below 0.7"),
        (0.95, None, "pivot", "helpdesk is not known; at least 0.65 is required"),
        (None, 0.66, "pivot", "CPI is not known; at least 0.9 is required"),
    ],
)
def test_the_criteria_decide(cpi: float | None, metric: float | None, recommendation: str, reason: str) -> None:
    """Stop where its criteria hold, continue where theirs do, pivot otherwise, each with its figures."""
    found = judged(cpi=cpi, metric=metric, usd=500.0)
    assert (found.due, found.recommendation) == (True, recommendation)
    assert reason in found.reasons


def test_pivot_says_where_to() -> None:
    """As it was decided up front."""
    found = judged(cpi=0.8)
    assert found.pivot_to == "3B"
    assert "decided up front: pivot to 3B" in found.reasons


def test_the_newest_evaluation_of_the_outcome_counts() -> None:
    """Others, and older ones, do not."""
    told = [Evaluation(at(9), "other", 0.9), Evaluation(at(8), "helpdesk", 0.5), Evaluation(at(2), "helpdesk", 0.7)]
    assert judged(evaluations=told).metric == 0.5


@pytest.mark.parametrize("name", ["midpoint", "Midpoint gate", "half-spend"])
def test_a_decision_closes_the_gate(name: str) -> None:
    """Whatever the figures are now; the newest decision holds."""
    found = judged(decisions=[Decision(at(2), name, "stop"), Decision(at(30), name, "continue")])
    assert (found.due, found.recommendation, found.decided) == (False, "not_due", "continue")
    assert found.reasons == ("decided on 2027-01-05: continue",)


def test_a_decision_on_another_gate_leaves_it_open() -> None:
    """Tier gates have names of their own."""
    assert judged(decisions=[Decision(at(2), "validation", "stop")]).due


def test_without_criteria_defaults_are_said() -> None:
    """The gate is due and judged by default, with a warning that says by what."""
    gate, said = assess_gate(PROGRAM, figures(cpi=0.8), RULES)
    assert (gate.due, gate.recommendation) == (True, "pivot")
    assert "no criteria were agreed up front" in said[0]
    assert "by default" in said[0]
    assert assess_gate(PROGRAM, figures(usd=1.0), RULES)[1] == ()


def test_what_is_not_known_is_not_due() -> None:
    """Without spend or budget nobody can tell."""
    assert "the spend is unknown" in judged(usd=None).reasons[0]
    unbudgeted = replace(figures().earned_value, bac_usd=None)
    assert "no budget is stated" in judged(replace(GATED, budget_usd=None), earned_value=unbudgeted).reasons[0]
