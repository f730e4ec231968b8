"""Trials: the same bits for the same seed, the plan's own figures where nothing is uncertain, and the laws of what makes it dearer."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.domain.scenarios import Discrete, Floats, LogNormal, ProgramModel, Regimes, RiskModel, RunModel, Targets, TierModel, Uniform
from service.domain.schedule import Activity, ActivityNetwork
from service.domain.training.run import Billing
from service.engine.scenarios.costs import run_usd
from service.engine.scenarios.distributions import normal_quantile
from service.engine.scenarios.program import order_program
from service.engine.scenarios.summary import mean_and_sd, quantile, variance_shares
from service.engine.scenarios.trials import ATTRIBUTED_EVERY, FIRST_BLOCKS_ATTRIBUTED, Sampler, UncertainField, block_size, simulate_block
from service.engine.training.cost import cost_lines
from service.engine.training.reliability import checkpoint_interval_hours, goodput
from service.usecases.scenarios.codec import encode_aggregate
from tests.unit.engine.builders import failures, run
from tests.unit.engine.scenario_builders import certain_run, run_model, sampler, tallied

MTTF = "failures.mttf_hours_per_accelerator"
PRICE = "price.usd_per_accelerator_hour"
SPREAD = {"slowdown": Range(0.7, 1.0, 1.8), "queue_hours": Range(5.0, 20.0, 90.0)}


def uncertain_run(**changes: object) -> RunModel:
    whole = run(failures=failures(mttf_hours_per_accelerator=Range(500.0, 900.0, 1500.0)))
    return run_model(whole, "run", 400.0, **{**SPREAD, **changes})


def program(*names: str, **changes: object) -> ProgramModel:
    """Uncertain runs one after another, a tier each."""
    activities = tuple(Activity(name, Range.exactly(1.0), predecessors=names[at - 1 : at] if at else ()) for at, name in enumerate(names))
    tiers = tuple(TierModel((uncertain_run(),), (name,), 0.1, 0.0, 50.0, 1 / len(names), 0.7) for name in names)
    model = ProgramModel(tiers, ActivityNetwork(date(2027, 1, 4), activities), 0.5, 0.05, 100.0, 10.0, (RiskModel(0.3, 0.2, 1000.0, 0),))
    return replace(model, **changes)


def usd(made: Sampler, block: int = 0) -> Floats:
    return simulate_block(made, block, made.block, causes=False).usd


def test_the_same_seed_gives_the_same_bits() -> None:
    """And another seed others."""
    one, again = (encode_aggregate(tallied(sampler(program("a", "b", "c")), 10_000)) for _ in range(2))
    other = encode_aggregate(tallied(sampler(program("a", "b", "c"), seed=8), 10_000))
    assert one == again
    assert one != other


def test_looking_for_causes_changes_nothing() -> None:
    """Trials are the same whether or not they are asked why."""
    made = sampler(program("a", "b"))
    assert np.array_equal(simulate_block(made, 5, made.block, causes=True).usd, usd(made, 5))


def test_blocks_differ() -> None:
    """Each has a stream of its own."""
    made = sampler(uncertain_run())
    assert len({float(usd(made, block).sum()) for block in range(8)}) == 8


def test_blocks_of_many_runs_are_smaller() -> None:
    """Powers of two, so that chunks are whole blocks."""
    assert [block_size(runs) for runs in (1, 29, 60, 70, 200, 10_000)] == [32_768, 32_768, 16_384, 8192, 4096, 1024]


@pytest.mark.parametrize("mttf_hours", [80.0, 800.0, 1e5])
def test_the_mean_hours_of_a_run_are_its_useful_hours_over_its_goodput(mttf_hours: float) -> None:
    """What the estimate takes for certain, when only failures are left to chance."""
    made = sampler(certain_run(hours=500.0, mttf_hours=mttf_hours))
    found = tallied(made, 100_000).quantities["wall_clock_hours"]
    mean, sd = mean_and_sd(found)
    recovery = 20 / 60
    assert abs(mean - 500.0 / goodput(8 / mttf_hours, 1.0, 0.0, recovery)) <= 3 * sd / 100_000**0.5


def test_the_median_of_a_run_is_the_plans_and_so_are_its_ends() -> None:
    """The range of how slow it is, over the hours of the plan."""
    made = sampler(certain_run(hours=100.0, slowdown=Range(0.7, 1.0, 1.8)))
    found = tallied(made, 200_000).quantities["wall_clock_hours"].histogram
    assert quantile(found, 0.5) == pytest.approx(100.0, rel=0.01)
    assert quantile(found, 0.1) == pytest.approx(70.0, rel=0.02)
    assert quantile(found, 0.9) == pytest.approx(180.0, rel=0.02)


@pytest.mark.parametrize("term_hours", [0.0, 720.0])
@pytest.mark.parametrize("hours", [0.5, 100.0, 5000.0])
def test_the_bill_is_that_of_the_lines(hours: float, term_hours: float) -> None:
    """To the rounding of each line to cents, with everything that has a line."""
    base = run()
    whole = replace(
        base,
        storage=replace(base.storage, dataset_tb=3.0, logs_tb=1.0, checkpoints_kept=5, retention_months=6.0),
        network=replace(base.network, egress_tb=2.0),
        personnel=replace(base.personnel, evaluation_hours=10.0, oncall_hours=5.0),
        overhead=replace(base.overhead, evaluation=0.1, reruns=0.05),
        energy=replace(base.energy, usd_per_kwh=0.1),
        failures=replace(base.failures, spare_share=0.1, checkpoint_interval_minutes=60.0),
        cluster=replace(base.cluster, count=76),
        billing=replace(base.billing, instance_size=8, term_hours=term_hours),
    )
    model = run_model(whole, "run", hours, checkpoint_tb=0.1, energy_mwh_per_hour=0.02)
    lines = cost_lines(whole, hours, 0.02 * hours, 0.1, checkpoint_interval_hours(whole))
    found = run_usd(model, np.array([hours]), whole.billing.usd_per_accelerator_hour, 0.15)
    assert float(found[0]) == pytest.approx(float(sum(line.usd for line in lines)), abs=0.05)


@given(st.floats(100.0, 1e5), st.floats(1.01, 5.0))
def test_more_failures_are_never_cheaper_or_sooner_in_the_mean(mttf_hours: float, factor: float) -> None:
    """Two samples of 4,096 trials: within what chance alone leaves of a difference."""
    often, seldom = (sampler(certain_run(hours=300.0, mttf_hours=mttf)) for mttf in (mttf_hours, mttf_hours * factor))
    one, other = (simulate_block(made, 0, made.block, causes=False) for made in (often, seldom))
    for rarer, commoner in ((other.usd, one.usd), (other.hours, one.hours)):
        assert commoner.mean() >= rarer.mean() - 4 * np.hypot(rarer.std(), commoner.std()) / rarer.size**0.5


@given(st.floats(0.05, 1.0), st.floats(0.0, 1.0))
def test_a_likelier_gate_is_never_cheaper(passing: float, factor: float) -> None:
    """Trial by trial: who gets further spends more."""
    base = program("a", "b")
    dear, cheap = (
        replace(base, tiers=(replace(base.tiers[0], pass_probability=share), base.tiers[1])) for share in (passing, passing * factor)
    )
    assert (usd(sampler(dear)) >= usd(sampler(cheap)) - 1e-6).all()


def test_a_risk_and_a_dearer_price_never_save() -> None:
    """Trial by trial."""
    base = program("a", "b")
    harmless = usd(sampler(replace(base, risks=())))
    assert (usd(sampler(base)) >= harmless).all()
    dear = replace(base, tiers=tuple(replace(tier, runs=tuple(_dearer(each) for each in tier.runs)) for tier in base.tiers))
    assert (usd(sampler(dear)) > usd(sampler(base))).all()


def _dearer(model: RunModel) -> RunModel:
    return replace(model, run=replace(model.run, billing=Billing(model.run.billing.usd_per_accelerator_hour * 1.5)))


def test_a_failed_gate_ends_the_spending_but_not_the_calendar() -> None:
    """Hours are of the program carried through."""
    made = sampler(replace(program("a", "b"), tiers=tuple(replace(tier, pass_probability=0.0) for tier in program("a", "b").tiers)))
    found = simulate_block(made, 0, made.block, causes=False)
    assert not found.completed.any()
    assert (found.usd < found.completed_usd).all()
    assert (found.hours * 8 > found.accelerator_hours).all()


def test_values_of_a_field_take_the_place_of_the_runs_own() -> None:
    """A price that is drawn is the only thing that makes the cost of certain hours uncertain: all of its variance."""
    made = sampler(certain_run(field_paths={PRICE: PRICE}), UncertainField(PRICE, Uniform(1.0, 3.0)))
    found = tallied(made, 40_000)
    mean, _ = mean_and_sd(found.quantities["cost_usd"])
    assert mean == pytest.approx(100 * 8 * 2.0, rel=0.01)
    assert variance_shares(found, "cost_usd")[PRICE] == pytest.approx(1.0, abs=0.01)


def test_a_field_that_changes_the_estimate_is_made_at_its_nodes() -> None:
    """Twice the hours for half of the trials, and the field is what makes the difference."""
    models = (certain_run(hours=100.0), certain_run(hours=200.0))
    field = UncertainField("hardware.count", Discrete((1.0, 2.0), (0.5, 0.5)), nodes=(1.0, 2.0))
    made = sampler(models[0], field, models={(at,): model for at, model in enumerate(models)})
    found = simulate_block(made, 0, made.block, causes=True)
    assert set(np.round(found.hours, 3)) == {100.0, 200.0}
    assert ((found.cost_scores["hardware.count"] > normal_quantile(0.5)) == (found.hours > 150)).all()


def test_chances_are_those_of_all_nodes_and_not_of_the_first() -> None:
    """Speed and rate of failures are uncertain at the second node only: there they spread the hours, and are causes of all trials."""
    certain, uncertain = certain_run(hours=100.0), certain_run(hours=100.0, slowdown=Range(0.5, 1.0, 2.0))
    made = sampler(
        certain, UncertainField("nodes", Discrete((1.0, 2.0), (0.5, 0.5)), nodes=(1.0, 2.0)), models={(0,): certain, (1,): uncertain}
    )
    found = simulate_block(made, 0, 4096, causes=True)
    spread_out = np.abs(found.hours - 100.0) > 1.0
    assert 0.4 < spread_out.mean() < 0.5
    assert np.all(found.time_scores["throughput"][~spread_out & (found.hours == 100.0)] == 0)
    assert found.time_scores["throughput"][spread_out].std() > 0


def test_activities_that_are_uncertain_at_one_node_only_are_drawn() -> None:
    """A review that takes no time at the first node, and one to nine days at the second."""
    run = certain_run("train", hours=100.0)
    at_once, takes_days = (_with_review(run, hours) for hours in (Range.exactly(0.0), Range(24.0, 72.0, 216.0)))
    models = {(0,): at_once, (1,): takes_days}
    ordered = {nodes: order_program(model) for nodes, model in models.items()}
    made = sampler(at_once, UncertainField("nodes", Discrete((1.0, 2.0), (0.5, 0.5)), nodes=(1.0, 2.0)), models=ordered)
    hours = simulate_block(made, 0, 4096, causes=True).hours
    assert 0.45 < np.mean(hours < 101.0) < 0.55
    assert hours.max() > 300.0
    assert tallied(made, 8192).attributions["wall_clock_hours"].causes.keys() >= {"nodes", "reviews"}


def _with_review(run: RunModel, hours: Range) -> ProgramModel:
    """A run, and a review after it."""
    activities = (Activity("train", Range.exactly(1.0)), Activity("review", hours, predecessors=("train",)))
    tier = TierModel((run,), ("train",), 0.0, 0.0, 0.0, 1.0, 1.0)
    return ProgramModel((tier,), ActivityNetwork(date(2027, 1, 4), activities), 0.0, 0.0, 0.0, 0.0, ())


def test_correlated_fields_move_together() -> None:
    """Perfectly correlated, price and time to failure are one chance."""
    model = certain_run(mttf_hours=1000.0, field_paths={PRICE: PRICE, MTTF: MTTF})
    fields = (UncertainField(PRICE, Uniform(1.0, 3.0)), UncertainField(MTTF, LogNormal(1000.0, 0.5)))
    found = simulate_block(sampler(model, *fields, correlation_factor=np.array([[1.0, 0.0], [1.0, 0.0]])), 0, 4096, causes=True)
    assert np.allclose(found.cost_scores[PRICE], found.cost_scores[MTTF])


def test_limits_are_counted() -> None:
    """A run of 100 certain hours is in time by then, and costs 1,600 USD."""
    made = sampler(certain_run(), targets=Targets(deadline_hours=100.0, budget_usd=1599.0))
    assert tallied(made, 1000).counts == {"completed": 1000, "in_time": 1000, "within_budget": 0, "completed_within_budget": 0}


def test_a_price_of_two_regimes_lies_between_them() -> None:
    """A long run sees their mean, and never less than the calm or more than the scarce price."""
    made = sampler(certain_run(hours=1000.0, regimes=Regimes(1.0, 2.0, 30.0, 10.0)))
    found = usd(made)
    assert found.min() >= 16_000 * (1 - 1e-9)
    assert found.max() <= 32_000 * (1 + 1e-9)
    assert found.mean() == pytest.approx(16_000 * 1.25, rel=0.01)


def test_repeats_run_side_by_side() -> None:
    """Twelve on eight lanes take one and a half times as long as one, and twelve times the accelerator-hours."""
    found = simulate_block(sampler(certain_run(hours=10.0, run_equivalents=12.0, concurrency=8.0)), 0, 1000, causes=False)
    assert found.hours == pytest.approx(15.0, rel=1e-6)
    assert found.accelerator_hours == pytest.approx(12 * 10 * 8, rel=1e-6)


@pytest.mark.parametrize("mttf_hours", [800.0, 4000.0, 100_000.0])
def test_failures_are_not_blamed_for_what_makes_a_run_long(mttf_hours: float) -> None:
    """Of 100 to 0.1 failures that lose half an hour each, none makes a hundredth of the variance of a run that takes 300 to 700 hours."""
    seldom = failures(mttf_hours_per_accelerator=Range.exactly(mttf_hours), checkpoint_write_minutes=0)
    made = sampler(run_model(run(failures=seldom), "run", 400.0, slowdown=SPREAD["slowdown"]))
    found = variance_shares(tallied(made, 40_000), "wall_clock_hours")
    assert found["throughput"] > 0.98
    assert found["failures"] < 0.01


def test_causes_are_looked_for_in_the_first_blocks_and_in_some_of_the_later() -> None:
    """All of the first, then one in so many: the first that is left out, and the next that is not."""
    made = sampler(uncertain_run(), block=256)

    def attributed(block: int) -> int:
        found = tallied(made, made.block, first=block).attributions
        return found["cost_usd"].moments.trials if found else 0

    left_out = next(block for block in range(FIRST_BLOCKS_ATTRIBUTED, 10_000) if block % ATTRIBUTED_EVERY)
    later = (FIRST_BLOCKS_ATTRIBUTED // ATTRIBUTED_EVERY + 1) * ATTRIBUTED_EVERY
    assert [attributed(block) for block in (0, 1, FIRST_BLOCKS_ATTRIBUTED - 1, left_out, later)] == [256, 256, 256, 0, 256]
