"""The summary of an estimate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from service.config import Settings
from service.context import AppContext
from service.domain.quantities import Range
from service.domain.summary import ComparableRun
from service.formats.headline import money
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.resolution.offer_choice import CheaperStale
from service.usecases.resolution.price import Price
from service.usecases.training.estimate import EstimateAnswer, estimate
from service.usecases.training.summary import STATE_PRICE, comparable_text, estimate_text, other_sellers_text, stale_seller_text
from tests.unit.usecases.market import offer, open_context, sell

REQUEST: dict[str, Any] = {
    "model": {"preset": "llama-3-70b"},
    "data": {"tokens": "15T"},
    "hardware": {"accelerator": "H100", "count": 2048},
    "price": {"usd_per_accelerator_hour": 2.0},
}


@pytest.fixture
def context(settings: Settings) -> Iterator[AppContext]:
    """A service where one provider sells H100."""
    made = open_context(settings)
    with closing(made.store):
        sell(made, "market", offer(2.0))
        yield made


def estimated(context: AppContext, **changes: Any) -> EstimateAnswer:
    return estimate(context, EstimateRequestSchema().load({**REQUEST, **changes}))


def test_the_sentence_says_cost_time_machine_and_whose_price(context: AppContext) -> None:
    text = estimated(context).summary.text
    assert text.startswith("About $")
    assert "(likely $" in text
    assert " days (" in text
    assert "on 2,048 H100-80GB at your $2.00 an accelerator-hour." in text


def test_an_offer_is_named_with_the_day_of_its_price(context: AppContext) -> None:
    answer = estimated(context, price={})
    assert f" at {answer.price.provider}, price of " in answer.summary.text


def test_80_percent_lies_between_the_median_and_the_90th_percentile(context: AppContext) -> None:
    answer = estimated(context)
    total, hours, summary = answer.estimate.cost.total_usd, answer.estimate.time.wall_clock_hours, answer.summary
    assert (summary.p50_usd, summary.p50_finish_days) == pytest.approx((total.p50, hours.p50 / 24))
    assert summary.p80_usd is not None
    assert summary.p80_finish_days is not None
    assert total.p50 < summary.p80_usd < total.p90
    assert hours.p50 / 24 < summary.p80_finish_days < hours.p90 / 24


def test_waiting_in_the_queue_comes_before_the_finish(context: AppContext) -> None:
    waiting = estimated(context, schedule={"start": "2027-01-04", "queue_hours": 48})
    now, later = estimated(context).summary.p50_finish_days, waiting.summary.p50_finish_days
    assert now is not None
    assert later == pytest.approx(now + 2)


def test_the_three_widest_assumptions_come_first_with_their_effect(context: AppContext) -> None:
    drivers = estimated(context).summary.drivers
    assert [driver.field for driver in drivers] == [
        "throughput.mfu",
        "price.usd_per_accelerator_hour",
        "throughput.run_over_step_speed",
    ]
    assert all("$" in driver.effect for driver in drivers)


def test_a_stated_efficiency_leaves_no_error_of_the_speed(context: AppContext) -> None:
    fields = {driver.field for driver in estimated(context, efficiency={"mfu": 0.4}).summary.drivers}
    assert fields == {"failures.mttf_hours_per_accelerator", "price.usd_per_accelerator_hour"}


def test_the_published_run_most_like_it_is_named_with_how_it_is_planned(context: AppContext) -> None:
    near = estimated(context, data={"tokens": "15.6T"}, model={"preset": "llama-3.1-405b"}).summary.comparable
    assert near is not None
    assert near.run == "llama3.1-405b"
    assert near.reported_accelerator_hours == 30_840_000
    assert 0.5 < near.planned_over_reported < 2
    assert "arXiv" in near.source


@pytest.mark.parametrize(
    "changes",
    [{"training": {"method": "lora"}, "data": {"tokens": "1B"}}, {"data": {"tokens": "20M"}}, {"model": {"params": "5T"}}],
    ids=["other method", "far fewer tokens", "far larger"],
)
def test_what_is_like_no_published_run_is_compared_with_none(context: AppContext, changes: dict[str, Any]) -> None:
    hardware = {"hardware": {"accelerator": "H100", "count": 2048}}
    assert estimated(context, **changes, **hardware).summary.comparable is None


def test_without_a_price_it_says_what_to_state() -> None:
    text = estimate_text(None, Range(100.0, 120.0, 150.0), "64 H800-80GB", None)
    assert text == f"5 days (4.17–6.25) on 64 H800-80GB; {STATE_PRICE}."
    assert "price.usd_per_accelerator_hour" in text


def test_a_stale_price_is_said_to_be_stale() -> None:
    price = Price(2.0, "a sheet", stale=True, provider="nebius", observed_at=datetime(2026, 11, 21, tzinfo=UTC))
    text = estimate_text(Range(13e6, 22e6, 29e6), Range(118 * 24.0, 146 * 24.0, 171 * 24.0), "2,048 H100", price)
    assert text == ("About $22.0M (likely $13.0M–$29.0M) and 146 days (118–171) on 2,048 H100 at nebius, price of 21 Nov 2026 (stale).")


def test_the_sentence_names_what_other_providers_would_cost() -> None:
    """The least and the most of them, as dollars of the same run; nothing where there is no other, or no price."""
    usd = Range(0.8e6, 1e6, 1.3e6)
    named = {"crusoe": 1.0, "aws": 2.5, "nebius": 1.1}
    assert other_sellers_text(usd, named) == "At 2 other providers: $1.10M (nebius) to $2.50M (aws)."
    assert other_sellers_text(usd, {"crusoe": 1.0, "aws": 2.5}) == "At aws: $2.50M."
    for ranged, alone in ((usd, {"crusoe": 1.0}), (usd, {}), (None, named)):
        assert other_sellers_text(ranged, alone) == ""


def test_a_stated_deadline_has_its_probability(context: AppContext) -> None:
    """As a program's summary says it; nothing without one."""
    dated = estimated(context, schedule={"start": "2027-01-04", "deadline": "2027-06-30"})
    probability = dated.estimate.time.deadline_probability
    assert probability is not None
    assert f"{probability:.0%} to meet 30 Jun 2027." in dated.summary.text
    assert "to meet" not in estimated(context).summary.text


