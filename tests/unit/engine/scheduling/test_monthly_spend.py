"""Planned spend by calendar month, with what the calendar's draws make of it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.domain.schedule import Activity, ActivityNetwork, PlannedMonth, PlannedSpending
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.durations import draw_deviations
from service.engine.scheduling.monthly_spend import monthly_spend

JANUARY_H = 31 * 24.0


def months(*activities: Activity, usd: float = 1000.0, total: Range | None = None, finish_hours: float = JANUARY_H) -> list[PlannedMonth]:
    """Spend of the first activity, from 1 January 2027 on."""
    network = ActivityNetwork(date(2027, 1, 1), activities)
    spending = PlannedSpending(0.0, finish_hours, Decimal(str(usd)), activity=activities[0].name)
    draws = draw_deviations(activities, seed=0, draws=500)
    return list(monthly_spend(order_network(network), draws, [spending], total or Range.exactly(usd)))


def test_a_certain_plan_has_one_figure_a_month() -> None:
    """62 days from 1 January on: 31 of them in January, 28 in February and 3 in March."""
    found = months(Activity("main", Range.exactly(62 * 24.0)), usd=6200.0, finish_hours=62 * 24.0)
    assert [(month.month, month.usd) for month in found] == [("2027-01", 3100), ("2027-02", 2800), ("2027-03", 300)]
    assert [month.drawn_usd for month in found] == [Range.exactly(usd) for usd in (3100.0, 2800.0, 300.0)]
    assert [month.by_then_usd for month in found] == [3100, 5900, 6200]
    assert found[-1].drawn_by_then_usd == Range.exactly(6200.0)


def test_what_may_last_longer_is_spent_in_a_later_month_too() -> None:
    """Planned for January alone; where it lasts twice as long half of it is February's, which the plan has not."""
    found = months(Activity("main", Range(JANUARY_H / 2, JANUARY_H, JANUARY_H * 1.8)))
    assert [(month.month, month.usd) for month in found] == [("2027-01", 1000), ("2027-02", 0)]
    january, february = found
    assert january.drawn_usd.p10 < 650 < january.drawn_usd.p90
    assert february.drawn_usd.p10 == 0
    assert february.drawn_usd.p90 > 350


def test_all_months_together_are_distributed_as_the_budget() -> None:
    """By the end of the last month the percentiles are those of the whole spend."""
    total = Range(800.0, 1000.0, 1500.0)
    found = months(Activity("main", Range(500.0, 700.0, 1000.0)), total=total, finish_hours=700.0)
    last = found[-1].drawn_by_then_usd
    assert (last.p10, last.p50, last.p90) == pytest.approx((800.0, 1000.0, 1500.0), rel=0.02)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(1, 4000), st.floats(0, 1e6)), min_size=1, max_size=5), st.floats(1, 2))
def test_months_add_up_to_the_plan(parts: list[tuple[float, float]], spread: float) -> None:
    """To the cent, whatever is spent when; no month's percentiles are below 0, and what is spent by then never falls."""
    activities = [Activity(f"run {at}", Range(hours / spread, hours, hours * spread)) for at, (hours, _) in enumerate(parts)]
    spendings = [PlannedSpending(0.0, hours, Decimal(f"{usd:.2f}"), activity=f"run {at}") for at, (hours, usd) in enumerate(parts)]
    total = float(sum(spending.usd for spending in spendings))
    net = order_network(ActivityNetwork(date(2027, 1, 20), tuple(activities)))
    found = monthly_spend(net, draw_deviations(activities, seed=0, draws=100), spendings, Range(total / 2, total, total * 2))
    assert sum(month.usd for month in found) == sum(spending.usd for spending in spendings)
    assert all(month.drawn_usd.p10 >= 0 for month in found)
    by_then = [month.drawn_by_then_usd.p50 for month in found]
    assert by_then == sorted(by_then)


def test_nothing_is_spent_in_no_month() -> None:
    net = order_network(ActivityNetwork(date(2027, 1, 1), ()))
    assert monthly_spend(net, draw_deviations((), seed=0, draws=2), [], Range.exactly(0.0)) == ()
