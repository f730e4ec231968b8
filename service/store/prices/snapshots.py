"""Price snapshots and their offers, with which an estimate can be repeated after prices have moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import String, func, select, update

from providers.offer import Discount, Fetched, Offer
from service.domain.jobs import ReportProgress, ignore_progress
from service.domain.prices import pack_terms, unpack_terms
from service.store.database import Database, columns_of, insert_new
from service.store.tables import ExactDecimal, length_of, offers, price_snapshots

CHUNK_ROWS = 500
"""Offers in a transaction: few enough that other writers do not wait long, enough that commits do not dominate."""

MOST_ACCELERATORS = 2**31 - 1  # of PostgreSQL's integer
LONGEST = {column.name: length_of(column) for column in columns_of(offers, Offer) if isinstance(column.type, String)}
"""Maximum characters of an offer's texts; PostgreSQL would refuse the whole snapshot."""
LONGEST_PRICE = ExactDecimal.LENGTH


class PriceRows(Database):
    """Statements for snapshots."""

    def save_snapshot(
        self, provider: str, fetched: Fetched, at: datetime, step: ReportProgress = ignore_progress, *, team: str | None = None
    ) -> int:
        """Store all offers of `fetched` under its snapshot name, for one team if named; returns the number of new rows.

        Rows are written in chunks of one transaction each, in an order that depends on the offers only: an interrupted save continues
        where it stopped, and a second save changes nothing. `step(done, total)` is called before each chunk and at the end; what it
        raises ends the save and leaves the snapshot incomplete and invisible.
        """
        rows = sorted(
            ({"snapshot": fetched.snapshot, **asdict(offer), "terms": pack_terms(offer.terms)} for offer in fetched.offers), key=_order
        )
        done = begun = self._begin_snapshot(provider, fetched, at, team)
        while done < len(rows):
            step(done, len(rows))
            done += self._add_rows(rows, done)
        step(len(rows), len(rows))
        self._change(update(price_snapshots).where(price_snapshots.c.name == fetched.snapshot).values(complete=True))
        return len(rows) - begun

    def load_snapshot(self, name: str) -> Fetched | None:
        """Offers and discounts of a complete snapshot of any team, or None."""
        columns = price_snapshots.c
        with self._read() as connection:
            known = connection.execute(select(columns.discounts).where(columns.name == name, columns.complete)).first()
            if known is None:
                return None
            query = select(*columns_of(offers, Offer)).where(offers.c.snapshot == name).order_by(offers.c.row)
            stored = tuple(Offer(**{**row, "terms": unpack_terms(row["terms"])}) for row in connection.execute(query).mappings())
        return Fetched(stored, name, discounts=tuple(_discount(entry) for entry in known.discounts or ()))

    def _begin_snapshot(self, provider: str, fetched: Fetched, at: datetime, team: str | None) -> int:
        """Insert the snapshot's row if it is new; returns how many of its offers are stored."""
        values = {"name": fetched.snapshot, "provider": provider, "taken_at": at, "offer_count": len(fetched.offers), "complete": False}
        values["team"] = team
        values["discounts"] = [asdict(discount) | {"share": str(discount.share)} for discount in fetched.discounts]
        with self._write() as connection:
            insert_new(connection, price_snapshots, [values])
            known = connection.scalar(select(func.count()).select_from(offers).where(offers.c.snapshot == fetched.snapshot))
        return int(known or 0)

    def _add_rows(self, rows: Sequence[dict[str, Any]], start: int) -> int:
        chunk = [{**row, "row": start + n} for n, row in enumerate(rows[start : start + CHUNK_ROWS])]
        with self._write() as connection:
            insert_new(connection, offers, chunk)
        return len(chunk)


def _order(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(repr(sorted(value.items()) if isinstance(value, dict) else value) for value in row.values())


def _discount(entry: dict[str, Any]) -> Discount:
    return Discount(**entry | {"share": Decimal(entry["share"])})
