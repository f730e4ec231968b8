"""A program's status from its runs' events: the whole of it at once, on lives told by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.domain.tracking.events import Event, PlannedWeek, ProgramBaseline, RunBaseline
from service.domain.tracking.status import LossProjection, ProgramStatus
from service.engine.tracking.costs.cost import cost_run
from service.engine.tracking.forecasting.outlook import history_so_far
from service.engine.tracking.gate import GateRules
from service.engine.tracking.monitoring.loss_monitor import LossRules
from service.engine.tracking.runs.run_metrics import SilenceRules, poisson_sf
from service.engine.tracking.runs.targets import find_targets
from service.engine.tracking.status import StatusRules, status
from service.presets.tracking.forecast import drift_rules, forecast_rules
from service.presets.tracking.status import quality_rules, status_rules
from tests.unit.engine.tracking_builders import PROGRAM, RUN, at, correction, cost, event, lives, run_of, steadily

LONG = replace(PROGRAM, planned_tokens=10_000.0, budget_usd=10_000.0, deadline=date(2027, 2, 28))
RULES = StatusRules(
    forecast_rules(),
    drift_rules(),
    GateRules(0.5, 0.9, 0.7, "x"),
    LossRules(48, 6.0, 0.05, 8, "x"),
    cadence_tolerance=0.25,
    silence=SilenceRules(3.0, 24.0, "x"),
    quality=quality_rules(),
    plan_drift=status_rules().plan_drift,
)
LONG_RUN = replace(RUN, tokens=10_000.0, usd=10_000.0, accelerator_hours=5_000.0)


def found(
    *lives: Sequence[Event], until: float = 500.0, program: ProgramBaseline = LONG, baselines: Sequence[RunBaseline] = (LONG_RUN,)
) -> ProgramStatus:
    """The status of runs after so many hours."""
    runs = [(baseline, run_of(*events, until=until)) for baseline, events in zip(baselines, lives, strict=True)]
    return status(program, runs, at(until), RULES)


def hours_to(answer: ProgramStatus) -> float:
    assert answer.forecast.remaining_hours is not None
    return answer.forecast.remaining_hours.p50


def test_a_run_on_its_plan() -> None:
    """Half done at half the cost: everything is as planned, and the gate is due."""
    answer = found([*steadily(500)])
    assert (answer.spend.usd, answer.spend.tokens, answer.spend.accelerator_hours) == (5000.0, 5000.0, 2500.0)
    assert (answer.earned_value.cpi, answer.goodput, answer.drift) == (1.0, 1.0, ())
    assert hours_to(answer) == pytest.approx(500, rel=0.02)
    assert answer.forecast.cost_usd is not None
    assert answer.forecast.cost_usd.p50 == pytest.approx(10_000, rel=0.02)
    assert answer.forecast.finish is not None
    assert abs(answer.forecast.finish.p50 - at(1000).date()) <= timedelta(days=1)
    assert (answer.gate.due, answer.gate.recommendation) == (True, "continue")
    assert answer.runs[0].state == "running"
    assert answer.deadline_missed is False


def test_nothing_happened_yet() -> None:
    """Nothing is spent, which is known; what needs a history is not, and says why."""
    answer = found([])
    assert (answer.spend.usd, answer.spend.tokens, answer.goodput) == (0.0, 0.0, None)
    assert answer.burn_rate.usd_per_day is None
    assert answer.forecast.finish is None
    assert answer.forecast.unknown
    assert answer.gate.recommendation == "not_due"
    assert answer.runs[0].state == "not_started"


def test_a_program_without_runs() -> None:
    """Costs what it was planned to cost; its end is not known without a plan: a deadline is no forecast."""
    answer = found(baselines=())
    assert answer.spend.usd == 0.0
    assert answer.forecast.cost_usd == Range.exactly(10_000.0)
    assert answer.forecast.finish is None
    assert "no plan with a calendar" in answer.forecast.unknown[0].reason
    assert found(baselines=(), program=ProgramBaseline("x", None, None, None, None)).forecast.finish is None


def test_a_plan_foretells_a_run_that_has_not_begun() -> None:
    """From its planned start on."""
    ahead = replace(LONG_RUN, wall_clock_hours=Range(900, 1000, 1100), start=date(2027, 1, 11))
    answer = found([], until=0, baselines=(ahead,))
    assert answer.forecast.finish is not None
    assert answer.forecast.finish.p50 == at(168 + 1000).date()


def test_the_end_is_right_after_a_resume() -> None:
    """A quarter of the time down, again and again: the rest takes as long as it did, not as work alone would."""
    events = [event(0, tokens=0, usd=0, accelerator_hours=0, step=0)]
    for cycle in range(25):
        begin, done = cycle * 20, (cycle + 1) * 200
        events += [event(begin + 15, tokens=done, usd=done, accelerator_hours=done / 2), event(begin + 15, "interruption", cause="gpu")]
        events += [event(begin + 20, "restart")]
    answer = found(events)
    assert answer.goodput == pytest.approx(0.75, abs=0.02)
    assert hours_to(answer) == pytest.approx(500, rel=0.1)
    assert (answer.interruptions.count, answer.interruptions.downtime_hours) == (25, pytest.approx(125))
    assert answer.interruptions.causes == {"gpu": 25}
    assert answer.spend.usd == 5000.0


def test_a_rollback_moves_the_end() -> None:
    """What is trained twice takes its time twice."""
    behind = [*steadily(500), event(500, "rollback", tokens=4000)]
    assert hours_to(found(behind)) > hours_to(found([*steadily(500)])) + 100


@pytest.mark.parametrize(("last", "state"), [([], "running"), ([event(480, "interruption", cause="net")], "interrupted")])
def test_the_state_of_a_run(last: list[Event], state: str) -> None:
    """Running, or interrupted until it is restarted."""
    assert found([*steadily(480), *last]).runs[0].state == state


def test_a_run_that_sends_nothing_for_long_is_silent_and_ends_later_each_day() -> None:
    """Longer than a day and three of its intervals; its finish moves with the clock."""
    assert found([*steadily(470)], until=494).runs[0].state == "running"
    silent, later = found([*steadily(470)], until=495), found([*steadily(470)], until=800)
    assert silent.runs[0].state == "silent"
    assert any("main is silent since 2027-01-23 14:00 UTC, for 1.0 days" in text for text in silent.warnings)
    assert silent.runs[0].forecast.finish is not None
    assert later.runs[0].forecast.finish is not None
    assert later.runs[0].forecast.finish.p50 - silent.runs[0].forecast.finish.p50 >= timedelta(days=12)
    weekly = [event(168 * week, tokens=1000 * week, usd=1000 * week) for week in range(4)]
    assert [found(weekly, until=168 * weeks + 1).runs[0].state for weeks in (5, 6)] == ["running", "silent"]
    assert found([*steadily(1010)], until=1500).runs[0].state == "finished"


def test_a_run_that_is_done() -> None:
    """Nothing is left, and it was done the day it got there; what came after costs nothing more to foretell."""
    answer = found([*steadily(1010)], until=1500)
    assert answer.runs[0].state == "finished"
    assert answer.forecast.remaining_hours == Range.exactly(0.0)
    assert answer.forecast.finish is not None
    assert answer.forecast.finish.p90 == at(1000).date()
    assert answer.forecast.cost_usd == Range.exactly(10_100.0)
    assert answer.deadline_missed is False


def test_a_deadline_that_has_passed() -> None:
    """Said, and no longer foretold."""
    answer = found([*steadily(500)], program=replace(LONG, deadline=date(2027, 1, 20)), until=600)
    assert answer.deadline_missed is True
    assert "the deadline, 2027-01-20, has passed" in answer.warnings[0]


def test_a_deadline_and_a_budget_that_will_be_missed() -> None:
    """Warned of before they are."""
    answer = found([*steadily(500, usd=15.0)], program=replace(LONG, deadline=date(2027, 2, 1)))
    assert "the deadline is 2027-02-01" in answer.warnings[0]
    assert "the budget is 10,000 USD" in answer.warnings[1]


def test_a_budget_that_is_spent_out() -> None:
    """No funds, no index for the rest, and the gate still asks."""
    answer = found([*steadily(500, usd=30.0)])
    assert answer.spend.remaining_usd == -5000.0
    assert answer.earned_value.tcpi is None
    assert answer.gate.recommendation == "stop"
    assert any("overspent by 5,000 USD" in each for each in answer.warnings)


def test_tokens_without_costs() -> None:
    """The end is foretold, the cost is not, nor what hangs on it."""
    answer = found([event(hour, tokens=10 * hour) for hour in range(501)])
    assert (answer.spend.usd, answer.spend.complete, answer.earned_value.cpi) == (None, False, None)
    assert hours_to(answer) == pytest.approx(500, rel=0.02)
    assert answer.forecast.cost_usd is None
    assert any("neither cost nor accelerator-hours" in each for each in answer.warnings)


@pytest.mark.parametrize("tokens", [None, 0.0])
def test_a_run_without_planned_tokens_takes_the_programs(tokens: float | None) -> None:
    """What the program plans beyond the others; without that its end is not known."""
    bare = replace(LONG_RUN, tokens=tokens, usd=None)
    assert hours_to(found([*steadily(500)], baselines=(bare,))) == pytest.approx(500, rel=0.02)
    unplanned = found([*steadily(500)], baselines=(bare,), program=replace(LONG, planned_tokens=tokens))
    assert unplanned.forecast.finish is None
    assert "no tokens of the run are planned" in unplanned.forecast.unknown[0].reason


def test_runs_together() -> None:
    """Costs add up, the last to finish ends the program."""
    half = replace(LONG_RUN, tokens=5_000.0, usd=5_000.0, accelerator_hours=2_500.0)
    answer = found([*steadily(400)], [*steadily(400, tokens=5)], baselines=(half, replace(half, name="other")), until=400)
    assert hours_to(answer) == pytest.approx(600, rel=0.03)
    assert answer.spend.usd == 8000.0
    assert answer.forecast.cost_usd is not None
    assert answer.forecast.cost_usd.p50 == pytest.approx(8000 + 1000 + 6000, rel=0.03)
    assert len(answer.runs) == 2


def test_what_no_run_is_tracked_of_is_as_planned() -> None:
    """A tenth of the program is tracked: the rest is its budget's share, and without a plan its end is not known."""
    small = replace(LONG_RUN, tokens=1_000.0, usd=1_000.0)
    answer = found([*steadily(50)], baselines=(small,), until=50)
    assert answer.forecast.cost_usd is not None
    assert answer.forecast.cost_usd.p50 == pytest.approx(1000 + 9000, rel=0.02)
    assert answer.forecast.finish is None
    assert "no run is tracked of" in answer.forecast.basis


