"""Price history: a row whenever an offer was new, had another price or availability, or was gone. Rows are only added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, Select, Table, and_, or_, select

from service.domain.prices import PriceChange
from service.store.database import Database
from service.store.tables import price_history, team_price_history

IDENTITY_COLUMNS = ("asked", "provider", "region", "instance_type", "accelerator", "accelerator_count", "pricing", "market", "terms_key")
"""Columns that identify an offer."""


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Filter of price history: allowed values by column, and the time (both ends included).

    `team` is the name of the requesting team, whose own prices are included.
    """

    among: Mapping[str, tuple[str, ...]]
    since: datetime | None = None
    until: datetime | None = None
    team: str | None = None


class HistoryRows(Database):
    """Statements for price history."""

    def price_changes(self, wanted: HistoryFilter, limit: int, after: tuple[datetime, int] | None = None) -> tuple[PriceChange, ...]:
        """At most `limit` rows, newest first, after the row of that time and id; rows added meanwhile do not move them."""
        found = self._list(PriceChange, _changes(wanted, limit, after))
        if wanted.team is None:
            return tuple(found)
        own = _changes(wanted, limit, after, team_price_history).where(team_price_history.c.team == wanted.team)
        found += self._list(PriceChange, own)
        return tuple(sorted(found, key=lambda change: (change.observed_at, change.id), reverse=True)[:limit])


def _changes(
    wanted: HistoryFilter, limit: int, after: tuple[datetime, int] | None, table: Table = price_history
) -> Select[tuple[Any, ...]]:
    conditions = [*_conditions(table, wanted), *(() if after is None else (_follows(table, *after),))]
    columns = (column for column in table.c if column.name != "team")
    query = select(*columns, _before(table)).where(*conditions)
    return query.order_by(table.c.observed_at.desc(), table.c.id.desc()).limit(limit)


def _conditions(table: Table, wanted: HistoryFilter) -> list[ColumnElement[bool]]:
    columns, alone = table.c, len(wanted.among) == 1
    found: list[ColumnElement[bool]] = [_column(table, name, alone=alone).in_(values) for name, values in wanted.among.items()]
    if wanted.since is not None:
        found.append(columns.observed_at >= wanted.since)
    if wanted.until is not None:
        found.append(columns.observed_at <= wanted.until)
    return found


def _column(table: Table, name: str, *, alone: bool) -> ColumnElement[Any]:
    """A column for a filter. Pricing is the least selective, which SQLite does not know: as an expression it does not use its index."""
    column = table.c[name]
    return column if alone or name != "pricing" else column.concat("")


def _follows(table: Table, at: datetime, row: int) -> ColumnElement[bool]:
    """Condition for later rows, written so that its first half bounds an index range."""
    columns = table.c
    return and_(columns.observed_at <= at, or_(columns.observed_at < at, columns.id < row))


def _before(table: Table) -> ScalarSelect[Any]:
    """Price in the previous row of the same thing and team; ids of teams count down."""
    earlier, columns = table.alias("earlier"), table.c
    same = and_(*(earlier.c[name] == columns[name] for name in IDENTITY_COLUMNS))
    if table is price_history:
        found = select(earlier.c.usd_per_hour).where(same, earlier.c.id < columns.id).order_by(earlier.c.id.desc())
    else:
        ours = earlier.c.team == columns.team
        found = select(earlier.c.usd_per_hour).where(same, ours, earlier.c.id > columns.id).order_by(earlier.c.id)
    return found.limit(1).correlate(table).scalar_subquery().label("usd_per_hour_before")  # type: ignore[return-value]
