"""Failures, checkpoints and goodput: limits, laws, and Daly's interval against a search and his own figures."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.training.reliability import daly_interval_hours, goodput, job_failures_per_hour, reliability
from tests.unit.engine.builders import NEVER_FAILS, cluster, failures

rates = st.floats(1e-6, 10)
minutes = st.floats(0.01, 60)


@pytest.mark.parametrize(("mttf_hours", "minutes_between"), [(24, 117), (6, 57), (0.25, 9.1)])
def test_dalys_own_examples(mttf_hours: float, minutes_between: float) -> None:
    """Writes of 5 minutes and a MTTF of 24 h, 6 h and 15 min: 117, 57 and 9.1 minutes (Daly 2006, figures 3 to 5)."""
    assert daly_interval_hours(5 / 60, mttf_hours) * 60 == pytest.approx(minutes_between, rel=0.01)


@pytest.mark.parametrize("mttf_hours", [0.5, 3.0, 24.0, 1000.0])
@pytest.mark.parametrize("write_minutes", [0.5, 2.0, 10.0])
def test_dalys_interval_is_the_best_there_is(mttf_hours: float, write_minutes: float) -> None:
    """No interval of a fine grid is better by more than 1 % in goodput, and half or double of Daly's is worse."""
    write, recovery = write_minutes / 60, 20 / 60
    best = daly_interval_hours(write, mttf_hours)
    reached = goodput(1 / mttf_hours, best, write, recovery)
    grid = [goodput(1 / mttf_hours, best * factor, write, recovery) for factor in np.geomspace(0.1, 10, 400)]
    assert reached >= 0.99 * max(grid)
    for factor in (0.5, 2.0):
        assert goodput(1 / mttf_hours, best * factor, write, recovery) < reached


def test_writes_longer_than_failures_allow_take_the_mttf() -> None:
    """Beyond a write of twice the MTTF Daly's series ends: the interval is the MTTF itself."""
    assert daly_interval_hours(2.0, 1.0) == daly_interval_hours(50.0, 1.0) == 1.0


@given(rates, minutes, minutes, st.floats(0, 60))
def test_goodput_is_a_share(rate: float, interval: float, write: float, recovery: float) -> None:
    """Useful over wall-clock time is between nothing and all, at any rate of failures."""
    assert 0 <= goodput(rate, interval / 60, write / 60, recovery / 60) <= 1


@given(rates, st.floats(1.01, 10), minutes, minutes, minutes)
def test_more_failures_less_goodput(rate: float, times: float, interval: float, write: float, recovery: float) -> None:
    """Goodput falls with the failure rate and with the time to recover."""
    at = goodput(rate, interval / 60, write / 60, recovery / 60)
    assert goodput(rate * times, interval / 60, write / 60, recovery / 60) < at
    assert goodput(rate, interval / 60, write / 60, recovery / 60 * times) < at


def test_without_failures_only_writes_cost() -> None:
    """A machine that never fails loses the share of its checkpoints and nothing else; without those, nothing."""
    assert goodput(0.0, 0.9, 0.1, 5.0) == pytest.approx(0.9)
    assert goodput(0.0, 1.0, 0.0, 5.0) == 1.0


def test_few_failures_lose_half_an_interval_and_the_recovery() -> None:
    """In the limit of rare failures each loses half a segment and one recovery: rate x (recovery + segment / 2)."""
    rate, interval, write, recovery = 1e-5, 1.0, 0.02, 0.5
    lost = 1 - goodput(rate, interval, write, recovery)
    assert lost == pytest.approx(write / (interval + write) + rate * (recovery + (interval + write) / 2) / 1.02, rel=1e-3)


def test_goodput_is_what_a_simulation_of_the_process_finds() -> None:
    """Segments repeated until they pass, recoveries that fail and start again: simulated, the share is Daly's within 1 %."""
    rate, interval, write, recovery, segments = 0.5, 0.6, 0.1, 0.4, 40_000
    random = np.random.default_rng(11)
    elapsed = 0.0
    for _ in range(segments):
        while (until := random.exponential(1 / rate)) < interval + write:
            elapsed += until
            while (again := random.exponential(1 / rate)) < recovery:
                elapsed += again
            elapsed += recovery
        elapsed += interval + write
    assert segments * interval / elapsed == pytest.approx(goodput(rate, interval, write, recovery), rel=0.01)


