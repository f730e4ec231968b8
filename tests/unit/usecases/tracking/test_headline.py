"""The headline of a report: on budget and in time, or by how much it is not, whatever of it is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from service.domain.quantities import Range
from service.domain.tracking.events import ProgramBaseline, RunBaseline
from service.domain.tracking.status import CompletionForecast, GateStatus, OverdueRun, ProgramStatus, UnknownFigure
from service.domain.training.estimate import FinishDates
from service.engine.tracking.status import status
from service.presets.tracking.status import status_rules
from service.usecases.tracking.headline import Headline, headline
from tests.unit.engine.tracking_builders import run_of, steadily

BUDGET = 100_000.0
DEADLINE = date(2027, 3, 31)
BASELINE = ProgramBaseline("a program", BUDGET, 1e12, date(2027, 1, 4), DEADLINE)
NOW = datetime(2027, 2, 1, tzinfo=UTC)


def days(p10: int, p50: int, p90: int) -> FinishDates:
    """Days of March 2027."""
    return FinishDates(date(2027, 3, p10), date(2027, 3, p50), date(2027, 3, p90))


IN_TIME = days(1, 10, 20)
CHEAP = Range(80_000, 90_000, 99_000)


def standing(
    cost: Range | None, finish: FinishDates | None, *, baseline: ProgramBaseline = BASELINE, gate: GateStatus | None = None
) -> Headline:
    """The headline of a program that is forecast so."""
    return headline(baseline, forecast_as(cost, finish, baseline, gate))


def forecast_as(cost: Range | None, finish: FinishDates | None, baseline: ProgramBaseline, gate: GateStatus | None) -> ProgramStatus:
    found = status(baseline, [], NOW, status_rules())
    missing = [("cost_usd", cost), ("finish", finish)]
    unknown = tuple(UnknownFigure(name, f"nobody told {name}") for name, value in missing if value is None)
    return replace(found, forecast=CompletionForecast(cost, finish, None, None, None, "told", unknown), gate=gate or found.gate)


def test_within_both_it_is_on_track() -> None:
    """With the forecast, the budget, the end and how long before the deadline that is."""
    found = standing(CHEAP, IN_TIME)
    assert (found.health, found.over_usd, found.late_days) == ("on_track", -10_000.0, -21)
    assert found.text == (
        "On track; forecast cost $90,000 (likely $80,000–$99,000) against a budget of $100,000; "
        "forecast end 10 Mar 2027 (1 Mar 2027–20 Mar 2027), 21 days before the deadline."
    )
    assert found.notes == ()


def test_over_budget_is_said_by_how_much() -> None:
    """In dollars and per cent, before what is well."""
    found = standing(Range(100_000, 112_500, 130_000), IN_TIME)
    assert (found.health, found.over_usd) == ("off_track", 12_500.0)
    assert found.text.startswith(
        "Over budget by $12,500 (12.5%): forecast $112,000 (likely $100,000–$130,000) against a budget of $100,000;"
    )
    assert found.text.endswith("21 days before the deadline.")


def test_less_than_a_cent_is_not_over_budget() -> None:
    """A forecast that is the plan's sum in another order is on its budget."""
    assert standing(Range(80_000, 100_000.00000000001, 100_000.00000000001), IN_TIME).health == "on_track"


def test_late_is_said_by_how_many_days() -> None:
    """One is a day."""
    late = FinishDates(date(2027, 3, 30), date(2027, 4, 1), date(2027, 4, 9))
    found = standing(CHEAP, late)
    assert (found.health, found.late_days) == ("off_track", 1)
    assert found.text.startswith("Late by 1 day: forecast end 1 Apr 2027")


def test_what_only_the_worst_tenth_breaks_is_a_risk() -> None:
    """With the amount and the days at p90."""
    found = standing(Range(80_000, 95_000, 104_000), FinishDates(date(2027, 3, 1), date(2027, 3, 31), date(2027, 4, 5)))
    assert found.health == "at_risk"
    assert found.text.startswith("At risk; ")
    assert "a 10 % chance that the cost is more than $4,000 over budget" in found.text
    assert "a 10 % chance that the end is more than 5 days late" in found.text
    assert "the day of the deadline" in found.text


