"""Targets of runs, their planned rates, and the planned cost beside them, by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from service.domain.quantities import Range
from service.domain.tracking.events import ProgramBaseline, RunBaseline
from service.domain.tracking.status import CompletionForecast
from service.domain.training.estimate import FinishDates
from service.engine.tracking.costs.cost import CostedRun, cost_run
from service.engine.tracking.forecasting.outlook import program_forecast, run_forecast
from service.engine.tracking.runs.targets import find_targets
from service.presets.tracking.forecast import forecast_rules
from tests.unit.engine.tracking_builders import PROGRAM, RUN, at, cost, run_of, steadily

RULES = forecast_rules()
BARE = replace(PROGRAM, weeks=(), total_usd=None, budget_usd=None, planned_tokens=None)
UNPLANNED = RunBaseline(name="main", tier="production")


def begun(hours: int, baseline: RunBaseline = RUN) -> CostedRun:
    return cost_run(baseline, run_of(*steadily(hours), until=hours))


def prospect(baseline: RunBaseline) -> CompletionForecast:
    """Of a run that has not begun, by its plan alone."""
    run = cost_run(baseline, run_of(until=0.0))
    return run_forecast(find_targets(BARE, [run])[0], at(0), RULES)


# Targets


def test_the_newest_run_without_a_plan_has_what_the_others_leave() -> None:
    """Of 5,000 tokens 1,000 are planned and 300 trained; at least what it has itself trained."""
    planned, older, newest = begun(10), begun(30, UNPLANNED), begun(50, UNPLANNED)
    program = replace(BARE, planned_tokens=5000.0)
    assert [target.tokens for target in find_targets(program, [planned, older, newest])] == [1000, 300, 3700]
    assert [target.tokens for target in find_targets(program, [newest, older, planned])] == [3700, 300, 1000]
    small = replace(BARE, planned_tokens=1200.0)
    assert [target.tokens for target in find_targets(small, [planned, older, newest])] == [1000, 300, 500]
    assert [target.tokens for target in find_targets(BARE, [planned, older])] == [1000, None]


# Planned rates


def test_a_planned_speed_is_of_hours_of_tokens_a_second_or_of_dates() -> None:
    """1,000 tokens: in 50 hours; at 1/90 a second while 4/5 of the time is useful, 32 an hour; in four days."""
    by_hours = prospect(replace(RUN, wall_clock_hours=Range(40.0, 50.0, 80.0)))
    assert by_hours.remaining_hours is not None
    assert by_hours.remaining_hours.p50 == pytest.approx(50.0)
    by_speed = prospect(replace(RUN, tokens_per_s=Range.exactly(1 / 90), goodput=0.8))
    assert by_speed.remaining_hours is not None
    assert by_speed.remaining_hours.p50 == pytest.approx(1000 / 32)
    unstated = prospect(replace(RUN, tokens_per_s=Range.exactly(1 / 90)))
    assert unstated.remaining_hours is not None
    assert unstated.remaining_hours.p50 == pytest.approx(25.0)
    by_dates = prospect(replace(RUN, start=date(2027, 1, 4), finish=date(2027, 1, 8)))
    assert by_dates.remaining_hours is not None
    assert by_dates.remaining_hours.p50 == pytest.approx(96.0)
    assert prospect(replace(RUN, start=date(2027, 1, 8), finish=date(2027, 1, 8))).remaining_hours is None


def test_planned_cost_goes_with_the_tokens() -> None:
    """1,000 USD and 500 accelerator-hours for 1,000 tokens that are all left."""
    found = prospect(replace(RUN, wall_clock_hours=Range(40.0, 50.0, 80.0)))
    assert found.remaining_usd is not None
    assert found.remaining_accelerator_hours is not None
    assert found.remaining_usd.p50 == pytest.approx(1000.0)
    assert found.remaining_accelerator_hours.p50 == pytest.approx(500.0)


# The plan's calendar


def days(p10: int, p50: int, p90: int) -> FinishDates:
    """Days of January 2027."""
    return FinishDates(*(date(2027, 1, day) for day in (p10, p50, p90)))


FIRST = replace(RUN, name="first", tokens=100.0, usd=100.0, start=date(2027, 1, 4), finish=date(2027, 1, 5), finish_range=days(5, 5, 6))
LAST = replace(RUN, start=date(2027, 1, 11), finish=date(2027, 1, 16), finish_range=days(15, 16, 18))
CALENDAR = replace(BARE, planned_tokens=1100.0, budget_usd=1100.0, deadline=date(2027, 3, 1), runs=(FIRST, LAST), finish=days(20, 22, 26))


def ends(now: float, *runs: CostedRun, program: ProgramBaseline = CALENDAR) -> FinishDates | None:
    """The end of the program after so many hours."""
    targets = find_targets(program, runs)
    return program_forecast(program, targets, [run_forecast(target, at(now), RULES) for target in targets], at(now)).finish


def waiting(baseline: RunBaseline, now: float) -> CostedRun:
    return cost_run(baseline, run_of(until=now))


def test_before_anything_is_measured_the_end_is_that_of_the_plans_calendar() -> None:
    """With its range, whether runs are tracked or not; nothing of it is the deadline's."""
    assert ends(-48) == ends(0, waiting(LAST, 0)) == days(20, 22, 26)
    assert ends(-48, program=replace(CALENDAR, finish=None)) is None


