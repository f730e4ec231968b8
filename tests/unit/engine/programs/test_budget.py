"""A program's budget: by hand where it is small, by law for any."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.programs.outcome import Outcome
from service.domain.programs.program import (
    GateCriteria,
    MidpointGate,
    OtherLine,
    Program,
    ProgramOverhead,
    Reserves,
    Risk,
    Tier,
    TierGate,
)
from service.domain.programs.runs import Rung, RunRepetition
from service.domain.quantities import Range
from service.engine.numerics.money import CENT, allocate, round_to_total
from service.engine.programs.budget import (
    LEAST_HALVING_FACTOR,
    default_point,
    plan_budget,
    relative_duration,
    run_equivalents,
    successive_halving,
)
from service.engine.programs.contingency import combine_ranges
from tests.unit.engine.program_builders import planned, program, programs, repetitions, three_tiers

OVERHEAD = ProgramOverhead("sweeps", "stated", share=0.1)
PEOPLE = OtherLine("personnel", Decimal(2600), "400 h x 6.5 USD")


def usd(amount: float) -> Decimal:
    return Decimal(repr(amount)).quantize(CENT)


@given(programs())
def test_lines_add_up_to_the_median_to_the_cent(asked: Program) -> None:
    """total_usd.p50 is by definition the sum of the lines, each in whole cents."""
    found = plan_budget(asked)
    assert all(line.usd == line.usd.quantize(CENT) for line in found.lines)
    assert found.total_usd.p50 == float(sum(line.usd for line in found.lines))


@given(programs())
def test_the_envelope_adds_up_to_the_lines(asked: Program) -> None:
    """Exploration, committed and reserve are the whole budget."""
    found = plan_budget(asked)
    envelope = found.envelope
    assert envelope.exploration_usd + envelope.committed_usd + envelope.reserve_usd == sum(line.usd for line in found.lines)


@given(programs())
def test_parts_add_up(asked: Program) -> None:
    """Runs make their tier, and overheads by line are overheads by tier."""
    found = plan_budget(asked)
    for tier in found.tiers:
        assert tier.cost_usd == sum(block.cost_usd for block in tier.runs)
    assert sum(block.usd for block in found.overhead) == sum(tier.overhead_usd for tier in found.tiers)


@given(programs())
def test_the_program_is_not_expected_to_cost_more_than_its_budget(asked: Program) -> None:
    """The mean over the gate tree lies between its cheapest ending and the whole budget; its probabilities add up to 1."""
    found = plan_budget(asked)
    spent = [ending.usd for ending in found.endings]
    assert min(spent) - CENT <= found.expected_usd <= max(spent) == sum(line.usd for line in found.lines)
    assert sum(ending.probability for ending in found.endings) == pytest.approx(1)
    assert found.endings[-1].probability == pytest.approx(found.completion_probability)


@given(programs())
def test_a_gate_that_is_certain_to_be_passed_adds_nothing(asked: Program) -> None:
    """Taking away such a gate changes neither the budget nor what is expected of it."""
    certain = replace(asked, tiers=tuple(replace(tier, gate=TierGate("nothing", 1.0)) for tier in asked.tiers))
    without = replace(asked, tiers=tuple(replace(tier, gate=None) for tier in asked.tiers))
    gated, free = plan_budget(certain), plan_budget(without)
    assert gated.expected_usd == free.expected_usd == sum(line.usd for line in free.lines)
    assert (gated.total_usd, gated.endings) == (free.total_usd, free.endings)


@given(programs(), st.floats(0, 1), st.floats(0, 1))
def test_a_likelier_gate_never_lowers_what_is_expected(asked: Program, one: float, other: float) -> None:
    """The likelier the first gate is passed, the more is spent on average."""
    low, high = sorted((one, other))
    first, *rest = asked.tiers
    less, more = (plan_budget(replace(asked, tiers=(replace(first, gate=TierGate("go on", share)), *rest))) for share in (low, high))
    assert less.expected_usd <= more.expected_usd + CENT


@given(programs(), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_more_risk_never_lowers_the_contingency(asked: Program, probability: float, more: float, share: float) -> None:
    """Neither does another risk, nor a likelier one."""
    asked = replace(asked, reserves=replace(asked.reserves, contingency=None))
    likely, likelier = sorted((probability, more))
    reserves = [
        plan_budget(replace(asked, risks=risks)).envelope.reserve_usd
        for risks in (
            asked.risks,
            (*asked.risks, Risk("spike", likely, cost_share_of_tier=share)),
            (*asked.risks, Risk("spike", likelier, cost_share_of_tier=share)),
        )
    ]
    assert reserves == sorted(reserves)


@given(programs(), st.floats(0.5, 0.99), st.floats(0.5, 0.99))
def test_more_confidence_never_takes_less_contingency(asked: Program, one: float, other: float) -> None:
    """The contingency rises with the confidence; at one half there is no margin for the estimate's spread."""
    low, high = sorted((one, other))
    budgets = [plan_budget(replace(asked, reserves=Reserves(0.0, confidence))).envelope.reserve_usd for confidence in (0.5, low, high)]
    assert budgets == sorted(budgets)
    losses = sum((block.expected_loss_usd for block in plan_budget(asked).risks), Decimal(0))
    assert budgets[0] == losses


