"""What a run cost: its own totals, bills as far as they reach, other lines, and never a silent zero."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.tracking.events import Event, RunBaseline
from service.engine.tracking.costs.cost import CostedRun, cost_run, spend
from tests.unit.engine.tracking_builders import RUN, cost, event, run_of, steadily

UNPRICED = replace(RUN, usd_per_accelerator_hour=None)


def run(*events: Event, baseline: RunBaseline = RUN, until: float = 1000.0) -> CostedRun:
    return cost_run(baseline, run_of(*events, until=until))


def at_hours(found: CostedRun, *hours: float) -> list[float]:
    values = found.usd_at(np.array(hours))
    assert values is not None
    return [float(value) for value in values]


def test_own_totals_and_other_lines_add_up() -> None:
    """Compute is the run's own total, what events tell stands beside it."""
    found = run(*steadily(10), cost(4.2, 25.0, "storage"), cost(4.7, -5.0, "storage"))
    assert found.usd == 120.0
    assert {line.line: line.usd for line in found.lines} == {"compute": 100.0, "storage": 20.0}
    assert at_hours(found, 0.0, 4.0, 6.0, 10.0) == [0.0, 40.0, 80.0, 120.0]


def test_a_bill_is_the_truth_until_its_end() -> None:
    """Six hours are billed at 90 instead of 60, the other four are as the run told them; nothing counts twice."""
    found = run(*steadily(10), cost(24, 90.0, until=6))
    assert found.usd == 130.0
    assert at_hours(found, 0.0, 3.0, 6.0, 8.0) == [0.0, 45.0, 90.0, 110.0]


def test_bills_follow_each_other() -> None:
    """Each is spread as the run's own cost was between its end and the one before; a credit lowers its own."""
    found = run(*steadily(10), cost(24, 90.0, until=6), cost(25, 60.0, until=8), cost(26, -20.0, until=8))
    assert found.usd == 150.0
    assert at_hours(found, 3.0, 6.0, 7.0, 8.0) == [45.0, 90.0, 110.0, 130.0]


def test_a_bill_of_a_run_that_told_no_cost_is_spread_evenly() -> None:
    """It is all that is known, and enough."""
    found = run(event(0, tokens=0), event(10, tokens=100), cost(20, 80.0, until=8), baseline=UNPRICED)
    assert found.unknown_reason is None
    assert at_hours(found, 0.0, 2.0, 8.0, 10.0) == [0.0, 20.0, 80.0, 80.0]


def test_a_bill_that_pays_ahead_counts_in_full() -> None:
    """A month paid in advance is spent now."""
    found = run(event(0, tokens=0), event(10, tokens=100), cost(5, 80.0, until=500), baseline=UNPRICED, until=10)
    assert found.usd == 80.0


def test_hours_without_cost_are_priced_with_a_warning() -> None:
    """At what the plan pays for an accelerator-hour."""
    found = run(event(0, tokens=0, accelerator_hours=0), event(10, tokens=100, accelerator_hours=60))
    assert found.usd == 120.0
    assert "reported no cost" in found.warnings[0]


def test_hours_after_the_last_cost_are_priced_too() -> None:
    """And without a price they are said to be missing."""
    told = [event(0, usd=0, accelerator_hours=0), event(5, usd=100, accelerator_hours=10), event(6, accelerator_hours=13)]
    assert run(*told).usd == 106.0
    assert "priced at the plan's 2 USD" in run(*told).warnings[0]
    assert run(*told, baseline=UNPRICED).usd == 100.0
    assert "not in its spend" in run(*told, baseline=UNPRICED).warnings[0]


def test_tokens_without_cost_or_hours_are_no_zero() -> None:
    """The cost is not known, and says why."""
    found = run(event(0, tokens=0), event(10, tokens=100))
    assert found.usd is None
    assert found.usd_at(np.array([5.0])) is None
    assert found.unknown_reason is not None
    assert "neither cost nor accelerator-hours" in found.unknown_reason
    unpriced = run(event(0, tokens=0, accelerator_hours=1), baseline=UNPRICED)
    assert unpriced.unknown_reason is not None
    assert "no price" in unpriced.unknown_reason


def test_a_budget_next_to_nothing_has_no_share() -> None:
    """No number holds it, nor does JSON. Found by sequences of made-up requests."""
    assert spend([run(cost(3, 20.0, "storage"))], 2e-311).share_of_budget is None


def test_nothing_happened_costs_nothing() -> None:
    """That is known: 0, not None."""
    assert run().usd == 0.0
    assert spend([run()], 100.0).usd == 0.0
    assert spend([], 100.0).remaining_usd == 100.0


def test_runs_add_up_and_what_is_missing_is_said() -> None:
    """The sum of what is known, of a budget, with the lines together."""
    known, unknown = run(*steadily(10), cost(3, 20.0, "storage")), run(event(0, tokens=0), event(9, tokens=50))
    found = spend([known, unknown], 1000.0)
    assert (found.usd, found.complete, found.remaining_usd, found.share_of_budget) == (120.0, False, 880.0, 0.12)
    assert (found.tokens, found.accelerator_hours) == (150.0, 50.0)
    assert spend([unknown], 1000.0).usd is None


@given(
    st.lists(st.tuples(st.floats(0, 100), st.integers(0, 10**6)), max_size=8),
    st.lists(st.tuples(st.floats(0, 100), st.integers(0, 10**6)), max_size=5),
)
def test_cost_never_falls_and_ends_at_its_sum(told: list[tuple[float, int]], bills: list[tuple[float, int]]) -> None:
    """Whatever was billed for whatever time, before or after what the run told."""
    costs = [cost(100, micro / 1e6, until=until) for until, micro in bills]
    found = run(event(0, usd=0), *(event(hour, usd=usd) for hour, usd in told), *costs)
    values = at_hours(found, *np.linspace(-1, 200, 300))
    assert all(later >= value - 1e-6 for value, later in pairwise(values))
    assert values[-1] == pytest.approx(found.usd)
    if bills and max(until for until, _ in bills) >= 100:
        assert found.usd == pytest.approx(sum(micro for _, micro in bills) / 1e6)
