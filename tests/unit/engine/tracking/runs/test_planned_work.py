"""A slow late phase is judged by its own plan: it is no drift, no loss of value, and known to the forecast from the first day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.tracking.events import Event, PlannedPhase, RunBaseline
from service.domain.tracking.status import ProgramStatus
from service.engine.tracking.runs.planned_work import planned_work, planned_work_until, trained_work
from service.engine.tracking.status import status
from tests.unit.engine.tracking.test_status import LONG, LONG_RUN, RULES
from tests.unit.engine.tracking_builders import at, event, run_of

# 8,000 tokens in 400 hours, then 2,000 in 400: 12.5 an hour in the mean.
PHASES = (PlannedPhase("base", 8000.0, 20 / 3600), PlannedPhase("long context", 2000.0, 5 / 3600))
PHASED = replace(LONG_RUN, phases=PHASES, accelerator_hours=8000.0, usd=16_000.0)
PLAIN = replace(PHASED, phases=())


def life(hours: int, slower: float = 1.0, slower_from: int = 10_000) -> Iterator[Event]:
    """A run on its plan within a few percent an hour; from an hour on slower than that."""
    noise, tokens = np.random.default_rng(5).normal(1, 0.03, hours + 1), 0.0
    for hour in range(hours + 1):
        yield event(hour, tokens=round(tokens), usd=20.0 * hour, accelerator_hours=10.0 * hour)
        pace = 20 if tokens < 8000 else 5
        tokens = min(10_000, tokens + pace * noise[hour] * (slower if hour >= slower_from else 1))


def found(baseline: RunBaseline, hours: int, **changes: float) -> ProgramStatus:
    """The status after so many hours."""
    program = replace(LONG, budget_usd=16_000.0, deadline=date(2027, 2, 6))
    return status(program, [(baseline, run_of(*life(hours, **changes), until=hours))], at(hours), RULES)  # type: ignore[arg-type]


def drifts(answer: ProgramStatus) -> set[str]:
    return {drift.quantity for drift in answer.drift}


def test_a_planned_slow_phase_is_no_drift() -> None:
    """Throughput falls to a quarter after 17 days: without phases in the plan that is a drift."""
    assert "throughput" not in drifts(found(PHASED, 700))
    assert "throughput" in drifts(found(PLAIN, 700))


def test_a_slow_phase_that_is_slower_than_planned_is_a_drift() -> None:
    """By as much as it is slower than its own plan."""
    drift = next(each for each in found(PHASED, 760, slower=0.6, slower_from=500).drift if each.quantity == "throughput")
    assert drift.change == pytest.approx(-0.4, abs=0.05)
    assert abs(drift.since - at(500)) < timedelta(days=1)


def test_the_forecast_knows_the_slow_phase_before_it_begins() -> None:
    """After 300 hours in the fast one: 800 hours in all, and the cost of as many."""
    answer = found(PHASED, 300)
    assert answer.forecast.cost_usd is not None
    assert answer.forecast.cost_usd.p50 == pytest.approx(16_000, rel=0.02)
    assert answer.forecast.finish is not None
    assert abs(answer.forecast.finish.p50 - at(800).date()) <= timedelta(days=1)
    plain = found(PLAIN, 300).forecast
    assert plain.cost_usd is not None
    assert plain.cost_usd.p50 < 14_000


@pytest.mark.parametrize("hours", [200, 600])
def test_value_is_earned_evenly_over_the_phases(hours: int) -> None:
    """A run on its plan has a cost performance of 1 in the fast phase and in the slow one."""
    answer = found(PHASED, hours)
    assert answer.earned_value.cpi == pytest.approx(1.0, rel=0.02)
    assert found(PLAIN, 200).earned_value.cpi == pytest.approx(1.6, rel=0.02)


def test_without_phases_work_is_tokens() -> None:
    """The very same array."""
    tokens = np.array([0.0, 5.0, 20_000.0])
    assert planned_work(PLAIN, tokens) is tokens
    assert trained_work(PLAIN, tokens, tokens) is tokens


@given(st.lists(st.floats(0, 20_000), min_size=2, max_size=20).map(sorted))
def test_work_rises_with_the_position_and_ends_at_the_planned_tokens(positions: list[float]) -> None:
    """Through rollbacks the trained work never falls."""
    work = planned_work(PHASED, np.array(positions))
    assert np.all(np.diff(work) >= 0)
    assert planned_work_until(PHASED, 10_000.0) == pytest.approx(10_000.0)
    trained = np.cumsum(np.abs(np.diff(positions[::-1], prepend=0.0)))
    assert np.all(np.diff(trained_work(PHASED, trained, np.array(positions[::-1]))) >= 0)