@given(repetitions)
def test_early_stopping_never_costs_more_than_every_run_whole(repetition: RunRepetition) -> None:
    """Stopped sweeps take at least one run's worth a seed and at most all of them."""
    work = run_equivalents(repetition)
    assert repetition.seeds * (1 - 1e-9) <= work <= repetition.runs * (1 + 1e-9)
    if not repetition.rungs:
        assert work == repetition.runs


def test_successive_halving_by_hand() -> None:
    """27 candidates, a third kept from a ninth of a run on: 27 / 9 + 9 (1/3 - 1/9) + 3 (1 - 1/3) = 7 whole runs."""
    rungs = successive_halving(27, 3, 1 / 9)
    assert [rung.at for rung in rungs] == pytest.approx([1 / 9, 1 / 3])
    assert run_equivalents(RunRepetition(grid=(3, 9), rungs=rungs)) == pytest.approx(7)
    assert successive_halving(1, 3, 1 / 9) == ()


def test_halving_has_no_rungs_without_end() -> None:
    assert len(successive_halving(100_000, LEAST_HALVING_FACTOR, 1e-4)) < 200
    with pytest.raises(InvalidRequest, match=r"at least 1\.05"):
        successive_halving(2, math.nextafter(1, 2), 1e-4)


def test_a_share_of_candidates_is_counted_as_people_count() -> None:
    """7 % of 100 are 7 that go on, for all that floats make it a little more; one always does."""
    assert run_equivalents(RunRepetition(100, rungs=(Rung(0.5, 0.07),))) == pytest.approx(53.5)
    assert run_equivalents(RunRepetition(rungs=(Rung(0.5, 1e-12),))) == 1


def test_a_sweep_is_its_grid_times_seeds_and_repeats() -> None:
    """3 x 4 points, 2 seeds, made twice: 48 runs, which take six times as long eight at once."""
    block = plan_budget(program(Tier("prototype", (planned(repetition=RunRepetition(2, (3, 4), 2, concurrency=8)),)))).tiers[0].runs[0]
    assert block.run_equivalents == 48
    assert block.cost_usd == 48 * 2000
    assert block.use.wall_clock_hours.p50 == pytest.approx(6 * 125)


def test_the_last_turn_takes_as_long_as_a_full_one() -> None:
    """12 runs eight at once are two turns; nine candidates, a third kept at a third, are 3/3 and then one turn of 2/3 three at once."""
    assert relative_duration(RunRepetition(12, concurrency=8)) == 2
    assert relative_duration(RunRepetition(9, rungs=(Rung(1 / 3, 1 / 3),), concurrency=3)) == pytest.approx(3 / 3 + 2 / 3)
    assert relative_duration(RunRepetition(9, rungs=(Rung(1 / 3, 1 / 3),), concurrency=4)) == pytest.approx(3 / 3 + 2 / 3)