def test_an_end_moves_with_the_clock_while_nothing_begins() -> None:
    """Three days after the first run should have begun, three days; within a run's float none."""
    assert ends(72) == days(23, 25, 29)
    spare = replace(CALENDAR, runs=(replace(FIRST, float_hours=96.0), LAST))
    assert ends(72, program=spare) == days(20, 22, 26)
    done = cost_run(FIRST, run_of(*steadily(24), until=24 * 9))
    assert ends(24 * 9, done, waiting(LAST, 24 * 9)) == days(22, 24, 28)


def test_an_end_follows_the_pace_of_the_run_under_way() -> None:
    """A run at a quarter of its speed ends weeks later, and so does the program, by what comes after the run."""
    planned = replace(LAST, wall_clock_hours=Range(110.0, 120.0, 130.0))
    slow, fast = (cost_run(planned, run_of(*steadily(72, tokens=rate, first=0), until=72)) for rate in (2, 8))
    late, early = ends(72, slow), ends(72, fast)
    assert late is not None
    assert early is not None
    run_end = run_forecast(find_targets(CALENDAR, [slow])[0], at(72), RULES).finish
    assert run_end is not None
    assert (late.p50 - run_end.p50).days == 22 - 16
    assert late.p10 <= late.p50 <= late.p90
    assert late.p50 > date(2027, 1, 22) > early.p50


# The rest of the plan


def beside(program_usd: float, *runs: CostedRun, tokens: float | None = 1000.0) -> float:
    """What is planned beside the runs, at the median."""
    program = replace(BARE, planned_tokens=tokens, total_usd=Range.exactly(program_usd))
    targets = find_targets(program, runs)
    forecasts = [run_forecast(target, at(10), RULES) for target in targets]
    whole = program_forecast(program, targets, forecasts, at(10))
    assert whole.remaining_usd is not None
    return whole.remaining_usd.p50 - sum(found.remaining_usd.p50 for found in forecasts if found.remaining_usd)


def test_what_is_planned_beside_runs_is_the_total_less_theirs_and_less_what_is_told_of() -> None:
    """Of 3,000 USD a run takes 1,000; 400 of storage are reported; never less than nothing."""
    run = begun(10)
    assert beside(3000.0, run) == pytest.approx(2000.0)
    stored = cost_run(RUN, run_of(*steadily(10), cost(9, 400.0, "storage"), until=10))
    assert beside(3000.0, stored) == pytest.approx(1600.0)
    assert beside(1200.0, stored) == pytest.approx(0.0)


def test_a_run_without_planned_cost_takes_its_share_of_the_tokens() -> None:
    """A quarter of 4,000 tokens, of 3,000 USD; three quarters are left for what is not tracked."""
    half = begun(10, replace(UNPLANNED, tokens=1000.0))
    assert beside(3000.0, half, tokens=4000.0) == pytest.approx(2250.0)


def test_without_a_total_the_budgets_share_of_untracked_tokens_is_left() -> None:
    """Three quarters of a budget of 8,000; nothing where all tokens are tracked, and a reason where there is no budget."""
    run = begun(10)

    def whole(**changes: float | None) -> CompletionForecast:
        program = replace(BARE, deadline=date(2027, 3, 1), **changes)
        targets = find_targets(program, [run])
        return program_forecast(program, targets, [run_forecast(targets[0], at(10), RULES)], at(10))

    alone = whole(planned_tokens=1000.0, budget_usd=8000.0)
    assert alone.remaining_usd is not None
    some = whole(planned_tokens=4000.0, budget_usd=8000.0)
    assert some.remaining_usd is not None
    assert some.remaining_usd.p50 - alone.remaining_usd.p50 == pytest.approx(6000.0)
    assert some.finish is None
    assert [figure.field for figure in some.unknown] == ["finish"]
    assert (some.remaining_hours, some.remaining_accelerator_hours) == (None, None)
    assert "no run is tracked of" in some.basis
    assert "no run is tracked of" not in alone.basis
    unknown = whole(planned_tokens=4000.0, budget_usd=None)
    assert unknown.remaining_usd is None
    assert [figure.field for figure in unknown.unknown] == ["cost_usd", "finish"]


def test_a_finished_run_ended_when_it_reached_its_target() -> None:
    """100 tokens at ten an hour, though it was told of for 40 hours; the cost is what was spent."""
    done = begun(40, replace(RUN, tokens=100.0))
    found = run_forecast(find_targets(BARE, [done])[0], at(40), RULES)
    assert found.finish is not None
    assert (found.finish.p10, found.finish.p50, found.finish.p90) == (date(2027, 1, 4), date(2027, 1, 4), date(2027, 1, 4))
    assert found.cost_usd == Range.exactly(400.0)
    later = run_forecast(find_targets(BARE, [begun(40, replace(RUN, tokens=300.0))])[0], at(40), RULES)
    assert later.finish is not None
    assert later.finish.p50 == date(2027, 1, 5)
