"""Rates against the plan: beyond its own range from the first days on, and rarely where a run is at the edge of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.domain.tracking.events import Event, PlannedWeek, RunBaseline
from service.domain.tracking.status import Drift
from service.engine.tracking.costs.cost import cost_run
from service.engine.tracking.forecasting.planned_burn import planned_burn_rate, planned_run_burn_rate
from service.engine.tracking.monitoring.plan_drift import beyond_plan
from service.engine.tracking.runs.run_metrics import run_drifts
from service.presets.tracking.status import status_rules
from tests.unit.engine.tracking_builders import PROGRAM, RUN, at, run_of, steadily

RULES = status_rules().plan_drift
PLANNED = Range(8.0, 10.0, 12.0)
RUN_OF_PLAN = replace(
    RUN,
    tokens=10_000.0,
    usd=10_000.0,
    accelerator_hours=5000.0,
    tokens_per_s=PLANNED.scaled(1 / 3600),
    wall_clock_hours=Range(900, 1000, 1200),
)


def drifts(events: list[Event], until: float, baseline: RunBaseline = RUN_OF_PLAN) -> dict[tuple[str, str], Drift]:
    """Drift of one run by quantity and what it is compared with."""
    rules = status_rules()
    found = run_drifts(cost_run(baseline, run_of(*events, until=until)), rules.drift, rules.plan_drift)
    return {(each.quantity, each.against): each for each in found}


def test_half_the_throughput_from_day_one_is_drift_within_days() -> None:
    """5 of 10 tokens an hour: long before day 12, although the run never changed."""
    found = drifts([*steadily(24 * 3, tokens=5)], 72)
    assert found.keys() == {("throughput", "plan"), ("tokens_per_day", "plan")}
    throughput = found["throughput", "plan"]
    assert (throughput.change, throughput.since) == (pytest.approx(-0.5), at(0))
    assert throughput.confidence > 0.99
    assert ("throughput", "plan") in drifts([*steadily(24 * 12, tokens=5)], 288)


def test_a_plan_without_a_range_has_that_of_a_typical_error() -> None:
    """Tokens and dates alone: half of what the dates need is drift, a tenth less is not."""
    stated = replace(RUN, tokens=2400.0, start=at(0).date(), finish=at(240).date())
    assert ("tokens_per_day", "plan") in drifts([*steadily(24 * 5, tokens=5)], 120, stated)
    assert drifts([*steadily(24 * 10, tokens=9)], 240, stated) == {}


def test_a_run_on_its_plan_does_not_drift() -> None:
    """Nor one inside the plan's range, however long."""
    assert drifts([*steadily(24 * 40)], 960) == {}
    assert drifts([*steadily(24 * 40, tokens=9)], 960) == {}


def test_price_and_interruptions_from_day_one_are_against_the_plan() -> None:
    """2.2 USD for planned 2."""
    found = drifts([*(one._replace(accelerator_hours=(one.accelerator_hours or 0) / 1.1) for one in steadily(48))], 48)
    assert found["price", "plan"].change == pytest.approx(0.1)


def test_a_rate_that_is_inside_the_range_again_is_no_drift() -> None:
    """The newest week counts too."""
    assert beyond_plan(np.array([4.0] * 5), PLANNED, RULES) is not None
    assert beyond_plan(np.array([4.0] * 5 + [9.0] * 7), PLANNED, RULES) is None


@given(rate=st.floats(8.0, 12.0), count=st.integers(1, 100))
def test_a_steady_rate_in_the_range_is_never_beyond_it(rate: float, count: int) -> None:
    """From edge to edge."""
    assert beyond_plan(np.full(count, rate), PLANNED, RULES) is None


@given(rate=st.floats(0.1, 7.0), slower=st.floats(0.0, 1.0), count=st.integers(1, 40))
def test_a_slower_run_is_flagged_no_later(rate: float, slower: float, count: int) -> None:
    """Where a rate is beyond the plan, a lower one is."""
    if beyond_plan(np.full(count, rate), PLANNED, RULES):
        assert beyond_plan(np.full(count, rate * slower), PLANNED, RULES)


def test_false_alarms_at_the_edge_of_the_range_are_as_rare_as_stated() -> None:
    """1,000 runs at the plan's p10 with the typical scatter of days, looked at on 60 days."""
    days = 8.0 * (1 + RULES.typical_scatter * np.random.default_rng(3).standard_normal((1000, 60)))
    flagged = [any(beyond_plan(run[:day], PLANNED, RULES) for day in (1, 2, 3, 5, 8, 12, 20, 30, 45, 60)) for run in days]
    assert np.mean(flagged) <= RULES.false_alarm_share


def test_the_planned_burn_rate_is_that_of_the_day() -> None:
    """A week's plan over its days; from the start on, and nothing outside the plan."""
    weeks = tuple(PlannedWeek(at(168 * place).date(), 700.0 * (place + 1), 70.0, 350.0, 7.0) for place in range(2))
    program = replace(PROGRAM, weeks=weeks)
    first, second, after = (planned_burn_rate(program, at(hours)) for hours in (1, 170, 400))
    assert first is not None
    assert (first.usd_per_day, first.tokens_per_day, first.accelerator_hours_per_day, first.checkpoints_per_day) == (100.0, 10.0, 50.0, 1.0)
    assert second is not None
    assert after is not None
    assert (second.usd_per_day, after.usd_per_day) == (200.0, 0.0)
    late = planned_burn_rate(replace(program, start=at(120).date()), at(130))
    assert late is not None
    assert late.usd_per_day == 350.0
    assert planned_burn_rate(PROGRAM, at(1)) is None


def test_the_planned_burn_rate_of_a_run_is_even_over_its_days() -> None:
    """Ten days."""
    run = replace(RUN, start=at(0).date(), finish=at(240).date(), checkpoint_interval_minutes=60.0)
    inside, outside = planned_run_burn_rate(run, at(100)), planned_run_burn_rate(run, at(300))
    assert inside is not None
    assert outside is not None
    assert (inside.usd_per_day, inside.tokens_per_day, inside.checkpoints_per_day) == (100.0, 100.0, 24.0)
    assert outside.usd_per_day == 0.0
    assert planned_run_burn_rate(RUN, at(1)) is None
