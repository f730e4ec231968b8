"""The ways on from a gate: what is left of a plan, and what figures and criteria recommend."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.programs.branches import BranchName, GateBranch
from service.domain.programs.program import GateCriteria, Program
from service.domain.quantities import Range
from service.domain.training.estimate import FinishDates
from service.engine.numerics.money import sum_usd
from service.engine.programs.branches import (
    BranchFigures,
    cost_ahead,
    criteria_sentences,
    decide,
    describe_branch,
    expected_cost_ahead,
    passing_probability,
    stop_figures,
)
from service.engine.programs.budget import plan_budget
from service.engine.programs.gates import spending_by_tier
from tests.unit.engine.program_builders import programs

DAY = FinishDates(date(2027, 3, 1), date(2027, 3, 8), date(2027, 3, 20))


def figures(net: float | None, branch: BranchName) -> GateBranch:
    """A branch of which a value is expected; None: its worth is not stated."""
    return describe_branch(branch, BranchFigures(Range.exactly(1000.0), 1000.0, DAY, 1.0, None if net is None else net + 1000.0), branch)


@given(programs())
def test_nothing_spent_yet_the_rest_is_the_whole_plan(asked: Program) -> None:
    """Cost with its range, and what is expected of it over the gates."""
    found = plan_budget(asked)
    spending = spending_by_tier(asked, found.tiers, found.envelope.reserve_usd)
    assert cost_ahead(asked, found, Decimal(0)) == found.total_usd
    assert expected_cost_ahead(spending, 0, Decimal(0)) == pytest.approx(float(found.expected_usd), abs=0.02)


@given(programs(), st.floats(0, 1))
def test_what_is_spent_and_what_is_left_are_the_budget(asked: Program, share: float) -> None:
    """To the cent, wherever the gate lies; and the range never grows as money is spent."""
    found = plan_budget(asked)
    budget = sum_usd(line.usd for line in found.lines)
    sunk = (budget * Decimal(repr(share))).quantize(Decimal("0.01"))
    left = cost_ahead(asked, found, sunk)
    assert Decimal(repr(left.p50)).quantize(Decimal("0.01")) + sunk == budget
    assert left.p10 <= left.p50 <= left.p90
    assert left.p90 <= found.total_usd.p90 + 0.02


@given(programs())
def test_gates_ahead_are_certain_only_where_none_is(asked: Program) -> None:
    """A probability that nobody stated is not known; after the last gate nothing can fail."""
    tiers = len(asked.tiers)
    assert passing_probability(asked, 0, frozenset()) is None
    assert passing_probability(asked, tiers, frozenset()) == 1.0
    stated = frozenset(tier.tier for tier in asked.tiers)
    assert passing_probability(asked, 0, stated) == pytest.approx(plan_budget(asked).completion_probability)


@pytest.mark.parametrize(
    ("nets", "best"),
    [
        ((5.0, 4.0, 0.0), "continue"),
        ((5.0, 6.0, 0.0), "pivot"),
        ((-5.0, -6.0, -1.0), "stop"),
        ((5.0, None, 0.0), None),
        ((1.0, 1.0, 1.0), "continue"),
    ],
)
def test_the_figures_name_the_branch_of_the_highest_expected_value(nets: tuple[float | None, ...], best: BranchName | None) -> None:
    """Where one is not known nothing is named; of equals the plan goes on."""
    names: tuple[BranchName, ...] = ("continue", "pivot", "stop")
    found = decide(0.0, [figures(net, name) for net, name in zip(nets, names, strict=True)], (), None, agreed=False)
    assert (found.by_figures, found.recommendation) == (best, best)


def test_criteria_that_were_agreed_prevail_and_others_give_way() -> None:
    """Both are shown, and that they differ."""
    branches = [figures(5.0, "continue"), figures(0.0, "stop")]
    agreed = decide(0.0, branches, ("CPI 0.6 is below 0.7",), "stop", agreed=True)
    default = decide(0.0, branches, ("CPI 0.6 is below 0.7",), "stop", agreed=False)
    assert (agreed.by_figures, agreed.by_criteria, agreed.recommendation) == ("continue", "stop", "stop")
    assert "The two differ: the criteria say stop, the figures continue; the criteria count: they were agreed up front" in agreed.statement
    assert (default.by_criteria, default.recommendation) == ("stop", "continue")
    assert "the figures count: no criteria were agreed up front" in default.statement


def test_criteria_decide_alone_where_figures_are_not_known() -> None:
    """And what the figures lack is said."""
    found = decide(0.0, [figures(None, "continue"), figures(0.0, "stop")], (), "stop", agreed=False)
    assert (found.by_figures, found.recommendation) == (None, "stop")
    assert "value_usd_per_point" in found.statement


def test_figures_and_criteria_that_agree_are_not_said_to_differ() -> None:
    """Neither before they are measured nor after."""
    branches = [figures(5.0, "continue"), figures(0.0, "stop")]
    assert "differ" not in decide(0.0, branches, (), "continue", agreed=True).statement
    assert "differ" not in decide(0.0, branches, (), None, agreed=True).statement


def test_branches_are_told_in_plain_words() -> None:
    """What is spent, when it is over, how likely the target is and what is expected of it."""
    going = describe_branch("continue", BranchFigures(Range(80_000.0, 90_000.0, 120_000.0), 85_000.0, DAY, 0.8, 500_000.0))
    assert going.statement == (
        "Continue: 90,000 USD (80,000 to 120,000) is spent from here; over on 2027-03-08 (2027-03-01 to 2027-03-20);"
        " the target is reached with a probability of 80%; its expected value less its cost is 315,000 USD."
    )
    stopped = describe_branch("stop", stop_figures(FinishDates(DAY.p50, DAY.p50, DAY.p50), 0.0))
    assert stopped.statement == "Stop: nothing more is spent; over on 2027-03-08; the target is not reached."


def test_criteria_are_sentences() -> None:
    """None for criteria without a bound."""
    go, stop = GateCriteria(metric_at_least=0.65, cpi_at_least=0.9), GateCriteria(cpi_below=0.7)
    assert list(criteria_sentences(go, stop, "helpdesk")) == [
        "Agreed up front: continue where helpdesk is at least 0.65 and the CPI is at least 0.9",
        "Agreed up front: stop where the CPI is below 0.7",
    ]
    assert not list(criteria_sentences(GateCriteria(), None, "helpdesk"))
