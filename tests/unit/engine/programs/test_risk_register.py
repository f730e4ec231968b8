"""The register by simulation: against closed forms where risks are independent, and what correlation does."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.errors import DomainError
from service.domain.programs.plan import RiskBlock
from service.domain.programs.program import Reserves, Risk, RiskCorrelation
from service.domain.programs.risks import RiskPair
from service.domain.quantities import Range
from service.engine.programs.budget import plan_budget
from service.engine.programs.contingency import assess_risks, contingency_usd
from service.engine.programs.risk_register import covering_usd, independent_deviation_usd, simulate_losses
from tests.unit.engine.program_builders import three_tiers

REGISTER = tuple(
    Risk(name, probability, cost_usd=Decimal(usd))
    for name, probability, usd in (("a", 0.3, 1000), ("b", 0.2, 4000), ("c", 0.5, 500), ("d", 0.1, 9000), ("e", 0.25, 2500))
)
NONE = Range.exactly(0.0)


def blocks(risks: tuple[Risk, ...] = REGISTER) -> tuple[RiskBlock, ...]:
    return assess_risks(risks, ())


def exact_quantile(risks: tuple[Risk, ...], confidence: float) -> float:
    """Of the sum of independent losses, over all combinations."""
    outcomes = []
    for happens in itertools.product((False, True), repeat=len(risks)):
        probability = math.prod(risk.probability if here else 1 - risk.probability for risk, here in zip(risks, happens, strict=True))
        outcomes.append((sum(float(risk.cost_usd) for risk, here in zip(risks, happens, strict=True) if here), probability))
    covered = 0.0
    for usd, probability in sorted(outcomes):
        covered += probability
        if covered >= confidence:
            return usd
    raise AssertionError(confidence)


def test_independent_risks_agree_with_the_closed_form() -> None:
    """Mean, deviation, chance of none, and every percentile of the sum."""
    found = simulate_losses(blocks(), 0.0)
    assert np.mean(found.usd) == pytest.approx(sum(risk.probability * float(risk.cost_usd) for risk in REGISTER), rel=0.02)
    assert np.std(found.usd) == pytest.approx(independent_deviation_usd(blocks()), rel=0.02)
    assert found.none_probability == pytest.approx(math.prod(1 - risk.probability for risk in REGISTER), abs=0.01)
    for confidence in (0.55, 0.7, 0.8, 0.9):
        low, high = (exact_quantile(REGISTER, confidence + error) for error in (-0.01, 0.01))
        assert low <= covering_usd(found, NONE, confidence) <= high


def test_without_risks_it_is_the_estimates_side_above() -> None:
    """40 USD at the 90th percentile are 26.27 at the 80th."""
    spread = Range(80.0, 100.0, 140.0)
    assert contingency_usd(Reserves(0.0, 0.8, None), Decimal(1000), (), spread, 0.0) == pytest.approx(Decimal("26.27"), abs=Decimal("0.05"))


def test_two_risks_of_one_cause_happen_together() -> None:
    """Fully correlated, two risks of 0.3 happen in 0.3 of the trials, each time both; independent ones in 0.51."""
    twins = blocks((Risk("a", 0.3, cost_usd=Decimal(100)), Risk("b", 0.3, cost_usd=Decimal(100))))
    together, apart = simulate_losses(twins, 1.0), simulate_losses(twins, 0.0)
    assert set(together.usd) == {0.0, 200.0}
    assert together.none_probability == pytest.approx(0.7, abs=0.01)
    assert apart.none_probability == pytest.approx(0.49, abs=0.01)


def test_one_correlation_is_that_of_one_common_factor() -> None:
    """Vasicek's probability that both of two risks of 0.5 with correlation 0.5 happen: 1/4 + asin(0.5) / 2 pi = 1/3."""
    twins = blocks((Risk("a", 0.5, cost_usd=Decimal(1)), Risk("b", 0.5, cost_usd=Decimal(1))))
    assert np.mean(simulate_losses(twins, 0.5).usd == 2) == pytest.approx(1 / 3, abs=0.01)


def test_a_pair_depends_on_each_other_and_the_rest_do_not() -> None:
    """The pair's correlation alone is the stated one."""
    pairs = (RiskPair(("a", "b"), 0.9),)
    assert float(np.std(simulate_losses(blocks(), pairs).usd)) > float(np.std(simulate_losses(blocks(), 0.0).usd))
    alone = blocks(REGISTER[2:])
    assert np.array_equal(simulate_losses(alone, ()).usd, simulate_losses(alone, 0.0).usd)


@pytest.mark.parametrize(
    ("stated", "pointer"),
    [
        ((RiskPair(("a", "x"), 0.5),), "/risk_correlation/0/risks/1"),
        ((RiskPair(("a", "a"), 0.5),), "/risk_correlation/0/risks"),
        ((RiskPair(("a", "b"), 1.0), RiskPair(("b", "c"), 1.0), RiskPair(("a", "c"), -1.0)), "/risk_correlation"),
    ],
)
def test_correlations_that_cannot_be(stated: RiskCorrelation, pointer: str) -> None:
    """An unknown name, a risk with itself, and three risks of which two are one and two are opposites."""
    with pytest.raises(DomainError) as told:
        simulate_losses(blocks(), stated)
    assert told.value.pointer == pointer


def test_the_same_register_gives_the_same_losses() -> None:
    """By its seed; another seed gives others."""
    assert np.array_equal(simulate_losses(blocks(), 0.4).usd, simulate_losses(blocks(), 0.4).usd)
    assert not np.array_equal(simulate_losses(blocks(), 0.4).usd, simulate_losses(blocks(), 0.4, seed=1).usd)


@settings(max_examples=settings().max_examples // 2)
@given(st.floats(0, 1))
def test_correlation_keeps_the_mean_and_widens_the_rest(correlation: float) -> None:
    """The loss that is expected does not depend on it."""
    found = simulate_losses(blocks(), correlation)
    assert np.mean(found.usd) == pytest.approx(2850, rel=0.05)
    assert np.std(found.usd) >= independent_deviation_usd(blocks()) * 0.97


def test_a_contingency_without_a_stated_correlation_is_the_closed_form() -> None:
    """To the cent, whatever else is stated of the risks; with one it is simulated, and the line says so."""
    asked = three_tiers(risks=REGISTER, reserves=Reserves(0.0, 0.8, None))
    plain, owned = plan_budget(asked), plan_budget(replace(asked, risks=tuple(replace(risk, owner="me") for risk in REGISTER)))
    assert plain.lines == owned.lines
    correlated = plan_budget(replace(asked, risk_correlation=0.8))
    assert "simulated" in correlated.lines[-1].basis
    assert correlated.total_usd.p90 > plain.total_usd.p90
