"""The cheapest offers: what the page of prices shows of thousands."""

from __future__ import annotations

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.usecases.prices.catalog import find_offers
from service.usecases.prices.cheapest import cheapest_by_provider, cheapest_offers
from tests.unit.usecases.comparison.comparing import offer, selling

MARKET = (
    offer("3.90"),
    offer("2.40", region="us-west-2"),
    offer("1.00", "verda", "FIN-01", days=300),
    offer("5.00", "verda", "FIN-02"),
    offer("2.95", "nebius", "eu-north1"),
)


@pytest.fixture
def context(settings: Settings) -> AppContext:
    return selling(build_context(settings), MARKET)


def test_each_provider_has_its_cheapest_fresh_offer(context: AppContext) -> None:
    """A stale one counts only where its provider has no other, and then comes last."""
    book, offers = find_offers(context, {})
    (found,) = cheapest_by_provider(book, offers, context.clock()).values()
    assert [(each.offer.provider, each.usd, each.is_stale) for each in found] == [
        ("aws", 2.40, False),
        ("nebius", 2.95, False),
        ("verda", 5.00, False),
    ]
    few = [each for each in offers if each.region != "FIN-02"]
    (found,) = cheapest_by_provider(book, few, context.clock()).values()
    assert [(each.offer.provider, each.is_stale) for each in found][-1] == ("verda", True)


def test_the_cheapest_offers_are_in_the_order_of_their_prices(context: AppContext) -> None:
    """As many as are asked for."""
    book, offers = find_offers(context, {})
    assert [(each.usd, each.is_stale) for each in cheapest_offers(book, offers, context.clock(), 2)] == [(1.00, True), (2.40, False)]
    assert cheapest_offers(book, offers, context.clock(), 0) == []
    assert cheapest_by_provider(book, [], context.clock()) == {}
