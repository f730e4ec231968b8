"""Plausibility rules over many offers: price jumps, one price for all sizes, outliers, spot or reserved above on-demand.

Rules take any row type with accessor functions, and yield each faulty row with the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from typing import TypeVar

from providers.offer import Fetched, Offer
from providers.tables import read_thresholds

Row = TypeVar("Row")
Fault = tuple[Row, str]
Identity = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An offer that is not served, and the reason."""

    offer: Offer
    reason: str


@dataclass(frozen=True, slots=True)
class CheckedOffers:
    """Offers to serve, and offers held back."""

    offers: tuple[Offer, ...]
    quarantined: tuple[Quarantined, ...]


def check_offers(
    fetched: Fetched, before: Mapping[Identity, Offer], known: Iterable[Offer] = (), *, accept_jumps: bool = False
) -> CheckedOffers:
    """Offers of a fetch that may be served, and those in quarantine.

    In place of a quarantined offer its last good one stays, with its date. So do offers whose provider, region or instance type is among
    the rejected rows, and all offers where the fetch is partial.

    Parameters
    ----------
    fetched : Fetched
        What the provider answered.
    before : mapping of identity to Offer
        Last good offers of this provider.
    known : iterable of Offer
        Offers of all providers: the reference [USD per accelerator-hour] where this provider has none.
    accept_jumps : bool
        The operator confirmed that the prices moved.

    Returns
    -------
    CheckedOffers
    """
    offers = {offer.identity: offer for offer in fetched.offers}
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
    """Offers that break a rule but are served, each with its first reason.

    Parameters
    ----------
    offers : iterable of Offer
        Offers of the operator's own files.
    before, known : see `check_offers`
        References; every offer is compared with `known`.

    Returns
    -------
    tuple of Quarantined
    """
    offers = list(offers)
    faults = [*find_jumps(offers, before), *find_jumps(offers, {}, known), *(fault for rule in _RULES for fault in rule(offers))]
    first = {offer.identity: Quarantined(offer, reason) for offer, reason in reversed(faults)}
    return tuple(first[key] for key in dict.fromkeys(offer.identity for offer, _ in faults))


def _restore_previous(offers: dict[Identity, Offer], offer: Offer, before: Mapping[Identity, Offer]) -> None:
    """Put the last good offer in place of a faulty one, or remove it where there is no other."""
    key = offer.identity
    last_good = before.get(key)
    if last_good is None or last_good is offer:
        del offers[key]
    else:
        offers[key] = last_good


def find_jumps(offers: Iterable[Offer], before: Mapping[Identity, Offer], known: Iterable[Offer] = ()) -> Iterator[Fault[Offer]]:
    """Offers far above or below their reference price.

    The reference is the last good price of the same offer; for a new offer the median of its kind; for the first offers of a source the
    median of `known`, so that a feed in another unit is not its own reference. Factors: `rules`.

    Parameters
    ----------
    offers : iterable of Offer
        Offers to check [USD per accelerator-hour].
    before : mapping of identity to Offer
        Last good offers of this provider.
    known : iterable of Offer
        Offers of all providers.

    Yields
    ------
    tuple of Offer and str
        Offer and reason.
    """
    factor = rules()["jump_factor"]
    usual, elsewhere = _medians(before.values(), _kind), _medians(known, _accelerator_and_pricing)
    for offer in offers:
        last_good, each = before.get(offer.identity), offer.usd_per_accelerator_hour
        reference = usual.get(_kind(offer)) if last_good is None else last_good.usd_per_accelerator_hour
        others = elsewhere.get(_accelerator_and_pricing(offer))
        if reference is not None:
            if not reference / factor < each < reference * factor:
                yield offer, f"the price jumped from {reference:.4f} to {each:.4f} USD an accelerator-hour"
        elif others is not None and not others / rules()["unit_factor"] < each < others * rules()["unit_factor"]:
            yield offer, f"{each:.4f} USD an accelerator-hour, where the median of all known is {others:.4f}: another unit or currency"