def test_what_a_plan_has_beside_its_runs_is_part_of_the_forecast() -> None:
    """People, storage and reserve of a plan are no run's: they are foretold as planned, less what of them is told already."""
    planned = replace(LONG, total_usd=Range(24_000.0, 30_000.0, 36_000.0))
    before, after = found(baselines=(), program=planned), found([*steadily(500)], program=planned)
    told = found([*steadily(500), cost(400, 5_000.0, "personnel")], program=planned)
    assert before.forecast.cost_usd == Range(24_000.0, 30_000.0, 36_000.0)
    for answer in (after, told):
        assert answer.forecast.cost_usd is not None
        assert answer.forecast.cost_usd.p50 == pytest.approx(30_000, rel=0.01)
    assert told.forecast.remaining_usd is not None
    assert told.forecast.remaining_usd.p50 == pytest.approx(20_000, rel=0.01)


@pytest.mark.parametrize(("until", "foretold"), [(1100, 30_000), (1400, 10_000), (1700, 10_000)])
def test_what_nobody_spends_of_a_finished_program_is_foretold_until_its_time_is_over(until: float, foretold: float) -> None:
    """Bills come until the plan's last day; after it what nobody told is left out, and said to be."""
    ends = at(1200).date()
    for program in (
        replace(LONG, deadline=ends),
        replace(LONG, deadline=None, weeks=(PlannedWeek(ends - timedelta(days=6), 1.0, 1.0, 1.0, 1.0),)),
    ):
        answer = found([*steadily(1000)], until=until, program=replace(program, total_usd=Range(24_000.0, 30_000.0, 36_000.0)))
        assert answer.runs[0].state == "finished"
        assert answer.forecast.cost_usd is not None
        assert answer.forecast.cost_usd.p50 == pytest.approx(foretold)
        assert any("20,000 USD that were planned for people" in text for text in answer.warnings) == (foretold == 10_000)


