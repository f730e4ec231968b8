"""The end of a tracked program by its plan's calendar: runs that should have begun move it, and nothing that is left ends in the past."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.domain.tracking.status import CompletionForecast, OverdueRun
from service.engine.tracking.costs.cost import CostedRun, cost_run
from service.engine.tracking.forecasting.outlook import program_forecast, run_forecast
from service.engine.tracking.forecasting.plan_calendar import overdue_runs
from service.engine.tracking.runs.targets import find_targets, untracked_share
from service.presets.tracking.forecast import forecast_rules
from tests.unit.engine.tracking.forecasting.test_outlook import CALENDAR, FIRST, LAST
from tests.unit.engine.tracking_builders import at, run_of, steadily

RULES = forecast_rules()
DONE = cost_run(FIRST, run_of(*steadily(24), until=1000))


def outlook(now: float, *runs: CostedRun, **changes: object) -> CompletionForecast:
    """The forecast of the program after so many hours."""
    program = replace(CALENDAR, **changes)  # type: ignore[arg-type]
    targets = find_targets(program, runs)
    return program_forecast(program, targets, [run_forecast(target, at(now), RULES) for target in targets], at(now))


def overdue(now: float, *runs: CostedRun, **changes: object) -> tuple[OverdueRun, ...]:
    program = replace(CALENDAR, **changes)  # type: ignore[arg-type]
    return overdue_runs(program, find_targets(program, runs), at(now))


def test_a_planned_run_that_is_never_tracked_moves_the_end_by_its_delay() -> None:
    """The first run is done; on 10 February the last, planned for 11 January, is 30 days overdue: 22 January becomes 21 February."""
    now = 24 * 37
    assert overdue(now, DONE) == (OverdueRun("main", "production", date(2027, 1, 11), 30, 30),)
    found = outlook(now, DONE).finish
    assert found is not None
    assert found.p50 == date(2027, 2, 21)
    assert overdue(now, DONE, runs=(FIRST, replace(LAST, float_hours=24.0 * 10)))[0].late_days == 20


def test_nothing_is_overdue_of_a_closed_program_nor_of_one_whose_tokens_are_all_tracked() -> None:
    """A plan's run that no tokens are left for was done under another name."""
    assert overdue(24 * 37, DONE, closed=True) == ()
    assert overdue(24 * 37, DONE, planned_tokens=100.0) == ()
    assert overdue(24 * 7, DONE) == ()


def test_a_calendar_that_is_over_ends_today_while_money_is_still_to_be_spent() -> None:
    """All tokens are trained, the calendar ended on 26 January at the latest, and a part of the budget is not spent yet."""
    budget = Range(900.0, 1100.0, 1300.0)
    late = outlook(24 * 40, DONE, planned_tokens=100.0, total_usd=budget)
    assert late.remaining_usd is not None
    assert late.remaining_usd.p50 > 0
    assert late.finish is not None
    assert late.finish.p10 == at(24 * 40).date()
    closed = outlook(24 * 40, DONE, planned_tokens=100.0, total_usd=budget, closed=True)
    assert closed.remaining_usd is not None
    assert closed.remaining_usd.p90 == 0
    assert closed.finish is not None
    assert closed.finish.p90 < at(24 * 40).date()


@given(
    now=st.integers(-100, 4000),
    trained=st.integers(0, 30),
    pace=st.integers(1, 10),
    later=st.none() | st.integers(0, 100),
    spare=st.integers(0, 2000),
    planned_tokens=st.sampled_from([100.0, 1100.0, 2000.0]),
)
def test_the_end_is_never_before_today_while_anything_is_left(
    now: int, trained: int, pace: int, later: int | None, spare: int, planned_tokens: float
) -> None:
    """Whatever is tracked, however far it is, and whenever it is asked."""
    program = replace(CALENDAR, planned_tokens=planned_tokens, runs=(FIRST, replace(LAST, float_hours=float(spare))))
    runs = [cost_run(FIRST, run_of(*steadily(trained, tokens=pace), until=now))]
    if later is not None:
        runs.append(cost_run(LAST, run_of(*steadily(later, first=170), until=now) if later else run_of(until=now)))
    targets = find_targets(program, runs)
    found = program_forecast(program, targets, [run_forecast(target, at(now), RULES) for target in targets], at(now))
    left = (
        untracked_share(program, targets)
        or not all(target.is_over for target in targets)
        or (found.remaining_usd and found.remaining_usd.p90)
    )
    if left and found.finish is not None:
        assert at(now).date() <= found.finish.p10 <= found.finish.p50 <= found.finish.p90