def find_placeholders(rows: Iterable[Row], thing: Callable[[Row], Hashable], size: Callable[[Row], int]) -> Iterator[Fault[Row]]:
    """Rows with one price for many sizes.

    Parameters
    ----------
    rows : iterable
        Rows of any type.
    thing : callable
        Key of a row without its size but with its price.
    size : callable
        Number of accelerators of a row.

    Yields
    ------
    tuple of row and str
        Row and reason.
    """
    for group in group_by(rows, thing).values():
        if len({size(row) for row in group}) >= rules()["placeholder_sizes"]:
            yield from ((row, "one price for every size: a placeholder") for row in group)


def find_outliers(rows: Iterable[Row], kind: Callable[[Row], Hashable], usd: Callable[[Row], Decimal]) -> Iterator[Fault[Row]]:
    """Rows whose price is far from the median of their kind.

    Parameters
    ----------
    rows : iterable
        Rows of any type.
    kind : callable
        Key of a row's kind.
    usd : callable
        Price of a row [USD per accelerator-hour].

    Yields
    ------
    tuple of row and str
        Row and reason.
    """
    factor = rules()["outlier_factor"]
    for group in group_by(rows, kind).values():
        middle = median(usd(row) for row in group)
        if len(group) >= rules()["median_of"]:
            off = (row for row in group if not middle / factor < usd(row) < middle * factor)
            yield from ((row, f"tenfold off the median of {middle:.4f} USD an accelerator-hour") for row in off)


def find_inverted(
    rows: Iterable[Row], thing: Callable[[Row], Hashable], pricing: Callable[[Row], str], usd: Callable[[Row], Decimal]
) -> Iterator[Fault[Row]]:
    """Rows whose spot or reserved price is above the on-demand price of the same thing.

    Parameters
    ----------
    rows : iterable
        Rows of any type.
    thing, pricing : callable
        Key and kind of pricing of a row.
    usd : callable
        Price of a row [USD per hour].

    Yields
    ------
    tuple of row and str
        Row and reason.
    """
    rows = list(rows)
    on_demand = {thing(row): usd(row) for row in rows if pricing(row) == "on_demand"}
    for row in rows:
        ceiling = on_demand.get(thing(row))
        if ceiling is not None and usd(row) > ceiling:
            yield row, f"{pricing(row)} price above on-demand ({ceiling})"


def group_by(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> dict[Hashable, list[Row]]:
    """Rows in lists by key."""
    groups: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def rules() -> Mapping[str, Decimal]:
    """Thresholds by name; `data/checks.csv` states unit and reason of each."""
    return read_thresholds("checks.csv")


def _placeholders_listed(offers: list[Offer]) -> Iterator[Fault[Offer]]:
    """Placeholders among list prices; marketplace hosts of different sizes may ask the same price."""
    listed = [offer for offer in offers if offer.market == "list"]
    return find_placeholders(
        listed, lambda o: (o.provider, o.region, o.accelerator, o.pricing, o.usd_per_hour), lambda o: o.accelerator_count
    )


def _outliers_by_kind(offers: list[Offer]) -> Iterator[Fault[Offer]]:
    return find_outliers(offers, _kind, lambda o: o.usd_per_accelerator_hour)


def _medians(offers: Iterable[Offer], kind: Callable[[Offer], Hashable]) -> dict[Hashable, Decimal]:
    """Median price by kind [USD per accelerator-hour]."""
    return {name: median(offer.usd_per_accelerator_hour for offer in group) for name, group in group_by(offers, kind).items()}


def _accelerator_and_pricing(offer: Offer) -> Hashable:
    return (offer.accelerator, offer.pricing)


def _kind(offer: Offer) -> Hashable:
    return (offer.provider, offer.accelerator, offer.pricing, offer.market)


def _instance_identity(offer: Offer) -> Hashable:
    return (offer.provider, offer.region, offer.instance_type, offer.accelerator, offer.accelerator_count)


def _inverted_listed(offers: list[Offer]) -> Iterator[Fault[Offer]]:
    return find_inverted([o for o in offers if o.market == "list"], _instance_identity, lambda o: o.pricing, lambda o: o.usd_per_hour)


_RULES = (_placeholders_listed, _outliers_by_kind, _inverted_listed)
