"""Published prices of commitments, and the band that they make. A band is no offer: nothing can be bought at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from service.domain.answer_fields import Doc

ContractTerm = Literal["capacity_block", "1y", "3y", "other"]
CONTRACT_TERMS: tuple[ContractTerm, ...] = get_args(ContractTerm)
ContractPriceKind = Literal["market_level", "reserved_list", "press", "derived"]
CONTRACT_PRICE_KINDS: tuple[ContractPriceKind, ...] = get_args(ContractPriceKind)
"""Kinds of published prices, from the strongest evidence to the weakest."""
SellerClass = Literal["hyperscaler", "specialist"]
SELLER_CLASSES: tuple[SellerClass, ...] = get_args(SellerClass)

TERM_TEXT = (
    "capacity_block: days to half a year, on fixed dates; 1y: half a year to two years; 3y: two to four years; "
    "other: longer, months, or a term that is not published"
)
KIND_TEXT = (
    "market_level: what contracts of many sellers cost in a survey; reserved_list: a seller's own price of a commitment; press: quoted by "
    "others; derived: the list price, and below it that price less the highest discount that is published, which is no offer"
)


@dataclass(frozen=True, slots=True)
class PublishedPrice:
    """Prices of one seller's commitment over its regions and instance types, as one source states them."""

    provider: Annotated[str, Doc("Seller, or the survey")]
    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    term: Annotated[ContractTerm, Doc(TERM_TEXT)]
    term_months: Annotated[float | None, Doc("Length of the commitment, of several the longest; null: not published", "months")]
    seller: Annotated[SellerClass, Doc("Class of the seller")]
    kind: Annotated[ContractPriceKind, Doc(KIND_TEXT)]
    low_usd_per_accelerator_hour: Annotated[float, Doc("Lowest price", "USD per accelerator-hour")]
    mid_usd_per_accelerator_hour: Annotated[float | None, Doc("Median; null where only bounds are published", "USD per accelerator-hour")]
    high_usd_per_accelerator_hour: Annotated[float, Doc("Highest price", "USD per accelerator-hour")]
    prices: Annotated[int, Doc("Prices of regions and instance types that this sums up", minimum=1)]
    upfront: Annotated[str | None, Doc("Part paid in advance: none, all or a share; null: not published", max_length=20)]
    observed_at: Annotated[str, Doc("When the price held, as precisely as its source states it: 2026, 2026-06, 2026-06-26", max_length=10)]
    source: Annotated[str, Doc("Where this comes from", max_length=1000)]


@dataclass(frozen=True, slots=True)
class ContractBand:
    """Published prices of one accelerator, term and class of sellers. It is no offer and is never priced with."""

    record: Annotated[Literal["band"], Doc("Always band: what is published of contracts, not what is offered")]
    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    term: Annotated[ContractTerm, Doc(TERM_TEXT)]
    seller: Annotated[SellerClass, Doc("Class of the sellers")]
    low_usd_per_accelerator_hour: Annotated[float, Doc("Lowest published price", "USD per accelerator-hour")]
    mid_usd_per_accelerator_hour: Annotated[
        float | None,
        Doc(
            "Newest level of the market where one is surveyed, else the median of the sellers' medians; null: none",
            "USD per accelerator-hour",
        ),
    ]
    high_usd_per_accelerator_hour: Annotated[float, Doc("Highest published price", "USD per accelerator-hour")]
    kinds: Annotated[tuple[ContractPriceKind, ...], Doc("Kinds of its prices, the strongest evidence first", max_items=4)]
    observed_at: Annotated[str, Doc("Date of its newest price", max_length=10)]
    oldest_observed_at: Annotated[str, Doc("Date of its oldest price", max_length=10)]
    published: Annotated[tuple[PublishedPrice, ...], Doc("The prices it is made of, the newest first", max_items=100)]


@dataclass(frozen=True, slots=True)
class BandComparison:
    """A price beside a published band. `beyond_share` is 0 inside it, below 0 under its low end, above 0 over its high end."""

    beyond_share: Annotated[float, Doc("Relative distance to the nearest end of the band: -0.12 is 12 % under it; 0: inside", "1")]
    is_far: Annotated[bool, Doc("Whether it lies so far outside that the price or its terms need a check")]
    low_usd_per_accelerator_hour: Annotated[float, Doc("Low end of the band", "USD per accelerator-hour")]
    high_usd_per_accelerator_hour: Annotated[float, Doc("High end of the band", "USD per accelerator-hour")]
    observed_at: Annotated[str, Doc("Date of the band's newest price", max_length=10)]
    text: Annotated[str, Doc("The comparison in words", max_length=1000)]
