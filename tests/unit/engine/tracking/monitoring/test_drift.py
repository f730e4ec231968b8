"""Drift of a run: what its days show is told by quantity, untold quantities have none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.engine.tracking.monitoring.change_point import Floats
from service.engine.tracking.monitoring.drift import PlannedRates, RateChange, RunTotals, daily_values, detect_drift, price_change
from service.presets.tracking.forecast import drift_rules
from tests.unit.engine.tracking.monitoring.test_change_point import days

RULES = drift_rules()


def record(hours: int, pace: Floats | None = None) -> RunTotals:
    """A run told every hour, that ran nine hours of ten, at 2 USD an accelerator-hour and an interruption every two days."""
    at = np.arange(hours + 1.0)
    gained = np.full(hours, 1e9) if pace is None else pace
    return RunTotals(at, np.append(0, gained.cumsum()), 0.9 * at, 200 * at, 100 * at, np.arange(24.5, hours, 48))


@pytest.mark.parametrize(("prices", "planned", "index", "change"), [
    ([2.0] * 5 + [2.5], None, 5, 0.25),
    ([2.0] * 5 + [2.5] * 30, 2.0, 5, 0.25),
    ([2.0] * 5 + [2.5] * 5 + [1.0] * 3, None, 10, -0.5),
    ([2.2] * 3, 2.0, 0, 0.1),
])  # fmt: skip
def test_a_price_has_changed_the_day_it_changes(prices: list[float], planned: float | None, index: int, change: float) -> None:
    """Exactly, from the first day on; a price that was never the planned one has changed before the first."""
    found = price_change(np.array(prices), planned, RULES)
    assert found is not None
    assert found.index == index
    assert found.ratio == pytest.approx(1 + change, abs=0.13 if len(prices) == 13 else 1e-9)
    assert found.confidence == 1


@pytest.mark.parametrize(("prices", "planned"), [
    ([], 2.0), ([2.0], None), ([2.0] * 50, 2.0), ([2.001, 1.999] * 20, 2.0), ([0.0] * 5 + [2.0], None), ([2.5] * 5, None),
])  # fmt: skip
def test_a_price_that_stays_has_not_changed(prices: list[float], planned: float | None) -> None:
    """Nor one that is rounded now this way and now that, or that came after nothing."""
    assert price_change(np.array(prices), planned, RULES) is None


def test_a_floating_price_is_judged_by_its_days() -> None:
    """A spot price moves every day: only a lasting change of its level counts."""
    assert price_change(days(40, 40, 1.0, noise=0.03), 100.0, RULES) is None
    found = price_change(days(40, 30, 1.3, noise=0.03), 100.0, RULES)
    assert found is not None
    assert found.index == pytest.approx(30, abs=1)


def test_what_a_run_shows_is_told_by_quantity() -> None:
    """A cut of throughput and a price raised are both found, with the elapsed hours since and the signed share."""
    pace = np.where(np.arange(1200) < 960, 1e9, 0.85e9)
    raised = replace(record(1200, pace), usd=np.append(0, np.where(np.arange(1200) < 720, 200, 220).cumsum()))
    found = {each.quantity: each for each in detect_drift(raised, PlannedRates(2.0, 0.5 / 24), RULES)}
    assert set(found) == {"throughput", "price"}
    assert found["throughput"].since_hours == 960
    assert found["throughput"].change == pytest.approx(-0.15)
    assert replace(found["price"], change=round(found["price"].change, 9)) == RateChange("price", 720.0, 0.1, 1.0)


def test_a_run_on_its_plan_shows_nothing() -> None:
    """Two months as planned."""
    assert detect_drift(record(1440), PlannedRates(2.0, 0.5 / 24), RULES) == ()


def test_failures_are_told_against_the_plan() -> None:
    """An interruption every two days where one in twenty was planned."""
    (found,) = detect_drift(record(1440), PlannedRates(2.0, 0.05 / 24), RULES)
    assert found.quantity == "failures"
    assert found.change == pytest.approx(9, rel=0.1)


def test_what_nobody_told_does_not_drift() -> None:
    """A run that tells its tokens alone is judged by them alone; one of less than a day by nothing."""
    pace = np.where(np.arange(1200) < 960, 1e9, 0.5e9)
    full = record(1200, pace)
    found = detect_drift(RunTotals(full.at_hours, full.tokens_trained), PlannedRates(2.0, 1.0), RULES)
    assert [each.quantity for each in found] == ["throughput"]
    assert detect_drift(record(20), PlannedRates(2.0, 1.0), RULES) == ()


def test_days_on_which_a_job_hardly_ran_say_nothing_of_its_throughput() -> None:
    """They are left out, and are part of goodput."""
    run = record(96)
    stood = replace(run, productive_hours=np.minimum(run.at_hours, 24.0) + np.maximum(run.at_hours - 72, 0))
    starts, values = daily_values(stood, "throughput", RULES)
    assert starts.tolist() == [0, 72]
    assert daily_values(stood, "goodput", RULES)[1].tolist() == [1, 0, 0, 1]
    assert values == pytest.approx([1e9, 1e9])


def test_prices_within_the_tolerance_are_one_price() -> None:
    """A tolerance of a hundredth of 2 USD is 2 cents."""
    rules = replace(RULES, price_tolerance=0.01)
    assert price_change(np.array([2.0, 2.015, 2.0]), 2.0, rules) is None
    found = price_change(np.array([2.0, 2.0, 2.03, 2.03]), 2.0, rules)
    assert found is not None
    assert (found.index, found.ratio) == (2, pytest.approx(1.015))


def test_throughput_counts_days_that_ran_long_enough() -> None:
    """A day of 12 running hours where a half is asked, and one of 11 that is left out."""
    at = np.array([0.0, 24.0, 48.0])
    told = RunTotals(at, np.array([0.0, 1200.0, 2300.0]), np.array([0.0, 12.0, 23.0]))
    starts, values = daily_values(told, "throughput", replace(RULES, min_running_share=0.5))
    assert (starts.tolist(), values.tolist()) == ([0.0], [100.0])


def test_days_are_counted_from_the_first_report() -> None:
    """From hour 100 to 171: two whole days."""
    at = np.array([100.0, 171.0])
    starts, values = daily_values(RunTotals(at, np.array([0.0, 7100.0])), "throughput", RULES)
    assert (starts.tolist(), values) == ([100.0, 124.0], pytest.approx([100.0, 100.0]))
