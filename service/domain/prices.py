"""Price history, and names of providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from difflib import get_close_matches
from types import MappingProxyType
from typing import Annotated

from providers.offer import PRICINGS, Offer
from service.domain.answer_fields import HIDDEN, Doc

LONGEST_COMPARED = 100
PROVIDER_SYNONYMS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("amazon", "amazon web services", "ec2", "sagemaker"), "aws")
    | dict.fromkeys(("google", "google cloud", "gce"), "gcp")
    | dict.fromkeys(("microsoft", "ms azure"), "azure")
    | dict.fromkeys(("oracle", "oracle cloud"), "oci")
    | {"lambda labs": "lambda", "lambdalabs": "lambda", "datacrunch": "verda"}
)
"""Providers by other names for them, in lower case."""
NO_SYNONYMS: Mapping[str, str] = MappingProxyType({})


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


def near_names(wanted: str, known: Iterable[str], synonyms: Mapping[str, str] = NO_SYNONYMS) -> tuple[str, ...]:
    """Known names that are meant by another name for them, else the most similar to it, else those that contain it; at most three."""
    by_fold = {each.casefold(): each for each in known}
    asked = wanted[:LONGEST_COMPARED].casefold()
    if asked in by_fold:
        return ()
    if (meant := synonyms.get(asked)) in by_fold:
        return (by_fold[str(meant)],)
    similar = get_close_matches(asked, list(by_fold), n=3) or [each for each in sorted(by_fold) if asked in each][:3]
    return tuple(by_fold[each] for each in similar)
