"""Mixes of a reserved base and peaks on demand keep to the terms of their price."""

from __future__ import annotations

from typing import Any

import pytest

from providers.offer import OfferTerms
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.procurement.answer import BuyOrRent
from tests.unit.usecases.comparison.comparing import offer, selling
from tests.unit.usecases.procurement.test_buy_or_rent import answered

LARGE: dict[str, Any] = {"name": "large", "pricing": "reserved_3y", "usd_per_accelerator_hour": 1.50, "minimum_accelerators": 240}
SMALL: dict[str, Any] = LARGE | {"name": "small", "usd_per_accelerator_hour": 1.60, "minimum_accelerators": 16}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    return selling(build_context(settings), (offer("2.95", "nebius", "eu-north1"),))


def reserved(found: BuyOrRent) -> dict[str, int]:
    return {each.name.split()[0]: each.count for each in found.options if each.kind == "mix"}


def test_a_mix_reserves_no_fewer_than_its_price_is_for(context: AppContext) -> None:
    """A price for large purchases is paid for as many; a dearer one for few is a mix of its own, and may cost less."""
    found = answered(context, own=[], demand={"utilisation": 0.55}, rent={"quotes": [LARGE, SMALL]})
    counts = reserved(found)
    assert counts["large"] == 240
    assert 16 < counts["small"] < 240
    assert found.verdict.choice.startswith("small")


def test_a_dearer_price_for_more_is_no_mix_of_its_own(context: AppContext) -> None:
    """The cheaper one can be had for as few."""
    found = answered(context, own=[], rent={"quotes": [SMALL, LARGE | {"usd_per_accelerator_hour": 1.70}]})
    assert set(reserved(found)) == {"small"}


def test_terms_of_an_offer_hold_for_a_mix(settings: Settings) -> None:
    """An offer of the price book with a minimum too."""
    terms = OfferTerms(minimum_accelerators=248)
    market = (offer("2.95", "nebius", "eu-north1"), offer("1.50", "nebius", "eu-north1", pricing="reserved_3y", terms=terms))
    assert set(reserved(answered(selling(build_context(settings), market), own=[], rent={})).values()) == {248}


def test_a_block_does_not_serve_years(settings: Settings) -> None:
    """Nothing assures a second block after the longest one, so it takes no part beyond it, as in a comparison."""
    block = offer("1.50", pricing="reserved", terms=OfferTerms(term_hours=2160, capacity=True))
    context = selling(build_context(settings), (offer("2.95", "nebius", "eu-north1"), block))
    years, season = (
        answered(context, own=[], rent={}, demand={"years": years, "start": None, "utilisation": 1.0}) for years in (3.0, 0.25)
    )
    assert "longest purchase: capacity block of aws" in (next(o for o in years.options if o.kind == "reserved").ruled_out or "")
    assert season.verdict.kind == "reserved"


def test_more_than_the_fleet_is_reserved_for_a_demand_that_grows(context: AppContext) -> None:
    """It is an option like any other mix, so nothing in the answer costs less than the best."""
    found = answered(context, own=[], demand={"growth_per_year": 0.5}, rent={"quotes": [SMALL]})
    assert found.mix is not None
    assert found.mix.reserved_count > 256
    assert reserved(found) == {"small": found.mix.reserved_count}
    assert found.mix.npv_usd == min(each.npv_usd.p50 for each in found.options)