def test_a_run_closed_half_way_has_nothing_left() -> None:
    """It ended with the last that was told, and what it left untrained is no saving of its accelerators."""
    closed, ends = replace(LONG_RUN, closed=True), at(600).date()
    answer = found([*steadily(500)], until=800, baselines=(closed,), program=replace(LONG, deadline=ends))
    assert answer.runs[0].state == "closed"
    for block in (answer.forecast, answer.runs[0].forecast):
        assert (block.cost_usd, block.remaining_usd) == (Range.exactly(5_000.0), Range.exactly(0.0))
        assert block.finish is not None
        assert block.finish.p90 == at(500).date()
    assert answer.deadline_missed is False
    assert answer.cost_drivers is not None
    assert {part.cause: part.usd for part in answer.cost_drivers.parts if part.usd} == {"scope": -5_000.0}


def test_a_run_closed_before_it_began_is_no_hindrance() -> None:
    """It costs nothing and has no end; the program has that of its other run."""
    half = replace(LONG_RUN, tokens=5_000.0, usd=5_000.0)
    answer = found([*steadily(500)], [], until=600, baselines=(half, replace(half, name="second", closed=True)))
    assert answer.runs[1].state == "closed"
    assert (answer.runs[1].forecast.cost_usd, answer.runs[1].forecast.finish) == (Range.exactly(0.0), None)
    assert answer.forecast.cost_usd == Range.exactly(5_000.0)
    assert answer.forecast.finish is not None
    assert answer.forecast.finish.p90 == at(500).date()
    assert answer.forecast.unknown == ()


