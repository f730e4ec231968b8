"""What deciding at a gate is worth: against closed forms of two arms, and by hand on three tiers."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.programs.information import GateInformation
from service.domain.programs.outcome import Outcome
from service.domain.programs.program import Program
from service.engine.programs.budget import plan_budget
from service.engine.programs.information import sample_information_value
from tests.unit.engine.program_builders import three_tiers

WORTH = Outcome("helpdesk-eval", 0.61, 0.71, 0.01, value_usd_per_point=10_000.0)
NORMAL = NormalDist()


def informed(asked: Program, index: int = 0) -> GateInformation:
    gate = plan_budget(asked).tiers[index].gate
    assert gate is not None
    assert gate.information is not None
    return gate.information


def with_gate(asked: Program, **changes: float) -> Program:
    first, *rest = asked.tiers
    assert first.gate is not None
    return replace(asked, tiers=(replace(first, gate=replace(first.gate, **changes)), *rest))  # type: ignore[arg-type]


@pytest.mark.parametrize(("mean", "prior", "error"), [(0.0, 1.0, 1.0), (0.7, 1.0, 0.5), (-1.5, 2.0, 1.0)])
def test_two_arms_with_normal_means_against_the_closed_form(mean: float, prior: float, error: float) -> None:
    """s (phi(d) - d (1 - Phi(d))) with d = |mean| / s and s = prior^2 / sqrt(prior^2 + error^2) (Raiffa & Schlaifer 1961, 5.4)."""
    arms, findings = np.linspace(-7, 7, 701) * prior + mean, np.linspace(-12, 12, 901) * math.hypot(prior, error) + mean
    weights = np.array([NORMAL.pdf((arm - mean) / prior) for arm in arms])
    densities = np.exp(-((findings[None, :] - arms[:, None]) ** 2) / (2 * error**2))
    found = sample_information_value(
        weights / weights.sum(), np.column_stack([arms, np.zeros_like(arms)]), densities / densities.sum(axis=1, keepdims=True)
    )
    deviation = prior**2 / math.hypot(prior, error)
    distance = abs(mean) / deviation
    assert found == pytest.approx(deviation * (NORMAL.pdf(distance) - distance * (1 - NORMAL.cdf(distance))), rel=1e-3)


@given(st.floats(0, 1), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1), st.floats(0, 1))
def test_a_finding_is_never_worth_less_than_none_nor_more_than_certainty(
    prior: float, gain: float, loss: float, sensitivity: float, specificity: float
) -> None:
    """Perfect information of two arms is worth the smaller of what each action loses on average."""
    states, payoffs = np.array([prior, 1 - prior]), np.array([[gain, 0.0], [-loss, 0.0]])
    findings = np.array([[sensitivity, 1 - sensitivity], [1 - specificity, specificity]])
    perfect = min(prior * gain, (1 - prior) * loss)
    assert sample_information_value(states, payoffs, np.eye(2)) == pytest.approx(perfect, abs=1e-6)
    assert 0 <= sample_information_value(states, payoffs, findings) <= perfect + 1e-6


def test_a_gate_by_hand() -> None:
    """Right with 0.6. Going on is then worth 0.7 (0.8 x 100,000 - 20,000) - 5,000 = 37,000 USD; wrong, the 5,000 of validation are lost.

    Without the tier one would go on, for 0.6 x 37,000 - 0.4 x 5,000; knowing saves the 2,000 that are lost on average, for 1,000.
    """
    found = informed(three_tiers(outcome=WORTH))
    assert (found.success_probability, found.decide_usd) == (0.6, 1000)
    assert (found.wrong_go_usd, found.wrong_stop_usd) == (5000, pytest.approx(37_000))
    assert (found.value_usd, found.net_usd, found.worth_running) == (pytest.approx(2000), pytest.approx(1000), True)


def test_evidence_that_errs_is_worth_less() -> None:
    """A gate passed with 0.6 that tells right from wrong in 0.95 of the cases, and in 0.9."""
    sure, some, poor = (
        informed(with_gate(three_tiers(outcome=WORTH), sensitivity=share, specificity=share)).value_usd for share in (1.0, 0.95, 0.9)
    )
    assert sure is not None
    assert some is not None
    assert poor is not None
    assert sure > some > poor >= 0


def test_a_day_of_sign_off_costs_what_a_delay_costs() -> None:
    """Three days at 500 USD make the tier not worth running for its decision."""
    found = informed(with_gate(three_tiers(outcome=replace(WORTH, delay_usd_per_day=500.0)), sign_off_days=3.0))
    assert (found.decide_usd, found.worth_running) == (2500, False)


def test_what_is_missing_is_said() -> None:
    """Without a worth of the outcome what a wrong stop costs is not known; after the last gate nothing is spent."""
    found = informed(three_tiers(outcome=replace(WORTH, value_usd_per_point=None)))
    assert (found.value_usd, found.worth_running, found.wrong_go_usd) == (None, None, 5000)
    assert "value_usd_per_point" in found.statement
    assert "no spending depends on it" in informed(three_tiers(outcome=WORTH), 2).statement


def test_an_outcome_worth_less_than_its_cost_is_never_gone_on_for() -> None:
    """Ten points of 100 USD."""
    found = informed(three_tiers(outcome=replace(WORTH, value_usd_per_point=100.0)))
    assert (found.value_usd, found.worth_running) == (0, False)
    assert "never pays" in found.statement


@pytest.mark.parametrize("changes", [{"sensitivity": 0.5}, {"specificity": 0.2}, {"sensitivity": 0.3, "specificity": 0.3}])
def test_a_gate_that_its_evidence_excludes(changes: dict[str, float]) -> None:
    """Passed with 0.6: more often than where going on is right, less often than where it is wrong, or decided by nothing."""
    with pytest.raises(InvalidRequest) as told:
        plan_budget(with_gate(three_tiers(outcome=WORTH), **changes))
    assert told.value.pointer == "/tiers/0/gate/pass_probability"