@given(repetitions)
def test_turns_are_no_fewer_than_the_work_fills(repetition: RunRepetition) -> None:
    """At least one run long and the work over the places; one after another exactly the work, and never more for more room."""
    work, took = run_equivalents(repetition), relative_duration(repetition)
    assert took >= max(1, work / repetition.concurrency) * (1 - 1e-9)
    assert relative_duration(replace(repetition, concurrency=1)) == pytest.approx(work)
    assert relative_duration(replace(repetition, concurrency=repetition.concurrency + 1)) <= took


def test_runs_side_by_side_take_as_long_as_one() -> None:
    """More room than runs shortens nothing further."""
    block = plan_budget(program(Tier("prototype", (planned(repetition=RunRepetition(2, concurrency=8)),)))).tiers[0].runs[0]
    assert block.use.wall_clock_hours.p50 == 125


def test_the_budget_by_hand() -> None:
    """26,000 USD of runs, a tenth of overheads, 2,600 of people, 5 % of the runs held back."""
    found = plan_budget(three_tiers(overheads=(OVERHEAD,), other_lines=(PEOPLE,), reserves=Reserves(0.05, 0.8, 0.0)))
    assert [(line.line, line.usd) for line in found.lines] == [
        ("prototype", 1000),
        ("validation", 5000),
        ("production", 20_000),
        ("overhead: sweeps", 2600),
        ("personnel", 2600),
        ("reserve: evaluation and debugging", 1300),
    ]
    assert found.total_usd.p50 == 32_500
    envelope = found.envelope
    assert (envelope.exploration_usd, envelope.committed_usd, envelope.reserve_usd) == (6600, 24_600, 1300)


def test_the_gate_tree_by_hand() -> None:
    """0.4 of the time 1,000 USD are spent, 0.6 x 0.3 of it 6,000, else 26,000: 12,400 on average."""
    found = plan_budget(three_tiers())
    assert [(ending.stopped_at, ending.usd) for ending in found.endings] == [
        ("prototype", 1000),
        ("validation", 6000),
        ("production", 26_000),
        (None, 26_000),
    ]
    assert found.expected_usd == usd(0.4 * 1000 + 0.18 * 6000 + 0.42 * 26_000)
    assert found.completion_probability == pytest.approx(0.6 * 0.7 * 0.8)


def test_what_it_costs_to_decide() -> None:
    """A gate's price is its tier with overheads and the lines that are spent with it; what accrues is in what is spent by then."""
    labels = OtherLine("labelling", Decimal(500), "stated", "validation")
    found = plan_budget(three_tiers(overheads=(OVERHEAD,), other_lines=(PEOPLE, labels)))
    gate = found.tiers[1].gate
    assert gate is not None
    assert gate.cost_to_decide_usd == 5000 + 500 + 500
    assert gate.spent_usd == 1100 + 100 + 6000 + 500
    assert gate.reached_probability == pytest.approx(0.6)
    assert gate.statement == "6,000 USD are spent to decide whether to spend 24,000 USD more (go to production)"


def test_contingency_is_expected_loss_and_the_estimates_spread() -> None:
    """A risk of 0.3 x 10 % of production, and 0.84 / 1.28 of the distance to p90 for a confidence of 80 %."""
    one = program(Tier("production", (planned(hours=10_000),)), reserves=Reserves(0.0, 0.8))
    risk = Risk("loss spike", 0.3, "production", 0.1)
    margin = float(plan_budget(one).envelope.reserve_usd)
    assert margin == pytest.approx(10_000 * 0.8416 / 1.2816, rel=1e-4)
    found = plan_budget(replace(one, risks=(risk,)))
    assert (found.risks[0].loss_usd, found.risks[0].expected_loss_usd) == (2000, 600)
    assert float(found.envelope.reserve_usd) == pytest.approx(margin + 600)


def test_the_range_is_the_estimates_spread_about_the_cost_with_its_losses() -> None:
    """Without risks and contingency the percentiles are those of the runs."""
    found = plan_budget(program(Tier("production", (planned(hours=10_000),))))
    assert found.total_usd == Range(16_000, 20_000, 30_000)
    risky = plan_budget(program(Tier("production", (planned(hours=10_000),)), risks=(Risk("spike", 0.5, None, 0.5),)))
    sure, deviation = 20_000 + 5000, 5000 * 1.2816
    assert risky.without_contingency_usd.p90 == pytest.approx(sure + math.hypot(10_000, deviation), rel=1e-4)
    assert risky.without_contingency_usd.p10 == pytest.approx(sure - math.hypot(4000, 5000), rel=1e-4)


