"""The data that forecasts and drift lean on hang together and name their source."""

from __future__ import annotations

import pytest

from service.domain.tracking.status import DriftQuantity
from service.presets.tracking.forecast import SPLIT, drift_rules, forecast_rules


def test_weights_of_wandering_add_up_to_one() -> None:
    """They are chances before a run is seen."""
    assert sum(forecast_rules().signal_to_noise_weights.values()) == pytest.approx(1)
    assert all(float(share) >= 0 for share in forecast_rules().signal_to_noise_weights)


@pytest.mark.parametrize("quantity", SPLIT)
def test_every_span_of_days_has_a_threshold(quantity: DriftQuantity) -> None:
    """From the fewest days that can be split on."""
    splits, limits = drift_rules().splits, drift_rules().limits[quantity]
    assert len(limits.days) == len(limits.thresholds)
    assert limits.days[0] == splits.min_before + splits.min_after
    assert list(limits.days) == sorted(set(limits.days))


def test_the_stated_share_is_no_more_than_its_parts() -> None:
    """False alarms of single quantities add up to at least what is stated of all."""
    rules = drift_rules()
    assert rules.false_alarm_share <= sum(limits.false_alarm_share for limits in rules.limits.values()) + rules.failures.false_alarm_share


def test_rules_name_their_source() -> None:
    """Where the values come from."""
    assert "simulated" in forecast_rules().source
    assert "simulated" in drift_rules().source