@pytest.mark.parametrize(
    ("cost", "finish", "said"),
    [
        (CHEAP, None, "Whether the deadline is met is not known: nobody told finish."),
        (None, IN_TIME, "Whether the budget is enough is not known: nobody told cost_usd."),
    ],
)
def test_half_of_it_known_is_said_and_the_other_half_not_hidden(cost: Range | None, finish: FinishDates | None, said: str) -> None:
    """It stands by what is known, and says what is not and why."""
    found = standing(cost, finish)
    assert found.health == "on_track"
    assert found.notes == (said,)


def test_nothing_known_is_no_good_news() -> None:
    """With the reason."""
    found = standing(None, None)
    assert (found.health, found.over_usd, found.late_days) == ("unknown", None, None)
    assert found.text == "The forecast is not known: nobody told cost_usd."


def test_the_reserve_is_of_the_budget() -> None:
    """A program that will cost what its plan has in all, reserve included, is on track."""
    found = standing(Range(80_000, 100_000, 100_000), IN_TIME, baseline=replace(BASELINE, reserve_share=0.2))
    assert (found.health, found.over_usd) == ("on_track", 0.0)


def test_without_a_budget_nothing_is_over_it() -> None:
    """The deadline alone is judged, and the missing budget said."""
    found = standing(CHEAP, IN_TIME, baseline=replace(BASELINE, budget_usd=None))
    assert (found.health, found.over_usd) == ("on_track", None)
    assert found.notes == ("Whether the budget is enough is not known: no budget is stated.",)


def test_a_gate_that_is_due_is_said_with_its_reasons() -> None:
    """What has to be decided stands under the first sentence."""
    gate = GateStatus(due=True, recommendation="stop", reasons=("CPI 0.62 is below 0.7",))
    assert standing(CHEAP, IN_TIME, gate=gate).notes == ("The half-spend gate is due: stop is recommended (CPI 0.62 is below 0.7).",)


def test_a_fresh_program_on_its_plan_is_on_track_although_half_of_its_outcomes_exceed_the_median() -> None:
    """Budget and deadline are the plan's medians: only a p90 beyond the plan's own is a risk."""
    planned = replace(BASELINE, total_usd=Range(80_000, BUDGET, 130_000), finish=FinishDates(date(2027, 3, 1), DEADLINE, date(2027, 4, 20)))
    forecast = FinishDates(date(2027, 3, 1), DEADLINE, date(2027, 4, 20))
    assert standing(Range(80_000, BUDGET, 130_000), forecast, baseline=planned).health == "on_track"
    assert standing(Range(80_000, BUDGET, 131_000), forecast, baseline=planned).health == "at_risk"
    assert standing(Range(80_000, BUDGET, 130_000), forecast).health == "at_risk"
    assert standing(Range(80_000, BUDGET, 130_000), forecast, baseline=replace(planned, budget_usd=BUDGET + 1)).health == "at_risk"


def test_an_unknown_end_is_said_once() -> None:
    """The reason does not repeat the sentence."""
    bare = replace(BASELINE, planned_tokens=None, deadline=None, budget_usd=None)
    found = status(bare, [(RunBaseline("main", None), run_of(*steadily(5)))], NOW, status_rules())
    assert headline(bare, found).text == "The forecast is not known: no tokens of the run are planned."


def test_a_run_that_should_have_begun_is_said_in_the_verdict() -> None:
    """With its day, its delay, and what that does to the end."""
    late = OverdueRun("main", "production", date(2027, 1, 11), 21, 14)
    found = replace(forecast_as(CHEAP, IN_TIME, BASELINE, None), overdue=(late, replace(late, run="annealing", days=1)))
    said = headline(BASELINE, found).text
    assert (
        "production: main should have begun on 11 Jan 2027 and is 21 days overdue, and 1 more is overdue: this delays the end by 14 days"
        in said
    )
    covered = replace(found, overdue=(replace(late, late_days=0),))
    assert "21 days overdue: its float still covers it" in headline(BASELINE, covered).text
