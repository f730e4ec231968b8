"""Spot capacity: how often it is taken back, and how often it can be had."""

from __future__ import annotations

import pytest

from service.presets.training.spot import spot_capacity, spot_preemptions, spot_sets


def test_the_default_lies_between_what_is_published_and_what_was_traced() -> None:
    """From 10 % a day to the losses of full sets of several instances, an instance; the middle is their geometric mean."""
    found = spot_preemptions()
    assert found.per_node_hour.p10 == pytest.approx(0.1 / 24, rel=0.02)
    several = [one.losses_per_hour / one.instances for one in spot_sets() if one.instances > 1]
    assert min(several) < found.per_node_hour.p90 < max(several)
    assert found.per_node_hour.p50 == pytest.approx((found.per_node_hour.p10 * found.per_node_hour.p90) ** 0.5, rel=0.05)
    assert "skypilot" in found.source


def test_the_share_of_time_is_that_of_traces() -> None:
    """From the zones that have least to those that have most; the traced sets lie between."""
    found = spot_capacity()
    assert found.share_of_time.p10 < found.share_of_time.p50 < found.share_of_time.p90 < 1
    assert all(found.share_of_time.p10 < one.share_of_time < found.share_of_time.p90 for one in spot_sets())
    assert "skypilot" in found.source


def test_traces_agree_with_themselves() -> None:
    """Full sets lost and had again after so many hours are there for about the traced share of the time."""
    for one in spot_sets():
        there = 1 / (1 + one.losses_per_hour * one.hours_until_back)
        assert there == pytest.approx(one.share_of_time, abs=0.2)