def test_a_closed_program_is_over_whatever_was_planned() -> None:
    """Tokens that no run was tracked of, people and reserve: none of it is foretold, and that is said."""
    planned = replace(LONG, planned_tokens=20_000.0, total_usd=Range(24_000.0, 30_000.0, 36_000.0), closed=True)
    answer = found([*steadily(500)], baselines=(replace(LONG_RUN, closed=True),), program=planned)
    assert answer.forecast.cost_usd == Range.exactly(5_000.0)
    assert answer.forecast.remaining_usd == Range.exactly(0.0)
    assert answer.forecast.finish is not None
    assert answer.forecast.finish.p90 == at(500).date()
    assert any("the program is closed" in text for text in answer.warnings)


def test_an_unfinished_program_keeps_what_is_planned_beside_its_runs() -> None:
    """However late it is."""
    late = replace(LONG, total_usd=Range(24_000.0, 30_000.0, 36_000.0), deadline=at(100).date())
    answer = found([*steadily(500)], program=late)
    assert answer.forecast.cost_usd is not None
    assert answer.forecast.cost_usd.p50 == pytest.approx(30_000, rel=0.01)


def test_what_no_run_is_tracked_of_is_not_known_without_a_plan() -> None:
    """No budget, no deadline: what is tracked is not all, and the reasons are said."""
    small, bare = replace(LONG_RUN, tokens=1_000.0, usd=1_000.0), replace(LONG, budget_usd=None, deadline=None)
    answer = found([*steadily(50)], baselines=(small,), until=50, program=bare)
    assert (answer.forecast.cost_usd, answer.forecast.finish) == (None, None)
    assert [each.field for each in answer.forecast.unknown] == ["cost_usd", "finish"]


