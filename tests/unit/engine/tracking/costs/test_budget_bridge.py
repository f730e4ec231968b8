"""The budget's bridge to the forecast: parts, percentiles, what moves it, and energy beside the plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.programs.budget_parts import AROUND, COMPUTE, PEOPLE, RESERVE, budget_part
from service.domain.quantities import Range
from service.domain.tracking.budget import BudgetBridgePart
from service.domain.tracking.events import Event, PlannedLine, RunBaseline
from service.domain.tracking.status import ProgramStatus
from service.engine.tracking.forecasting.beside_runs import planned_total
from service.engine.tracking.status import status
from tests.unit.engine.tracking.test_status import RULES
from tests.unit.engine.tracking_builders import PROGRAM, RUN, at, cost, run_of, steadily

# Of 10,000 USD 1,000 are the run's, 500 overheads, 500 storage, 6,000 people and 2,000 reserve.
LINES = (PlannedLine("overhead: debugging", 0.05), PlannedLine("storage: logs", 0.05), PlannedLine("personnel: analysis", 0.6))
PLAN = replace(
    PROGRAM,
    budget_usd=10_000.0,
    total_usd=Range(8_000.0, 10_000.0, 11_000.0),
    reserve_share=0.2,
    around_share=0.7,
    lines=LINES,
    cost_spread=Range(0.8, 1.0, 1.5),
    runs=(RUN,),
)
MAIN = replace(RUN, energy_mwh=10.0, tco2e=4.0)


def tracked(*others: Event, hours: int = 50, usd: float = 10.0, baseline: RunBaseline = RUN) -> ProgramStatus:
    """The program after half of its run, with cost of other lines."""
    return status(PLAN, [(baseline, run_of(*steadily(hours, usd=usd), *others, until=60.0))], at(60.0), RULES)


def ends(usd: Range | None) -> tuple[float, float, float]:
    assert usd is not None
    return usd.p10, usd.p50, usd.p90


def part(found: ProgramStatus, name: str) -> BudgetBridgePart:
    return next(each for each in found.budget.parts if each.part == name)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("compute", COMPUTE), ("production", COMPUTE), ("personnel: evaluation", PEOPLE), ("Staff", PEOPLE), ("labelling", PEOPLE),
        ("contingency", RESERVE), ("reserve: evaluation and debugging", RESERVE), ("storage: logs", AROUND), ("overhead: sweeps", AROUND),
    ],
)  # fmt: skip
def test_a_line_belongs_to_the_part_that_its_name_says(line: str, expected: str) -> None:
    """Lines of plans, and of reported costs."""
    assert budget_part(line) == expected


def test_peoples_money_is_peoples() -> None:
    """6,000 of 10,000 USD, and not reserve, whether any of it is reported or none."""
    for found in (tracked(), tracked(cost(20.0, 500.0, "personnel"))):
        assert {each.part: each.budget_usd for each in found.budget.parts} == pytest.approx(
            {COMPUTE: 1000.0, AROUND: 1000.0, PEOPLE: 6000.0, RESERVE: 2000.0}
        )
    assert part(tracked(cost(20.0, 500.0, "personnel")), PEOPLE).spent_usd == 500.0


@given(
    st.lists(st.tuples(st.sampled_from(["storage", "personnel", "contingency", "travel"]), st.floats(0, 9000)), max_size=4),
    st.integers(2, 100),
    st.floats(1, 40),
)
def test_parts_add_up_to_the_forecast_at_every_percentile(lines: list[tuple[str, float]], hours: int, usd: float) -> None:
    """And to the budget and what is spent; of each, spent plus to come is the forecast."""
    found = tracked(*(cost(30.0, amount, line) for line, amount in lines), hours=min(hours, 59), usd=usd)
    whole = found.forecast.cost_usd
    assert whole is not None
    for name in ("p10", "p50", "p90"):
        amounts = [getattr(each.forecast_usd, name) for each in found.budget.parts]
        assert sum(amounts) == pytest.approx(getattr(whole, name))
    assert sum(each.spent_usd for each in found.budget.parts) == pytest.approx(found.spend.usd)
    assert sum(each.budget_usd or 0.0 for each in found.budget.parts) == pytest.approx(10_000.0)


def test_the_reserve_is_in_every_percentile_alike() -> None:
    """And said to be; people and storage have no spread, overheads have the runs'."""
    found = tracked()
    left = {each.part: each.remaining_usd for each in found.budget.parts}
    assert ends(left[RESERVE]) == pytest.approx((2000.0,) * 3)
    assert ends(left[PEOPLE]) == pytest.approx((6000.0,) * 3)
    assert ends(left[AROUND]) == pytest.approx((900.0, 1000.0, 1250.0))
    assert "p10, p50 and p90 all include the reserve; if none of it is needed" in found.budget.method


