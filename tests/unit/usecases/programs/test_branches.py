"""Continue, pivot and stop at a plan's gates: their figures are those of the programs that they describe."""

from __future__ import annotations

import copy
from decimal import Decimal
from typing import Any

import pytest

from service.api.resources.programs import EXAMPLE
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.domain.programs.branches import GateBranch, GateDecision
from service.schemas.programs.presenters import present_program
from service.schemas.programs.request import ProgramRequestSchema
from service.usecases.programs.pivots import pivot_request
from service.usecases.programs.plan import ProgramAnswer, plan_program

PIVOT: dict[str, Any] = {
    "name": "3B for the pilot",
    "tiers": [
        {
            "tier": "production",
            "runs": [{"name": "main", "estimate": {"model": {"params": "3B"}, "data": {"tokens": "600B"}}}],
            "gate": {"decides": "release", "pass_probability": 0.9},
        }
    ],
}
WORTH = EXAMPLE["outcome"] | {"value_usd_per_point": 100_000}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def request(gate: int = 1, **fields: Any) -> dict[str, Any]:
    """The contract's example, its outcome worth something, with fields of a gate set."""
    found = copy.deepcopy(EXAMPLE) | {"outcome": WORTH}
    found["tiers"][gate]["gate"] |= fields
    return found


def planned(context: AppContext, given: dict[str, Any]) -> ProgramAnswer:
    return plan_program(context, ProgramRequestSchema().load(given))


def branch(decision: GateDecision, name: str) -> GateBranch:
    return next(each for each in decision.branches if each.branch == name)


def spent_by(answer: ProgramAnswer, tier: str) -> Decimal:
    return next(ending.usd for ending in answer.plan.endings if ending.stopped_at == tier)


def test_continuing_is_the_rest_of_the_plan(context: AppContext) -> None:
    """What is spent by the gate and from there on is the budget, to the cent; the end is the plan's."""
    answer = planned(context, request())
    for tier in ("prototype", "validation", "production"):
        decision = answer.decisions[tier]
        found = branch(decision, "continue")
        assert decision.sunk_usd == float(spent_by(answer, tier))
        assert found.cost_usd is not None
        assert Decimal(repr(round(decision.sunk_usd + found.cost_usd.p50, 2))) == Decimal(repr(answer.plan.total_usd.p50))
        assert found.cost_usd.p10 <= found.cost_usd.p50 <= found.cost_usd.p90
    assert branch(answer.decisions["validation"], "continue").finish == answer.schedule.finish
    assert branch(answer.decisions["validation"], "continue").outcome_probability == 0.8
    assert branch(answer.decisions["prototype"], "continue").outcome_probability == pytest.approx(0.7 * 0.8)


def test_what_is_expected_of_continuing_is_the_mean_over_the_gates_ahead(context: AppContext) -> None:
    """The tree from the validation gate on has two endings: production is paid for in both, as its gate comes after it."""
    answer = planned(context, request(gate=0))
    found = branch(answer.decisions["prototype"], "continue")
    cut, whole = float(spent_by(answer, "validation")), answer.plan.total_usd.p50
    mean = 0.3 * cut + 0.7 * whole - float(spent_by(answer, "prototype"))
    assert found.expected_cost_usd == pytest.approx(mean, abs=0.02)
    assert found.expected_value_usd == pytest.approx(0.56 * 900_000 - mean, abs=0.02)


def test_after_the_last_gate_nothing_is_left_to_spend(context: AppContext) -> None:
    """Continuing is then the release itself: over on the gate's day, the target reached."""
    answer = planned(context, request())
    found = branch(answer.decisions["production"], "continue")
    assert (found.cost_usd and found.cost_usd.p90, found.outcome_probability) == (0.0, 1.0)
    assert found.finish == answer.gates["production"].date


def test_at_the_midpoint_continuing_is_what_the_budget_still_holds(context: AppContext) -> None:
    """Half of it, with the gates of the tiers that are not over."""
    answer = planned(context, request())
    decision, midpoint = answer.decisions["midpoint"], answer.midpoint
    assert midpoint is not None
    found = branch(decision, "continue")
    assert decision.sunk_usd == float(midpoint.at_usd)
    assert found.cost_usd
    assert round(found.cost_usd.p50 + float(midpoint.at_usd), 2) == answer.plan.total_usd.p50
    assert midpoint.tier == "production"
    assert found.outcome_probability == 0.8
    assert "Agreed up front: continue where helpdesk-eval is at least 0.65 and the CPI is at least 0.9" in decision.statement


def test_a_pivot_has_the_figures_of_its_program_asked_alone(context: AppContext) -> None:
    """Cost, expected cost, end, chance and worth, from the gate's day on."""
    given = request(pivot=PIVOT)
    answer = planned(context, given)
    found = branch(answer.decisions["validation"], "pivot")
    alone = planned(context, pivot_request(given, PIVOT, answer.gates["validation"].date.p50.isoformat()))
    assert found.program == "3B for the pilot"
    assert (found.cost_usd, found.expected_cost_usd) == (alone.plan.total_usd, float(alone.plan.expected_usd))
    assert (found.finish, found.outcome_probability) == (alone.schedule.finish, alone.plan.completion_probability)
    assert alone.plan.outcome is not None
    assert found.expected_value_usd == alone.plan.outcome.expected_net_usd
    assert alone.schedule.start == answer.gates["validation"].date.p50


