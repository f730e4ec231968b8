"""Earned value by hand: PV, EV, AC and what follows of them, and why a figure is not known."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.tracking.events import Event, PlannedLine, PlannedWeek, ProgramBaseline, RunBaseline
from service.domain.tracking.status import EarnedValue
from service.domain.training.estimate import FinishDates
from service.engine.tracking.costs.cost import CostedRun, cost_run
from service.engine.tracking.earned_value import earned_value, midnight, run_earned_value
from tests.unit.engine.tracking_builders import PROGRAM, RUN, at, cost, event, run_of, steadily


def run(hours: int = 50, tokens: int = 10, usd: float = 10.0, **baseline: object) -> CostedRun:
    return cost_run(replace(RUN, **baseline), run_of(*steadily(hours, tokens, usd)))  # type: ignore[arg-type]


def reason(found: EarnedValue, field: str) -> str:
    assert getattr(found, field) is None
    return next(each.reason for each in found.unknown if each.field == field)


def test_the_textbook_example() -> None:
    """Half of the work for 600 of 1,000 USD, three tenths of the time gone."""
    found = earned_value(PROGRAM, [run(hours=50, usd=12.0)], at(72))
    assert (found.bac_usd, found.pv_usd, found.ev_usd, found.ac_usd) == (1000.0, 300.0, 500.0, 600.0)
    assert found.cpi == pytest.approx(500 / 600)
    assert found.spi == pytest.approx(500 / 300)
    assert found.eac_usd == pytest.approx(1200.0)
    assert found.tcpi == pytest.approx(500 / 400)
    assert (found.cv_usd, found.sv_usd, found.vac_usd) == (-100.0, 200.0, pytest.approx(-200.0))
    assert found.unknown == ()


def test_planned_value_follows_the_burn_plan() -> None:
    """A quarter in the first week and half of the second week's rest by its middle."""
    weeks = (PlannedWeek(date(2027, 1, 4), 250.0, 100.0, 1, 1), PlannedWeek(date(2027, 1, 11), 750.0, 900.0, 1, 1))
    found = earned_value(replace(PROGRAM, weeks=weeks), [run()], at(168 * 1.5))
    assert found.pv_usd == 625.0
    unweighed = replace(run(), baseline=replace(RUN, usd=None))
    by_tokens = earned_value(replace(PROGRAM, weeks=weeks), [unweighed], at(168 * 1.5))
    assert by_tokens.pv_usd == pytest.approx(550.0)


def test_planned_value_follows_the_runs_dates() -> None:
    """Each run's budget over its own days."""
    first = run(start=date(2027, 1, 4), finish=date(2027, 1, 6), usd=10.0)
    second = replace(first, baseline=replace(first.baseline, usd=300.0, start=date(2027, 1, 5), finish=date(2027, 1, 9)))
    first = replace(first, baseline=replace(first.baseline, usd=100.0))
    found = earned_value(replace(PROGRAM, budget_usd=400.0, planned_tokens=None), [first, second], at(48))
    assert found.pv_usd == pytest.approx(100 + 75)


def test_runs_are_weighed_by_their_planned_cost() -> None:
    """A token of a large model is worth more: 300 USD for half of 900, all of the 100 of the small one."""
    small = cost_run(replace(RUN, tokens=500.0, usd=100.0), run_of(*steadily(50)))
    large = cost_run(replace(RUN, tokens=500.0, usd=900.0), run_of(*steadily(25)))
    found = earned_value(PROGRAM, [small, large], at(72))
    assert found.ev_usd == pytest.approx(100 + 450)


def test_runs_that_are_not_all_planned_earn_by_tokens() -> None:
    """The first run of a program earns its tokens' share of the whole, not all of it."""
    found = earned_value(PROGRAM, [cost_run(replace(RUN, tokens=100.0, usd=100.0), run_of(*steadily(10)))], at(72))
    assert found.ev_usd == 100.0
    assert found.basis == "each token worth the same"


def test_more_than_planned_earns_no_more() -> None:
    """Earned value ends at the budget."""
    assert earned_value(PROGRAM, [run(hours=200)], at(500)).ev_usd == 1000.0


def test_nothing_happened_yet() -> None:
    """Nothing earned and nothing spent: no index, and no zero for one."""
    found = earned_value(PROGRAM, [cost_run(RUN, run_of())], at(-24))
    assert (found.pv_usd, found.ev_usd, found.ac_usd) == (0.0, 0.0, 0.0)
    assert reason(found, "cpi") == "nothing was spent yet"
    assert reason(found, "spi") == "nothing was planned to be spent by now"
    assert reason(found, "eac_usd") == "nothing was spent yet"


def test_spent_without_anything_earned() -> None:
    """The index is 0, the estimate at completion is not known."""
    lost = cost_run(RUN, run_of(event(0, tokens=0, usd=0), event(5, tokens=0, usd=50)))
    found = earned_value(PROGRAM, [lost], at(72))
    assert found.cpi == 0.0
    assert reason(found, "eac_usd") == "nothing was earned yet"


