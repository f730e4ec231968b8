"""Contingency and spread of a program's cost by hand."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from service.domain.programs.program import Reserves, Risk
from service.domain.quantities import Range
from service.engine.programs.budget import plan_budget
from service.engine.programs.contingency import (
    assess_risks,
    budget_range,
    combine_ranges,
    contingency_usd,
    cost_range,
    expected_loss_usd,
)
from tests.unit.engine.program_builders import three_tiers

SPREAD = Range(80.0, 100.0, 140.0)


@pytest.mark.parametrize(("correlation", "below", "above"), [(0.0, 5.0, 13.0), (1.0, 7.0, 17.0), (0.25, math.sqrt(31), math.sqrt(199))])
def test_ranges_added_up(correlation: float, below: float, above: float) -> None:
    """Sides of 3 and 4 below, 12 and 5 above: as squares, as sums, and a quarter and three quarters of both."""
    found = combine_ranges([Range(7.0, 10.0, 22.0), Range(16.0, 20.0, 25.0)], correlation)
    assert (found.p10, found.p50, found.p90) == pytest.approx((30 - below, 30, 30 + above))


def test_losses_of_risks() -> None:
    """A fifth of production's 20,000 USD and 300 at 0.4; a tenth of all 26,000 and 50 at 0.5."""
    risks = (Risk("spike", 0.4, "production", 0.2, Decimal(300)), Risk("delay", 0.5, None, 0.1, Decimal(50)))
    blocks = assess_risks(risks, plan_budget(three_tiers()).tiers)
    assert [block.loss_usd for block in blocks] == [4300, 2650]
    assert [block.expected_loss_usd for block in blocks] == [1720, 1325]
    assert expected_loss_usd(blocks) == 3045


def test_a_computed_contingency_is_losses_and_the_estimates_side_above() -> None:
    """40 USD are 1.28 deviations; a confidence of 0.8 takes 0.84 of them, one of a half none."""
    blocks = assess_risks((Risk("spike", 0.5, None, 0.0, Decimal(60)),), ())
    assert contingency_usd(Reserves(0.0, 0.8, None), Decimal(1000), blocks, SPREAD) == Decimal("56.27")
    assert contingency_usd(Reserves(0.0, 0.9, None), Decimal(1000), (), SPREAD) == Decimal("40.00")
    assert contingency_usd(Reserves(0.0, 0.5, None), Decimal(1000), blocks, SPREAD) == Decimal("30.00")
    assert contingency_usd(Reserves(0.0, 0.8, 0.15), Decimal(1000), blocks, SPREAD) == Decimal("150.00")


def test_the_range_of_a_program_with_a_risk() -> None:
    """A loss of 60 USD at 0.5 deviates by 30, 38.4 at the percentiles: with 20 below, where no more than 30 can be saved, and 40 above."""
    blocks = assess_risks((Risk("spike", 0.5, None, 0.0, Decimal(60)),), ())
    found = cost_range(Decimal(100), blocks, SPREAD)
    assert found.p10 == pytest.approx(130 - math.hypot(20, 30))
    assert found.p50 == 130
    assert found.p90 == pytest.approx(130 + math.hypot(40, 30 * 1.2815515655))


def test_the_contingency_is_in_all_percentiles_of_the_budget_and_in_none_of_the_cost() -> None:
    """A budget of 170 USD holds 40 more than the cost that is expected, in every percentile; no percentile is below 0."""
    assert budget_range(Decimal(170), Range(95.0, 130.0, 190.0)) == Range(135.0, 170.0, 230.0)
    assert budget_range(Decimal(20), Range(95.0, 130.0, 190.0)) == Range(0.0, 20.0, 80.0)
    held = plan_budget(three_tiers(reserves=Reserves(0.0, 0.8, 0.25)))
    none = plan_budget(three_tiers(reserves=Reserves(0.0, 0.8, 0.0)))
    contingency = float(held.envelope.reserve_usd)
    assert contingency == 6500
    for point in ("p10", "p50", "p90"):
        assert getattr(held.total_usd, point) - contingency == pytest.approx(getattr(none.total_usd, point))
        assert getattr(held.without_contingency_usd, point) == pytest.approx(getattr(none.total_usd, point))
