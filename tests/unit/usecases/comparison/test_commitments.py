"""Commitments in a comparison: what their terms rule out, capacity and discounts, and prices beside what is published."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest

from providers.offer import OfferTerms
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.comparison.options import Option
from service.domain.errors import NoOffer
from tests.unit.usecases.comparison.comparing import A100, H100, NOW, WORKLOAD, compared, offer, selling

BLOCK = offer("4.33", pricing="reserved", terms=OfferTerms(term_hours=672, upfront_share=1.0))
DISCOUNT = offer("4.34", pricing="reserved_1y")
QUOTE = offer("2.10", "somewhere", pricing="reserved_1y", terms=OfferTerms(minimum_accelerators=256, valid_until=date(2026, 11, 20)))
OFFERS = (offer("6.88"), BLOCK, DISCOUNT, QUOTE)


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context that sells a block, a discount and a quote of H100."""
    return selling(build_context(settings), OFFERS)


def only(options: tuple[Option, ...], provider: str, pricing: str, count: int) -> Option:
    found = [each for each in options if (each.offer.provider, each.offer.pricing, each.count) == (provider, pricing, count)]
    assert len(found) == 1
    return found[0]


def test_a_block_is_not_larger_longer_or_later_than_blocks_are(context: AppContext) -> None:
    """Each limit is a reason with its figures, spares among them; on demand has none of them."""
    soon = compared(context, {"counts": [256, 1024]}, constraints={"start": NOW.date()})
    assert only(soon.options, "aws", "reserved", 256).feasible
    (text,) = only(soon.options, "aws", "reserved", 1024).reasons
    assert re.match(r"1,0[0-9][0-9] accelerators are more than the 512 of one purchase: capacity block of aws; 256 instances in sev", text)
    long = compared(context, {"counts": [8]}, workload={**WORKLOAD, "data": {"tokens": 2 * 10**12}})
    (text,) = only(long.options, "aws", "reserved", 8).reasons
    assert text.endswith("days are more than the 182 of the longest purchase: capacity block of aws")
    assert (soon.infeasible["over_block_size"], long.infeasible["over_longest_term"]) == (1, 1)
    later = compared(context, {"counts": [256]}, constraints={"start": NOW.date() + timedelta(days=57)})
    assert only(later.options, "aws", "reserved", 256).reasons == (
        "the start is 57 days away, more than the 56 that can be booked ahead: capacity block of aws",
    )
    assert only(later.options, "aws", "on_demand", 256).feasible


def test_a_quote_is_not_taken_after_its_last_day_nor_below_its_size(context: AppContext) -> None:
    """Both are said."""
    found = compared(context, {"counts": [64]})
    reasons = only(found.options, "somewhere", "reserved_1y", 64).reasons
    assert reasons == (
        "64 accelerators are fewer than the 256 that this price is for",
        "the price could be accepted until 2026-11-20",
    )


def test_options_say_whether_capacity_is_held_and_what_is_published(context: AppContext) -> None:
    """A block holds it, a reservation of AWS is a discount, of others nothing is known; 4.34 lies under the hyperscalers' band."""
    found = compared(context, {"counts": [256]})
    held = {pricing: only(found.options, "aws", pricing, 256).commitment for pricing in ("reserved", "reserved_1y", "on_demand")}
    assert held["on_demand"] is None
    assert held["reserved"] is not None
    assert held["reserved_1y"] is not None
    assert (held["reserved"].holds_capacity, held["reserved_1y"].holds_capacity) == (True, False)
    assert held["reserved_1y"].published is not None
    assert held["reserved_1y"].published.text.startswith("21 % under the published band of 1y contracts of hyperscalers")
    assert any("reservations of aws are only a discount and reserve no capacity" in warning for warning in found.warnings)


def test_a_price_far_outside_its_band_is_warned_of(settings: Settings) -> None:
    """0.99 for a year of H100 lies 42 % under what is published."""
    context = selling(build_context(settings), (offer("6.88"), offer("0.99", "somewhere", pricing="reserved_1y")))
    found = compared(context, {"counts": [256]})
    assert any("0.99 USD per accelerator-hour lies 42 % under the published band" in warning for warning in found.warnings)


def test_a_discount_must_be_had_on_demand(context: AppContext) -> None:
    """Above what AWS lets without a contract it is not available, whatever was reserved."""
    found = compared(context, {"counts": [1024], "pricing": ["reserved_1y"], "providers": ["aws"]}, constraints={"require_available": True})
    assert found.infeasible["needs_contract"] == 1


def test_what_no_commitment_has_a_price_of_is_said_with_who_publishes_it(settings: Settings) -> None:
    """As a warning beside other options, and in the error where nothing is left."""
    context = selling(build_context(settings), (offer("6.88"), offer("2.20", accelerator=A100, pricing="reserved_1y")))
    words = f"prices-1 has no reserved price of {H100}: aws, azure, gcp, runpod, verda publish commitments"
    found = compared(context, {"accelerators": [H100, A100], "pricing": ["reserved_1y"]})
    assert any(warning.startswith(words) for warning in found.warnings)
    assert not any(words in warning for warning in compared(context, {"accelerators": [H100], "pricing": ["on_demand"]}).warnings)
    with pytest.raises(NoOffer, match=words):
        compared(context, {"accelerators": [H100], "pricing": ["reserved_1y"]})
