"""What an outcome is worth: prices of points, curves, further metrics and savings, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.domain.errors import InvalidRequest
from service.domain.programs.outcome import Outcome, OutcomeMetric, ServingSaving, ValuePoint
from service.domain.programs.program import TierGate
from service.engine.programs.budget import plan_budget
from service.engine.programs.value import metric_value_usd, outcome_value_usd, outcome_values
from tests.unit.engine.program_builders import three_tiers

HELPDESK = Outcome("helpdesk-eval", 0.61, 0.70, 0.01)
LATENCY = OutcomeMetric("p95 latency, ms", 800.0, 500.0, 1.0, 200.0)


def test_an_outcome_without_worth_has_none() -> None:
    """No worth is assumed."""
    assert outcome_value_usd(HELPDESK) is None


def test_points_have_a_price() -> None:
    """Nine points of 5,000 USD."""
    assert outcome_value_usd(replace(HELPDESK, value_usd_per_point=5000.0)) == pytest.approx(45_000)


def test_a_curve_gives_the_worth_between_its_points() -> None:
    """From 0.61 to 0.70 on a curve that is flat until 0.65: two thirds of the way from 0.65 to 0.725; beyond the curve nothing is added."""
    curved = replace(HELPDESK, value_curve=(ValuePoint(0.5, 0.0), ValuePoint(0.65, 0.0), ValuePoint(0.725, 90_000.0)))
    assert outcome_value_usd(curved) == pytest.approx(60_000)
    assert metric_value_usd(curved, 0.9) == pytest.approx(90_000)


def test_less_latency_is_worth_more() -> None:
    """300 ms less at 200 USD each, beside nine points of 5,000 USD."""
    values = outcome_values(replace(HELPDESK, value_usd_per_point=5000.0, metrics=(LATENCY,)))
    assert {value.of: round(value.usd) for value in values} == {"helpdesk-eval": 45_000, "p95 latency, ms": 60_000}
    slower = Outcome("latency", 800.0, 500.0, 1.0, value_usd_per_point=200.0)
    assert metric_value_usd(slower, 900.0) == pytest.approx(-20_000)


def test_the_same_quality_at_half_the_serving_cost() -> None:
    """40,000 USD a month, half of it saved for two years; no point is gained, so that none has a price."""
    saving = Outcome("helpdesk-eval", 0.7, 0.7, 0.01, saving=ServingSaving(40_000.0, 0.5, 24.0))
    found = plan_budget(three_tiers(outcome=saving)).outcome
    assert found is not None
    assert (found.value_usd, found.points, found.usd_per_point) == (480_000, 0, None)


def test_the_expected_net_value_counts_the_gates() -> None:
    """Worth times the probability that the gates are passed, less the expected cost."""
    asked = three_tiers(outcome=replace(HELPDESK, value_usd_per_point=5000.0))
    first, *rest = asked.tiers
    found = plan_budget(replace(asked, tiers=(replace(first, gate=TierGate("go on", 0.6)), *rest)))
    assert found.outcome is not None
    assert found.outcome.expected_net_usd == pytest.approx(found.completion_probability * 45_000 - float(found.expected_usd))


@pytest.mark.parametrize(
    ("outcome", "pointer"),
    [
        (replace(HELPDESK, value_usd_per_point=1.0, value_curve=(ValuePoint(0, 0), ValuePoint(1, 1))), "/outcome/value_curve"),
        (replace(HELPDESK, value_curve=(ValuePoint(1, 0), ValuePoint(1, 1))), "/outcome/value_curve/1/value"),
        (replace(HELPDESK, metrics=(OutcomeMetric("helpdesk-eval", 1.0, 2.0, 1.0),)), "/outcome/metrics/0/metric"),
    ],
)
def test_what_contradicts_itself(outcome: Outcome, pointer: str) -> None:
    """Two prices of a point, a curve that does not go on, two metrics of one name."""
    with pytest.raises(InvalidRequest) as told:
        plan_budget(three_tiers(outcome=outcome))
    assert told.value.pointer == pointer
