"""The price of an accelerator-hour: its offers, the cheapest first, in a sentence."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from providers.offer import Offer
from service.context import AppContext
from service.domain.prices import FleetCost
from service.domain.summary import Summary
from service.formats.field_words import choice_words
from service.formats.headline import counted, day, duration, money
from service.presets.hardware.accelerators import find_accelerator
from service.prices.book import PriceBook
from service.usecases.prices.catalog import find_offers, values_of
from service.usecases.prices.fleet import AUCTION_FLOOR, fleet_cost

MOST_SHOWN = 50
MOST_NAMED = 8
"""Accelerators whose lowest price is told where all are asked about."""
ON_DEMAND = "on_demand"
LONGEST_SUMMARY = 1000
HOURS_PER_YEAR = 8766


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


def _of_fleet(fleet: FleetCost | None, least: Iterable[Offer]) -> Iterator[str]:
    """What a fleet costs at a stated price, at the lowest of each kind and at the median, in a sentence; nothing where none is known."""
    if fleet is None:
        return
    sums: dict[str, float | None] = {f"{choice_words(offer.pricing)} at its lowest price": _of_hours(offer, fleet) for offer in least}
    sums |= {"at the median": fleet.median_usd} if sums else {}
    sums = {"at your price": fleet.stated_usd} | sums
    told = [f"{money(usd)} {words}" for words, usd in sums.items() if usd is not None]
    if told:
        yield f"{_held(fleet)}: {', '.join(told)}."


def _of_hours(offer: Offer, fleet: FleetCost) -> float:
    return float(offer.usd_per_accelerator_hour) * fleet.accelerator_hours


def _held(fleet: FleetCost) -> str:
    """How many accelerators are held, and how long; of one for more than a year its hours, which are those of any number."""
    if fleet.count == 1 and fleet.hours > HOURS_PER_YEAR:
        return f"{fleet.hours:,.10g} accelerator-hours"
    return f"{fleet.count:,} of them {'an hour' if fleet.hours == 1 else f'for {duration(fleet.hours)}'}"


def _summarise(request: Mapping[str, Any], offers: list[Offer], book: PriceBook, now: datetime, fleet: FleetCost | None) -> Summary:
    what = _named(request, ("accelerator", "pricing", "provider", "region", "jurisdiction"))
    firm = [offer for offer in offers if offer.market != AUCTION_FLOOR]
    if not firm:
        return Summary(text=f"No price of {what} is known." if not offers else f"Only auction floors of {what} are known.")
    if not _named(request, ("accelerator", "provider", "region")):
        return Summary(text=_of_all(request, firm)[:LONGEST_SUMMARY])
    if several := _each(request, firm, book, now, fleet):
        held = "" if fleet is None else f", and {_held(fleet)}"
        return Summary(text=f"{what}, cheapest an accelerator-hour{held}: {'; '.join(several)}."[:LONGEST_SUMMARY])
    lowest = _least_of_kinds(firm)
    kinds = "; ".join(f"{choice_words(least.pricing)} from {_least(least, 'pricing')}, {_age(least, book, now)}" for least in lowest)
    of_what = _named(request, ("accelerator", "provider", "region", "jurisdiction"))
    text = f"{of_what}, an accelerator-hour: {kinds}. {_spread(firm, book, now)}"
    return Summary(text=" ".join([text, *_of_fleet(fleet, lowest)])[:LONGEST_SUMMARY])


def _of_all(request: Mapping[str, Any], firm: Sequence[Offer]) -> str:
    """How many accelerators have prices, at which providers, and the lowest price of those that most of them sell."""
    sellers: dict[str, set[str]] = {}
    for offer in firm:
        sellers.setdefault(offer.accelerator, set()).add(offer.provider)
    providers = sorted({offer.provider for offer in firm})
    where = f" in {places}" if (places := _named(request, ("jurisdiction",))) else ""
    shown = sorted(sellers, key=lambda name: (-len(sellers[name]), name))[:MOST_NAMED]
    least = "; ".join(f"{name} {_least_text(firm, name)}" for name in shown)
    more = f"; and {counted(len(sellers) - len(shown), 'other')}" if len(sellers) > len(shown) else ""
    known = f"{counted(len(sellers), 'accelerator')}{where} at {counted(len(providers), 'provider')} ({', '.join(providers)})"
    return f"Prices of {known}. An accelerator-hour from: {least}{more}."


def _least_text(firm: Iterable[Offer], accelerator: str) -> str:
    """The first offer of an accelerator, on demand where it is sold so."""
    its = [offer for offer in firm if offer.accelerator == accelerator]
    least = next((offer for offer in its if offer.pricing == ON_DEMAND), its[0])
    return f"{money(float(least.usd_per_accelerator_hour))} ({least.provider}, {choice_words(least.pricing)})"


def _named(request: Mapping[str, Any], parts: Sequence[str]) -> str:
    """Parts of a request in words."""
    return " ".join(str(request[name]) for name in parts if name in request).replace("_", " ").replace(",", ", ")


def _spread(firm: list[Offer], book: PriceBook, now: datetime) -> str:
    """How many offers there are, between which prices, and how many of them are stale."""
    prices = [float(offer.usd_per_accelerator_hour) for offer in firm]
    sellers, stale = len({offer.provider for offer in firm}), sum(book.is_stale(offer, now) for offer in firm)
    return (
        f"{counted(len(firm), 'offer')} of {counted(sellers, 'provider')} from {money(min(prices))} to {money(max(prices))},"
        f" median {money(statistics.median(prices))}{f'; {stale} of them stale' if stale else ''}."
    )


def _least_of_kinds(firm: list[Offer]) -> list[Offer]:
    """The first offer of each kind of pricing: the cheapest that is not stale, where there is one."""
    first: dict[str, Offer] = {}
    for offer in firm:
        first.setdefault(offer.pricing, offer)
    return sorted(first.values(), key=lambda offer: (offer.pricing != ON_DEMAND, offer.pricing))


def _each(request: Mapping[str, Any], firm: list[Offer], book: PriceBook, now: datetime, fleet: FleetCost | None) -> list[str]:
    """The cheapest offer of each provider that is asked about, or accelerator, or kind of pricing; nothing where one is asked about.

    On demand where it is sold so: the spot price of one beside another's on demand compares two things.
    """
    axis = next((name for name in ("provider", "accelerator", "pricing") if len(values_of(request, name)) > 1), None)
    if axis is None:
        return []
    found = []
    for value in values_of(request, axis):
        names = find_accelerator(value) if axis == "accelerator" else None
        of_it = {names.accelerator.name, *names.ambiguous_with} if names else {value.casefold()}
        its = [offer for offer in firm if getattr(offer, axis) in of_it or getattr(offer, axis).casefold() in of_it]
        least = next((offer for offer in its if offer.pricing == ON_DEMAND), its[0] if its else None)
        said = choice_words(value)
        total = "" if fleet is None or least is None else f", {money(_of_hours(least, fleet))}"
        found.append(f"{said} none known" if least is None else f"{said} {_least(least, axis)}{total}, {_age(least, book, now)}")
    return found


def _least(least: Offer, axis: str) -> str:
    """An offer's price and what it is of besides what is asked about."""
    seller = "" if axis == "provider" else f"{least.provider} "
    kind = "" if axis == "pricing" else f", {choice_words(least.pricing)}"
    return f"{money(float(least.usd_per_accelerator_hour))} ({seller}{least.region}{kind})"


def _age(offer: Offer, book: PriceBook, now: datetime) -> str:
    return f"read {day(offer.observed_at)}{', stale' if book.is_stale(offer, now) else ''}"
