"""Mitigations and states of risks, by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from service.domain.programs.outcome import Outcome
from service.domain.programs.program import Risk
from service.domain.programs.risks import Mitigation
from service.domain.quantities import Range
from service.engine.programs.budget import plan_budget
from service.engine.programs.contingency import assess_risks
from service.engine.programs.risks import mitigation_lines, take_mitigations
from tests.unit.engine.program_builders import three_tiers

# A fifth of production's 20,000 USD at 0.5; half as likely and half as dear for 800 USD and two days.
SPIKE = Risk("spike", 0.5, "production", 0.2, days=Range.exactly(10.0))
CLIPPING = Mitigation(Decimal(800), Range.exactly(2.0), probability_after=0.25, cost_share_after=0.1)
MITIGATED = replace(SPIKE, mitigation=CLIPPING)


def test_a_mitigation_that_pays() -> None:
    """2,000 USD expected without it and 500 with it: 1,500 avoided for 800. Days: 5 without, 2.5 and its own 2 with it."""
    effect = assess_risks((MITIGATED,), plan_budget(three_tiers()).tiers)[0].effect
    assert effect is not None
    assert (effect.loss_avoided_usd, effect.net_usd, effect.pays) == (1500, 700, True)
    assert (effect.days_avoided, effect.delay_avoided_usd) == (pytest.approx(0.5), None)
    assert "state outcome.delay_usd_per_day" in effect.statement


def test_a_mitigation_that_does_not_pay() -> None:
    """At 1,600 USD it costs more than it avoids, until half a day is worth more than the difference."""
    dear = replace(MITIGATED, mitigation=replace(CLIPPING, usd=Decimal(1600)))
    tiers = plan_budget(three_tiers()).tiers
    without, with_delay = (assess_risks((dear,), tiers, usd)[0].effect for usd in (None, 400.0))
    assert without is not None
    assert with_delay is not None
    assert (without.pays, without.net_usd) == (False, -100)
    assert (with_delay.pays, with_delay.delay_avoided_usd) == (True, pytest.approx(200))


def test_a_mitigation_is_weighed_and_not_taken_unless_stated() -> None:
    """Neither a line nor another expected loss; taken, it is a line of its tier and the loss is that after it."""
    weighed = plan_budget(three_tiers(risks=(MITIGATED,)))
    plain = plan_budget(three_tiers(risks=(SPIKE,)))
    assert weighed.lines == plain.lines
    taken = take_mitigations(three_tiers(risks=(MITIGATED,)), lambda _: True)
    found = plan_budget(taken)
    assert [(line.line, line.usd) for line in found.lines if line.line.startswith("mitigation")] == [("mitigation: spike", Decimal(800))]
    assert found.risks[0].expected_loss_usd == 500
    assert take_mitigations(taken, lambda _: False) == three_tiers(risks=(MITIGATED,))


def test_a_taken_mitigation_is_spent_with_its_tier() -> None:
    """One of no tier with the first."""
    chosen = three_tiers(risks=(replace(MITIGATED, tier=None, mitigation=replace(CLIPPING, taken=True)),))
    assert [line.tier for line in mitigation_lines(chosen)] == ["prototype"]


@pytest.mark.parametrize(("state", "expected"), [("open", 2000), ("occurred", 4000), ("closed", 0)])
def test_the_state_decides_what_is_planned_with(state: str, expected: int) -> None:
    """An occurred risk is certain, a closed one does not happen; what was stated stays in the answer."""
    block = assess_risks((replace(SPIKE, state=state),), plan_budget(three_tiers()).tiers)[0]  # type: ignore[arg-type]
    assert block.expected_loss_usd == expected
    assert block.risk.probability == 0.5


def test_days_of_a_share_are_those_of_the_tiers_machine() -> None:
    """A fifth of 10,000 accelerator-hours on one accelerator at a time, at 0.5; nothing of it is left with the risk gone."""
    gone = replace(SPIKE, days=None, mitigation=Mitigation(probability_after=0.0))
    tiers = plan_budget(three_tiers(outcome=Outcome("x", 0.1, 0.2, 0.01))).tiers
    effect = assess_risks((gone,), tiers)[0].effect
    assert effect is not None
    assert effect.days_avoided == pytest.approx(0.5 * 0.2 * 10_000 / 24)
