"""A run from end to end: every block follows from the others, and what the caller says moves what it should."""

import math
from dataclasses import asdict, replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.quantities import Range
from service.domain.training.estimate import Estimate
from service.domain.training.run import (
    METHODS,
    AuxiliaryModels,
    Axes,
    Billing,
    Data,
    Efficiency,
    Energy,
    Overhead,
    Personnel,
    Run,
    Schedule,
    Storage,
)
from service.domain.training.utilisation import LossRange, LossTerms, PlanCalibration
from service.engine.training.estimate import checkpoint_tb, estimate
from service.engine.training.flops import FLOPS_PER_PETAFLOP_S_DAY
from service.engine.training.run_time import loss_spread, run_over_step_speed
from tests.unit.engine.builders import (
    DEEPSEEK_V3,
    GPT_3,
    LLAMA_7B,
    LLAMA_65B,
    MIXTRAL,
    NEVER_FAILS,
    RESNET_50,
    T5_11B,
    TINY,
    VIT_L_16,
    accelerator,
    cluster,
    failures,
    run,
    training,
    utilisation,
    with_training,
)

PLANNERS = PlanCalibration(LossTerms(off_node=0.25, scale=-0.02, age=0.1, mixture=0.0), LossRange(512, 16_384, 2021, 2024))


def answer(asked: Run, planning: PlanCalibration = PLANNERS) -> Estimate:
    return estimate(asked, utilisation(), planning)


def numbers(value: object) -> list[float]:
    """All numbers anywhere in an answer."""
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers(part)]
    if isinstance(value, list | tuple):
        return [number for part in value for number in numbers(part)]
    return [float(value)] if isinstance(value, int | float | Decimal) else []


SAMPLES = training(seq_len=1, global_batch=1024)
SHAPES: list[dict[str, Any]] = [
    {"model": TINY},
    {"model": MIXTRAL, "cluster": cluster(64)},
    {"model": DEEPSEEK_V3, "cluster": cluster(1024), "training": training(global_batch=4096)},
    {"model": T5_11B, "cluster": cluster(32), "training": training(seq_len=512, decoder_seq_len=114)},
    {"model": VIT_L_16, "training": training(seq_len=197, global_batch=4096)},
    {"model": RESNET_50, "training": SAMPLES, "data": Data(1.28e6, 1.28e6, 90)},
]


@pytest.mark.parametrize("changes", SHAPES, ids=["dense", "mixture", "latent", "encoder-decoder", "vit", "cnn"])
def test_every_number_of_an_answer_is_finite(changes: dict[str, Any]) -> None:
    """No block of any kind of network holds a NaN or an infinity, and none is negative."""
    block = asdict(answer(run(**changes)))
    # What does not fit may be faster than what is taken.
    assert all(other.pop("slower_by") < 1 for other in block["throughput"]["alternatives"])
    found = numbers(block)
    assert len(found) > 40
    assert all(math.isfinite(number) and number >= 0 for number in found)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_answered(method: Any) -> None:
    """All eight methods have FLOPs, a layout that fits, hours and a cost."""
    helpers = AuxiliaryModels(teacher=LLAMA_7B if method == "distill" else None, reference=method in ("dpo", "rl"))
    asked = with_training(run(model=LLAMA_7B), method=method, lora_rank=16, auxiliary_models=helpers, response_tokens=512)
    found = answer(asked)
    assert found.memory.fits
    assert found.cost.total_usd.p50 > 0
    assert found.flops.forward + found.flops.backward == pytest.approx(found.flops.total)


