"""A run in a trial, against arithmetic by hand: hours, failure rate, checkpoints, bill and what each cause adds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from service.domain.quantities import Range
from service.domain.scenarios import Floats, Regimes, RunModel
from service.domain.training.run import Billing, Energy, Network, Overhead, Personnel, Storage
from service.engine.scenarios.costs import run_usd, usd_per_hour
from service.engine.scenarios.failures import segment_cumulants
from service.engine.scenarios.run import (
    RunTrials,
    checkpoint_policy,
    failures_per_hour,
    median_usd,
    simulate_run,
    simulate_single_run,
    uncertain_scores,
)
from tests.unit.engine.builders import cluster, failures, run
from tests.unit.engine.scenario_builders import certain_run, run_model

SCORES = {name: np.array([0.0, 1.2815515655, -1.2815515655]) for name in ("failures", "throughput", "failure_rate", "queue")}
MEDIANS = {"failures": np.zeros(3)}


def simulated(
    model: RunModel, scores: Mapping[str, Floats] = MEDIANS, values: Mapping[str, Floats] | None = None, *, causes: bool = False
) -> RunTrials:
    return simulate_run(model, scores, values or {}, np.random.default_rng(1), causes=causes)


# Hours


def test_hours_follow_speed_tokens_and_maintenance() -> None:
    """The range of 100 hours, for twice the tokens, in nine tenths of each week."""
    model = certain_run(hours=100.0, slowdown=Range(0.5, 1.0, 3.0), field_paths={"data.tokens": "tokens"})
    closed = replace(model, run=replace(model.run, schedule=replace(model.run.schedule, maintenance_hours_per_week=16.8)))
    found = simulated(closed, SCORES, {"tokens": np.full(3, 2e11)})
    assert found.hours == pytest.approx(np.array([200.0, 600.0, 100.0]) / 0.9, rel=1e-6)
    assert found.elapsed_hours == pytest.approx(found.hours)


def test_waiting_for_capacity_is_on_the_clock_and_not_on_the_bill() -> None:
    """Capacity that is there half of the time takes twice as long for the same hours and dollars."""
    always = certain_run(hours=100.0)
    sometimes = replace(always, run=replace(always.run, failures=replace(always.run.failures, capacity_share=0.5)))
    one, other = simulated(always), simulated(sometimes)
    assert other.elapsed_hours == pytest.approx(2 * one.elapsed_hours)
    assert other.hours == pytest.approx(one.hours)
    assert other.usd == pytest.approx(one.usd)


def test_repeats_share_lanes_and_prices_see_the_elapsed_time() -> None:
    """Three repeats of 100 hours on two lanes are over after 150; with equal regimes the price is theirs for certain."""
    model = certain_run(hours=100.0, run_equivalents=3.0, concurrency=2.0, regimes=Regimes(1.5, 1.5, 30.0, 10.0))
    found = simulated(model)
    assert found.hours == pytest.approx(np.full(3, 300.0))
    assert found.elapsed_hours == pytest.approx(np.full(3, 150.0))
    assert found.price_factor == pytest.approx(np.full(3, 1.5))
    assert found.usd == pytest.approx(np.full(3, 300 * 8 * 2 * 1.5))


def test_prices_scatter_as_their_elapsed_hours_do() -> None:
    """A run of 400 hours on four lanes sees its price as long as one of 100 hours does."""
    regimes = Regimes(1.0, 2.0, 30.0, 10.0)
    medians = {"failures": np.zeros(50_000)}
    wide = simulated(certain_run(hours=400.0, concurrency=4.0, regimes=regimes), medians).price_factor
    short = simulated(certain_run(hours=100.0, regimes=regimes), medians).price_factor
    assert wide is not None
    assert short is not None
    assert wide.std() == pytest.approx(short.std(), rel=0.02)


def test_the_wait_in_a_queue_comes_before_the_hours() -> None:
    """Five hours for certain, or as stated; a wait is never less than none."""
    waiting = certain_run(hours=100.0, queue_hours=Range.exactly(5.0))
    assert simulated(waiting).queue_hours == pytest.approx(np.full(3, 5.0))
    single = simulate_single_run(waiting, MEDIANS, {}, np.random.default_rng(1), causes=True)
    assert single.hours == pytest.approx(np.full(3, 105.0))
    assert single.accelerator_hours == pytest.approx(np.full(3, 800.0))
    assert "queue" not in single.time_scores
    uncertain = certain_run(hours=100.0, queue_hours=Range(2.0, 5.0, 20.0))
    single = simulate_single_run(uncertain, SCORES, {}, np.random.default_rng(1), causes=True)
    assert single.hours == pytest.approx([105.0, 120.0, 102.0])
    assert single.time_scores["queue"] == pytest.approx([5.0, 20.0, 2.0])
    stated = replace(waiting, field_paths={"schedule.queue_hours": "wait"})
    early = simulate_single_run(stated, MEDIANS, {"wait": np.array([-3.0, 0.0, 7.0])}, np.random.default_rng(1), causes=False)
    assert early.hours == pytest.approx([100.0, 100.0, 107.0])


def test_scores_are_drawn_for_what_is_uncertain() -> None:
    """Failures always are; speed, their rate and the queue where their ranges have a width."""
    wide = Range(1.0, 2.0, 3.0)
    rate = failures(mttf_hours_per_accelerator=Range(500.0, 900.0, 1500.0))
    assert uncertain_scores(certain_run()) == {"failures"}
    assert uncertain_scores(run_model(run(failures=rate), "x", 10.0, slowdown=wide, queue_hours=wide)) == set(SCORES)


# Failures


def test_the_rate_of_failures_is_that_of_all_accelerators_and_nodes() -> None:
    """16 accelerators of 800 hours and two nodes taken once in 100: 1/50 and 1/50; few hours are a high rate."""
    how = failures(mttf_hours_per_accelerator=Range(400.0, 800.0, 3200.0), preemptions_per_node_hour=0.01)
    model = run_model(run(cluster=cluster(16), failures=how), "run", 100.0)
    assert failures_per_hour(model, SCORES, {}) == pytest.approx([0.02 + 0.02, 0.005 + 0.02, 0.04 + 0.02], rel=1e-6)
    assert failures_per_hour(model, MEDIANS, {}) == pytest.approx(np.full(3, 0.04))
    own = {
        "failures.mttf_hours_per_accelerator": np.array([160.0, 320.0, 1600.0]),
        "failures.preemptions_per_node_hour": np.array([0.0, 0.05, 0.5]),
    }
    assert failures_per_hour(model, SCORES, own) == pytest.approx([0.1, 0.05 + 0.1, 0.01 + 1.0])


def test_unsure_preemptions_come_more_often_where_accelerators_fail_more_often() -> None:
    """One score stands for both; a rate of the trial's own is certain."""
    how = failures(mttf_hours_per_accelerator=Range.exactly(800.0), preemptions_per_node_hour=0.01, preemption_spread=Range(0.5, 1.0, 3.0))
    model = run_model(run(cluster=cluster(16), failures=how), "run", 100.0)
    assert "failure_rate" in uncertain_scores(model)
    assert failures_per_hour(model, SCORES, {}) == pytest.approx([0.02 + 0.02, 0.02 + 0.01, 0.02 + 0.06], rel=1e-6)
    own = {"failures.preemptions_per_node_hour": np.full(3, 0.1)}
    assert failures_per_hour(model, SCORES, own) == pytest.approx(np.full(3, 0.02 + 0.2))