def test_a_cost_is_told_where_the_end_is_beyond_all_calendars() -> None:
    """A run that has a token a year to go for millennia costs what it costs."""
    answer = found([event(0, tokens=0, usd=0), event(8760, tokens=1, usd=1)], until=8760, baselines=(replace(LONG_RUN, usd=None),))
    assert answer.forecast.cost_usd is not None
    assert answer.forecast.finish is None
    assert [each.field for each in answer.forecast.unknown] == ["finish"]


def test_a_stalled_run_has_no_end_in_sight_but_an_answer() -> None:
    """Hundreds of days without a token: the end moves away, and nothing breaks."""
    answer = found([*steadily(10)], until=20_000)
    assert answer.forecast.finish is None or answer.forecast.finish.p50 > at(20_000).date()


def test_a_silent_run_ends_later() -> None:
    """Time in which nothing was told is part of its history."""
    assert hours_to(found([*steadily(200)], until=400)) > 1.5 * hours_to(found([*steadily(200)], until=200))


def test_a_run_that_is_down_loses_goodput_by_the_hour() -> None:
    """Until it is restarted: 100 hours of work in 100, then in 200."""
    life = [*steadily(100), event(100, "interruption", cause="net")]
    assert [found(life, until=until).goodput for until in (100, 200)] == pytest.approx([1.0, 0.5])


def test_a_moment_told_twice_is_one_in_the_forecast() -> None:
    """The last position of each moment, up to now."""
    life = [*steadily(10), event(10, "rollback", tokens=60)]
    target = find_targets(LONG, [cost_run(LONG_RUN, run_of(*life, until=12))])[0]
    series = history_so_far(target.run, at(12))
    assert series.at_hours.tolist() == [*range(11), 12]
    assert series.tokens.tolist()[-3:] == [90, 60, 60]


def test_drift_is_told_with_its_run() -> None:
    """Half the speed after three weeks."""
    slow = [event(500 + hour, tokens=5000 + 5 * hour, usd=5000 + 10 * hour, accelerator_hours=2500 + 5 * hour) for hour in range(1, 400)]
    answer = found([*steadily(500), *slow], until=899)
    drift = next(each for each in answer.drift if each.quantity == "throughput")
    assert drift.run == "main"
    assert drift.change == pytest.approx(-0.5, abs=0.05)
    assert abs(drift.since - at(500)) < timedelta(days=3)
    assert any("main: throughput -5" in each for each in answer.warnings)


def test_what_a_run_tells_is_of_its_steps_and_tokens_over_hours_are_of_the_whole_run() -> None:
    """Each is beside that part of the plan: its steps' MFU, or what of it a whole run sustains."""
    planned = replace(LONG_RUN, flops_per_token=3.6e14, peak_tflops=0.4, mfu=0.5, run_over_step_speed=0.8)
    counted = found([*steadily(100)], baselines=(planned,)).runs[0].utilisation
    told = found([event(0, tokens=0, mfu=0.3), event(1, tokens=1, mfu=0.4)], baselines=(planned,)).runs[0].utilisation
    assert counted.planned_mfu == pytest.approx(0.4)
    assert told.planned_mfu == 0.5


def test_utilisation_against_the_plan() -> None:
    """MFU as told, or of tokens and hours: 10 tokens of 3.6e14 FLOPs in 5 accelerator-hours are 200 GFLOP/s, of a peak of 0.4 TFLOP/s."""
    planned = replace(LONG_RUN, flops_per_token=3.6e14, peak_tflops=0.4, mfu=0.45, goodput=0.9)
    used = found([*steadily(100)], baselines=(planned,)).runs[0].utilisation
    assert (used.mfu, used.planned_mfu, used.planned_goodput) == (pytest.approx(0.5), 0.45, 0.9)
    told = found([event(0, tokens=0, mfu=0.3), event(1, tokens=1, mfu=0.4), event(2, "utilisation", share=0.7)], baselines=(planned,))
    assert told.runs[0].utilisation.mfu == pytest.approx(0.35)
    assert told.runs[0].utilisation.share == 0.7
    assert found([*steadily(9)]).runs[0].utilisation.mfu is None
    silent = [event(0, tokens=0, accelerators=5), event(10, tokens=100, accelerators=5)]
    assert found(silent, baselines=(planned,)).runs[0].utilisation.mfu == pytest.approx(0.5)


