"""Checkpoint cadence against its plan, and the tail of a Poisson count, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from service.domain.tracking.events import Event
from service.domain.tracking.status import CheckpointCadence
from service.engine.tracking.costs.cost import cost_run
from service.engine.tracking.runs.run_metrics import checkpoint_cadence, interruptions, poisson_sf
from tests.unit.engine.tracking_builders import RUN, event, run_of

PLANNED = replace(RUN, checkpoint_interval_minutes=60.0)


def cadence(*events: Event) -> CheckpointCadence:
    """With a tolerance of a tenth."""
    return checkpoint_cadence(cost_run(PLANNED, run_of(*events)), 0.1)


def saved(*hours: float) -> list[Event]:
    return [event(0, tokens=0), *(event(hour, "checkpoint", bytes=5) for hour in hours)]


@pytest.mark.parametrize(
    ("events", "on_schedule"),
    [
        (saved(1, 2, 3), True),
        (saved(1.0, 2.09, 3.18), True),
        (saved(1.0, 2.2, 3.4), False),  # 72 minutes each
        ([*saved(1, 2), event(4.1, tokens=10)], True),  # 126 since the last, of 132
        ([*saved(1, 2), event(4.3, tokens=10)], False),  # 138
        ([*saved(), event(2.1, tokens=10)], None),  # two intervals have not passed
        ([*saved(), event(2.3, tokens=10)], False),
        ([*saved(1), event(2.5, tokens=10)], True),  # one is no interval
    ],
)
def test_checkpoints_are_on_schedule_within_the_tolerance(events: list[Event], on_schedule: bool | None) -> None:
    """A mean of 66 minutes at most, and twice that since the last."""
    assert cadence(*events).on_schedule is on_schedule


def test_intervals_of_checkpoints() -> None:
    """After 60 and 90 minutes, and two hours up to the last event."""
    found = cadence(*saved(1.0, 2.0, 3.5), event(5.5, tokens=10))
    assert (found.count, found.bytes, found.interval_minutes, found.longest_gap_minutes) == (3, 15, pytest.approx(75), pytest.approx(120))
    found = cadence(*saved(1.0, 2.0, 4.5), event(5.0, tokens=10))
    assert found.longest_gap_minutes == pytest.approx(150)


@pytest.mark.parametrize(("count", "expected"), [(0, 2.0), (1, 2.0), (3, 2.0), (5, 0.5)])
def test_at_least_so_many_interruptions(count: int, expected: float) -> None:
    """1 less the probabilities of fewer: e^-m m^k / k!."""
    fewer = sum(math.exp(-expected) * expected**k / math.factorial(k) for k in range(count))
    assert poisson_sf(count, expected) == pytest.approx(1 - fewer)


def test_what_is_not_expected_at_all() -> None:
    """Nothing is certain to be reached, anything more is not."""
    assert (poisson_sf(0, 0.0), poisson_sf(1, 0.0)) == (1.0, 0.0)


def test_interruptions_are_expected_for_what_was_trained() -> None:
    """Of budgets of 4 and 10 the shares of 250 and 500 of 1,000 tokens, 100 lost ones included; none where a plan is missing."""
    first = run_of(event(0, tokens=0), event(5, tokens=250), event(6, "interruption", cause="gpu"), event(8, "restart", tokens=250))
    second = run_of(event(0, tokens=0), event(5, tokens=500), event(6, "rollback", tokens=400))
    runs = [cost_run(replace(RUN, interruptions=4.0), first), cost_run(replace(RUN, interruptions=10.0), second)]
    found = interruptions(runs)
    assert (found.count, found.budgeted, found.downtime_hours, found.lost_tokens) == (1, 14, 2, 100)
    assert found.expected == pytest.approx(4 * 0.25 + 10 * 0.5)
    assert found.probability == pytest.approx(1 - math.exp(-6))
    assert interruptions([]).budgeted is None
    unplanned = interruptions([runs[0], cost_run(RUN, second)])
    assert (unplanned.budgeted, unplanned.expected, unplanned.probability) == (None, None, None)
    unsized = interruptions([runs[0], cost_run(replace(RUN, interruptions=10.0, tokens=None), second)])
    assert (unsized.budgeted, unsized.expected) == (14, None)
