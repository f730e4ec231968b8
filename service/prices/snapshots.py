"""Snapshots off the store's shelf, by way of the cache, and books bound of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Protocol

from providers.offer import Fetched, Offer, Provider
from service.cache import Cache
from service.domain.errors import StoreUnavailable
from service.prices.book import BUILT_IN_PROVIDER, NEVER, FreshnessPolicy, PriceBook, extended, origin, price_book
from service.prices.precedence import FILES, Part, merged, with_own
from service.prices.snapshot_codec import FORMAT, pack, unpack
from service.store import BookManifest, SnapshotRef

HEADS_KEY = "prices:heads"
HEADS_TTL_S = 1.0
SNAPSHOT_TTL_S = 86_400.0
AND_OWN = "~"
"""Between the name of everybody's book and that of a team's own prices in the name of the team's book; it needs no escape in an address."""


class PriceStore(Protocol):
    """What is needed of the store. Every method raises StoreUnavailable."""

    def current_heads(self) -> BookManifest:
        """The newest book with its parts."""

    def book_heads(self, name: str) -> BookManifest:
        """The book, or the single snapshot, of that name; never a team's."""

    def team_head(self, team: str, snapshot: str) -> SnapshotRef | None:
        """A team's snapshot of that name, None where the team has none."""

    def load_snapshot(self, name: str) -> Fetched | None:
        """What was kept under a snapshot's name, or None."""


class SnapshotRepository:
    """Reads what is kept. The snapshots of the current book stay in memory, so that one provider's news is all that a new book loads."""

    def __init__(self, load_provider: Callable[[], Provider], store: PriceStore, cache: Cache | None = None) -> None:
        self._load_provider, self._store, self._cache = load_provider, store, cache
        self._at_hand: dict[str, Fetched] = {}

    @cached_property
    def shipped(self) -> PriceBook:
        """The prices that came with the project, the only ones while nothing else was kept."""
        return price_book(self._shipped.snapshot, self._shipped.offers, self._shipped_promise.fresh_for)

    def current_heads(self) -> BookManifest:
        """The newest book's name and parts."""
        blob = self._cache.get(HEADS_KEY) if self._cache else None
        heads = _read_heads(blob) if blob else None
        if heads is None:
            heads = self._store.current_heads()
            if self._cache:
                self._cache.set(HEADS_KEY, json.dumps(asdict(heads), default=datetime.isoformat).encode(), HEADS_TTL_S)
        return heads

    def current(self, heads: BookManifest) -> PriceBook:
        """The book of the current heads: its offers carry the time at which they were last seen to hold."""
        if heads.book is None:
            return self.shipped
        self._at_hand = {head.snapshot: self._snapshot(head.snapshot) for head in (*heads.parts, *heads.teams.values())}
        return self._bound(heads.book, heads.parts, now_known=True)

    def recorded(self, name: str) -> PriceBook | None:
        """A book, or a single snapshot, as it was recorded; None where there is none of that name. No team's own prices are in any."""
        if name == self.shipped.name:
            return self.shipped
        heads = self._store.book_heads(name)
        return self._bound(name, heads.parts, now_known=False) if heads.parts else None

    def own_head(self, team: str, snapshot: str) -> SnapshotRef | None:
        """A team's own prices as they were recorded; None where the team, whoever else has, has none of that name."""
        return self._store.team_head(team, snapshot)

    def with_own(self, book: PriceBook, head: SnapshotRef, *, now_known: bool) -> PriceBook:
        """Everybody's book as the team sees it whose own prices `head` stands for."""
        own, promise = self._snapshot(head.snapshot), self._promise(head, now_known=now_known)
        newest = max((offer.observed_at for offer in own.offers), default=NEVER)
        if now_known:
            own = replace(own, offers=tuple(_verified(offer, head) for offer in own.offers))
        return extended(
            book,
            f"{book.name}{AND_OWN}{head.snapshot}",
            with_own(book.offers, own, lambda offer: book.asked(offer) == FILES),
            {origin(offer): promise for offer in own.offers},
            newest,
        )

    @cached_property
    def _shipped(self) -> Fetched:
        return self._load_provider().fetch()

    @cached_property
    def _shipped_promise(self) -> FreshnessPolicy:
        return FreshnessPolicy(BUILT_IN_PROVIDER, self._load_provider().fresh_for)

    def _bound(self, name: str, heads: Sequence[SnapshotRef], *, now_known: bool) -> PriceBook:
        """`now_known`: date and judge the offers by what is known of their providers now, not when the book was made."""
        snapshots = [(head, self._snapshot(head.snapshot)) for head in heads]
        offers = merged([Part(head.provider, head.taken_at, found.offers, found.discounts) for head, found in snapshots])
        head_of = {place: head for head, found in snapshots for place in {origin(offer) for offer in found.offers}}
        promises = {place: self._promise(head, now_known=now_known) for place, head in head_of.items()}
        newest = max((offer.observed_at for offer in offers), default=NEVER)
        if now_known:
            offers = tuple(_verified(offer, head_of[origin(offer)]) for offer in offers)
        return price_book(name, offers, self._shipped_promise.fresh_for, promises=promises, newest=newest)

    def _promise(self, head: SnapshotRef, *, now_known: bool) -> FreshnessPolicy:
        if head.provider == BUILT_IN_PROVIDER or head.fresh_for_s is None:
            return replace(self._shipped_promise, asked=head.provider)
        return FreshnessPolicy(head.provider, timedelta(seconds=head.fresh_for_s), reached=not (now_known and head.failures))

    def _snapshot(self, name: str) -> Fetched:
        """From memory, else from the cache, else from the store, which then fills the cache."""
        if name == self._shipped.snapshot:
            return self._shipped
        return self._at_hand.get(name) or self._cached(name) or self._stored(name)

    def _cached(self, name: str) -> Fetched | None:
        blob = self._cache.get(_key(name)) if self._cache else None
        return unpack(blob, name) if blob else None

    def _stored(self, name: str) -> Fetched:
        found = self._store.load_snapshot(name)
        if found is None:
            raise StoreUnavailable(f"the snapshot {name} is gone from the database, which names it as current")
        if self._cache:
            self._cache.set(_key(name), pack(found), SNAPSHOT_TTL_S)
        return found


def _key(snapshot: str) -> str:
    return f"prices:snapshot:{FORMAT}:{snapshot}"


def _verified(offer: Offer, head: SnapshotRef) -> Offer:
    """What its provider's last answer but one brought too is as new as that answer; what was read before stays as old as it is."""
    if head.verified_at is None or offer.observed_at < head.taken_at or offer.observed_at >= head.verified_at:
        return offer
    return replace(offer, observed_at=head.verified_at)


def _read_heads(blob: bytes) -> BookManifest | None:
    """Heads as the cache has them; None for anything else that may stand there."""
    try:
        found = json.loads(blob)
        teams = {str(team): _head(part) for team, part in found["teams"].items()}
        return BookManifest(found["book"], tuple(_head(part) for part in found["parts"]), teams)
    except (AttributeError, ValueError, TypeError, KeyError):
        return None


def _head(part: dict[str, Any]) -> SnapshotRef:
    times = {name: part[name] and datetime.fromisoformat(part[name]) for name in ("taken_at", "verified_at")}
    return SnapshotRef(**{**part, **times})