def test_a_machine_that_always_fails_gets_nowhere() -> None:
    """Failures thousands of times an interval leave nothing, without overflow."""
    assert goodput(1e6, 1.0, 0.1, 0.3) == 0.0


def test_a_jobs_rate_is_its_accelerators_and_its_nodes() -> None:
    """Accelerators fail each on its own, nodes are preempted each on its own."""
    preempted = failures(preemptions_per_node_hour=0.01)
    assert job_failures_per_hour(failures(), cluster(16_384), 50_000) == pytest.approx(16_384 / 50_000)
    assert job_failures_per_hour(preempted, cluster(16), 50_000) == pytest.approx(16 / 50_000 + 2 * 0.01)


def test_llama_3s_interruptions() -> None:
    """419 unexpected interruptions of 16,384 accelerators in 54 days are 50,677 hours an accelerator: one every 3.09 hours."""
    per_accelerator = 16_384 * 54 * 24 / 419
    assert per_accelerator == pytest.approx(50_677, rel=1e-3)
    result = reliability(failures(), cluster(16_384), 0.0, per_accelerator)
    assert result.mttf_hours == pytest.approx(3.09, rel=0.01)


def test_maintenance_takes_its_part_of_the_week() -> None:
    """Four hours of maintenance a week take 4/168 of the goodput."""
    without, with_windows = (reliability(failures(), cluster(), hours, 50_000).goodput for hours in (0.0, 4.0))
    assert with_windows == pytest.approx(without * (1 - 4 / 168))


def test_the_callers_interval_is_kept() -> None:
    """A stated interval is used as it is; goodput says what it costs."""
    chosen = reliability(failures(checkpoint_interval_minutes=30), cluster(16_384), 0.0, 50_000)
    best = reliability(failures(), cluster(16_384), 0.0, 50_000)
    assert chosen.checkpoint_interval_minutes == 30
    assert chosen.goodput <= best.goodput


def test_writes_that_block_nothing_still_take_their_time() -> None:
    """Asynchronous checkpoints cost nearly nothing, but the next begins only when the last one has ended."""
    blocking, hidden = (reliability(failures(checkpoint_blocking_share=share), cluster(16_384), 0.0, 50_000) for share in (1.0, 0.0))
    assert hidden.goodput > blocking.goodput
    assert hidden.checkpoint_interval_minutes == pytest.approx(2)


def test_writes_that_take_no_time_are_no_division_by_zero() -> None:
    """A write of zero minutes is made every minute at most, and a machine that never fails then loses nothing."""
    perfect = reliability(NEVER_FAILS, cluster(), 0.0, 1e15)
    assert perfect.checkpoint_interval_minutes >= 1
    assert perfect.goodput == pytest.approx(1.0)
    assert reliability(failures(checkpoint_write_minutes=0), cluster(16_384), 0.0, 50_000).goodput < 1


def test_each_interruption_loses_its_recovery_and_half_a_segment() -> None:
    """What one interruption costs, as a budget for the team that answers it."""
    result = reliability(failures(checkpoint_interval_minutes=58), cluster(), 0.0, 50_000)
    assert result.lost_hours_per_interruption == pytest.approx((5 + 15) / 60 + 60 / 60 / 2)
    assert math.isfinite(result.mttf_hours)


@given(count=st.integers(8, 100_000), more=st.integers(1, 100_000), blocking=st.floats(0.0, 1.0))
def test_goodput_falls_with_the_machine(count: int, more: int, blocking: float) -> None:
    """At the best interval of each, a larger machine spends less of its time on training."""
    how = failures(checkpoint_blocking_share=blocking)
    few, many = (reliability(how, cluster(size), 0.0, 50_000).goodput for size in (count, count + more))
    assert many <= few * (1 + 1e-3)


def test_llama_3_spends_nine_tenths_of_its_time_training() -> None:
    """With the recovery and the checkpoints of 2024, as reported: more than 0.90 of the time on 16,384 H100."""
    how = failures(detection_minutes=2, restart_minutes=8, checkpoint_write_minutes=2, checkpoint_blocking_share=0.05)
    assert reliability(how, cluster(16_384), 0.0, 50_678).goodput == pytest.approx(0.92, abs=0.02)
