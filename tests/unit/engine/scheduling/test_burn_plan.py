"""Burn plans: every week has its part, and all weeks together are the totals, to the cent and the token."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.schedule import BurnWeek, PlannedSpending
from service.engine.scheduling.burn_plan import burn_plan

MONDAY = date(2027, 1, 4)
MAIN = PlannedSpending(start_hours=72, finish_hours=408, usd=Decimal("1000.01"), accelerator_hours=86016.0, tokens=10**12, checkpoints=17)

spendings = st.builds(
    lambda start, length, usd, hours, tokens, checkpoints: PlannedSpending(start, start + length, usd, hours, tokens, checkpoints),
    st.floats(0, 5_000),
    st.just(0.0) | st.floats(0, 5_000),
    st.decimals(0, 10**9, places=2),
    st.floats(0, 1e8),
    st.integers(0, 10**17),
    st.integers(0, 5_000),
)


def summed(weeks: tuple[BurnWeek, ...]) -> tuple[Decimal, Decimal, int, int]:
    return (
        sum((week.usd for week in weeks), Decimal(0)),
        sum((week.accelerator_hours for week in weeks), Decimal(0)),
        sum(week.tokens for week in weeks),
        sum(week.checkpoints for week in weeks),
    )


@given(st.dates(date(2026, 1, 1), date(2030, 1, 1)), st.lists(spendings, min_size=1, max_size=12))
def test_weeks_add_up_to_the_totals(start: date, spent: list[PlannedSpending]) -> None:
    """Money to the cent, accelerator-hours to the hundredth, tokens and checkpoints to the last, and no week less than nothing."""
    weeks = burn_plan(start, spent)
    usd, hours, tokens, checkpoints = summed(weeks)
    assert usd == sum((each.usd for each in spent), Decimal(0))
    assert float(hours) == pytest.approx(sum(each.accelerator_hours for each in spent), abs=0.0051)
    assert tokens == sum(each.tokens for each in spent)
    assert checkpoints == sum(each.checkpoints for each in spent)
    assert all(min(week.usd, week.accelerator_hours, week.tokens, week.checkpoints) >= 0 for week in weeks)


@given(st.dates(date(2026, 1, 1), date(2030, 1, 1)), st.lists(spendings, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_every_week_is_there_once_and_the_order_means_nothing(start: date, spent: list[PlannedSpending], random: object) -> None:
    """Weeks follow each other from Monday to Monday, named as ISO 8601 names them, whatever order the spendings are in."""
    weeks = burn_plan(start, spent)
    assert [week.monday for week in weeks] == [weeks[0].monday + timedelta(weeks=place) for place in range(len(weeks))]
    assert all(date.fromisocalendar(int(week.week[:4]), int(week.week[6:]), 1) == week.monday for week in weeks)
    turned = list(spent)
    random.shuffle(turned)  # type: ignore[attr-defined]
    for one, other in zip(weeks, burn_plan(start, turned), strict=True):
        assert one.week == other.week
        # Sums of floats depend on their order in the last digit: a unit, or what 1e17 tokens have in a float.
        assert float(one.usd) == pytest.approx(float(other.usd), rel=1e-9, abs=0.021)
        assert one.tokens == pytest.approx(other.tokens, rel=1e-9, abs=1000)


def test_a_run_is_spread_evenly_over_its_days() -> None:
    """Two weeks' run from Thursday on: four days, seven and three of its fourteen."""
    weeks = burn_plan(MONDAY, [MAIN])
    assert [(week.week, week.tokens) for week in weeks] == [
        ("2027-W01", 285_714_285_714),
        ("2027-W02", 500_000_000_000),
        ("2027-W03", 214_285_714_286),
    ]
    assert [week.usd for week in weeks] == [Decimal("285.72"), Decimal("500.00"), Decimal("214.29")]
    assert [week.accelerator_hours for week in weeks] == [Decimal("24576.00"), Decimal("43008.00"), Decimal("18432.00")]
    assert [week.checkpoints for week in weeks] == [5, 8, 4]


def test_more_tokens_than_a_float_can_count_add_up() -> None:
    """Totals are whole numbers throughout: the last of 1e17 + 1 tokens is in the plan, and no fraction of a cent is lost in 1e13 USD."""
    large = replace(MAIN, tokens=10**17 + 1, usd=Decimal("10000000000000.01"))
    usd, _, tokens, _ = summed(burn_plan(MONDAY, [large]))
    assert (tokens, usd) == (10**17 + 1, large.usd)


def test_what_ends_on_sunday_night_is_of_that_week() -> None:
    """A run of exactly one week has one week's row, not two."""
    weeks = burn_plan(MONDAY, [replace(MAIN, start_hours=0.0, finish_hours=168.0)])
    assert [(week.week, week.usd) for week in weeks] == [("2027-W01", MAIN.usd)]


def test_weeks_without_spending_are_shown() -> None:
    """Between two runs a month apart there are weeks of zeros: tracking compares with them too."""
    weeks = burn_plan(MONDAY, [replace(MAIN, start_hours=0.0, finish_hours=24.0), replace(MAIN, start_hours=672.0, finish_hours=700.0)])
    assert [week.usd for week in weeks] == [MAIN.usd, 0, 0, 0, MAIN.usd]


def test_what_is_paid_at_once_is_of_its_moments_week() -> None:
    """A purchase at Monday's first moment belongs to the week that begins."""
    bought = PlannedSpending(168.0, 168.0, Decimal("99.99"))
    assert [(week.week, week.usd) for week in burn_plan(MONDAY, [bought])] == [("2027-W02", Decimal("99.99"))]
    assert [week.usd for week in burn_plan(MONDAY, [bought, replace(bought, start_hours=0.0, finish_hours=0.0)])] == [Decimal("99.99")] * 2


def test_iso_weeks_belong_to_their_thursdays_year() -> None:
    """1 January 2027 is a Friday: it is in the last week of 2026, which has 53."""
    weeks = burn_plan(date(2027, 1, 1), [PlannedSpending(0.0, 96.0, Decimal("40.00"))])
    assert [(week.week, week.monday, week.usd) for week in weeks] == [
        ("2026-W53", date(2026, 12, 28), Decimal("30.00")),
        ("2027-W01", MONDAY, Decimal("10.00")),
    ]


def test_nothing_spent_has_no_weeks() -> None:
    """A plan without spendings is an empty table."""
    assert burn_plan(MONDAY, []) == ()


@pytest.mark.parametrize(
    ("spending", "message"),
    [
        (replace(MAIN, finish_hours=71.0), "ends before it starts"),
        (replace(MAIN, usd=Decimal("-0.01")), "is below 0"),
        (replace(MAIN, tokens=-1), "is below 0"),
    ],
)
def test_a_spending_that_cannot_be_is_refused(spending: PlannedSpending, message: str) -> None:
    """Time runs forwards and nothing is earned by burning."""
    with pytest.raises(ValueError, match=message):
        burn_plan(MONDAY, [MAIN, spending])
