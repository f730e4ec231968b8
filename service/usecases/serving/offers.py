"""Accelerators on which a model may be served, with their prices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from providers.offer import Offer
from service.domain.errors import InvalidRequest, NoOffer, UnknownName
from service.domain.prices import offer_key
from service.domain.training.hardware import Accelerator
from service.domain.training.run import Cluster
from service.engine.serving.fleet import RentalUnit
from service.presets.hardware.accelerators import find_accelerator, load_accelerators
from service.presets.serving import serving_defaults
from service.prices.book import PriceBook
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import ambiguity_text
from service.usecases.resolution.offer_choice import offer_gbit_per_s
from service.usecases.resolution.price import (
    DEFAULT_PRICING,
    FILTERS,
    STATE_PRICE,
    Price,
    describe_priced,
    find_eligible_offers,
    find_stated_price,
    is_filtered,
)

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PricedAccelerator:
    """An accelerator at a price: an offer of the book or, without one, the caller's own; None: no price is known."""

    accelerator: Accelerator
    rent: RentalUnit
    usd_per_accelerator_hour: float | None
    offer: Offer | None = None


def find_priced_accelerators(request: Request, book: PriceBook, notes: AssumptionLog) -> list[PricedAccelerator]:
    """Cheapest offer of each provider, accelerator and instance size that passes the request's filter, or the caller's price.

    Named accelerators that nobody sells are taken without a price, with a warning.
    Raises UnknownName, InvalidRequest, NoOffer with pointers into the request.
    """
    filters, names = request.get("price", {}), resolve_accelerators(request.get("hardware", {}), book, notes)
    if filters.get("usd_per_accelerator_hour") is not None:
        if len(names) != 1:
            raise InvalidRequest("a stated price is that of one accelerator: name it", "/hardware/accelerators")
        return [_without_offer(names[0], find_stated_price(filters, names[0]))]
    offers = [priced for name in names for priced in _cheapest_offers(filters, name, book)]
    if not offers and names and not is_filtered(filters):
        notes.warn(f"{_explain_no_price(filters, names, book)}, {STATE_PRICE}, and options are ordered by accelerator-hours")
        return [_without_offer(name, None) for name in names]
    if not offers:
        raise NoOffer(_explain_no_price(filters, names, book), "/price")
    unsold = sorted(set(names).difference(priced.accelerator.name for priced in offers))
    if unsold and "accelerators" in request.get("hardware", {}):
        notes.warn(f"no price of {', '.join(unsold)} is known for {_describe_filters(filters)} in {book.name}: left out")
    _note_prices(filters, offers, notes)
    return offers


def resolve_accelerators(hardware: Request, book: PriceBook, notes: AssumptionLog) -> list[str]:
    """Canonical names of the stated accelerators, or of all with a price, sorted. Raises UnknownName with its pointer."""
    stated = hardware.get("accelerators")
    if stated is None:
        return list(notes.assume("hardware.accelerators", _current_accelerators(book), "not stated: all current ones that have a price"))
    return sorted({_canonical_name(name, index, notes) for index, name in enumerate(stated)})


def _current_accelerators(book: PriceBook) -> list[str]:
    """Accelerators with a price, without those released long before the newest of them."""
    years = {name: load_accelerators()[name].release_year for name in book.by_accelerator}
    oldest = max(years.values(), default=0) - serving_defaults()["current_years"].value
    return sorted(name for name, year in years.items() if year >= oldest)


def _canonical_name(name: str, index: int, notes: AssumptionLog) -> str:
    pointer = f"/hardware/accelerators/{index}"
    try:
        match = find_accelerator(name)
    except UnknownName as problem:
        raise UnknownName(problem.message, pointer, problem.near) from problem
    if match.ambiguous_with:
        notes.assume(f"hardware.accelerators.{index}", match.accelerator.name, ambiguity_text(match))
    return match.accelerator.name


def _without_offer(name: str, price: Price | None) -> PricedAccelerator:
    """An accelerator at the caller's price, or at none, in nodes as its data sheet has them."""
    usd = None if price is None else price.usd_per_accelerator_hour
    return PricedAccelerator(load_accelerators()[name], RentalUnit(1, float("inf")), usd)


def _cheapest_offers(filters: Request, name: str, book: PriceBook) -> Iterable[PricedAccelerator]:
    """Cheapest offer of each provider, instance size and network between instances, with the accelerator in that network."""
    best: dict[tuple[str, RentalUnit, float | None], Offer] = {}
    node = Cluster(load_accelerators()[name], 1, load_accelerators()[name].accelerators_per_node, 0.0)
    for offer in find_eligible_offers(filters, name, book):
        rent = _rent(node, offer)
        key = (offer.provider, rent, None if math.isfinite(rent.linked_accelerators) else offer_gbit_per_s(offer, node))
        best[key] = min(best.get(key, offer), offer, key=lambda candidate: (candidate.usd_per_accelerator_hour, offer_key(candidate)))
    return [
        PricedAccelerator(_in_network(node.accelerator, rate), rent, float(offer.usd_per_accelerator_hour), offer)
        for (_, rent, rate), offer in best.items()
    ]


def _in_network(accelerator: Accelerator, gbit_per_s: float | None) -> Accelerator:
    """The accelerator in a network of that rate, else in its data sheet's.

    Cards without a link of their own keep their data sheet's rate within a node.
    """
    data_sheet = accelerator.internode_gbit_per_s
    link = accelerator.link_gb_per_s or (data_sheet / 8 * 2 if data_sheet else None)
    return replace(accelerator, internode_gbit_per_s=gbit_per_s or data_sheet, link_gb_per_s=link)


def _rent(node: Cluster, offer: Offer) -> RentalUnit:
    """Instances smaller than a node, or than a pod rented in slices, have no known links to others."""
    count = offer.accelerator_count
    return RentalUnit(count, float("inf") if count >= node.rental_unit else float(count))


def _note_prices(filters: Request, offers: Sequence[PricedAccelerator], notes: AssumptionLog) -> None:
    providers = {priced.offer.provider for priced in offers if priced.offer}
    rule = "its newest prices; no auction floors, no marketplaces unless named"
    source = f"the cheapest region of each of {len(providers)} providers, {rule}"
    notes.assume("price", f"{len(offers)} {filters.get('pricing') or DEFAULT_PRICING} offers", source)


def _explain_no_price(filters: Request, names: Sequence[str], book: PriceBook) -> str:
    priced = describe_priced(offer for name in names for offer in book.by_accelerator.get(name, ()))
    known = f"known of them: {priced}" if priced else "no other prices are known"
    shown = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
    advice = "widen price or hardware, or state price.usd_per_accelerator_hour of one accelerator"
    return f"no price of {shown} for {_describe_filters(filters)} is known in {book.name}; {known}. To go on, {advice}"


def _describe_filters(filters: Request) -> str:
    return ", ".join(f"{name} {filters[name]}" for name in FILTERS if filters.get(name)) or DEFAULT_PRICING
