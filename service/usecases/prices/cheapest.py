"""The cheapest of many offers: alone, and of each accelerator and provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest

from providers.offer import Offer
from service.prices.book import PriceBook


@dataclass(frozen=True, slots=True)
class PricedOffer:
    """An offer with its price [USD per accelerator-hour], and whether that is older than its source promises."""

    offer: Offer
    usd: float
    is_stale: bool

    @property
    def place(self) -> tuple[bool, float]:
        """Where it stands among others: fresh before stale, then the cheapest first."""
        return self.is_stale, self.usd


def cheapest_offers(book: PriceBook, offers: Sequence[Offer], now: datetime, most: int) -> list[PricedOffer]:
    """So many offers of the book at most, the cheapest first."""
    found = nsmallest(most, offers, key=lambda offer: offer.usd_per_accelerator_hour)
    return [PricedOffer(offer, float(offer.usd_per_accelerator_hour), book.is_stale(offer, now)) for offer in found]


def cheapest_by_provider(book: PriceBook, offers: Sequence[Offer], now: datetime) -> dict[str, list[PricedOffer]]:
    """Of each accelerator the cheapest offer of each provider, fresh before stale; accelerators by name. `offers` are of the book."""
    stale = dict(zip(map(id, book.offers), book.stale_mask(now).tolist(), strict=True))
    best: dict[tuple[str, str], tuple[bool, float, Offer]] = {}
    for offer in offers:
        found = stale[id(offer)], float(offer.usd_per_accelerator_hour), offer
        known = best.setdefault((offer.accelerator, offer.provider), found)
        if found[:2] < known[:2]:
            best[offer.accelerator, offer.provider] = found
    cheapest: dict[str, list[PricedOffer]] = {}
    for (accelerator, _), (is_stale, usd, offer) in sorted(best.items(), key=lambda entry: (entry[0][0], *entry[1][:2], entry[0][1])):
        cheapest.setdefault(accelerator, []).append(PricedOffer(offer, usd, is_stale))
    return cheapest