def test_blocks_follow_from_each_other() -> None:
    """On one node tokens over rate over goodput are the hours; hours times count times price the money; times power the energy."""
    found = answer(run(billing=Billing(3.0)))
    seconds = found.tokens.trained / found.throughput.tokens_per_s
    assert found.time.wall_clock_hours.p50 == pytest.approx(seconds / 3600 / found.reliability.goodput)
    assert found.time.accelerator_hours.p50 == 8 * found.time.wall_clock_hours.p50
    assert found.cost.total_usd.p50 == pytest.approx(found.time.accelerator_hours.p50 * 3, abs=0.01)
    assert found.energy.mwh == pytest.approx(found.time.accelerator_hours.p50 * 400 * 1.1 / 1e6)
    assert found.flops.petaflop_s_days * FLOPS_PER_PETAFLOP_S_DAY == pytest.approx(found.flops.total)
    assert found.flops.per_token * found.tokens.trained == pytest.approx(found.flops.total)
    assert found.throughput.tflops_per_accelerator == pytest.approx(312 * found.throughput.mfu.p50)
    assert found.throughput.step_time_s * found.time.steps == pytest.approx(seconds)
    assert found.reliability.expected_interruptions == pytest.approx(found.time.wall_clock_hours.p50 / found.reliability.mttf_hours)
    assert sum(found.memory.breakdown_gb.values()) == pytest.approx(found.memory.per_accelerator_gb)
    assert found.cost.usd_per_million_tokens == pytest.approx(found.cost.total_usd.p50 / 1e5)


@pytest.mark.parametrize(("nodes", "share"), [(1, 1.0), (2, math.exp(-0.125)), (512, math.exp((-0.25 + 0.02 * 3) * 511 / 512))])
def test_jobs_of_many_nodes_sustain_less_than_their_steps(nodes: int, share: float) -> None:
    """What whole runs lose between nodes is in hours and money, not in the speed; it grows with the share of peers on other nodes."""
    found = answer(run(cluster=cluster(8 * nodes), billing=Billing(3.0)))
    hours = found.tokens.trained / found.throughput.tokens_per_s / 3600
    assert found.throughput.effective_tokens_per_s == pytest.approx(found.throughput.tokens_per_s * share * found.reliability.goodput)
    assert found.throughput.effective_tokens_per_s == pytest.approx(found.tokens.trained / found.time.wall_clock_hours.p50 / 3600)
    assert found.throughput.effective_mfu == pytest.approx(found.throughput.mfu.p50 * share * found.reliability.goodput)
    assert found.time.wall_clock_hours.p50 == pytest.approx(hours / share / found.reliability.goodput)
    assert found.cost.total_usd.p50 == pytest.approx(found.time.accelerator_hours.p50 * 3, abs=0.01)


@given(count=st.integers(1, 4000), more=st.integers(1, 64))
def test_more_accelerators_as_fast_each_never_take_longer(count: int, more: int) -> None:
    """What is lost between nodes grows less than the machine does, part-filled nodes included."""
    few, many = (each * run_over_step_speed(run(cluster=cluster(each)), PLANNERS) for each in (count, count + more))
    assert many >= few


@pytest.mark.parametrize(
    ("asked", "share"),
    [
        (run(), 1.0),
        (run(cluster=cluster(64)), math.exp(-0.25 * 7 / 8)),
        (with_training(run(cluster=cluster(64)), axes=Axes(tensor=8, pipeline=1, data=8, context=1)), math.exp(-0.25 * 7 / 8)),
        (with_training(run(), software_year=2022), math.exp(-0.2)),
        (with_training(run(), software_year=2010), math.exp(-0.3)),
        (with_training(run(cluster=cluster(64)), software_year=2100), math.exp(-0.25 * 7 / 8)),
        (run(cluster=cluster(64), efficiency=Efficiency(mfu=0.4)), 1.0),
    ],
)
def test_what_whole_runs_lose_goes_with_nodes_and_software(asked: Run, share: float) -> None:
    """Nothing on one node of recent software, nor with a stated efficiency; years beyond the measured ones are as the nearest of them."""
    assert run_over_step_speed(asked, PLANNERS) == pytest.approx(share)
    spread = loss_spread(asked, PLANNERS)
    assert (spread.p10, spread.p50, spread.p90) == pytest.approx((share, 1.0, 1 / share))


@given(count=st.integers(1, 200_000), year=st.integers(2000, 2100))
def test_no_run_is_faster_than_its_steps(count: int, year: int) -> None:
    """Whatever the coefficients, the loss is never below none."""
    hopeful = replace(PLANNERS, coefficients=LossTerms(off_node=0.1, scale=-0.2, age=-0.1, mixture=-0.5))
    asked = with_training(run(model=MIXTRAL, cluster=cluster(count)), software_year=year)
    assert 0 < run_over_step_speed(asked, hopeful) <= 1