def test_interruptions_against_the_failure_budget() -> None:
    """Budgeted 20 for the whole run: 10 expected by half of it, 25 hardly ever."""
    budget = replace(LONG_RUN, interruptions=20.0, wall_clock_hours=Range(900, 1000, 1100))
    stops = [
        each for hour in range(25) for each in (event(20 * hour + 5.2, "interruption", cause="gpu"), event(20 * hour + 5.4, "restart"))
    ]
    answer = found([*steadily(500), *stops], baselines=(budget,))
    assert (answer.interruptions.count, answer.interruptions.budgeted, answer.interruptions.expected) == (25, 20.0, 10.0)
    assert answer.interruptions.probability == pytest.approx(4.7e-5, rel=0.01)
    assert found([*steadily(500)]).interruptions.budgeted is None


@given(st.integers(0, 60), st.floats(0, 40))
def test_the_poisson_tail_is_a_probability(count: int, expected: float) -> None:
    """It starts at 1, never rises with the count, and ends between 0 and 1."""
    assert poisson_sf(0, expected) == 1.0
    assert 0.0 <= poisson_sf(count + 1, expected) <= poisson_sf(count, expected) + 1e-12 <= 1.0 + 1e-12


@pytest.mark.parametrize(("every", "kept"), [(1.0, True), (1.2, True), (1.5, False)])
def test_checkpoint_cadence(every: float, kept: bool) -> None:
    """Planned each hour: kept up to a quarter more."""
    planned = replace(LONG_RUN, checkpoint_interval_minutes=60.0)
    saves = [event(place * every, "checkpoint", bytes=10) for place in range(1, int(100 / every))]
    cadence = found([*steadily(100), *saves], baselines=(planned,)).runs[0].checkpoints
    assert cadence.on_schedule is kept
    assert cadence.interval_minutes == pytest.approx(60 * every)
    assert cadence.bytes == 10 * cadence.count


def test_checkpoints_that_stopped_are_not_kept() -> None:
    """Nor ones that never came, once two intervals have passed; downtime does not count."""
    planned = replace(LONG_RUN, checkpoint_interval_minutes=60.0)
    saves = [event(hour, "checkpoint", bytes=1) for hour in range(10)]
    assert found([*steadily(100), *saves], baselines=(planned,)).runs[0].checkpoints.on_schedule is False
    assert found([*steadily(100)], baselines=(planned,)).runs[0].checkpoints.on_schedule is False
    assert found([*steadily(1)], baselines=(planned,)).runs[0].checkpoints.on_schedule is None
    down = [event(10, "interruption", cause="net"), event(90, "restart"), event(90.5, "checkpoint", bytes=1)]
    apart = found([*steadily(9), *saves, *down], baselines=(planned,), until=91).runs[0].checkpoints
    assert apart.on_schedule is True
    assert apart.longest_gap_minutes == pytest.approx(90)


def test_corrections_change_the_status_as_if_they_had_been_told_first() -> None:
    """A report of ten times the cost, corrected later."""
    wrong = event(200.5, tokens=2005, usd=20_050)
    right = wrong._replace(cost_micro_usd=2_005_000_000)
    life = [*steadily(500)]
    assert found([*life, wrong, correction(300, wrong, cost_micro_usd=2_005_000_000)]) == found([*life, right])


def test_late_events_change_the_status_as_if_they_had_come_in_time() -> None:
    """Whatever the order in which they come."""
    life = [*steadily(500), cost(100.5, 50, "storage"), cost(300.5, 900, until=100)]
    assert found(life[::-1]) == found(life)


def test_loss_projections_are_passed_to_their_runs() -> None:
    """By their place."""
    end = LossProjection(Range(2.0, 2.1, 2.2), 2.05, 0.3, ())
    answer = status(LONG, [(LONG_RUN, run_of(*steadily(5)))], at(5), RULES, {0: end})
    assert answer.runs[0].loss.projection == end