def test_a_pivot_at_the_midpoint_begins_on_its_day(context: AppContext) -> None:
    """And takes the name that the gate pivots to."""
    given = request()
    given["midpoint_gate"] = {"continue_if": {"cpi_at_least": 0.9}, "pivot": PIVOT, "committed_usd": 2500}
    answer = planned(context, given)
    decision = answer.decisions["midpoint"]
    assert answer.midpoint is not None
    alone = planned(context, pivot_request(given, PIVOT, answer.midpoint.date.isoformat()))
    assert branch(decision, "pivot").cost_usd == alone.plan.total_usd
    assert answer.plan.midpoint
    assert answer.plan.midpoint.gate.pivot_to == "3B for the pilot"
    assert branch(decision, "stop").expected_cost_usd == 2500


def test_a_pivot_says_what_it_takes_of_the_program(context: AppContext) -> None:
    """Sections that it does not state are the program's; milestones, risks and evaluation are not taken."""
    given = request(pivot=PIVOT | {"personnel": {"evaluation_hours": 10}})
    assumed = {each.field: each.value for each in planned(context, given).assumptions}
    assert assumed["tiers.validation.gate.pivot"] == ["defaults", "deadline", "outcome", "overhead", "reserves", "storage", "schedule"]
    alone = pivot_request(given, given["tiers"][1]["gate"]["pivot"], "2027-03-01")
    assert alone["personnel"] == {"evaluation_hours": 10}
    assert "milestones" not in alone["schedule"]
    assert not {"risks", "midpoint_gate", "evaluation"} & alone.keys()


def test_a_deadline_that_has_passed_by_the_gate_is_not_the_pivots(context: AppContext) -> None:
    """It begins after it."""
    given = request(pivot=PIVOT) | {"start": "2027-01-04", "deadline": "2027-01-05"}
    assert "deadline" not in pivot_request(given, PIVOT, "2027-03-01")
    assert branch(planned(context, given).decisions["validation"], "pivot").finish is not None


def test_stopping_costs_what_is_committed(context: AppContext) -> None:
    """On the gate's day, the target not reached; left out it is nothing, which is an assumption."""
    answer = planned(context, request(committed_usd=12_500.5))
    found = branch(answer.decisions["validation"], "stop")
    assert found.cost_usd
    assert (found.cost_usd.p10, found.cost_usd.p50, found.cost_usd.p90) == (12_500.5,) * 3
    assert (found.expected_value_usd, found.outcome_probability) == (-12_500.5, 0.0)
    assert found.finish == answer.gates["validation"].date
    assert "12,500 USD is still to be paid" in found.statement
    assert {each.field: each.value for each in answer.assumptions}["gate.committed_usd"] == 0


def test_the_figures_name_the_branch_that_most_is_expected_of(context: AppContext) -> None:
    """An outcome worth much is worth continuing for; one worth little is not."""
    much, little = (
        planned(context, request() | {"outcome": EXAMPLE["outcome"] | {"value_usd_per_point": usd}}).decisions["validation"]
        for usd in (100_000, 100)
    )
    assert (much.by_figures, much.recommendation) == ("continue", "continue")
    assert (little.by_figures, little.recommendation) == ("stop", "stop")
    assert "higher than that of stopping" in much.statement


def test_figures_and_criteria_that_differ_are_said_to(context: AppContext) -> None:
    """The criteria to continue may hold where the figures say stop."""
    given = request(continue_if={"metric_at_least": 0.62}) | {"outcome": EXAMPLE["outcome"] | {"value_usd_per_point": 100}}
    found = planned(context, given).decisions["validation"]
    assert "Agreed up front: continue where helpdesk-eval is at least 0.62" in found.statement
    assert "If the criteria to continue are met, the two differ: the figures say stop" in found.statement


def test_without_a_pivot_none_is_proposed(context: AppContext) -> None:
    """And the answer says so."""
    decision = planned(context, request()).decisions["validation"]
    assert [each.branch for each in decision.branches] == ["continue", "stop"]
    assert "No pivot is stated, so none is compared" in decision.statement


def test_what_a_figure_lacks_is_said(context: AppContext) -> None:
    """Without a worth nothing is expected of a branch, without a probability no chance is known; costs are."""
    given = copy.deepcopy(EXAMPLE)
    for tier in given["tiers"]:
        tier["gate"].pop("pass_probability", None)
    decision = planned(context, given).decisions["validation"]
    found = branch(decision, "continue")
    assert (found.outcome_probability, found.expected_value_usd, decision.by_figures) == (None, None, None)
    assert found.cost_usd is not None
    assert any("pass_probability" in text for text in found.missing)
    assert any("value_usd_per_point" in text for text in found.missing)
    assert "value_usd_per_point" in decision.statement