@given(
    count=st.sampled_from([1, 8, 64, 512, 4096]),
    p10=st.floats(0.3, 1.0),
    p90=st.floats(1.0, 4.0),
    full=st.booleans(),
    model=st.sampled_from([LLAMA_7B, GPT_3, MIXTRAL]),
)
@settings(max_examples=40, deadline=None)
def test_no_percentile_is_beyond_physics(count: int, p10: float, p90: float, full: bool, model: Any) -> None:
    """The p10 of the hours needs no more than the dense peak, nor more than the p90 of the speed without any loss; so the cost's."""
    asked = with_training(run(model=model, cluster=cluster(count), billing=Billing(3.0)), count_full_attention=full)
    try:
        found = estimate(asked, utilisation(spread=Range(p10, 1.0, p90)), PLANNERS)
    except DoesNotFit:
        return
    speed, hours = found.throughput.tokens_per_s_per_accelerator, found.time.accelerator_hours
    at_peak = found.flops.total / (312e12 * 3600)
    assert found.throughput.mfu.p90 <= 1
    assert hours.p10 >= at_peak
    assert hours.p10 >= found.tokens.trained / speed.p90 / 3600 * (1 - 1e-9)
    assert found.cost.total_usd.p10 >= 3.0 * at_peak - 0.01
    assert hours.p50 == pytest.approx(found.tokens.trained / speed.p50 / 3600 / found.throughput.effective_mfu * found.throughput.mfu.p50)


@given(tokens=st.floats(1e9, 1e14), times=st.floats(1.0, 100.0))
def test_more_tokens_take_longer_at_every_percentile(tokens: float, times: float) -> None:
    """Hours are in proportion to the tokens."""
    few, many = (answer(run(cluster=cluster(64), data=Data(size, size, 1))).time.wall_clock_hours for size in (tokens, tokens * times))
    for name in ("p10", "p50", "p90"):
        assert getattr(many, name) == pytest.approx(times * getattr(few, name))


def test_a_stated_efficiency_is_sustained() -> None:
    """The caller's figure is of their runs: nothing is taken off it, on many nodes either."""
    found = answer(run(cluster=cluster(512), efficiency=Efficiency(mfu=0.4), failures=NEVER_FAILS))
    assert found.throughput.effective_mfu == pytest.approx(0.4)
    assert found.time.wall_clock_hours.p50 == pytest.approx(found.tokens.trained / found.throughput.tokens_per_s / 3600)


def test_lines_add_up_to_the_total_to_the_cent() -> None:
    """Whatever lines a run has, their sum is the total's p50."""
    found = answer(
        run(
            storage=Storage(40, 5, 6, 1, 20),
            personnel=Personnel(80, 40, 100, 90),
            overhead=Overhead(0.05, 0.05, 0.05),
            energy=Energy("owned", 480, 1.3, 700, 10, 0.09),
            billing=Billing(2.123456),
        )
    )
    assert len(found.cost.lines) == 7
    assert float(sum(line.usd for line in found.cost.lines)) == found.cost.total_usd.p50


@pytest.mark.parametrize(
    ("measured", "rate"),
    [
        (Efficiency(tokens_per_s_per_accelerator=3000), 3000),
        (Efficiency(tflops_per_accelerator=124.8), None),
        (Efficiency(mfu=0.4), None),
    ],
)
def test_what_the_caller_measured_is_taken_as_it_is(measured: Efficiency, rate: float | None) -> None:
    """A measured rate, TFLOP/s or MFU is exact, says that it is the caller's, and moves no planning spread into the hours."""
    found = answer(run(efficiency=measured, failures=NEVER_FAILS))
    throughput = found.throughput
    assert throughput.source == "caller"
    assert throughput.tokens_per_s_per_accelerator == Range.exactly(rate or throughput.tokens_per_s_per_accelerator.p50)
    assert throughput.tflops_per_accelerator == pytest.approx(throughput.mfu.p50 * 312)
    if rate is None:
        assert throughput.mfu.p50 == pytest.approx(0.4)
    assert found.time.wall_clock_hours.p90 == pytest.approx(found.time.wall_clock_hours.p10)