def test_overheads_are_as_uncertain_as_their_runs() -> None:
    """A tenth on top of the runs widens the range by a tenth."""
    found = plan_budget(program(Tier("production", (planned(hours=10_000),)), overheads=(OVERHEAD,)))
    assert (found.total_usd.p10, found.total_usd.p90) == pytest.approx((17_600, 33_000))


def test_reserves_are_spent_as_the_tiers_are() -> None:
    """A tenth of 26,000 USD in reserve: 100 of it are with the prototypes, whatever labels are bought beside them."""
    labels = OtherLine("labelling", Decimal(5000), "stated", "prototype")
    found = plan_budget(three_tiers(reserves=Reserves(0.1, 0.8, 0.0), other_lines=(labels,)))
    assert found.endings[0].usd == 1000 + 5000 + 100


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=6), st.floats(0, 1))
def test_what_errs_together_spreads_more(sides: list[tuple[float, float, float]], correlation: float) -> None:
    """Correlated errors spread between those that have nothing in common and those that are one."""
    ranges = [Range(*sorted(side)) for side in sides]
    none, some, full = (combine_ranges(ranges, share) for share in (0.0, correlation, 1.0))
    assert none.p90 <= some.p90 * (1 + 1e-9) + 1e-6
    assert some.p90 <= full.p90 * (1 + 1e-9) + 1e-6
    assert full.p90 == pytest.approx(sum(one.p90 for one in ranges), abs=1e-6)


def test_the_price_of_a_point() -> None:
    """From 0.61 to 0.70 are nine points of a share; 26,000 USD and 13e21 FLOPs are shared among them."""
    found = plan_budget(three_tiers(outcome=Outcome("helpdesk-eval", 0.61, 0.70, default_point(0.61, 0.70)))).outcome
    assert found is not None
    assert (found.points, found.usd_per_point) == pytest.approx((9, 26_000 / 9))
    assert found.flops_per_point == pytest.approx(13e21 / 9)
    assert (default_point(61, 70), default_point(2.5, 2.3), default_point(0, 1)) == (1.0, 1.0, 0.01)


def test_the_failure_budget_of_a_tier() -> None:
    """Interruptions and lost hours of every run, the closest checkpoints, and a hundredth of the compute to roll back."""
    runs = (planned("a", 1000, storage=500, repetition=RunRepetition(3)), planned("b", 500, checkpoint_interval_minutes=10.0))
    found = plan_budget(program(Tier("prototype", runs))).tiers[0].failures
    assert found.expected_interruptions == pytest.approx(3 * 2 + 1)
    assert found.lost_accelerator_hours == pytest.approx(350)
    assert found.goodput == pytest.approx(0.9)
    assert found.checkpoint_interval_minutes == 10
    assert found.rollback_allowance_accelerator_hours == pytest.approx(35)
    assert found.rollback_allowance_usd == 70


def test_the_midpoint_is_a_share_of_the_budget() -> None:
    """Half of 26,000 USD."""
    half = plan_budget(
        three_tiers(midpoint_gate=MidpointGate(0.5, GateCriteria(metric_at_least=0.65), GateCriteria(cpi_below=0.7)))
    ).midpoint
    assert half is not None
    assert half.at_usd == 13_000


def test_a_plan_that_cannot_be_defended_says_so() -> None:
    """No midpoint gate, no gates, no risks, no contingency, no overhead: each is a warning."""
    found = plan_budget(program(Tier("production", (planned(),)))).warnings
    for word in ("midpoint_gate", "has no gate", "no risks", "no contingency", "no overhead"):
        assert any(word in warning for warning in found)


