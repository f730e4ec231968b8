"""What a verdict on buying or renting must not hide: use that spot cannot serve, smaller fleets, fleets that never come, tax of all."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest, NoOffer
from tests.unit.usecases.comparison.comparing import offer, selling
from tests.unit.usecases.procurement.test_buy_or_rent import MARKET, OWN, QUOTE, answered, option
from tests.unit.usecases.requests import pointer_of

SPOT_SHARE = 0.59


@pytest.fixture
def context(settings: Settings) -> AppContext:
    return selling(build_context(settings), MARKET)


def test_spot_stops_being_right_where_it_cannot_be_had(context: AppContext) -> None:
    """Asked again above that use it takes no part, so the use at which the verdict turns is no higher."""
    spot = {"pricing": ["spot"]}
    found = answered(context, demand={"utilisation": 0.5}, rent=spot)
    assert found.verdict.kind == "spot"
    assert found.verdict.break_even_utilisation == pytest.approx(SPOT_SHARE, abs=1e-6)
    assert answered(context, demand={"utilisation": 0.6}, rent=spot).verdict.kind == "own"


def test_spot_is_not_the_best_in_trials_that_it_cannot_serve(context: AppContext) -> None:
    """Use is uncertain: near the most that it can be had, in part of the trials it cannot."""
    low, near = answered(context, demand={"utilisation": 0.3}), answered(context, demand={"utilisation": 0.58})
    assert near.verdict.kind == "spot"
    assert near.verdict.probability_best < 0.8 < low.verdict.probability_best
    assert sum(each.probability_best for each in near.options) == pytest.approx(1.0)


def test_a_fleet_of_another_size_that_costs_less_is_told(context: AppContext) -> None:
    """Half of the fleet is used at all times: renting reserves half, and so may an owner; of a demand that grows, more."""
    demand = {"utilisation": 0.5, "peak_utilisation": 0.5}
    rent: dict[str, Any] = {"providers": ["nebius"], "quotes": [QUOTE]}
    found = answered(context, demand=demand, rent=rent)
    assert found.verdict.kind == "mix"
    told = next(warning for warning in found.warnings if "of dc1, with the demand above them rented" in warning)
    assert told.startswith("128 accelerators of dc1")
    both = answered(context, demand=demand, rent=rent, own=[OWN, OWN | {"name": "half", "count": 128}])
    assert both.verdict.choice == "half"
    grown = answered(context, demand={"growth_per_year": 0.6}, rent={"providers": ["nebius"]})
    assert int(next(each for each in grown.warnings if "accelerators of dc1, with" in each).split()[0]) > 256
    assert not any("with the demand above them rented" in warning for warning in both.warnings)


def test_a_fleet_that_comes_too_late_is_refused(context: AppContext) -> None:
    """Else its bridge would win under its name."""
    late = {"demand": {"years": 1.0}, "own": [OWN | {"lead_time_months": 12}]}
    assert pointer_of(lambda: answered(context, **late), InvalidRequest) == "/own/0/lead_time_months"


def test_tax_that_one_fleet_states_is_deducted_by_all(context: AppContext) -> None:
    """Two equal fleets cost the same, whichever states the company's rate."""
    found = answered(context, own=[OWN | {"tax_rate": 0.25}, OWN | {"name": "dc2"}])
    assert option(found, "dc2").npv_usd.p50 == pytest.approx(option(found, "dc1").npv_usd.p50)


def test_a_bridge_at_the_price_of_a_term_is_warned_of(context: AppContext) -> None:
    """Nobody sells an hour at the price of three years."""
    found = answered(context, own=[OWN | {"lead_time_months": 4}], rent={"providers": [], "quotes": [QUOTE]})
    assert any(warning.startswith("no on-demand price is known") for warning in found.warnings)


def test_why_nothing_is_left_is_said(context: AppContext) -> None:
    """The quote that ended, not that nothing is known."""
    ended = {"providers": [], "quotes": [QUOTE | {"expires": date(2026, 1, 31)}]}
    with pytest.raises(NoOffer, match="lambda 3y because the quote ended on 2026-01-31"):
        answered(context, own=[], rent=ended)


@pytest.mark.parametrize(
    ("years", "words"), [(1 / 12, "over 1 month"), (1.0, "over one year"), (1.5, "over 18 months"), (15.0, "over 15 years")]
)
def test_the_horizon_is_in_words(settings: Settings, years: float, words: str) -> None:
    """Months only where years are not whole."""
    context = selling(build_context(settings), (offer("2.95", "nebius", "eu-north1"),))
    text = answered(context, own=[], rent={}, demand={"years": years}).summary.text
    assert f"{words}," in text or f"{words} " in text


def test_spot_serves_the_busiest_month_or_nothing(context: AppContext) -> None:
    """A demand that grows beyond what can be had of it is not its mean."""
    found = answered(context, demand={"utilisation": 0.5, "growth_per_year": 0.3})
    assert "is needed in the busiest month" in (option(found, "aws us-east-1 eight-H100 spot").ruled_out or "")
    assert found.verdict.kind != "spot"


def test_a_fleet_that_nobody_said_when_it_comes_is_told(context: AppContext) -> None:
    """Bought today, there today is rarely so; stated as 0, it is."""
    assert any(warning.startswith("dc1 is assumed to run from the first day") for warning in answered(context).warnings)
    there = answered(context, own=[OWN | {"lead_time_months": 0.0}])
    assert not any("from the first day" in warning for warning in there.warnings)
