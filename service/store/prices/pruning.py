"""Pruning of price snapshots and books that nothing names; the price history keeps every change of a price."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, select

from service.store.database import Database
from service.store.prices.lock import lock_books
from service.store.results.tables import results
from service.store.scenarios.tables import scenarios
from service.store.tables import price_book_parts, price_books, price_snapshots, provider_states, team_prices, team_quotes
from service.store.tracking.tables import track_programs, track_revisions

PRICES = "price_snapshot"
"""Member of a tracked program's body that names its prices."""


@dataclass(frozen=True, slots=True)
class PrunedPrices:
    """Numbers of price books, snapshots and offers that were deleted."""

    books: int
    snapshots: int
    offers: int


class PruneRows(Database):
    """Statements for pruning."""

    def named_prices(self) -> set[str]:
        """Every name of prices that a kept result, a scenario or a version of a tracked program has."""
        columns = (
            results.c.price_snapshot,
            scenarios.c.price_snapshot,
            track_programs.c.body[PRICES].as_string(),
            track_revisions.c.body[PRICES].as_string(),
        )
        with self._read() as connection:
            return {name for column in columns for name in connection.scalars(select(column).distinct()) if name}

    def prune_prices(self, named: Set[str], before: datetime) -> PrunedPrices:
        """Delete books made, and complete snapshots taken, before a time that are not needed; a snapshot with its offers in a transaction.

        Needed are the present ones, those named, and of each day the last book, and the last snapshot of each provider and team.
        """
        with self._write() as connection:
            lock_books(connection)
            old = _superfluous_books(connection, named, before)
            for book in old:  # parts first: SQLAlchemy and SQLite agree on no cascade's order
                connection.execute(delete(price_book_parts).where(price_book_parts.c.book == book))
                connection.execute(delete(price_books).where(price_books.c.name == book))
        with self._read() as connection:
            candidates = _superfluous_snapshots(connection, named, before)
        gone = [offers for name in candidates if (offers := self._delete_snapshot(name)) is not None]
        return PrunedPrices(len(old), len(gone), sum(gone))

    def _delete_snapshot(self, name: str) -> int | None:
        """Delete a snapshot unless it has become present meanwhile; the number of its offers, None where it stays."""
        with self._write() as connection:
            lock_books(connection)
            if name in _used_snapshots(connection):
                return None
            gone = delete(price_snapshots).where(price_snapshots.c.name == name).returning(price_snapshots.c.offer_count)
            return connection.execute(gone).scalar()


def _superfluous_books(connection: Connection, named: Set[str], before: datetime) -> list[str]:
    books = connection.execute(select(price_books.c.name, price_books.c.seq, price_books.c.made_at).order_by(price_books.c.made_at)).all()
    newest = connection.scalar(select(func.max(price_books.c.seq)))
    last_of_day = {book.made_at.date(): book.name for book in books}
    needed = named | set(last_of_day.values()) | {book.name for book in books if book.seq == newest}
    return [book.name for book in books if book.made_at < before and book.name not in needed]


def _superfluous_snapshots(connection: Connection, named: Set[str], before: datetime) -> list[str]:
    columns = price_snapshots.c
    query = select(columns.name, columns.provider, columns.team, columns.taken_at).where(columns.complete).order_by(columns.taken_at)
    taken = connection.execute(query).all()
    last_of_day = {(row.provider, row.team, row.taken_at.date()): row.name for row in taken}
    needed = named | set(last_of_day.values()) | _used_snapshots(connection)
    return [row.name for row in taken if row.taken_at < before and row.name not in needed]


def _used_snapshots(connection: Connection) -> set[str]:
    """Snapshots of present states and of books."""
    columns = (provider_states.c.snapshot, team_prices.c.snapshot, team_quotes.c.snapshot, price_book_parts.c.snapshot)
    found: Iterable[str | None] = (name for column in columns for name in connection.scalars(select(column).distinct()))
    return {name for name in found if name}
