"""A price book: all offers of one state of the prices, with the freshness of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from types import MappingProxyType

import numpy as np

from providers.offer import UNREAD_SINCE, Offer
from service.domain.prices import offer_key
from service.prices.freshness import FreshnessPolicy, Origin, is_stale
from service.prices.offer_table import Flags, OfferColumns, make_offer_columns

BUILT_IN_PROVIDER = "snapshot"
NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class PriceBook:
    """An immutable price book ordered by `offer_key`. Its name identifies its prices, so that an estimate can be repeated against it.

    `policies` are by origin of an offer, because two providers may read the same mirror; `fresh_for` applies where there is none. `newest`
    is when the newest price was recorded: unlike `observed_at` of offers it is constant for a name. `disconnected`: the store cannot be
    read, so all offers count as stale. `ended` are quotes of the team that have ended and are not among the offers.
    """

    name: str
    offers: tuple[Offer, ...]
    fresh_for: timedelta
    by_accelerator: MappingProxyType[str, tuple[Offer, ...]] = field(repr=False)
    newest: datetime = NEVER
    policies: Mapping[Origin, FreshnessPolicy] = field(default_factory=dict, repr=False)
    disconnected: bool = False
    ended: tuple[Offer, ...] = field(default=(), repr=False)

    @cached_property
    def eligible_by_kind(self) -> dict[tuple[str, str], list[Offer]]:
        """What requests without a provider or region may choose from, by accelerator and pricing, as far as it was asked for."""
        return {}

    @cached_property
    def columns(self) -> OfferColumns:
        """The offers as columns, in their order, for vectorised calculation."""
        return make_offer_columns(self.offers)

    def is_stale(self, offer: Offer, now: datetime) -> bool:
        """Whether the offer is older than its policy allows, or its provider or price file could not be read at the last attempt."""
        policy = self.policies.get(offer_origin(offer))
        fresh_for = self.fresh_for if policy is None else policy.fresh_for
        reached = UNREAD_SINCE not in offer.extras and (policy is None or policy.reached)
        return self.disconnected or not reached or is_stale(offer.observed_at, now, fresh_for)

    def stale_mask(self, now: datetime) -> Flags:
        """`is_stale` of every row of `columns`."""
        read_with = self.columns.read_with
        found = np.zeros(len(read_with), dtype=bool)
        firsts = np.unique(read_with)
        found[firsts] = [self.is_stale(self.offers[row], now) for row in firsts.tolist()]
        return found[read_with]

    def source_provider(self, offer: Offer) -> str:
        """The provider that fetched the offer; it need not be the seller."""
        policy = self.policies.get(offer_origin(offer))
        return BUILT_IN_PROVIDER if policy is None else policy.provider

    def is_shipped(self, offer: Offer) -> bool:
        """Whether the offer is from the shipped snapshot: other offers of the same seller may be years newer."""
        return self.source_provider(offer) == BUILT_IN_PROVIDER


def offer_origin(offer: Offer) -> Origin:
    """Key of the fetch that an offer is from."""
    return offer.provider, offer.source, offer.extras.get("team", "")


def matches_filters(offer: Offer, wanted: Mapping[str, str | None]) -> bool:
    """Whether the offer has every value of `wanted` (text by field of an offer, case-insensitive; None: any)."""
    return all(value is None or getattr(offer, name).casefold() == value.casefold() for name, value in wanted.items())


def make_price_book(
    name: str,
    offers: Iterable[Offer],
    fresh_for: timedelta,
    *,
    policies: Mapping[Origin, FreshnessPolicy] | None = None,
    newest: datetime | None = None,
) -> PriceBook:
    """A book of the offers, ordered and indexed. `newest` is by default the newest `observed_at`."""
    ordered, by_accelerator = _index_offers(offers)
    newest = newest or max((offer.observed_at for offer in ordered), default=NEVER)
    return PriceBook(name, ordered, fresh_for, by_accelerator, newest, policies or {})


def extend_book(
    book: PriceBook, name: str, offers: Iterable[Offer], policies: Mapping[Origin, FreshnessPolicy], newest: datetime
) -> PriceBook:
    """The book under another name, with these offers instead of its own and further policies."""
    ordered, by_accelerator = _index_offers(offers)
    newest = max((book.newest, newest))
    return replace(book, name=name, offers=ordered, by_accelerator=by_accelerator, newest=newest, policies={**book.policies, **policies})


def _index_offers(offers: Iterable[Offer]) -> tuple[tuple[Offer, ...], MappingProxyType[str, tuple[Offer, ...]]]:
    ordered = tuple(sorted(offers, key=offer_key))
    index: dict[str, list[Offer]] = {}
    for offer in ordered:
        index.setdefault(offer.accelerator, []).append(offer)
    return ordered, MappingProxyType({name: tuple(found) for name, found in index.items()})