@pytest.mark.parametrize(
    ("measured", "field"),
    [
        (Efficiency(mfu=1.01), "mfu"),
        (Efficiency(mfu=40.0), "mfu"),
        (Efficiency(tflops_per_accelerator=624.0), "tflops_per_accelerator"),
        (Efficiency(tokens_per_s_per_accelerator=50_000), "tokens_per_s_per_accelerator"),
    ],
)
def test_more_than_the_peak_is_refused(measured: Efficiency, field: str) -> None:
    """Above the dense peak the caller counted sparsity, recomputation, another precision or per cent: refused, with a pointer."""
    with pytest.raises(InvalidRequest, match="dense bf16 peak") as refused:
        answer(run(efficiency=measured))
    assert refused.value.pointer == f"/efficiency/{field}"


def test_the_whole_peak_is_no_more_than_the_peak() -> None:
    """An MFU of exactly 1 is a bound that people ask for: it is answered."""
    assert answer(run(efficiency=Efficiency(mfu=1.0))).throughput.mfu.p50 == pytest.approx(1.0)


def test_the_model_says_how_sure_it_is() -> None:
    """A modelled rate has the measured spread of the model, never above the peak; what runs on many nodes lose widens the hours."""
    found = answer(run())
    assert found.throughput.source == "modelled"
    assert found.throughput.mfu.p10 < found.throughput.mfu.p50 < found.throughput.mfu.p90 <= 1
    one_node, many = (answer(run(cluster=cluster(count), failures=NEVER_FAILS)) for count in (8, 256))
    for found, at_least in ((one_node, 1.0), (many, 1.05)):
        speed, hours = found.throughput.tokens_per_s_per_accelerator, found.time.accelerator_hours
        assert hours.p90 / hours.p50 >= at_least * speed.p50 / speed.p10 * (1 - 1e-9)


def test_recomputation_is_in_hfu_and_never_in_mfu() -> None:
    """A layout with full recomputation executes more than the model's FLOPs: HFU above MFU, the total unchanged."""
    plain, again = (answer(with_training(run(), axes=Axes(recompute=policy))) for policy in ("none", "full"))
    assert plain.flops.total == again.flops.total
    assert plain.flops.recompute == 0
    assert plain.throughput.hfu == pytest.approx(plain.throughput.mfu.p50)
    assert again.throughput.hfu / again.throughput.mfu.p50 == pytest.approx(1 + again.flops.recompute / again.flops.total)
    assert 1.3 < again.throughput.hfu / again.throughput.mfu.p50 < 4 / 3


def test_sampling_answers_is_slow_and_bound_by_memory() -> None:
    """RL trains fewer tokens a second than pretraining by more than its FLOPs say: a token at a time reads all the weights."""
    small = with_training(run(), global_batch=8)
    plain = answer(small)
    sampled = answer(
        with_training(small, method="rl", auxiliary_models=AuxiliaryModels(reference=True, reward_model=LLAMA_7B), response_tokens=2048)
    )
    slowdown = plain.throughput.tokens_per_s / sampled.throughput.tokens_per_s
    assert slowdown > sampled.flops.per_token / plain.flops.per_token
    assert sampled.throughput.bound_by == "memory"


def test_a_slow_data_pipeline_is_a_bound_of_its_own() -> None:
    """What one node's pipeline feeds is the most that a node trains on."""
    found = answer(with_training(run(), input_tokens_per_s_per_node=1000.0))
    assert found.throughput.tokens_per_s == pytest.approx(1000.0)
    assert found.throughput.bound_by == "input"


def test_preemptions_cost_goodput_hours_and_money() -> None:
    """Spot machines that are taken away lower the goodput and lengthen the run; the rate of training stays."""
    calm, spot = (answer(run(failures=failures(preemptions_per_node_hour=rate))) for rate in (0.0, 0.2))
    assert spot.reliability.goodput < calm.reliability.goodput
    assert spot.cost.total_usd.p50 > calm.cost.total_usd.p50
    assert spot.throughput.tokens_per_s_per_accelerator == calm.throughput.tokens_per_s_per_accelerator
    assert spot.throughput.step_time_s == calm.throughput.step_time_s
    assert spot.throughput.effective_mfu < calm.throughput.effective_mfu