def test_a_certain_rate_takes_no_score() -> None:
    """A range without width is its median whatever is drawn."""
    model = certain_run(mttf_hours=800.0)
    assert failures_per_hour(model, SCORES, {}) == pytest.approx(np.full(3, 0.01))


def test_checkpoints_block_for_their_share_of_the_write() -> None:
    """Two of six minutes; five minutes until a failure is seen, and fifteen to restart, or what is stated in a trial."""
    how = failures(checkpoint_write_minutes=6, checkpoint_blocking_share=1 / 3)
    model = run_model(run(failures=how), "run", 100.0)
    policy = checkpoint_policy(model, {})
    assert (policy.interval_hours, policy.write_hours, policy.recovery_hours) == pytest.approx((1.0, 2 / 60, 20 / 60))
    own = {"failures.detection_minutes": np.array([10.0]), "failures.restart_minutes": np.array([50.0])}
    assert checkpoint_policy(model, own).recovery_hours == pytest.approx([1.0])


# Causes


def test_causes_add_their_hours_at_the_medians_of_the_others() -> None:
    """Speed adds e^z - 1 of all repeats' hours; the failures' number the deviation of what they cost in all segments."""
    how = failures(mttf_hours_per_accelerator=Range(400.0, 800.0, 1600.0), checkpoint_write_minutes=6, preemptions_per_node_hour=0.01)
    model = run_model(run(failures=how), "run", 100.0, slowdown=Range(0.5, 1.0, 3.0), run_equivalents=4.0, interval_hours=2.0)
    found = simulated(model, SCORES, causes=True).causes
    assert found["throughput"].score == pytest.approx([0.0, 2.0, -0.5], rel=1e-6)
    assert found["throughput"].hours == 400.0
    median = segment_cumulants(np.array([8 / 800 + 0.01]), checkpoint_policy(model, {}))
    assert found["failures"].score == pytest.approx(SCORES["failures"])
    assert found["failures"].hours == pytest.approx(math.sqrt(200 * float(median.variance[0])))
    assert found["failure_rate"].hours == pytest.approx(200 * float(median.mean[0]))
    each = segment_cumulants(np.array([0.01, 0.005, 0.02]) + 0.01, checkpoint_policy(model, {})).mean
    assert found["failure_rate"].score == pytest.approx(each / float(median.mean[0]), rel=1e-5)