@given(lives(), lives())
def test_whatever_happened_has_a_status(one: list[Event], other: list[Event]) -> None:
    """Anything at all, told by two runs: an answer, whose parts are those of the runs, and whose unknown figures say why."""
    answer = found(one, other, baselines=(RUN, replace(LONG_RUN, tokens=None)), until=60)
    assert answer.spend.tokens == sum(run.spend.tokens for run in answer.runs)
    assert (answer.spend.usd or 0.0) == pytest.approx(sum(run.spend.usd or 0.0 for run in answer.runs))
    assert answer.goodput is None or 0 <= answer.goodput <= 1 + 1e-9
    assert answer.interruptions.count == sum(run.interruptions.count for run in answer.runs)
    for block in (answer, *answer.runs):
        unknown = {each.field for each in (*block.forecast.unknown, *block.earned_value.unknown)}
        assert {"cost_usd"} - {block.forecast.cost_usd and "cost_usd"} <= unknown
        assert {"finish"} - {block.forecast.finish and "finish"} <= unknown
        assert {"cpi"} - {None if block.earned_value.cpi is None else "cpi"} <= unknown


@given(st.floats(1, 40), st.floats(0, 30_000), st.integers(20, 900), st.booleans(), st.booleans())
def test_cost_drivers_add_up_to_the_forecast_less_the_plan(usd: float, people_usd: float, hours: int, closed: bool, whole: bool) -> None:
    """Cheap or dear, half tracked or whole, open or closed, whatever of the money beside the runs is reported."""
    planned = replace(LONG, total_usd=Range(24_000.0, 30_000.0, 36_000.0), closed=closed, planned_tokens=10_000.0 if whole else 20_000.0)
    runs = (replace(LONG_RUN, closed=closed),)
    answer = found([*steadily(hours, usd=usd), cost(hours, people_usd, "personnel")], until=hours + 1, program=planned, baselines=runs)
    assert answer.cost_drivers is not None
    assert answer.forecast.cost_usd is not None
    assert float(answer.cost_drivers.usd) == pytest.approx(answer.forecast.cost_usd.p50 - 30_000.0, abs=0.02)
    assert sum(part.usd for part in answer.cost_drivers.parts) == answer.cost_drivers.usd


def test_a_planned_line_drives_the_cost_only_beyond_its_plan() -> None:
    """Of 20,000 planned beside the run 12,000 are as planned; 25,000 are 5,000 more."""
    planned = replace(LONG, total_usd=Range(24_000.0, 30_000.0, 36_000.0))

    def driven(usd: float) -> dict[str, float]:
        answer = found([*steadily(500), cost(400, usd, "personnel")], program=planned)
        assert answer.cost_drivers is not None
        return {part.cause: float(part.usd) for part in answer.cost_drivers.parts}

    assert driven(12_000.0).get("other lines", 0.0) == 0.0
    assert driven(25_000.0)["other lines"] == pytest.approx(5_000.0, abs=0.01)


def test_a_stopped_program_costs_what_is_spent() -> None:
    """Nothing of the plan is spent after the decision to stop, on whatever gate; a later one to continue takes it back."""
    planned = replace(LONG, total_usd=Range(24_000.0, 30_000.0, 36_000.0))
    stop = event(500, "decision", gate="midpoint", verdict="stop")
    stopped = found([*steadily(500), stop], program=planned, until=600)
    assert stopped.forecast.cost_usd == Range.exactly(5_000.0)
    assert stopped.forecast.remaining_usd == Range.exactly(0.0)
    assert (stopped.gate.recommendation, stopped.gate.decided, stopped.runs[0].state) == ("stop", "stop", "closed")
    assert any("was stopped" in text for text in stopped.warnings)
    resumed = found([*steadily(500), stop, event(510, "decision", gate="midpoint", verdict="continue")], program=planned, until=515)
    assert resumed.forecast.cost_usd is not None
    assert resumed.forecast.cost_usd.p50 > 25_000.0
    assert (resumed.gate.recommendation, resumed.runs[0].state) == ("not_due", "running")
