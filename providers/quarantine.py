"""What no single row shows: prices that jump, that do not scale, that stand alone, or that are above on-demand.

The rules take any kind of row, by way of functions that read it, and name the rows at fault with the reason.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from statistics import median
from types import MappingProxyType
from typing import TypeVar

from providers.offer import Fetched, Offer

T = TypeVar("T")
Fault = tuple[T, str]
Identity = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An offer that is not believed, and why."""

    offer: Offer
    reason: str


@dataclass(frozen=True, slots=True)
class CheckedOffers:
    """The offers that may be served, and those that may not."""

    offers: tuple[Offer, ...]
    quarantined: tuple[Quarantined, ...]


def identity(offer: Offer) -> Identity:
    """What may have one price only."""
    return (offer.provider, offer.region, offer.instance_type, offer.accelerator, offer.accelerator_count, offer.pricing, offer.market)


def check_offers(
    fetched: Fetched, before: Mapping[Identity, Offer], known: Iterable[Offer] = (), *, accept_jumps: bool = False
) -> CheckedOffers:
    """What of a fetch may be served. `before` are the last good offers, `known` prices of anybody's by which to measure what has none.

    `accept_jumps`: an operator has seen the jump and believes it.

    The last good offer stays, with its old date, in the place of one that is not believed and of rows that could not be read: those whose
    provider, region or instance type the fetch names among its rejected, and all where it is partial.
    """
    offers = {identity(offer): offer for offer in fetched.offers}
    quarantined: list[Quarantined] = []
    for rule in _RULES if accept_jumps else (lambda found: find_jumps(found, before, known), *_RULES):
        for offer, reason in list(rule(list(offers.values()))):
            quarantined.append(Quarantined(offer, reason))
            _restore_previous(offers, offer, before)
    unread = {row.row for row in fetched.rejected}
    kept = {
        key: old for key, old in before.items() if fetched.partial or unread.intersection((old.provider, old.region, old.instance_type))
    }
    return CheckedOffers(tuple({**kept, **offers}.values()), tuple(quarantined))


def find_suspicious(offers: Iterable[Offer], before: Mapping[Identity, Offer], known: Iterable[Offer] = ()) -> tuple[Quarantined, ...]:
    """What the rules have against prices that are served all the same, each with the first reason. Every one is held to `known` prices."""
    offers = list(offers)
    faults = [*find_jumps(offers, before), *find_jumps(offers, {}, known), *(fault for rule in _RULES for fault in rule(offers))]
    first = {identity(offer): Quarantined(offer, reason) for offer, reason in reversed(faults)}
    return tuple(first[key] for key in dict.fromkeys(identity(offer) for offer, _ in faults))


def _restore_previous(offers: dict[Identity, Offer], offer: Offer, before: Mapping[Identity, Offer]) -> None:
    """The last good offer in the place of one at fault; nothing where that is itself the one at fault."""
    key = identity(offer)
    last_good = before.get(key)
    if last_good is None or last_good is offer:
        del offers[key]
    else:
        offers[key] = last_good


def find_jumps(offers: Iterable[Offer], before: Mapping[Identity, Offer], known: Iterable[Offer] = ()) -> Iterator[Fault[Offer]]:
    """Prices many times above or below the last good price of the same thing; of a new thing, below or above what its kind usually cost.

    The first prices of a source have neither: a feed in another unit would be its own measure, so they are held to those known of others.
    """
    factor = rules()["jump_factor"]
    usual, elsewhere = _medians(before.values(), _kind), _medians(known, _sold_anywhere)
    for offer in offers:
        last_good, each = before.get(identity(offer)), offer.usd_per_accelerator_hour
        reference = usual.get(_kind(offer)) if last_good is None else last_good.usd_per_accelerator_hour
        others = elsewhere.get(_sold_anywhere(offer))
        if reference is not None:
            if not reference / factor < each < reference * factor:
                yield offer, f"the price jumped from {reference:.4f} to {each:.4f} USD an accelerator-hour"
        elif others is not None and not others / rules()["unit_factor"] < each < others * rules()["unit_factor"]:
            yield offer, f"{each:.4f} USD an accelerator-hour, where the median of all known is {others:.4f}: another unit or currency"


