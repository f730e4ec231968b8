"""What is said of prices where no accelerator is named."""

from __future__ import annotations

from service.context import AppContext
from service.usecases.ask.prices import quote_offers


def test_all_prices_are_told_by_their_number_their_sellers_and_the_lowest_of_what_most_sell(shipped: AppContext) -> None:
    firm = [offer for offer in shipped.book().offers if offer.market != "auction_floor"]
    text = quote_offers(shipped, {}).summary.text
    sellers = sorted({offer.provider for offer in firm})
    assert text.startswith(f"Prices of {len({offer.accelerator for offer in firm})} accelerators at {len(sellers)} providers (")
    assert ", ".join(sellers) in text
    assert "NVIDIA-H100-80GB-SXM $" in text


def test_prices_of_one_place_name_it(shipped: AppContext) -> None:
    assert " in DEU at " in quote_offers(shipped, {"jurisdiction": "DEU"}).summary.text
