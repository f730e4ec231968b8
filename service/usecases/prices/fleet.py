"""What accelerators cost that are held for a time."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from providers.offer import Offer
from service.domain.prices import FleetCost

AUCTION_FLOOR = "auction_floor"
ASKED = ("count", "hours", "usd_per_accelerator_hour")
"""Members of a request of GET /v1/offers that ask for it."""


def fleet_cost(offers: Iterable[Offer], given: Mapping[str, Any]) -> FleetCost | None:
    """What `count` accelerators cost for `hours` at the firm prices of offers; None where nothing of it is asked."""
    if not any(name in given for name in ASKED):
        return None
    count, hours = int(given.get("count", 1)), float(given.get("hours", 1.0))
    prices = [float(offer.usd_per_accelerator_hour) for offer in offers if offer.market != AUCTION_FLOOR]
    stated = given.get("usd_per_accelerator_hour")
    paid = count * hours

    def total(price: float | None) -> float | None:
        return None if price is None else round(price * paid, 2)

    least, median, most = (min(prices), statistics.median(prices), max(prices)) if prices else (None, None, None)
    return FleetCost(count, hours, paid, total(least), total(median), total(most), total(stated))
