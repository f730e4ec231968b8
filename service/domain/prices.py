"""Price history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from providers.offer import Offer


@dataclass(frozen=True, slots=True)
class PriceChange:
    """A row of price history: the price from `observed_at` on, None where it was not sold any more. `asked` is the provider that stated it.

    `usd_per_hour_before` is the price in the previous row of the same thing, None where there is none [USD per hour].
    """

    id: int
    asked: str
    provider: str
    region: str
    instance_type: str
    accelerator: str
    accelerator_count: int
    pricing: str
    market: str
    usd_per_hour: Decimal | None
    availability: str
    observed_at: datetime
    source: str
    usd_per_hour_before: Decimal | None

    @property
    def own(self) -> bool:
        """Whether it is the price of one team: ids of such rows count down from -1."""
        return self.id < 0


def offer_key(offer: Offer) -> tuple[str, ...]:
    """Key of an offer, in the order of listings."""
    return (offer.accelerator, offer.provider, offer.region, offer.instance_type, offer.pricing, str(offer.accelerator_count), offer.market)
