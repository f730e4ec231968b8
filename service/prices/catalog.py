"""The current price book, and recorded ones by the name of a book or a snapshot.

No request fetches from a provider, and none waits for the store once a book is in memory: a process refreshes its book in the background,
at most once a second. The store is authoritative; the cache saves reads.

All teams see the same book, except that a team with prices of its own sees them in a book under another name that only it can use.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from service.domain.errors import StoreUnavailable, UnknownName
from service.prices.book import BUILT_IN_PROVIDER, PriceBook, make_price_book, matches_filters
from service.prices.snapshots import TEAM_SEPARATOR, SnapshotRepository
from service.store import EMPTY_MANIFEST, BookManifest

__all__ = ["BUILT_IN_PROVIDER", "PriceBook", "PriceCatalog", "make_price_book", "matches_filters"]

log = logging.getLogger(__name__)

CACHED_BOOKS = 4
"""Recorded books in memory: a batch usually uses one."""
REFRESH_INTERVAL_S = 1.0
"""Time between refreshes of a process in use [s]."""
IDLE_AFTER_S = 5.0
"""After this time without refresh [s] a request waits for one, up to `MAX_WAIT_S`: an idle process should not answer with old prices."""
MAX_WAIT_S = 0.1
FIRST_MAX_WAIT_S = 5.0
"""Longest wait of first requests for the store [s]; later ones get the shipped prices, marked as stale."""
REFRESH_THREAD = "price-look"


@dataclass(frozen=True, slots=True)
class _CurrentBooks:
    """Result of a refresh: the common book, and the books of teams with own prices that were requested."""

    book: PriceBook
    manifest: BookManifest
    by_team: dict[str, PriceBook] = field(default_factory=dict)


class _NotRecordedError(Exception):
    """Nothing is recorded under the name for this team."""


def noop_observer(manifest: BookManifest) -> None:
    """Ignore the manifest."""
    del manifest


class PriceCatalog:
    """The current book and recorded ones. `watch(manifest)` is called in the background after each refresh."""

    def __init__(self, snapshots: SnapshotRepository, clock: Callable[[], float] = time.monotonic) -> None:
        self._snapshots, self._clock = snapshots, clock
        self._recorded = lru_cache(maxsize=CACHED_BOOKS)(self._read)
        self._recorded_of_team = lru_cache(maxsize=CACHED_BOOKS)(self._read_team_book)
        self._current: _CurrentBooks | None = None
        self._refreshing = threading.Lock()
        self._next_refresh = self._last_refresh = float("-inf")
        self._first_until = float("inf")
        self.watch: Callable[[BookManifest], None] = noop_observer

    @property
    def current(self) -> PriceBook:
        """The newest prices, without team prices."""
        now = self._clock()
        if self._current is None:
            self._first_until = min(self._first_until, now + FIRST_MAX_WAIT_S)
            self._refresh_in_background(max(0.0, self._first_until - now))
        elif now >= self._next_refresh:
            self._refresh_in_background(MAX_WAIT_S if now - self._last_refresh > IDLE_AFTER_S else 0.0)
        return self._current.book if self._current else self._fallback

    @cached_property
    def _fallback(self) -> PriceBook:
        """The shipped prices, marked as disconnected, until the store has answered."""
        return replace(self._snapshots.shipped, disconnected=True)

    def book(self, name: str | None = None, team: str | None = None) -> PriceBook:
        """The current book as the team sees it, or the recorded one of a name.

        Raises UnknownName (pointer /price/snapshot), also for a book with another team's prices; StoreUnavailable.
        """
        current = self._book_of_team(team)
        if name in (None, current.name):
            return current
        try:
            return self._recorded_of_team(team, str(name)) if team and TEAM_SEPARATOR in str(name) else self._recorded(str(name))
        except _NotRecordedError:
            message = f"no price snapshot is called {str(name)[:100]!r}; the current one is {current.name}"
            raise UnknownName(message, "/price/snapshot", (current.name,)) from None

    def _book_of_team(self, team: str | None) -> PriceBook:
        """The current book with the team's own prices."""
        book, current = self.current, self._current
        if team is None or current is None or team not in current.manifest.teams:
            return book
        if team not in current.by_team:
            current.by_team[team] = self._with_team_prices(current.book, current.manifest, team)
        return current.by_team[team]

    def _with_team_prices(self, book: PriceBook, manifest: BookManifest, team: str) -> PriceBook:
        return self._snapshots.with_team_prices(book, manifest.teams[team], now_known=True)

    def refresh(self) -> None:
        """Load the current book if it has changed."""
        try:
            manifest, last = self._snapshots.current_manifest(), self._current
            if last is None or last.book.disconnected or manifest != last.manifest:
                book, known = self._snapshots.current(manifest), last.by_team if last else {}
                self._current = _CurrentBooks(
                    book, manifest, {team: self._with_team_prices(book, manifest, team) for team in list(known) if team in manifest.teams}
                )
            self.watch(manifest)
        except StoreUnavailable as error:
            self._mark_disconnected(error)
        self._last_refresh = self._clock()

    def _mark_disconnected(self, error: StoreUnavailable) -> None:
        last = self._current
        if last is None or not last.book.disconnected:
            log.warning("prices cannot be read, going on with those in memory: %s", error)
            book, manifest = (last.book, last.manifest) if last else (self._fallback, EMPTY_MANIFEST)
            self._current = _CurrentBooks(replace(book, disconnected=True), manifest)

    def _refresh_in_background(self, wait_s: float) -> None:
        """Refresh in a thread, waiting at most `wait_s`; only one refresh runs at a time."""
        first = self._current is None
        if not self._refreshing.acquire(timeout=wait_s if first else 0.0):
            return
        if first and self._current is not None:
            self._refreshing.release()
            return
        self._next_refresh = self._clock() + REFRESH_INTERVAL_S
        thread = threading.Thread(target=self._refresh_and_release, name=REFRESH_THREAD, daemon=True)
        thread.start()
        if wait_s:
            thread.join(wait_s)

    def _refresh_and_release(self) -> None:
        try:
            self.refresh()
        finally:
            self._refreshing.release()

    def _read(self, name: str) -> PriceBook:
        found = self._snapshots.recorded(name)
        if found is None:
            raise _NotRecordedError(name)
        return found

    def _read_team_book(self, team: str, name: str) -> PriceBook:
        shared, _, own = name.rpartition(TEAM_SEPARATOR)
        ref = self._snapshots.team_ref(team, own)
        if ref is None:
            raise _NotRecordedError(name)
        return self._snapshots.with_team_prices(self._recorded(shared), ref, now_known=False)