def test_unsure_preemptions_widen_the_hours_and_leave_their_median() -> None:
    """More to the side where they are more often."""
    certain, unsure = (
        answer(run(failures=failures(preemptions_per_node_hour=0.2, preemption_spread=spread))).time.wall_clock_hours
        for spread in (Range.exactly(1.0), Range(1 / 3, 1.0, 3.0))
    )
    assert unsure.p50 == certain.p50
    assert unsure.p10 < certain.p10
    assert unsure.p90 > certain.p90


def test_unsure_failures_widen_the_hours() -> None:
    """A MTTF known only by its order of magnitude widens the hours of a large job beyond a certain one's."""
    unsure = failures(mttf_hours_per_accelerator=Range(500, 5000, 50_000))
    certain = failures(mttf_hours_per_accelerator=Range.exactly(5000))
    wide, narrow = (answer(run(cluster=cluster(64), failures=chosen)).time.wall_clock_hours for chosen in (unsure, certain))
    assert wide.p50 == narrow.p50
    assert wide.p10 < narrow.p10 < narrow.p90 < wide.p90


def test_a_machine_that_fails_all_the_time_is_refused() -> None:
    """Where interruptions leave no time to get on, the answer is a reason and not ten thousand years."""
    with pytest.raises(InvalidRequest, match="practically no progress") as refused:
        answer(run(failures=failures(mttf_hours_per_accelerator=Range.exactly(0.05))))
    assert refused.value.pointer == "/failures"


@pytest.mark.parametrize(
    ("deadline", "low", "high"),
    [(date(2027, 1, 3), 0, 0), (date(2027, 1, 4), 0, 0.01), (date(2027, 2, 3), 0.3, 0.7), (date(2030, 1, 1), 0.99, 1)],
)
def test_a_deadline_has_a_probability(deadline: date, low: float, high: float) -> None:
    """A past deadline is missed, one near the median an even bet, one far away kept."""
    found = answer(run(schedule=Schedule(date(2027, 1, 4), deadline, 0, 0)))
    assert found.time.deadline_probability is not None
    assert low <= found.time.deadline_probability <= high


@pytest.mark.parametrize(("queue_hours", "kept"), [(0, 1), (0.9, 1), (1.1, 0)])
def test_a_deadline_ends_with_its_day(queue_hours: float, kept: float) -> None:
    """47 hours from Monday morning end before Tuesday does, and a queue of more than an hour makes them end after it."""
    measured = Efficiency(tokens_per_s_per_accelerator=1000)
    tokens = 47 * 3600 * 8000.0
    planned = Schedule(date(2027, 1, 4), date(2027, 1, 5), queue_hours, 0)
    certain = run(data=Data(tokens, tokens, 1), efficiency=measured, failures=NEVER_FAILS, schedule=planned)
    probability = answer(certain).time.deadline_probability
    assert probability == pytest.approx(kept, abs=1e-6)


def test_an_optimistic_model_stays_under_the_peak() -> None:
    """However wide the model's error, its p90 is no more than a step of nothing but its matrix work would reach."""
    hopeful = utilisation(spread=Range(0.5, 1.0, 4.0))
    found = estimate(run(), hopeful, PLANNERS).throughput
    assert found.mfu.p50 < found.mfu.p90 <= hopeful.matmul_share


def test_teams_run_slower_layouts_than_the_fastest_that_is_found() -> None:
    """By the loss on all other nodes; the layout taken and its matrix work are those of the fastest."""
    asked, plain = run(cluster=cluster(64)), utilisation(spread=Range(0.5, 1.0, 4.0))
    best, typical = (estimate(asked, replace(plain, layout_loss=loss), PLANNERS).throughput for loss in (0.0, 0.2))
    share = math.exp(-0.2 * 7 / 8)
    assert typical.tokens_per_s == pytest.approx(share * best.tokens_per_s)
    assert typical.step_time_s == pytest.approx(best.step_time_s / share)
    assert typical.best_tokens_per_s_per_accelerator == pytest.approx(best.tokens_per_s_per_accelerator.p50)
    assert best.best_tokens_per_s_per_accelerator is None
    assert (typical.parallelism, typical.bound_by) == (best.parallelism, best.bound_by)
    assert typical.tokens_per_s_per_accelerator.p90 == pytest.approx(best.tokens_per_s_per_accelerator.p90)


