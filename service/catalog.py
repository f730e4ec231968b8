"""Offers and where they are from: the current price book, and older ones by their snapshot's name.

A price book is immutable; its name says exactly which prices it holds, so that an estimate can be repeated against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Protocol

from providers.offer import Offer, Provider
from service.domain.errors import UnknownName

BUILT_IN_PROVIDER = "snapshot"
# Recorded books kept in memory: a batch is usually repeated against one.
KEPT_BOOKS = 4


class SnapshotStore(Protocol):
    """What the catalogue needs of the store."""

    def load_snapshot(self, name: str) -> tuple[Offer, ...] | None:
        """The offers kept under a snapshot's name, or None."""


@dataclass(frozen=True)
class PriceBook:
    """All offers of one state of the prices, ordered by `offer_key`. `fresh_for` is the promise of their provider."""

    name: str
    offers: tuple[Offer, ...]
    fresh_for: timedelta
    by_accelerator: MappingProxyType[str, tuple[Offer, ...]] = field(repr=False)

    @cached_property
    def newest(self) -> datetime:
        """When the newest price of the book was read; the beginning of time for an empty one."""
        return max((offer.observed_at for offer in self.offers), default=datetime.min.replace(tzinfo=UTC))

    def stale(self, offer: Offer, now: datetime) -> bool:
        """Whether the offer is older than its provider's promise."""
        return now - offer.observed_at > self.fresh_for


def answers(offer: Offer, wanted: Mapping[str, str | None]) -> bool:
    """Whether the offer has every value of `wanted` (fields of an offer to texts, case-blind; None: any)."""
    return all(value is None or getattr(offer, name).casefold() == value.casefold() for name, value in wanted.items())


def offer_key(offer: Offer) -> tuple[str, ...]:
    """What tells one offer from another, in the order of listings."""
    return (offer.accelerator, offer.provider, offer.region, offer.instance_type, offer.pricing, str(offer.accelerator_count), offer.market)


def price_book(name: str, offers: Iterable[Offer], fresh_for: timedelta) -> PriceBook:
    """A book of the offers, ordered and indexed."""
    ordered = tuple(sorted(offers, key=offer_key))
    index: dict[str, list[Offer]] = {}
    for offer in ordered:
        index.setdefault(offer.accelerator, []).append(offer)
    return PriceBook(name, ordered, fresh_for, MappingProxyType({name: tuple(found) for name, found in index.items()}))


class Catalog:
    """The current book and the recorded ones. Books are read once a process; the shipped one changes only with a new release."""

    def __init__(self, load_provider: Callable[[], Provider], store: SnapshotStore) -> None:
        self._load_provider, self._store = load_provider, store
        self._recorded = lru_cache(maxsize=KEPT_BOOKS)(self._read)

    @cached_property
    def current(self) -> PriceBook:
        """The newest known prices."""
        provider = self._load_provider()
        fetched = provider.fetch()
        return price_book(fetched.snapshot, fetched.offers, provider.fresh_for)

    def book(self, name: str | None = None) -> PriceBook:
        """The current book, or the recorded one of that name. Raises UnknownName (pointer /price/snapshot)."""
        if name is None or name == self.current.name:
            return self.current
        return self._recorded(name)

    def _read(self, name: str) -> PriceBook:
        offers = self._store.load_snapshot(name)
        if offers is None:
            raise UnknownName(
                f"no price snapshot is called {name[:100]!r}; the current one is {self.current.name}",
                "/price/snapshot",
                (self.current.name,),
            )
        return price_book(name, offers, self.current.fresh_for)