@pytest.mark.parametrize(("ratio", "times"), [(0.5, "2"), (1.6, "0.62")])
def test_a_published_run_far_from_its_plan_is_said(ratio: float, times: str) -> None:
    """One that is planned within a quarter of what it took is not: most runs are."""
    text = comparable_text(ComparableRun("opt-175b", 1e6, ratio, "a paper"))
    assert text == f"The nearest published run, opt-175b, took {times} times the hours planned for it."
    assert comparable_text(ComparableRun("opt-175b", 1e6, 1.2, "a paper")) == comparable_text(None) == ""


def test_a_stale_price_of_less_than_half_is_in_the_sentence(context: AppContext) -> None:
    """One that costs somewhat less is an assumption's matter."""
    usd = Range(0.8e6, 1e6, 1.3e6)
    (sold,) = (each for each in context.book().offers if each.provider == "gcp")
    assert stale_seller_text(usd, CheaperStale(sold, 326, 0.4, 4e5, 2)) == "$400,000 at gcp, by a price read 326 days ago (stale)."
    assert stale_seller_text(usd, CheaperStale(sold, 326, 0.6, 6e5, 2)) == stale_seller_text(usd, None) == ""


SMALL: dict[str, Any] = {
    "model": {"preset": "llama-3.1-8b"},
    "data": {"tokens": "100M"},
    "training": {"method": "lora"},
    "hardware": {"accelerator": "H100", "count": 1},
}


def test_idle_accelerators_that_cost_most_come_first(context: AppContext) -> None:
    """In the summary and as the first warning; a run that fills its instances has neither."""
    answer = estimated(context, **SMALL, price={})
    (spares,) = (float(line.usd) for line in answer.estimate.cost.lines if line.line == "spares")
    said = f"7 of the instance's 8 accelerators stand idle: {money(spares)} of {money(answer.summary.p50_usd)}"
    assert said in answer.summary.text
    assert answer.warnings[0].startswith(said)
    filled = estimated(context, **SMALL | {"hardware": {"accelerator": "H100", "count": 8}}, price={})
    assert "idle" not in "".join((filled.summary.text, *filled.warnings))


def test_a_commitment_that_is_not_used_is_said(context: AppContext) -> None:
    """In the summary and as the first warning: terms are paid in full."""
    sell(context, "committed", offer(2.0), offer(1.0, pricing="reserved_1y"))
    answer = estimated(context, data={"tokens": "1T"}, price={"pricing": "reserved_1y"})
    (unused,) = (float(line.usd) for line in answer.estimate.cost.lines if line.line == "unused commitment")
    said = f"{money(unused)} of {money(answer.summary.p50_usd)} pay for the part of the commitment that the run does not use"
    assert said in answer.summary.text
    assert answer.warnings[0].startswith(said)


def test_overhead_is_missed_only_where_it_matters(context: AppContext) -> None:
    """A run of some dollars has no budget; that none is stated stays an assumption."""
    small, large = estimated(context, **SMALL), estimated(context)
    assert not any("the run alone" in text for text in small.warnings)
    assert any(each.field == "overhead" for each in small.assumptions)
    assert sum("the run alone" in text for text in large.warnings) == 1
