"""The current price book, and recorded ones by the name of a book or a snapshot.

No request fetches from a provider, and none waits for the store once a book is in memory: a process refreshes its book in the background,
at most once a second. The store is authoritative; the cache saves reads.

All teams see the same book, except that a team with prices of its own sees them in a book under another name that only it can use.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, lru_cache

from service.domain.errors import StoreUnavailable, UnknownName
from service.domain.price_books import EMPTY_MANIFEST, BookManifest, SnapshotRef
from service.prices.book import BUILT_IN_PROVIDER, PriceBook, make_price_book, matches_filters
from service.prices.snapshots import END_SEPARATOR, TEAM_SEPARATOR, SnapshotRepository

__all__ = ["BUILT_IN_PROVIDER", "PriceBook", "PriceCatalog", "make_price_book", "matches_filters"]

log = logging.getLogger(__name__)

CACHED_BOOKS = 4
"""Recorded books in memory: a batch usually uses one."""
REFRESH_INTERVAL_S = 1.0
"""Time between refreshes of a process in use [s]."""
IDLE_AFTER_S = 2.0
"""After this time without refresh [s] a request waits for one, up to `MAX_WAIT_S`: who has sent prices may next ask another process."""
MAX_WAIT_S = 0.1
FIRST_MAX_WAIT_S = 5.0
"""Longest wait of first requests for the store [s]; later ones get the shipped prices, marked as stale."""
REFRESH_THREAD = "price-look"


@dataclass(frozen=True, slots=True)
class _CurrentBooks:
    """Result of a refresh: the common book, and the books of teams with own prices that were requested, by the last end of a quote."""

    book: PriceBook
    manifest: BookManifest
    by_team: dict[tuple[str, date | None], PriceBook] = field(default_factory=dict)


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
        self._refreshing, self._loading = threading.Lock(), threading.Lock()
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

    def book(self, name: str | None = None, team: str | None = None, today: date | None = None) -> PriceBook:
        """The current book as the team sees it today, without its quotes that have ended, or the recorded one of a name.

        Raises UnknownName (pointer /price/snapshot), also for a book with another team's prices; StoreUnavailable.
        """
        current = self._book_of_team(team, today)
        if name in (None, current.name):
            return current
        try:
            return self._recorded_of_team(team, str(name)) if team and TEAM_SEPARATOR in str(name) else self._recorded(str(name))
        except _NotRecordedError:
            message = f"no price snapshot is called {str(name)[:100]!r}; the current one is {current.name}"
            raise UnknownName(message, "/price/snapshot", (current.name,)) from None

    def _book_of_team(self, team: str | None, today: date | None) -> PriceBook:
        """The current book with the team's own prices."""
        book, current = self.current, self._current
        refs = () if team is None or current is None else current.manifest.of_team(team)
        if team is None or current is None or not refs:
            return book
        ended = None if today is None else self._snapshots.last_end(refs, today)
        if (team, ended) not in current.by_team:
            current.by_team[team, ended] = self._with_team_prices(current.book, refs, ended)
        return current.by_team[team, ended]

    def _with_team_prices(self, book: PriceBook, refs: Sequence[SnapshotRef], ended: date | None, *, now_known: bool = True) -> PriceBook:
        for ref in refs:
            book = self._snapshots.with_team_prices(book, ref, now_known=now_known, ended=ended)
        return book if ended is None else replace(book, name=f"{book.name}{END_SEPARATOR}{ended}")

    def refresh(self) -> None:
        """Load the current book if it has changed."""
        with self._loading:
            manifest = self._load()
        if manifest is not None:
            self.watch(manifest)

    def _load(self) -> BookManifest | None:
        """Load the current book if it has changed; one thread at a time, else an older book could take a newer one's place."""
        manifest = None
        try:
            manifest, last = self._snapshots.current_manifest(), self._current
            if last is None or last.book.disconnected or manifest != last.manifest:
                book, known = self._snapshots.current(manifest), last.by_team if last else {}
                self._current = _CurrentBooks(book, manifest, self._team_books(book, manifest, known))
        except StoreUnavailable as error:
            self._mark_disconnected(error)
        self._last_refresh = self._clock()
        return manifest

    def _team_books(
        self, book: PriceBook, manifest: BookManifest, known: Iterable[tuple[str, date | None]]
    ) -> dict[tuple[str, date | None], PriceBook]:
        """Books of the teams that were asked for before and still have prices of their own."""
        asked = [(team, ended, manifest.of_team(team)) for team, ended in list(known)]
        return {(team, ended): self._with_team_prices(book, refs, ended) for team, ended, refs in asked if refs}

    def changed(self) -> None:
        """Show at once what this process has just stored; other processes see it at their next refresh."""
        with self._loading:
            self._snapshots.forget_manifest()
            if self._current is not None:
                self._load()

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
        stated, _, end = name.partition(END_SEPARATOR)
        shared, *own = stated.split(TEAM_SEPARATOR)
        refs = [ref for snapshot in own if (ref := self._snapshots.team_ref(team, snapshot)) is not None]
        if len(refs) != len(own):
            raise _NotRecordedError(name)
        return self._with_team_prices(self._recorded(shared), refs, _day(end, name) if end else None, now_known=False)


def _day(text: str, name: str) -> date:
    """The day of a book's name. Raises _NotRecordedError for what is none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise _NotRecordedError(name) from None