@pytest.mark.parametrize("word", ["no outcome", "no evaluation", "no reserve", "no people"])
def test_what_a_plan_says_nothing_of_is_one_warning_each(word: str) -> None:
    """Each is gone where it is stated."""
    bare = plan_budget(program(Tier("production", (planned(),)))).warnings
    assert sum(word in warning for warning in bare) == 1
    whole = three_tiers(
        outcome=Outcome("x", 0.1, 0.2, 0.01),
        overheads=(ProgramOverhead("evaluation", "stated", share=0.1),),
        other_lines=(OtherLine("personnel: analysis", Decimal(2600), "stated"),),
        reserves=Reserves(0.05, 0.8, 0.0),
    )
    assert not any(word in warning for warning in plan_budget(whole).warnings)


def test_a_midpoint_gate_that_decides_nothing_is_told_of() -> None:
    """Criteria to go on are what it is for; those to stop are not enough."""
    empty, decided = (
        plan_budget(three_tiers(midpoint_gate=MidpointGate(0.5, go_on, GateCriteria(cpi_below=0.7)))).warnings
        for go_on in (GateCriteria(), GateCriteria(cpi_at_least=0.9))
    )
    assert any("continue_if" in warning for warning in empty)
    assert not any("continue_if" in warning for warning in decided)


def test_explicit_overheads_are_spread_as_the_runs_cost() -> None:
    """1,300 USD over 26,000 of runs are a twentieth of each tier's."""
    found = plan_budget(three_tiers(overheads=(ProgramOverhead("reruns", "stated", usd=Decimal(1300)),)))
    assert [tier.overhead_usd for tier in found.tiers] == [50, 250, 1000]
    assert found.overhead[0].share == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        (program(), "/tiers"),
        (program(Tier("production", (planned(),)), Tier("prototype", (planned(),))), "/tiers/1/tier"),
        (program(Tier("prototype", (planned(),)), Tier("prototype", (planned(),))), "/tiers/1/tier"),
        (program(Tier("prototype", ())), "/tiers/0/runs"),
        (program(Tier("prototype", (planned("a"), planned("a")))), "/tiers/0/runs/1/name"),
        (program(Tier("prototype", (planned(),), TierGate("x", 1.2))), "/tiers/0/gate/pass_probability"),
        (three_tiers(overheads=(ProgramOverhead("sweeps", "x", share=1.5),)), "/overhead/sweeps"),
        (three_tiers(risks=(Risk("x", 0.5, cost_share_of_tier=1.1),)), "/risks/0/cost_share_of_tier"),
        (three_tiers(reserves=Reserves(1.1, 0.8)), "/reserves/evaluation_and_debugging"),
        (three_tiers(reserves=Reserves(0.0, 0.4)), "/reserves/confidence"),
        (program(Tier("prototype", (planned(),)), risks=(Risk("x", 0.5, "production"),)), "/risks/0/tier"),
        (three_tiers(outcome=Outcome("x", 0.5, 0.5, 0.01)), "/outcome/target"),
        (
            program(Tier("prototype", (planned(repetition=RunRepetition(rungs=(Rung(0.5, 0.5), Rung(0.5, 0.5)))),))),
            "/tiers/0/runs/0/early_stopping",
        ),
        (program(Tier("prototype", (planned(repetition=RunRepetition(rungs=(Rung(0.5, 0.0),))),))), "/tiers/0/runs/0/early_stopping"),
    ],
)
def test_a_program_that_contradicts_itself_is_refused_where_it_does(asked: Program, pointer: str) -> None:
    """Tiers come in order, once each, with runs; shares are at most everything; what is named is there."""
    with pytest.raises(InvalidRequest) as refused:
        plan_budget(asked)
    assert refused.value.pointer == pointer


@given(st.integers(-(10**12), 10**12), st.lists(st.integers(0, 10**6), min_size=1, max_size=8))
def test_an_amount_is_split_without_a_cent_lost(amount: int, weights: list[int]) -> None:
    """Parts add up exactly, each within a cent of its fair share."""
    whole = Decimal(amount) / 100
    parts = allocate(whole, [Decimal(weight) for weight in weights])
    assert sum(parts) == whole
    fair = [whole * weight / sum(weights) if sum(weights) else whole / len(weights) for weight in weights]
    assert all(abs(part - share) < CENT for part, share in zip(parts, fair, strict=True))
    assert round_to_total(parts, whole) == parts