def test_a_budget_that_is_spent_out() -> None:
    """No performance brings the rest in: TCPI is not known, at the budget and beyond it, and neither is it where no rest is left."""
    assert "budget is spent" in reason(earned_value(PROGRAM, [run(usd=20.0)], at(72)), "tcpi")
    assert "overspent" in reason(earned_value(PROGRAM, [run(usd=30.0)], at(72)), "tcpi")
    assert "overspent" in reason(earned_value(PROGRAM, [run(hours=100, usd=12.0)], at(240)), "tcpi")


def test_a_runs_own_figures_leave_out_other_lines_than_compute() -> None:
    """Its plan is of its accelerators: people and storage are the program's."""
    told = cost_run(RUN, run_of(*steadily(50), cost(20.0, 500.0, "people")))
    found = run_earned_value(told, at(72))
    assert (found.ac_usd, found.cpi) == pytest.approx((500.0, 1.0))


def test_past_the_deadline_everything_was_planned() -> None:
    """Planned value stays at the budget."""
    assert earned_value(PROGRAM, [run()], at(5000)).pv_usd == 1000.0


@pytest.mark.parametrize("tokens", [None, 0.0])
def test_without_planned_tokens_nothing_is_earned(tokens: float | None) -> None:
    """Not known, with the reason, for the program and the run."""
    unplanned = run(tokens=10)
    unplanned = replace(unplanned, baseline=replace(RUN, tokens=tokens))
    found = earned_value(replace(PROGRAM, planned_tokens=tokens), [unplanned], at(72))
    assert reason(found, "ev_usd") == "no tokens are planned"
    assert reason(run_earned_value(unplanned, at(72)), "cpi") == "no tokens of the run are planned"


def test_a_run_of_unknown_cost_hides_what_the_program_cost() -> None:
    """Part of the cost would flatter."""
    silent = cost_run(RUN, run_of(event(0, tokens=0), event(5, tokens=50)))
    assert "neither cost" in reason(earned_value(PROGRAM, [run(), silent], at(72)), "cpi")


def test_without_a_budget_the_runs_plans_are_it() -> None:
    """And without these there is none."""
    bare = ProgramBaseline("x", None, None, None, None)
    assert earned_value(bare, [run()], at(72)).bac_usd == 1000.0
    assert "no budget" in reason(earned_value(bare, [cost_run(RunBaseline("x", None), run_of())], at(72)), "bac_usd")


@given(st.integers(0, 120), st.floats(0.5, 30), st.floats(-100, 1000))
def test_identities(hours: int, usd: float, now: float) -> None:
    """Of CPI, EAC and the variances, whatever the figures."""
    found = earned_value(PROGRAM, [cost_run(RUN, run_of(*steadily(hours, usd=usd)))], at(now))
    assert found.ev_usd is not None
    assert found.pv_usd is not None
    assert 0 <= found.ev_usd <= 1000.0
    assert 0 <= found.pv_usd <= 1000.0
    if found.cpi and found.eac_usd:
        assert found.cpi * found.eac_usd == pytest.approx(1000.0)
        assert found.vac_usd == pytest.approx(1000.0 - found.eac_usd)
    assert {each.field for each in found.unknown} == {name for name in EarnedValue.__slots__ if getattr(found, name) is None}


def test_reserves_are_no_part_of_the_budget_at_completion() -> None:
    """A run that costs what it was planned to has a CPI of 1, however much is held back."""
    held = replace(PROGRAM, reserve_share=0.4)
    whole, found = (earned_value(program, [], at(10)) for program in (PROGRAM, held))
    assert whole.bac_usd is not None
    assert found.bac_usd == pytest.approx(0.6 * whole.bac_usd)


def test_what_stands_around_the_runs_counts_once_its_costs_are_told() -> None:
    """A program on its plan that tells of its runs alone has a CPI of 1, and so has one that tells of everything."""
    planned = replace(PROGRAM, around_share=0.5)
    alone = earned_value(planned, [run(hours=100, usd=5.0)], at(100))
    told = cost_run(RUN, run_of(*steadily(100, 10, 5.0), cost(50.0, 500.0, "people")))
    assert alone.bac_usd == pytest.approx(500.0)
    assert earned_value(planned, [told], at(100)).bac_usd == pytest.approx(1000.0)
    assert alone.cpi == pytest.approx(1.0)
    assert earned_value(planned, [told], at(100)).cpi == pytest.approx(1.0)


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.floats(10, 1e6), st.integers(0, 20), st.integers(1, 20)), min_size=1, max_size=4),
    st.floats(24, 1000),
    st.booleans(),
)
def test_a_program_exactly_on_its_plan_has_indices_of_one_at_any_time(
    plans: list[tuple[int, float, int, int]], now: float, has_people: bool
) -> None:
    """Cheap runs and dear ones, some not tracked yet, people and reserve beside them: each spends and earns by its dates."""
    planned = [_planned(f"run {place}", *plan) for place, plan in enumerate(plans)]
    runs_usd = sum(run.usd or 0.0 for run in planned)
    program = replace(
        PROGRAM,
        budget_usd=4 * runs_usd,
        planned_tokens=sum(run.tokens or 0.0 for run in planned),
        weeks=(PlannedWeek(date(2027, 1, 4), 2.0, 1.0, 1.0, 1.0),),
        finish=FinishDates(*[at(960).date()] * 3),
        runs=tuple(planned),
        reserve_share=0.25,
        around_share=0.5,
    )
    people = [cost(now, 2 * runs_usd * min(1.0, now / 960), "personnel")] if has_people else []
    begun = [run for run in planned if run.start and midnight(run.start) < at(now)]
    tracked = [_on_plan(run, now, people if run is begun[0] else []) for run in begun]
    if tracked:
        found = earned_value(program, tracked, at(now))
        assert found.basis == "runs weighed by their planned cost"
        assert (found.cpi, found.spi) == pytest.approx((1.0, 1.0), rel=1e-3)


