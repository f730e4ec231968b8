"""Offers and where they are from: the current price book, and older ones by the name of a book or a snapshot.

No request asks a price source, and none waits for the store once there is a book: a process keeps its book in memory and looks in the
background, at most once a second, whether another is current. The truth is the store; the cache only saves it the asking.

Everybody sees the same book, but a team with prices of its own: it sees them in that book, under another name that nobody else can use.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from service.domain.errors import StoreUnavailable, UnknownName
from service.prices.book import BUILT_IN_PROVIDER, PriceBook, answers, price_book
from service.prices.snapshots import AND_OWN, SnapshotRepository
from service.store import NO_HEADS, BookManifest

__all__ = ["BUILT_IN_PROVIDER", "Catalog", "PriceBook", "answers", "price_book"]

log = logging.getLogger(__name__)

KEPT_BOOKS = 4
"""Recorded books kept in memory: a batch is usually repeated against one."""
LOOK_S = 1.0
"""How often a process in use looks whether the prices have moved."""
IDLE_S = 5.0
"""After so long without a look a request waits for one, up to `WAIT_S`: a process that slept should not answer with old prices."""
WAIT_S = 0.1
FIRST_WAIT_S = 5.0
"""How long the first requests of a process wait for the store; after that all are answered with the shipped prices, marked as stale."""
LOOKER = "price-look"


@dataclass(frozen=True, slots=True)
class _Present:
    """What a look has found: everybody's book, and the books of those teams with prices of their own that have asked for theirs."""

    book: PriceBook
    heads: BookManifest
    own: dict[str, PriceBook] = field(default_factory=dict)


class _NotThere(Exception):
    """Nothing was recorded under a name, for whoever asks."""


def nobody(heads: BookManifest) -> None:
    """Where nobody wants to know what a look has found."""
    del heads


class Catalog:
    """The current book and the recorded ones. `watch(heads)` is called, in the background, with what each look has found."""

    def __init__(self, shelf: SnapshotRepository, clock: Callable[[], float] = time.monotonic) -> None:
        self._shelf, self._clock = shelf, clock
        self._recorded = lru_cache(maxsize=KEPT_BOOKS)(self._read)
        self._recorded_own = lru_cache(maxsize=KEPT_BOOKS)(self._read_own)
        self._present: _Present | None = None
        self._looking = threading.Lock()
        self._next_look = self._last_look = float("-inf")
        self._first_until = float("inf")
        self.watch: Callable[[BookManifest], None] = nobody

    @property
    def current(self) -> PriceBook:
        """The newest known prices, no team's own among them."""
        now = self._clock()
        if self._present is None:
            self._first_until = min(self._first_until, now + FIRST_WAIT_S)
            self._look_beside(max(0.0, self._first_until - now))
        elif now >= self._next_look:
            self._look_beside(WAIT_S if now - self._last_look > IDLE_S else 0.0)
        return self._present.book if self._present else self._stand_in

    @cached_property
    def _stand_in(self) -> PriceBook:
        """What is served while the store has told nothing yet."""
        return replace(self._shelf.shipped, cut_off=True)

    def book(self, name: str | None = None, team: str | None = None) -> PriceBook:
        """The current book as a team of that name sees it, or the recorded one of a name.

        Raises UnknownName (pointer /price/snapshot), also for a book with another team's prices; StoreUnavailable.
        """
        current = self._seen_by(team)
        if name in (None, current.name):
            return current
        try:
            return self._recorded_own(team, str(name)) if team and AND_OWN in str(name) else self._recorded(str(name))
        except _NotThere:
            told = f"no price snapshot is called {str(name)[:100]!r}; the current one is {current.name}"
            raise UnknownName(told, "/price/snapshot", (current.name,)) from None

    def _seen_by(self, team: str | None) -> PriceBook:
        """The current book, with what the team of that name has of its own."""
        book, present = self.current, self._present
        if team is None or present is None or team not in present.heads.teams:
            return book
        if team not in present.own:
            present.own[team] = self._with_own(present.book, present.heads, team)
        return present.own[team]

    def _with_own(self, book: PriceBook, heads: BookManifest, team: str) -> PriceBook:
        return self._shelf.with_own(book, heads.teams[team], now_known=True)

    def look(self) -> None:
        """See what the current prices are."""
        try:
            heads, last = self._shelf.current_heads(), self._present
            if last is None or last.book.cut_off or heads != last.heads:
                book, asked = self._shelf.current(heads), last.own if last else {}
                self._present = _Present(
                    book, heads, {team: self._with_own(book, heads, team) for team in list(asked) if team in heads.teams}
                )
            self.watch(heads)
        except StoreUnavailable as error:
            self._cut_off(error)
        self._last_look = self._clock()

    def _cut_off(self, error: StoreUnavailable) -> None:
        last = self._present
        if last is None or not last.book.cut_off:
            log.warning("prices cannot be read, going on with those in memory: %s", error)
            self._present = _Present(replace(last.book, cut_off=True), last.heads) if last else _Present(self._stand_in, NO_HEADS)

    def _look_beside(self, wait_s: float) -> None:
        """A look in a thread of its own, waited for no longer than `wait_s`; while one is under way there is no second."""
        first = self._present is None
        if not self._looking.acquire(timeout=wait_s if first else 0.0):
            return
        if first and self._present is not None:
            self._looking.release()
            return
        self._next_look = self._clock() + LOOK_S
        looker = threading.Thread(target=self._look_and_release, name=LOOKER, daemon=True)
        looker.start()
        if wait_s:
            looker.join(wait_s)

    def _look_and_release(self) -> None:
        try:
            self.look()
        finally:
            self._looking.release()

    def _read(self, name: str) -> PriceBook:
        found = self._shelf.recorded(name)
        if found is None:
            raise _NotThere(name)
        return found

    def _read_own(self, team: str, name: str) -> PriceBook:
        shared, _, own = name.rpartition(AND_OWN)
        head = self._shelf.own_head(team, own)
        if head is None:
            raise _NotThere(name)
        return self._shelf.with_own(self._recorded(shared), head, now_known=False)