def test_before_anything_is_spent_the_forecast_is_the_plans() -> None:
    """At the median, and with the reserve at the ends too."""
    found, planned = status(PLAN, [], at(0), RULES), planned_total(PLAN)
    assert planned is not None
    assert found.forecast.cost_usd == planned
    assert ends(planned) == pytest.approx((9700.0, 10_000.0, 10_750.0))


def test_what_a_part_costs_beyond_its_plan_is_taken_off_the_reserve_alone() -> None:
    """1,800 of storage against 1,000 planned around the runs: 1,200 of reserve are left, and all of the people's money."""
    found = tracked(cost(20.0, 1800.0, "storage"))
    assert part(found, AROUND).remaining_usd == Range.exactly(0.0)
    assert ends(part(found, RESERVE).remaining_usd) == pytest.approx((1200.0,) * 3)
    assert ends(part(found, PEOPLE).remaining_usd) == pytest.approx((6000.0,) * 3)
    far = tracked(cost(20.0, 8000.0, "storage"))
    assert all(each.part != RESERVE or each.remaining_usd == Range.exactly(0.0) for each in far.budget.parts)
    assert ends(part(far, PEOPLE).remaining_usd) == pytest.approx((6000.0,) * 3)


def test_there_is_one_forecast_and_eac_is_a_check_of_it() -> None:
    """EAC is said with its scope, beside what the forecast has for the same work."""
    found = tracked(usd=20.0)
    assert found.earned_value.eac_usd == pytest.approx(2000.0)
    said = found.budget.beside_eac
    assert said is not None
    assert said.startswith("A check, not a second forecast: at the average cost of the work so far (CPI 0.5)")
    assert "2,000 USD (EAC = BAC / CPI)" in said
    assert "leaves out around the runs, people and reserve" in said
    assert tracked(hours=1).budget.beside_eac is not None
    assert status(PLAN, [], at(0), RULES).budget.beside_eac is None


def test_a_third_of_the_budget_spent_is_not_overspent() -> None:
    """The runs' part is spent out: the reason says so, and how much of the whole is spent."""
    found = tracked(usd=68.0)
    assert found.spend.share_of_budget == pytest.approx(0.34)
    (reason,) = [each.reason for each in found.earned_value.unknown if each.field == "tcpi"]
    assert reason == (
        "34% of the whole budget is spent, but the part for compute, 1,000 USD, is overspent by 2,400 USD:"
        " no performance brings the rest in within it"
    )


def test_swings_are_the_largest_first_with_both_ends_in_words() -> None:
    """The reserve moves it most: all or none of it."""
    found = tracked().budget.swings
    assert found[0].cause == "reserve"
    assert (found[0].low_usd, found[0].high_usd) == (pytest.approx(-2000.0), 0.0)
    widths = [swing.high_usd - swing.low_usd for swing in found]
    assert widths == sorted(widths, reverse=True)
    assert {swing.cause for swing in found} == {"reserve", "main: what is left of it", "around the runs"}


def test_energy_is_planned_beside_used() -> None:
    """Half of the run for a quarter more accelerator-hours than planned: 5 MWh were planned, 6.25 are used."""
    found = tracked(usd=12.5, baseline=MAIN).energy
    assert found is not None
    assert (found.mwh.planned, found.mwh.planned_to_date, found.mwh.used) == (10.0, 5.0, pytest.approx(6.25))
    assert found.mwh.forecast is not None
    assert found.mwh.forecast > 10.0
    assert (found.tco2e.planned, found.tco2e.used) == (4.0, pytest.approx(2.5))
    assert tracked().energy is None
