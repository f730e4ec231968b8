"""The price of an accelerator-hour: its offers, the cheapest first, in a sentence."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from providers.offer import Offer
from service.context import AppContext
from service.domain.summary import Summary
from service.formats.headline import money
from service.prices.book import PriceBook
from service.usecases.prices.catalog import find_offers

AUCTION_FLOOR = "auction_floor"
MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class QuotedOffers:
    """Offers that match, the cheapest first, with their book, how many there are, and their prices in a sentence."""

    summary: Summary
    book: PriceBook
    offers: tuple[Offer, ...]
    found: int
    now: datetime


def quote_offers(context: AppContext, request: Mapping[str, Any]) -> QuotedOffers:
    """The offers of a request of GET /v1/offers. Raises UnknownName."""
    book, found = find_offers(context, request)
    now = context.clock()
    ordered = sorted(found, key=lambda offer: (offer.market == AUCTION_FLOOR, book.is_stale(offer, now), offer.usd_per_accelerator_hour))
    return QuotedOffers(_summarise(request, ordered, book, now), book, tuple(ordered[:MOST_SHOWN]), len(ordered), now)


def _summarise(request: Mapping[str, Any], offers: list[Offer], book: PriceBook, now: datetime) -> Summary:
    what = " ".join(
        str(request[name]) for name in ("accelerator", "pricing", "provider", "region", "jurisdiction") if name in request
    ).replace("_", " ")
    firm = [offer for offer in offers if offer.market != AUCTION_FLOOR]
    if not firm:
        return Summary(text=f"No price of {what} is known." if not offers else f"Only auction floors of {what} are known.")
    prices = [float(offer.usd_per_accelerator_hour) for offer in firm]
    least, sellers = firm[0], {offer.provider for offer in firm}
    age = f"read {least.observed_at:%Y-%m-%d}{', stale' if book.is_stale(least, now) else ''}"
    text = (
        f"{what}: from {money(min(prices))} to {money(max(prices))} an accelerator-hour, median {money(statistics.median(prices))},"
        f" {len(firm)} offers of {len(sellers)} providers; {least.provider} {least.region} ({least.pricing.replace('_', ' ')}) asks"
        f" {money(float(least.usd_per_accelerator_hour))}, {age}."
    )
    return Summary(text=text)
