"""Precedence of sources: how snapshots of several providers become one book.

1. Prices of one seller under one kind of pricing come from one source: the seller's own provider where it was fetched; else the
   reseller or catalogue read last; else the shipped snapshot. Rows of different age are never mixed.
2. Rows of price files replace all others of the same thing.
3. Discounts of price files apply to the list prices of other sources, in order, each to the price that the previous ones left. A price
   that a file states is final.
4. A team's own book applies after that, for this team only, as in 2 and 3: its prices replace all others, also those of other files,
   and its discounts apply to what the others left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from providers.offer import Discount, Fetched, Offer
from service.domain.prices import offer_key
from service.prices.book import BUILT_IN_PROVIDER

FILE_PROVIDER = "file"


@dataclass(frozen=True, slots=True)
class BookPart:
    """One provider's snapshot as a part of a book."""

    provider: str
    taken_at: datetime
    offers: tuple[Offer, ...]
    discounts: tuple[Discount, ...] = ()


def merge_parts(parts: Sequence[BookPart]) -> tuple[Offer, ...]:
    """Offers of a book made of these parts, one for each thing that can be bought."""
    fetched = [part for part in parts if part.provider != FILE_PROVIDER]
    stated = {offer_key(offer): offer for part in parts if part.provider == FILE_PROVIDER for offer in part.offers}
    discounts = [discount for part in parts for discount in part.discounts]
    others = {offer_key(offer): offer for offer in _one_source_per_seller(fetched)}
    return tuple({**{key: apply_discounts(offer, discounts) for key, offer in others.items()}, **stated}.values())


def add_team_prices(offers: Iterable[Offer], own: Fetched, is_final: Callable[[Offer], bool]) -> tuple[Offer, ...]:
    """Offers as the team with these own prices sees them: rule 4. `is_final`: whether a price file states the price."""
    if own.discounts:
        offers = [offer if is_final(offer) else apply_discounts(offer, own.discounts) for offer in offers]
    stated = {offer_key(offer): offer for offer in own.offers}
    return (*(offer for offer in offers if offer_key(offer) not in stated), *stated.values())


def apply_discounts(offer: Offer, discounts: Iterable[Discount]) -> Offer:
    """The offer after all matching discounts; `extras` then hold the list price and the discounts."""
    price, names = offer.usd_per_hour, list[str]()
    for discount in discounts:
        if matches(discount, offer):
            price, names = price * (1 - discount.share), [*names, f"{discount.name} {(discount.share * 100).normalize():f} %"]
    if not names:
        return offer
    if "discounts" in offer.extras:
        names = [offer.extras["discounts"], *names]
    list_price = offer.extras.get("list_usd_per_hour", f"{offer.usd_per_hour:f}")
    return replace(offer, usd_per_hour=price, extras={**offer.extras, "list_usd_per_hour": list_price, "discounts": ", ".join(names)})


def _one_source_per_seller(parts: Sequence[BookPart]) -> list[Offer]:
    """Rule 1."""
    best: dict[tuple[str, str], BookPart] = {}
    for part in parts:
        for seller in {_seller(offer) for offer in part.offers}:
            best[seller] = max(best.get(seller, part), part, key=lambda each, name=seller[0]: _rank(each, name))  # type: ignore[misc]
    return [offer for part in parts for offer in part.offers if best[_seller(offer)] is part]


def _seller(offer: Offer) -> tuple[str, str]:
    return (offer.provider, offer.pricing)


def _rank(part: BookPart, provider: str) -> tuple[bool, bool, datetime, str]:
    return (part.provider == provider, part.provider != BUILT_IN_PROVIDER, part.taken_at, part.provider)


def matches(discount: Discount, offer: Offer) -> bool:
    """Whether the discount applies to the offer: a list price with everything that the discount names, case-insensitive."""
    wanted = (discount.provider, discount.region, discount.pricing, discount.accelerator)
    found = (offer.provider, offer.region, offer.pricing, offer.accelerator)
    named = (value is None or value.casefold() == has.casefold() for value, has in zip(wanted, found, strict=True))
    return offer.market == "list" and all(named)