def test_on_one_node_teams_reach_what_is_found() -> None:
    """Whatever they lose on several."""
    asked, plain = run(cluster=cluster(8)), utilisation()
    assert estimate(asked, replace(plain, layout_loss=0.2), PLANNERS) == estimate(asked, plain, PLANNERS)


@given(st.floats(0.05, 1.0))
def test_waiting_for_capacity_takes_time_and_no_money(share: float) -> None:
    """The clock goes on while none can be had; hours held, bill, energy and interruptions are those of capacity that is always there."""
    always, sometimes = (
        answer(run(failures=failures(preemptions_per_node_hour=0.01, capacity_share=part), schedule=Schedule(date(2027, 1, 4), None, 0, 0)))
        for part in (1.0, share)
    )
    for name in ("p10", "p50", "p90"):
        waited = getattr(sometimes.time.wall_clock_hours, name)
        assert waited == pytest.approx(getattr(always.time.wall_clock_hours, name) / share)
    assert sometimes.time.accelerator_hours == always.time.accelerator_hours
    assert (sometimes.cost, sometimes.energy, sometimes.reliability) == (always.cost, always.energy, always.reliability)
    assert sometimes.time.finish is not None
    assert always.time.finish is not None
    assert sometimes.time.finish.p50 >= always.time.finish.p50
    trained = sometimes.throughput.effective_tokens_per_s * sometimes.time.wall_clock_hours.p50 * 3600
    assert trained == pytest.approx(sometimes.tokens.trained)


def test_queues_move_the_finish_and_not_the_bill() -> None:
    """Ten days in the queue end the run ten days later and cost nothing."""
    start = date(2027, 1, 4)
    prompt, queued = (answer(run(schedule=Schedule(start, None, hours, 0))) for hours in (0, 240))
    assert prompt.time.finish is not None
    assert queued.time.finish is not None
    assert (queued.time.finish.p50 - prompt.time.finish.p50).days == 10
    assert start < prompt.time.finish.p10 <= prompt.time.finish.p50 <= prompt.time.finish.p90
    assert queued.cost == prompt.cost
    assert answer(run()).time.finish is None


def test_a_run_beyond_the_calendar_ends_on_its_last_day() -> None:
    """Ten thousand years of training are answered with the last date there is, not with an overflow."""
    found = answer(run(data=Data(1e20, 1e20, 1), schedule=Schedule(date(2027, 1, 4), date(2028, 1, 1), 0, 0)))
    assert found.time.finish is not None
    assert found.time.finish.p90 == date.max
    assert found.time.deadline_probability == pytest.approx(0, abs=1e-9)


def test_what_is_paid_for_and_idle_is_a_line() -> None:
    """Spares and the rest of an instance are paid beside compute, and are no accelerator-hours of the run."""
    found = answer(run(cluster=cluster(12), billing=Billing(2.0, instance_size=8), failures=failures(spare_share=0.02)))
    lines = {line.line: float(line.usd) for line in found.cost.lines}
    assert lines["spares"] / lines["compute"] == pytest.approx(4 / 12, rel=1e-6)
    assert found.time.accelerator_hours.p50 == pytest.approx(12 * found.time.wall_clock_hours.p50)


def test_no_layout_that_fits_is_refused_under_auto_and_told_otherwise() -> None:
    """Searched for in vain: refused with what would fit. Chosen by the caller: answered, with `fits` false and a warning."""
    with pytest.raises(DoesNotFit, match="What would fit"):
        answer(run(model=LLAMA_65B, cluster=cluster(1)))
    own = Axes(tensor=8, pipeline=1, data=1, context=1, zero_stage=0, recompute="full", micro_batch=1)
    found = answer(with_training(run(model=LLAMA_65B), axes=own))
    assert not found.memory.fits
    assert found.memory.would_fit
    assert "does not fit" in found.warnings[0]


def test_checkpoints_hold_weights_and_optimizer() -> None:
    """14 bytes a parameter in mixed precision, 12 in fp32, the adapters alone where the base is frozen."""
    for model in (LLAMA_7B, GPT_3):
        mixed, full = (checkpoint_tb(with_training(run(model=model), precision=precision)) for precision in ("bf16", "fp32"))
        assert full / mixed == pytest.approx(12 / 14)
    adapters = checkpoint_tb(with_training(run(), method="qlora", lora_rank=16))
    assert adapters == pytest.approx(39_976_960 * 14 / 1e12)


