"""Price history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from providers.offer import PRICINGS, Offer
from service.domain.answer_fields import HIDDEN, Doc


@dataclass(frozen=True, slots=True)
class PriceChange:
    """Price of a thing from `observed_at` on. `asked`: the provider that was fetched."""

    id: Annotated[int, HIDDEN]
    asked: Annotated[str, HIDDEN]
    provider: Annotated[str, Doc("Name of the provider")]
    region: Annotated[str, Doc("Region as the provider names it")]
    instance_type: Annotated[str, Doc("Instance type as the provider names it")]
    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    accelerator_count: Annotated[int, Doc("Accelerators of the instance", minimum=1)]
    pricing: Annotated[str, Doc("Kind of pricing", choices=PRICINGS)]
    market: Annotated[str, Doc("Kind of market")]
    usd_per_hour: Annotated[Decimal | None, Doc("Price of the whole instance; null: no longer sold", "USD per hour")]
    availability: Annotated[str, Doc("What is known of its availability")]
    observed_at: Annotated[datetime, Doc("When the price was read")]
    source: Annotated[str, Doc("Where this comes from", max_length=1000)]
    usd_per_hour_before: Annotated[Decimal | None, Doc("Price in the previous row of the same thing; null: there is none", "USD per hour")]

    @property
    def own(self) -> bool:
        """Whether it is the price of one team: ids of such rows count down from -1."""
        return self.id < 0


def offer_key(offer: Offer) -> tuple[str, ...]:
    """Key of an offer, in the order of listings."""
    return (offer.accelerator, offer.provider, offer.region, offer.instance_type, offer.pricing, str(offer.accelerator_count), offer.market)
