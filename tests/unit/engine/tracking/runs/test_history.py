"""Histories: position and surviving line, totals over relaunches, downtime, whatever happened in whatever order it was told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.tracking.events import Event
from service.engine.tracking.runs.history import RunHistory, history
from tests.unit.engine.tracking_builders import at, correction, cost, event, folded, lives, run_of, steadily


def rises(values: Sequence[float] | np.ndarray[Any, Any]) -> bool:
    return bool((np.diff(values) >= -1e-9).all())


@given(lives())
def test_laws_of_a_life(events: list[Event]) -> None:
    """Totals never fall, what is earned is no more than was trained or ever reached, and downtime is part of the time."""
    found = run_of(*events)
    line = found.lineage
    assert all(rises(values) for values in (line.at_hours, line.trained, line.earned, found.uptime(line.at_hours)))
    assert all(rises(total.value) for total in (found.accelerator_hours, found.micro_usd) if total)
    assert line.position <= max([each.tokens_done or 0.0 for each in events], default=0.0)
    assert line.lost_tokens >= -1e-9
    assert ((line.surviving_share >= 0) & (line.surviving_share <= 1)).all()
    assert all(stop.downtime_hours >= 0 for stop in found.interruptions)
    assert len(found.interruptions) == sum(each.type == "interruption" for each in events)
    assert rises(np.ravel(np.column_stack([found.downtime.begin, found.downtime.end])))


@given(lives(), st.randoms(use_true_random=False))
def test_the_order_of_telling_changes_nothing(events: list[Event], random: Any) -> None:
    """Late, out of order and told twice: the same history, hours in any order too."""
    turned = events * 2
    random.shuffle(turned)
    hours = folded(turned)
    random.shuffle(hours)
    assert repr(history(hours, at(1000))) == repr(run_of(*events))


def test_nothing_happened_yet() -> None:
    """No start, no position, no totals, no time."""
    found = run_of()
    assert (found.started_at, found.last_at, found.events, found.lineage.position) == (None, None, 0, 0.0)
    assert found.accelerator_hours is None
    assert found.micro_usd is None


def test_a_steady_run() -> None:
    """Position, totals and times are those that were told last."""
    found = run_of(*steadily(50))
    assert found.lineage.position == 500.0
    assert found.lineage.lost_tokens == 0.0
    assert found.accelerator_hours is not None
    assert found.accelerator_hours.value[-1] == 250.0
    assert (found.started_at, found.last_at, found.events) == (at(0), at(50), 51)


def test_as_of_is_inclusive() -> None:
    """What happens at the moment itself counts, what happens later does not."""
    assert run_of(*steadily(50), until=20).lineage.position == 200.0
    assert history(folded(steadily(50)), at(20.5)).lineage.position == 200.0


def test_a_rollback_takes_back_what_was_trained_beyond() -> None:
    """Position falls to it; what was trained is lost, and trained again counts."""
    found = run_of(*steadily(10), event(10.5, "rollback", tokens=60, to_step=6), event(12.5, tokens=80))
    assert found.lineage.position == 80.0
    assert found.lineage.lost_tokens == 40.0
    assert found.lineage.trained[-1] == 120.0


def test_two_rollbacks_take_back_what_the_deeper_one_does() -> None:
    """80 tokens, back to 50, on to 90, back to 30, on to 40: 40 count of 130 trained."""
    found = run_of(
        event(0, tokens=0), event(8, tokens=80), event(9, "rollback", tokens=50), event(13, tokens=90),
        event(14, "rollback", tokens=30), event(15, tokens=40),
    )  # fmt: skip
    assert found.lineage.position == 40.0
    assert found.lineage.lost_tokens == 90.0
    assert found.lineage.earned.tolist() == [0, 30, 30, 30, 30, 40]


def test_events_before_a_rollback_may_arrive_after_it() -> None:
    """They belong where they happened: the rollback stays the newest."""
    told = [event(0, tokens=0), event(10, "rollback", tokens=50), event(11, tokens=55), event(9, tokens=90), event(9.5, tokens=95)]
    assert run_of(*told).lineage.position == 55.0
    assert run_of(*told).lineage.lost_tokens == 45.0


def test_a_fall_without_a_rollback_is_one() -> None:
    """A run that comes back from a checkpoint and says nothing but where it stands."""
    found = run_of(event(0, tokens=0), event(10, tokens=100), event(11, "restart"), event(12, tokens=70), event(14, tokens=90))
    assert found.lineage.position == 90.0
    assert found.lineage.lost_tokens == 30.0


def test_a_branch_without_tokens_stands_at_its_step() -> None:
    """Interpolated between the steps that were told."""
    found = run_of(*steadily(10), event(10.5, "branch", from_step=4, name="cooler"), event(11.5, tokens=50, step=5))
    assert found.lineage.position == 50.0
    assert found.lineage.tokens[-2] == 40.0
    assert found.lineage.lost_tokens == 60.0


def test_a_branch_after_a_rollback_stands_on_the_surviving_line() -> None:
    """A step passed twice, at other tokens, is where the newest pass has it."""
    told = [*steadily(10), event(11, "rollback", tokens=20, step=2, to_step=2), event(12, tokens=60, step=10)]
    found = run_of(*told, event(13, "branch", from_step=6, name="b"))
    assert found.lineage.position == 40.0


def test_a_branch_from_an_unknown_step_is_told() -> None:
    """The position stays, with a warning."""
    found = run_of(*steadily(10), event(11, "branch", from_step=99, name="b"))
    assert found.lineage.position == 100.0
    assert "step 99" in found.warnings[0]


def test_a_branch_and_return() -> None:
    """Back on the first line its tokens count again, and those of the branch no longer."""
    told = [*steadily(10), event(11, "branch", from_step=4, name="b", tokens=40), event(15, tokens=95, step=9)]
    found = run_of(*told, event(16, "branch", from_step=10, name="main", tokens=100), event(17, tokens=110, step=11))
    assert found.lineage.position == 110.0
    assert found.lineage.lost_tokens == 55.0
    assert found.lineage.surviving.tolist()[-4:] == [False, False, True, True]


def test_returning_by_name_goes_to_that_line() -> None:
    """Where both lines hold the position, the named one counts."""
    told = [
        *steadily(10),
        event(11, "branch", from_step=4, name="b", tokens=40),
        event(13, tokens=70, step=7),
        event(15, tokens=95, step=9),
    ]
    found = run_of(*told, event(16, "branch", from_step=9, name="main", tokens=90), event(17, tokens=100, step=10))
    assert not found.lineage.surviving[found.lineage.at_hours == 13.0].any()
    assert found.lineage.surviving[found.lineage.at_hours == 8.0].all()
    assert found.lineage.surviving[found.lineage.at_hours == 0.0].all()


def test_a_correction_can_void_a_rollback() -> None:
    """As if it had never been told."""
    back = event(10.5, "rollback", tokens=60)
    found = run_of(*steadily(10), back, event(11, tokens=110), correction(20, back))
    assert found.lineage.position == 110.0
    assert found.lineage.lost_tokens == 0.0


def test_relaunches_are_summed() -> None:
    """Totals that begin again after a restart are added to those before."""
    told = [event(0, usd=0, accelerator_hours=0), event(10, usd=100, accelerator_hours=50), event(11, "restart")]
    told += [event(12, usd=10, accelerator_hours=5), event(20, usd=90, accelerator_hours=45), event(21, "restart", usd=0)]
    found = run_of(*told, event(22, usd=7, accelerator_hours=3))
    assert found.micro_usd is not None
    assert found.accelerator_hours is not None
    assert found.micro_usd.value[-1] == 197_000_000
    assert found.accelerator_hours.value[-1] == 98
    assert found.warnings == ()


@pytest.mark.parametrize("moment", [10.0, 10.5, 11.0])
def test_a_relaunch_counts_at_the_moment_of_a_report(moment: float) -> None:
    """Whether the restart is told with the last report, between, or with the first one after."""
    found = run_of(event(0, usd=0), event(10, usd=100), event(moment, "restart"), event(11, usd=10), event(12, usd=20))
    assert found.micro_usd is not None
    assert found.micro_usd.value[-1] == 120_000_000


def test_a_fall_of_totals_without_a_restart_is_an_error() -> None:
    """The highest is kept, with a warning; a later restart does not count it twice."""
    found = run_of(event(0, usd=0), event(5, usd=100), event(6, usd=40), event(7, "restart"), event(8, usd=50))
    assert found.micro_usd is not None
    assert found.micro_usd.value[-1] == 100_000_000
    assert "without a restart" in found.warnings[0]


def test_downtime_lasts_until_the_restart() -> None:
    """Or the next sign of work where no restart is told, or now where there is none."""
    found = run_of(
        event(0, tokens=0), event(1, "interruption", cause="gpu"), event(3, "restart"), event(4, tokens=9),
        event(5, "interruption", cause="net"), event(5.5, tokens=12), event(8, "interruption", cause="gpu"), until=10,
    )  # fmt: skip
    assert [(stop.cause, stop.downtime_hours, stop.ended) for stop in found.interruptions] == [
        ("gpu", 2, True),
        ("net", 0.5, True),
        ("gpu", 2, False),
    ]
    assert found.uptime(np.array([10.0])).tolist() == [5.5]


def test_a_restart_nobody_told_the_end_before_was_down_since_the_last_sign() -> None:
    """A job that ran out of its time in the queue."""
    found = run_of(event(0, tokens=0), event(5, tokens=50), event(9, "restart"), event(10, tokens=60), until=10)
    assert found.interruptions == ()
    assert found.uptime(np.array([10.0])).tolist() == [6.0]


def test_losses_are_placed_on_the_line() -> None:
    """Hours that a rollback left behind do not count."""
    told = [event(hour, tokens=10 * hour, loss=3.0) for hour in range(6)]
    found = run_of(*told, event(6, "rollback", tokens=20), event(7, tokens=30, loss=2.0))
    assert found.losses.surviving.tolist() == [True, True, True, False, False, False, True]
    assert found.losses.tokens.tolist()[-1] == 30.0


def test_cost_events_are_summed_by_line() -> None:
    """Bills of compute apart, by the end of what they pay for."""
    found = run_of(
        *steadily(2), cost(1, 5.0, "storage"), cost(30, 7.0, "storage", until=24), cost(30, 20.0, until=1), cost(31, 2.0, until=1)
    )
    assert found.costs.lines == {"storage": 12_000_000}
    assert found.costs.billed.value.tolist() == [22_000_000]


def test_marks_are_kept() -> None:
    """Evaluations and decisions with their moments; a value that is no number is none."""
    told = [event(1, "evaluation", metric="m", value=0.5), event(2, "decision", gate="midpoint", verdict="stop")]
    found: RunHistory = run_of(*told, event(3, "evaluation", metric="m", value=float("nan")))
    assert [(one.at, one.value) for one in found.evaluations] == [(at(1), 0.5)]
    assert [(one.gate, one.verdict) for one in found.decisions] == [("midpoint", "stop")]