def test_a_batch_is_whole_sequences_on_every_rank() -> None:
    """The answer's batch is what the layout really trains on."""
    found = answer(with_training(run(), global_batch=100, axes=Axes(data=8, micro_batch=4)))
    assert found.batch_sequences == 96


def test_a_run_shorter_than_a_step_is_warned_of() -> None:
    """A thousand tokens against a batch of 131,072 is most likely a mistake, and said to be."""
    assert any("shorter than one optimizer step" in warning for warning in answer(run(data=Data(1000, 1000, 1))).warnings)


def test_attention_that_is_most_of_the_count_is_warned_of() -> None:
    """At 128 thousand tokens the whole square flatters MFU: said, with the setting that counts the half."""
    long = with_training(run(cluster=cluster(64)), seq_len=131_072)
    assert any("count_full_attention" in warning for warning in answer(long).warnings)
    assert not answer(run()).warnings
    assert not answer(with_training(long, count_full_attention=False)).warnings


def test_unknown_activations_are_warned_of() -> None:
    """Where a network's activations are not known, the memory says that it leaves them out."""
    blind = replace(RESNET_50, activation_bytes_per_sample=None)
    found = answer(run(model=blind, training=SAMPLES))
    assert any("activations" in warning for warning in found.warnings)


def test_epochs_and_shares_reach_the_answer() -> None:
    """Two epochs train twice the effective tokens; quality and robustness are shares of them."""
    found = answer(run(data=Data(4e11, 1e11, 2, quality_share=0.25, robustness_share=0.1))).tokens
    assert (found.raw, found.effective, found.trained, found.unit) == (4e11, 1e11, 2e11, "token")
    assert (found.quality, found.robustness) == (2.5e10, 1e10)


def test_a_faster_part_of_the_same_kind_is_faster() -> None:
    """Twice the peak and bandwidth at the same shares trains faster and costs fewer hours."""
    quick = accelerator(peak_tflops=accelerator().peak_tflops | {"bf16": 624.0}, memory_bandwidth_gb_per_s=4078)
    slow, fast = answer(run()), answer(run(cluster=cluster(8, quick)))
    assert fast.time.accelerator_hours.p50 < slow.time.accelerator_hours.p50
    assert fast.flops == slow.flops


@pytest.mark.parametrize(("share", "warned"), [(0.97, True), (1.03, False)])
def test_useful_hours_are_those_of_the_steps_themselves(share: float, warned: bool) -> None:
    """On eight nodes that fail often, the time of one step is neither the longer one of the whole run nor less than the step's."""
    base = run(cluster=cluster(64), failures=failures(mttf_hours_per_accelerator=Range.exactly(400)))
    found = answer(base)
    assert found.reliability.goodput < 0.9
    tokens = share * found.batch_sequences * base.training.seq_len
    warnings = answer(replace(base, data=Data(tokens, tokens, 1))).warnings
    assert any("shorter than one optimizer step" in warning for warning in warnings) == warned


def test_blocks_of_a_layout_that_recomputes() -> None:
    """Executed FLOPs are the model's and those repeated; steps are tokens over the batch; energy, memory and cost in their units."""
    asked = with_training(run(billing=Billing(3.0)), axes=Axes(recompute="full"))
    found = answer(asked)
    assert found.flops.recompute > 0
    assert found.throughput.hfu * 312e12 == pytest.approx(
        found.throughput.tokens_per_s / 8 * (found.flops.total + found.flops.recompute) / found.tokens.trained
    )
    assert found.time.steps == pytest.approx(1e11 / (2048 * found.batch_sequences))
    assert found.memory.capacity_gb == pytest.approx(80 * 2**30 / 1e9)


def test_a_layout_that_does_not_fit_is_told_of_in_gigabytes() -> None:
    """What it needs, and the 85.9 GB that are usable."""
    own = Axes(tensor=8, pipeline=1, data=1, context=1, zero_stage=0, recompute="full", micro_batch=1)
    found = answer(with_training(run(model=LLAMA_65B), axes=own))
    assert f"needs {found.memory.per_accelerator_gb:,.1f} GB on an accelerator of 85.9 GB usable" in found.warnings[0]
