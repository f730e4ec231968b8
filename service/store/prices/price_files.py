"""Price files of teams: every version that was kept, and the snapshot of all current offers of a team."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from providers.offer import Fetched
from service.domain.audit import Change
from service.domain.prices import pack_terms
from service.domain.teams import DEFAULT_TEAM
from service.store.audit import record_change
from service.store.database import Database, insert_into, insert_new
from service.store.prices.lock import lock_books
from service.store.tables import offers, price_files, price_snapshots, team_quotes, teams

FILE_PROVIDER = "file"
"""Provider of snapshots of what people state themselves."""
_FILE = price_files.c
_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFileRecord:
    """A kept version of a team's price file. `content` holds its offers and how it was read."""

    team: str
    name: str
    version: int
    file_name: str
    format: str
    sha256: str
    kept_at: datetime
    kept_by: str | None
    state: str
    content: Mapping[str, Any]


Combine = Callable[[Sequence[PriceFileRecord]], Fetched | None]
"""Makes the snapshot of a team's current files, oldest first; None where they hold no offer."""


class PriceFileRows(Database):
    """Statements for price files. Every read names the team."""

    def keep_price_file(self, record: PriceFileRecord, most: int, combine: Combine) -> PriceFileRecord | None:
        """The file as the next version of its name, with the team's new snapshot in one transaction.

        None where the team would have more than `most` current files.
        """
        with self._write() as connection:
            lock_books(connection)
            mine = _FILE.team == record.team
            others = select(func.count()).select_from(price_files).where(mine, _FILE.state == "current", _FILE.name != record.name)
            if int(connection.scalar(others) or 0) >= most:
                return None
            same = (mine, _FILE.name == record.name)
            last = int(connection.scalar(select(func.max(_FILE.version)).where(*same)) or 0)
            replaced = update(price_files).where(*same, _FILE.state == "current").values(state="superseded").returning(price_files)
            earlier = connection.execute(replaced).mappings().first()
            values = asdict(record) | {"version": last + 1}
            connection.execute(insert(price_files).values(values))
            _combine(connection, record.team, combine, record.kept_at)
            _record(connection, record.team, "price_file.keep", dict(earlier) if earlier else None, values, record.kept_at)
        return PriceFileRecord(**values)

    def delete_price_file(self, team: str, name: str, now: datetime, combine: Combine) -> PriceFileRecord | None:
        """The current version of that name, deleted from now on; None where the team has none. Its record stays."""
        with self._write() as connection:
            lock_books(connection)
            current = (_FILE.team == team, _FILE.name == name, _FILE.state == "current")
            row = connection.execute(select(price_files).where(*current)).mappings().first()
            if row is None:
                return None
            connection.execute(update(price_files).where(*current).values(state="deleted"))
            _combine(connection, team, combine, now)
            _record(connection, team, "price_file.delete", dict(row), None, now)
        return PriceFileRecord(**{**row, "state": "deleted"})

    def price_files(self, team: str) -> list[PriceFileRecord]:
        """Current files of a team, by name."""
        query = select(price_files).where(_FILE.team == team, _FILE.state == "current").order_by(_FILE.name)
        return self._list(PriceFileRecord, query)

    def price_file_versions(self, team: str, name: str) -> list[PriceFileRecord]:
        """All versions of a team's file, newest first; none where the team never had one of that name."""
        query = select(price_files).where(_FILE.team == team, _FILE.name == name).order_by(_FILE.version.desc())
        return self._list(PriceFileRecord, query)


def _record(connection: Connection, team: str, operation: str, before: _Row | None, after: _Row | None, now: datetime) -> None:
    """Append to the audit trail; files are known by their team's name, the trail by its id."""
    row = after or before or {}
    team_id = connection.scalar(select(teams.c.id).where(teams.c.name == team)) or DEFAULT_TEAM
    states = (None if state is None else {name: state[name] for name in ("name", "version", "sha256")} for state in (before, after))
    record_change(connection, Change(team_id, operation, row["name"], *states), now)


def _combine(connection: Connection, team: str, combine: Combine, now: datetime) -> None:
    """Store the snapshot of the team's current files and make it the team's."""
    query = select(price_files).where(_FILE.team == team, _FILE.state == "current").order_by(_FILE.kept_at, _FILE.name)
    made = combine([PriceFileRecord(**row) for row in connection.execute(query).mappings()])
    if made is None:
        connection.execute(delete(team_quotes).where(team_quotes.c.team == team))
        return
    snapshot = {"name": made.snapshot, "provider": FILE_PROVIDER, "taken_at": now, "offer_count": len(made.offers), "complete": True}
    insert_new(connection, price_snapshots, [{**snapshot, "team": team, "discounts": []}])
    rows = [
        {"snapshot": made.snapshot, "row": row, **asdict(offer), "terms": pack_terms(offer.terms)} for row, offer in enumerate(made.offers)
    ]
    insert_new(connection, offers, rows)
    values = {"team": team, "snapshot": made.snapshot}
    connection.execute(insert_into(connection, team_quotes).values(values).on_conflict_do_update(index_elements=["team"], set_=values))