def test_a_pivot_leaves_the_program_to_the_cent_as_it_is(context: AppContext) -> None:
    """It is another program: neither budget nor calendar has it."""
    plain, with_pivot = planned(context, request()), planned(context, request(pivot=PIVOT, committed_usd=5000))
    assert plain.plan.lines == with_pivot.plan.lines
    assert plain.schedule.finish == with_pivot.schedule.finish
    assert plain.decisions["validation"].sunk_usd == with_pivot.decisions["validation"].sunk_usd


def test_a_failed_gate_goes_on_with_its_pivot(context: AppContext) -> None:
    """In 18 of 100 cases the pivot's expected cost is spent in addition, and its outcome is reached with its chance."""
    given = request(pivot=PIVOT)
    plain, answer = planned(context, request()), planned(context, given)
    alone = planned(context, pivot_request(given, PIVOT, answer.gates["validation"].date.p50.isoformat())).plan
    failed = next(ending for ending in answer.plan.endings if ending.stopped_at == "validation")
    assert (failed.pivot, failed.usd) == ("3B for the pilot", spent_by(plain, "validation") + alone.expected_usd)
    assert failed.probability == pytest.approx(0.6 * 0.3)
    mean = float(plain.plan.expected_usd) + 0.18 * float(alone.expected_usd)
    assert float(answer.plan.expected_usd) == pytest.approx(mean, abs=0.02)
    assert sum(float(ending.usd) * ending.probability for ending in answer.plan.endings) == pytest.approx(mean, abs=0.02)
    assert answer.plan.outcome is not None
    worth = (0.6 * 0.7 * 0.8 + 0.18 * 0.9) * 900_000
    assert answer.plan.outcome.expected_net_usd == pytest.approx(worth - mean, abs=0.05)


def test_continuing_before_a_gate_with_a_pivot_counts_it(context: AppContext) -> None:
    """From the prototype's gate on validation is failed in 3 of 10 cases: then the pivot costs, and may reach the target."""
    given = request(pivot=PIVOT)
    answer, plain = planned(context, given), planned(context, request())
    pivot = branch(answer.decisions["validation"], "pivot")
    before, after = (branch(each.decisions["prototype"], "continue") for each in (plain, answer))
    assert pivot.expected_cost_usd is not None
    assert before.expected_cost_usd is not None
    assert after.expected_cost_usd == pytest.approx(before.expected_cost_usd + 0.3 * pivot.expected_cost_usd, abs=0.02)
    assert after.outcome_probability == pytest.approx(0.7 * 0.8 + 0.3 * 0.9)
    assert after.expected_value_usd == pytest.approx((0.56 + 0.27) * 900_000 - after.expected_cost_usd, abs=0.02)
    again = branch(answer.decisions["validation"], "continue")
    assert again.expected_cost_usd == branch(plain.decisions["validation"], "continue").expected_cost_usd


def test_what_is_wrong_in_a_pivot_is_pointed_at(context: AppContext) -> None:
    """In the pivot, or in the program's section that it takes."""
    pivot = copy.deepcopy(PIVOT)
    pivot["tiers"][0]["runs"][0]["estimate"]["hardware"] = {"accelerator": "Z9000"}
    with pytest.raises(DomainError) as caught:
        planned(context, request(pivot=pivot))
    assert caught.value.pointer.startswith("/tiers/1/gate/pivot/tiers/0/runs/0/estimate")
    with pytest.raises(InvalidRequest) as other:
        planned(context, request(pivot=PIVOT | {"outcome": EXAMPLE["outcome"] | {"target": 0.61}}))
    assert other.value.pointer == "/tiers/1/gate/pivot/outcome/target"


def test_a_pivot_does_not_pivot_again() -> None:
    """Its gates have no pivot: the field is refused."""
    pivot = copy.deepcopy(PIVOT)
    pivot["tiers"][0]["gate"]["pivot"] = PIVOT
    errors = ProgramRequestSchema().validate(request(pivot=pivot))
    assert "pivot" in str(errors)


def test_without_a_price_there_are_no_branches(context: AppContext) -> None:
    """As there is no budget; a pivot without a price says what to state."""
    nobody_sells, sold = ({"hardware": {"accelerator": name, "count": 256}} for name in ("H800", "H100"))
    body = present_program(planned(context, request() | {"defaults": nobody_sells}))
    assert [tier["gate"]["decision"] for tier in body["tiers"]] == [None, None, None]
    given = request(pivot=PIVOT | {"defaults": nobody_sells}) | {"defaults": sold}
    found = branch(planned(context, given).decisions["validation"], "pivot")
    assert (found.cost_usd, found.expected_cost_usd, found.expected_value_usd) == (None, None, None)
    assert found.finish is not None
    assert any("usd_per_accelerator_hour" in text for text in found.missing)