def test_a_stated_rate_of_failures_is_no_cause_of_its_own() -> None:
    """Where the field is drawn, or certain, its score is the field's."""
    how = failures(mttf_hours_per_accelerator=Range(400.0, 800.0, 1600.0))
    path = "failures.mttf_hours_per_accelerator"
    drawn = run_model(run(failures=how), "run", 100.0, field_paths={path: path})
    assert set(simulated(drawn, SCORES, {path: np.full(3, 800.0)}, causes=True).causes) == {"throughput", "failures"}
    assert set(simulated(certain_run(mttf_hours=800.0), SCORES, causes=True).causes) == {"throughput", "failures"}
    assert set(simulated(certain_run(mttf_hours=800.0), MEDIANS, causes=True).causes) == {"failures"}


# The bill


def test_an_hour_costs_machines_overheads_idle_ones_and_power() -> None:
    """12 accelerators with a fifth of overheads, four idle ones of two instances of 8, and 0.02 MWh at 0.1 USD a kWh."""
    whole = run(
        cluster=cluster(12),
        billing=Billing(3.0, instance_size=8),
        overhead=Overhead(0.1, 0.06, 0.04),
        energy=Energy("x", 0, 1, 400, 0, 0.1),
    )
    model = run_model(whole, "run", 50.0, energy_mwh_per_hour=0.02, run_equivalents=2.0)
    assert usd_per_hour(model) == pytest.approx((12 * 1.2 + 4) * 3 + 0.02 * 1000 * 0.1)
    assert median_usd(model) == pytest.approx(usd_per_hour(model) * 50 * 2)


def test_a_bill_by_hand() -> None:
    """Machines; 2 TB at 90 USD; 60 hours of people at 100; power; 4 TB and up to five checkpoints of 0.5 TB for two months and the run."""
    whole = run(
        storage=Storage(3, 5, 2, 1, 20),
        network=Network(2, 90),
        personnel=Personnel(10, 20, 30, 100),
        energy=Energy("x", 0, 1, 400, 0, 0.1),
    )
    model = run_model(whole, "run", 50.0, energy_mwh_per_hour=0.02, interval_hours=2.0, checkpoint_tb=0.5)
    hours = np.array([3.0, 6.0, 730.0])
    stored = 4 + 0.5 * np.array([2, 3, 5])
    expected = hours * 8 * 1.1 * 2 + 180 + 6000 + 0.02 * 1000 * 0.1 * hours + stored * 20 * (2 + hours / 730)
    assert run_usd(model, hours, 2.0, 0.1) == pytest.approx(expected)
    long = np.array([10.0, 730.0])
    expected = long * 8 * 1.1 * 2 + 180 + 6000 + 0.02 * 1000 * 0.1 * long + 6.5 * 20 * (2 + long / 730)
    assert run_usd(model, long, 2.0, 0.1) == pytest.approx(expected)
    unpowered = replace(model, energy_mwh_per_hour=0.0)
    assert run_usd(unpowered, long, 2.0, 0.1) == pytest.approx(expected - 2 * long)
    empty = replace(model, run=replace(whole, storage=Storage(0, 0, 2, 0, 20)))
    assert run_usd(empty, long, 2.0, 0.1) == pytest.approx(long * 8 * 1.1 * 2 + 180 + 6000 + 2 * long)


def test_repeats_are_billed_one_by_one() -> None:
    """Three repeats of 40 hours in terms of 30 hours: two terms each, overheads included."""
    model = certain_run(hours=40.0, run_equivalents=3.0)
    termed = replace(model, run=replace(model.run, billing=Billing(2.0, term_hours=30.0)))
    assert simulated(termed).usd == pytest.approx(np.full(3, 3 * 60 * 8 * 2))
    busy = replace(termed, run=replace(termed.run, overhead=Overhead(0.5, 0.1, 0.0)))
    assert simulated(busy).usd == pytest.approx(np.full(3, 3 * 90 * 8 * 2))


def test_prices_and_overheads_that_are_drawn_take_the_place_of_the_stated() -> None:
    """Evaluation at 0.3 in place of 0.1 beside reruns of 0.2; a price of 3 USD."""
    model = certain_run(hours=100.0, field_paths={"overhead.evaluation": "e", "price.usd_per_accelerator_hour": "p"})
    busy = replace(model, run=replace(model.run, overhead=Overhead(0.1, 0.0, 0.2)))
    assert simulated(busy, values={"e": np.full(3, 0.3), "p": np.full(3, 3.0)}).usd == pytest.approx(np.full(3, 100 * 8 * 1.5 * 3))
