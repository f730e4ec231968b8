"""The price of an accelerator-hour: its offers, the cheapest first, in a sentence."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from providers.offer import Offer
from service.context import AppContext
from service.domain.prices import FleetCost
from service.domain.summary import Summary
from service.formats.headline import duration, money
from service.presets.hardware.accelerators import find_accelerator
from service.prices.book import PriceBook
from service.usecases.prices.catalog import find_offers, values_of
from service.usecases.prices.fleet import AUCTION_FLOOR, fleet_cost

MOST_SHOWN = 50
LONGEST_SUMMARY = 1000


@dataclass(frozen=True, slots=True)
class QuotedOffers:
    """Offers that match, the cheapest first, with their book, how many there are, their prices in a sentence, and what a fleet costs."""

    summary: Summary
    fleet: FleetCost | None
    book: PriceBook
    offers: tuple[Offer, ...]
    found: int
    now: datetime


def quote_offers(context: AppContext, request: Mapping[str, Any]) -> QuotedOffers:
    """The offers of a request of GET /v1/offers. Raises UnknownName."""
    book, found = find_offers(context, request)
    now = context.clock()
    ordered = sorted(found, key=lambda offer: (offer.market == AUCTION_FLOOR, book.is_stale(offer, now), offer.usd_per_accelerator_hour))
    fleet = fleet_cost(ordered, request)
    return QuotedOffers(_summarise(request, ordered, book, now, fleet), fleet, book, tuple(ordered[:MOST_SHOWN]), len(ordered), now)


def _of_fleet(fleet: FleetCost | None) -> Iterator[str]:
    """What a fleet costs, in a sentence; nothing where no price is known."""
    at = {"your price": "stated_usd", "the lowest price": "least_usd", "the median": "median_usd"}
    sums = [f"{money(usd)} at {words}" for words, name in at.items() if (usd := getattr(fleet, name, None)) is not None]
    if fleet is not None and sums:
        yield f"{_held(fleet)}: {', '.join(sums)}."


def _held(fleet: FleetCost) -> str:
    """How many accelerators are held, and how long."""
    return f"{fleet.count:,} of them {'an hour' if fleet.hours == 1 else f'for {duration(fleet.hours)}'}"


def _summarise(request: Mapping[str, Any], offers: list[Offer], book: PriceBook, now: datetime, fleet: FleetCost | None) -> Summary:
    what = " ".join(str(request[name]) for name in ("accelerator", "pricing", "provider", "region", "jurisdiction") if name in request)
    what = what.replace("_", " ").replace(",", ", ")
    firm = [offer for offer in offers if offer.market != AUCTION_FLOOR]
    if not firm:
        return Summary(text=f"No price of {what} is known." if not offers else f"Only auction floors of {what} are known.")
    prices = [float(offer.usd_per_accelerator_hour) for offer in firm]
    if several := _each(request, firm, book, now, fleet):
        held = "" if fleet is None else f", and {_held(fleet)}"
        return Summary(text=f"{what}, cheapest an accelerator-hour{held}: {'; '.join(several)}."[:LONGEST_SUMMARY])
    least, sellers = firm[0], {offer.provider for offer in firm}
    text = (
        f"{what}: from {money(min(prices))} to {money(max(prices))} an accelerator-hour, median {money(statistics.median(prices))},"
        f" {len(firm)} offers of {len(sellers)} providers; {least.provider} {least.region} ({least.pricing.replace('_', ' ')}) asks"
        f" {money(float(least.usd_per_accelerator_hour))}, {_age(least, book, now)}."
    )
    return Summary(text=" ".join([text, *_of_fleet(fleet)])[:LONGEST_SUMMARY])


def _each(request: Mapping[str, Any], firm: list[Offer], book: PriceBook, now: datetime, fleet: FleetCost | None) -> list[str]:
    """The cheapest offer of each provider that is asked about, or accelerator, or kind of pricing; nothing where one is asked about."""
    axis = next((name for name in ("provider", "accelerator", "pricing") if len(values_of(request, name)) > 1), None)
    if axis is None:
        return []
    found = []
    for value in values_of(request, axis):
        names = find_accelerator(value) if axis == "accelerator" else None
        of_it = {names.accelerator.name, *names.ambiguous_with} if names else {value.casefold()}
        least = next((offer for offer in firm if getattr(offer, axis) in of_it or getattr(offer, axis).casefold() in of_it), None)
        said = value.replace("_", " ")
        total = "" if fleet is None or least is None else f", {money(float(least.usd_per_accelerator_hour) * fleet.accelerator_hours)}"
        found.append(f"{said} none known" if least is None else f"{said} {_least(least, axis)}{total}, {_age(least, book, now)}")
    return found


def _least(least: Offer, axis: str) -> str:
    """An offer's price and what it is of besides what is asked about."""
    seller = "" if axis == "provider" else f"{least.provider} "
    return f"{money(float(least.usd_per_accelerator_hour))} ({seller}{least.region}, {least.pricing.replace('_', ' ')})"


def _age(offer: Offer, book: PriceBook, now: datetime) -> str:
    return f"read {offer.observed_at:%Y-%m-%d}{', stale' if book.is_stale(offer, now) else ''}"
