"""Read-through snapshot cache; assembles price books."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from providers.offer import Fetched, Offer, Provider
from service.cache import Cache
from service.domain.errors import StoreUnavailable
from service.domain.price_books import BookManifest, SnapshotRef
from service.prices.book import BUILT_IN_PROVIDER, NEVER, PriceBook, extend_book, make_price_book, offer_origin
from service.prices.freshness import FreshnessPolicy
from service.prices.precedence import FILE_PROVIDER, BookPart, add_team_prices, merge_parts
from service.prices.snapshot_codec import FORMAT, pack, unpack

if TYPE_CHECKING:
    from service.store import Store

MANIFEST_KEY = "prices:heads"
MANIFEST_TTL_S = 1.0
SNAPSHOT_TTL_S = 86_400.0
TEAM_SEPARATOR = "~"
"""Separator of the names of the common book and the team's prices in the name of the team's book; needs no escape in a URL."""
END_SEPARATOR = "@"
"""Separator of the name of a team's book and the last day on which one of its quotes has ended."""
MAX_KNOWN_ENDS = 1000


class SnapshotRepository:
    """Reads snapshots. Those of the current book stay in memory, so that a new book loads only snapshots that changed."""

    def __init__(self, load_provider: Callable[[], Provider], store: Store, cache: Cache | None = None) -> None:
        self._load_provider, self._store, self._cache = load_provider, store, cache
        self._at_hand: dict[str, Fetched] = {}
        self._known_ends: dict[str, frozenset[date]] = {}

    @cached_property
    def shipped(self) -> PriceBook:
        """The shipped prices, used as long as nothing else is stored."""
        return make_price_book(self._shipped.snapshot, self._shipped.offers, self._shipped_policy.fresh_for)

    def forget_manifest(self) -> None:
        """Read the manifest from the store at the next look: something has changed."""
        if self._cache:
            self._cache.set(MANIFEST_KEY, b"", MANIFEST_TTL_S)

    def current_manifest(self) -> BookManifest:
        """The newest book's name and parts."""
        blob = self._cache.get(MANIFEST_KEY) if self._cache else None
        manifest = _read_manifest(blob) if blob else None
        if manifest is None:
            manifest = self._store.current_manifest()
            if self._cache:
                self._cache.set(MANIFEST_KEY, json.dumps(asdict(manifest), default=datetime.isoformat).encode(), MANIFEST_TTL_S)
        return manifest

    def current(self, manifest: BookManifest) -> PriceBook:
        """The book of the current manifest: its offers carry the time at which they were last confirmed."""
        if manifest.book is None:
            return self.shipped
        own = (*manifest.teams.values(), *manifest.quotes.values())
        self._at_hand = {ref.snapshot: self._snapshot(ref.snapshot) for ref in (*manifest.parts, *own)}
        return self._assemble(manifest.book, manifest.parts, now_known=True)

    def recorded(self, name: str) -> PriceBook | None:
        """A book or a single snapshot as recorded, None where there is none of that name. Team prices are in none."""
        if name == self.shipped.name:
            return self.shipped
        manifest = self._store.book_manifest(name)
        return self._assemble(name, manifest.parts, now_known=False) if manifest.parts else None

    def team_ref(self, team: str, snapshot: str) -> SnapshotRef | None:
        """A team's recorded prices; None where this team has none of that name."""
        return self._store.team_snapshot_ref(team, snapshot)

    def last_end(self, refs: Sequence[SnapshotRef], today: date) -> date | None:
        """The last day on which a price of these snapshots ended before today; None where none has ended."""
        return max((day for ref in refs for day in self._ends(ref.snapshot) if day < today), default=None)

    def _ends(self, snapshot: str) -> frozenset[date]:
        """Days on which prices of a snapshot end."""
        if snapshot not in self._known_ends:
            days = frozenset(offer.terms.valid_until for offer in self._snapshot(snapshot).offers if offer.terms.valid_until is not None)
            self._known_ends = {**self._known_ends, snapshot: days} if len(self._known_ends) < MAX_KNOWN_ENDS else {snapshot: days}
        return self._known_ends[snapshot]

    def with_team_prices(self, book: PriceBook, ref: SnapshotRef, *, now_known: bool, ended: date | None = None) -> PriceBook:
        """The common book with the team's own prices of `ref`, without those that ended on `ended` or before."""
        team_prices, policy = self._snapshot(ref.snapshot), self._policy(ref, now_known=now_known)
        gone = tuple(offer for offer in team_prices.offers if ended and offer.terms.valid_until and offer.terms.valid_until <= ended)
        if gone:
            team_prices = replace(team_prices, offers=tuple(offer for offer in team_prices.offers if offer not in gone))
            book = replace(book, ended=(*book.ended, *gone))
        newest = max((offer.observed_at for offer in team_prices.offers), default=NEVER)
        if now_known:
            team_prices = replace(team_prices, offers=tuple(_with_verified_time(offer, ref) for offer in team_prices.offers))
        return extend_book(
            book,
            f"{book.name}{TEAM_SEPARATOR}{ref.snapshot}",
            add_team_prices(book.offers, team_prices, lambda offer: book.source_provider(offer) == FILE_PROVIDER),
            {offer_origin(offer): policy for offer in team_prices.offers},
            newest,
        )

    @cached_property
    def _shipped(self) -> Fetched:
        return self._load_provider().fetch()

    @cached_property
    def _shipped_policy(self) -> FreshnessPolicy:
        return FreshnessPolicy(BUILT_IN_PROVIDER, self._load_provider().fresh_for)

    def _assemble(self, name: str, manifest: Sequence[SnapshotRef], *, now_known: bool) -> PriceBook:
        """`now_known`: date and judge offers by the present state of their providers, not by the state when the book was made."""
        snapshots = [(ref, self._snapshot(ref.snapshot)) for ref in manifest]
        offers = merge_parts([BookPart(ref.provider, ref.taken_at, found.offers, found.discounts) for ref, found in snapshots])
        ref_of = {place: ref for ref, found in snapshots for place in {offer_origin(offer) for offer in found.offers}}
        policies = {place: self._policy(ref, now_known=now_known) for place, ref in ref_of.items()}
        newest = max((offer.observed_at for offer in offers), default=NEVER)
        if now_known:
            offers = tuple(_with_verified_time(offer, ref_of[offer_origin(offer)]) for offer in offers)
        return make_price_book(name, offers, self._shipped_policy.fresh_for, policies=policies, newest=newest)

    def _policy(self, ref: SnapshotRef, *, now_known: bool) -> FreshnessPolicy:
        if ref.provider == BUILT_IN_PROVIDER or ref.fresh_for_s is None:
            return replace(self._shipped_policy, provider=ref.provider)
        return FreshnessPolicy(ref.provider, timedelta(seconds=ref.fresh_for_s), reached=not (now_known and ref.failures))

    def _snapshot(self, name: str) -> Fetched:
        """A snapshot from memory, else cache, else store; a read from the store fills the cache."""
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


def _with_verified_time(offer: Offer, ref: SnapshotRef) -> Offer:
    """The offer, dated by its provider's last answer if that confirmed it."""
    if ref.verified_at is None or offer.observed_at < ref.taken_at or offer.observed_at >= ref.verified_at:
        return offer
    return replace(offer, observed_at=ref.verified_at)


def _read_manifest(blob: bytes) -> BookManifest | None:
    """Manifest from the cache; None for anything else."""
    try:
        found = json.loads(blob)
        teams, quotes = ({str(team): _snapshot_ref(part) for team, part in found[name].items()} for name in ("teams", "quotes"))
        return BookManifest(found["book"], tuple(_snapshot_ref(part) for part in found["parts"]), teams, quotes)
    except (AttributeError, ValueError, TypeError, KeyError):
        return None


def _snapshot_ref(part: dict[str, Any]) -> SnapshotRef:
    times = {name: part[name] and datetime.fromisoformat(part[name]) for name in ("taken_at", "verified_at")}
    return SnapshotRef(**{**part, **times})