def find_placeholders(rows: Iterable[T], thing: Callable[[T], Hashable], size: Callable[[T], int]) -> Iterator[Fault[T]]:
    """Prices that do not scale: `thing` holds all but the size, the price included."""
    for group in group_by(rows, thing).values():
        if len({size(row) for row in group}) >= rules()["placeholder_sizes"]:
            yield from ((row, "one price for every size: a placeholder") for row in group)


def find_outliers(rows: Iterable[T], kind: Callable[[T], Hashable], usd: Callable[[T], Decimal]) -> Iterator[Fault[T]]:
    """Prices of an accelerator-hour many times above or below the median of their kind."""
    factor = rules()["outlier_factor"]
    for group in group_by(rows, kind).values():
        middle = median(usd(row) for row in group)
        if len(group) >= rules()["median_of"]:
            off = (row for row in group if not middle / factor < usd(row) < middle * factor)
            yield from ((row, f"tenfold off the median of {middle:.4f} USD an accelerator-hour") for row in off)


def find_inverted(
    rows: Iterable[T], thing: Callable[[T], Hashable], pricing: Callable[[T], str], usd: Callable[[T], Decimal]
) -> Iterator[Fault[T]]:
    """Spot and reserved prices above the on-demand price of the same thing."""
    rows = list(rows)
    on_demand = {thing(row): usd(row) for row in rows if pricing(row) == "on_demand"}
    for row in rows:
        ceiling = on_demand.get(thing(row))
        if ceiling is not None and usd(row) > ceiling:
            yield row, f"{pricing(row)} price above on-demand ({ceiling})"


def group_by(rows: Iterable[T], key: Callable[[T], Hashable]) -> dict[Hashable, list[T]]:
    """The rows by their key."""
    groups: dict[Hashable, list[T]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


@cache
def rules() -> Mapping[str, Decimal]:
    """The thresholds by name; units and reasons stand in `data/checks.csv`."""
    text = (files("providers") / "data" / "checks.csv").read_text(encoding="utf-8")
    return MappingProxyType({row["name"]: Decimal(row["value"]) for row in csv.DictReader(text.splitlines())})


def _without_volume_discounts(offers: list[Offer]) -> Iterator[Fault[Offer]]:
    """On marketplaces hosts of different sizes may well ask for the same."""
    listed = [offer for offer in offers if offer.market == "list"]
    return find_placeholders(
        listed, lambda o: (o.provider, o.region, o.accelerator, o.pricing, o.usd_per_hour), lambda o: o.accelerator_count
    )


def _is_single(offers: list[Offer]) -> Iterator[Fault[Offer]]:
    return find_outliers(offers, _kind, lambda o: o.usd_per_accelerator_hour)


def _medians(offers: Iterable[Offer], kind: Callable[[Offer], Hashable]) -> dict[Hashable, Decimal]:
    """The usual price of an accelerator-hour [USD] by kind."""
    return {name: median(offer.usd_per_accelerator_hour for offer in group) for name, group in group_by(offers, kind).items()}


def _sold_anywhere(offer: Offer) -> Hashable:
    return (offer.accelerator, offer.pricing)


def _kind(offer: Offer) -> Hashable:
    return (offer.provider, offer.accelerator, offer.pricing, offer.market)


def _thing(offer: Offer) -> Hashable:
    return (offer.provider, offer.region, offer.instance_type, offer.accelerator, offer.accelerator_count)


def _upside_down(offers: list[Offer]) -> Iterator[Fault[Offer]]:
    return find_inverted([o for o in offers if o.market == "list"], _thing, lambda o: o.pricing, lambda o: o.usd_per_hour)


_RULES = (_without_volume_discounts, _is_single, _upside_down)