def _planned(name: str, tokens: int, usd: float, first_day: int, days: int) -> RunBaseline:
    start, finish = at(24 * first_day).date(), at(24 * (first_day + days)).date()
    return RunBaseline(name, "production", tokens * 1e9, usd=usd, start=start, finish=finish)


def _on_plan(planned: RunBaseline, now: float, others: list[Event]) -> CostedRun:
    """The run until now, its tokens and cost spread evenly over its dates."""
    assert planned.start
    assert planned.finish
    assert planned.tokens
    assert planned.usd
    whole = midnight(planned.finish) - midnight(planned.start)
    share = min(1.0, (at(now) - midnight(planned.start)) / whole)
    done = event(now, tokens=round(share * planned.tokens), usd=share * planned.usd)
    return cost_run(planned, run_of(done, *others, until=now + 1))


def test_runs_of_the_plan_that_are_not_tracked_yet_keep_their_weight() -> None:
    """Half of the large run is half of its 900 USD, not half of the tokens; a plan without a cost leaves each token alike."""
    small, large = (RunBaseline(name, "production", 500.0, usd=usd) for name, usd in (("small", 100.0), ("large", 900.0)))
    half = cost_run(large, run_of(*steadily(25)))
    found = earned_value(replace(PROGRAM, runs=(small, large)), [half], at(72))
    assert found.ev_usd == pytest.approx(450.0)
    unpriced = earned_value(replace(PROGRAM, runs=(replace(small, usd=None), large)), [half], at(72))
    assert (unpriced.ev_usd, unpriced.basis) == (250.0, "each token worth the same")


FIRST = RunBaseline("ablations", "prototype", 100.0, usd=100.0, start=date(2027, 1, 4), finish=date(2027, 1, 6))
LATER = RunBaseline("main", "production", 900.0, usd=900.0, start=date(2027, 1, 9), finish=date(2027, 1, 19))


def test_runs_that_should_have_ended_untracked_do_not_count() -> None:
    """A run on its plan has an SPI and CPI of 1, although nobody tracked the tier before it; what is not due yet keeps its weight."""
    half = 24 * 10
    on_plan = cost_run(LATER, run_of(event(half, tokens=450, usd=450.0), until=half + 1))
    found = earned_value(replace(PROGRAM, runs=(FIRST, LATER)), [on_plan], at(half))
    assert found.bac_usd == pytest.approx(900.0)
    assert (found.cpi, found.spi) == pytest.approx((1.0, 1.0))
    assert found.basis.endswith("without ablations: planned to end before a tracked run began, and not tracked")
    begun = cost_run(replace(FIRST, name="other"), run_of(event(12, tokens=25, usd=25.0), until=13))
    early = earned_value(replace(PROGRAM, planned_tokens=None, runs=(FIRST, LATER)), [begun], at(24))
    assert early.bac_usd == pytest.approx(1000.0)


def test_lines_around_the_runs_count_once_a_cost_of_them_is_reported() -> None:
    """50 USD of storage do not bring 400 of people into earned value; people under any name do."""
    lines = (PlannedLine("storage: logs", 0.05), PlannedLine("overhead: debugging", 0.05), PlannedLine("personnel: analysis", 0.4))
    planned = replace(PROGRAM, around_share=0.5, lines=lines)

    def bac(*others: Event) -> float | None:
        return earned_value(planned, [cost_run(RUN, run_of(*steadily(50, usd=5.0), *others))], at(72)).bac_usd

    assert bac() == pytest.approx(500.0)
    assert bac(cost(20.0, 50.0, "storage")) == pytest.approx(550.0)
    assert bac(cost(20.0, 50.0, "debugging")) == pytest.approx(550.0)
    assert bac(cost(20.0, 50.0, "taxi")) == pytest.approx(500.0)
    assert bac(cost(20.0, 50.0, "staff")) == pytest.approx(900.0)
    assert bac(cost(20.0, 50.0, "personnel"), cost(21.0, 1.0, "Storage")) == pytest.approx(950.0)


def test_a_position_of_the_past_earns_what_was_done_by_then() -> None:
    """For the S-curve: a quarter of the run, though half is done now."""
    assert earned_value(PROGRAM, [run(hours=50)], at(30), [250.0]).ev_usd == pytest.approx(250.0)
