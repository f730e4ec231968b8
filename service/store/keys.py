"""Teams and their API keys. A key's secret is never kept, only its digest; keys are revoked, never deleted."""

from __future__ import annotations

import uuid
from datetime import datetime

from sqlalchemy import RowMapping, insert, inspect, select, update

from service.domain.teams import DEFAULT_TEAM, Key, Team
from service.store.database import Database, insert_new
from service.store.tables import api_keys, teams

_KEY = (*(column for column in api_keys.c if column.name != "digest"), teams.c.name.label("team_name"))


class KeyRows(Database):
    """The part of the store that remembers teams and keys."""

    def team(self, name: str, now: datetime) -> Team:
        """The team of that name, made where there is none; two that make it at once get the same one."""
        made = DEFAULT_TEAM if name == DEFAULT_TEAM else str(uuid.uuid4())
        with self._write() as connection:
            insert_new(connection, teams, [{"id": made, "name": name, "created_at": now}])
            return Team(**connection.execute(select(teams).where(teams.c.name == name)).mappings().one())

    def create_key(self, key: Key, digest: str) -> None:
        """Keep a key of a team that is there, and the digest of its secret."""
        row = {column.name: getattr(key, column.name) for column in api_keys.c if column.name != "digest"}
        with self._write() as connection:
            connection.execute(insert(api_keys).values(row | {"digest": digest, "scopes": ",".join(key.scopes)}))

    def keys(self) -> tuple[Key, ...]:
        """Every key that was ever made, by team and then by age."""
        query = select(*_KEY).join(teams).order_by(teams.c.name, api_keys.c.created_at, api_keys.c.id)
        with self._read() as connection:
            return tuple(_key(row) for row in connection.execute(query).mappings())

    def find_key(self, key_id: str) -> tuple[Key, str] | None:
        """The key of that id and the digest of its secret; None where there is none."""
        query = select(*_KEY, api_keys.c.digest).join(teams).where(api_keys.c.id == key_id)
        with self._read() as connection:
            row = connection.execute(query).mappings().first()
            return (_key(row), row["digest"]) if row else None

    def revoke_key(self, key_id: str, now: datetime) -> Key | None:
        """The key, from now on without effect; None where there is none. One that was revoked before keeps its time."""
        with self._write() as connection:
            change = update(api_keys).where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
            connection.execute(change.values(revoked_at=now))
            row = connection.execute(select(*_KEY).join(teams).where(api_keys.c.id == key_id)).mappings().first()
            return _key(row) if row else None

    def any_key(self) -> bool:
        """Whether a key was ever made, good or not. A database that was never made, or has no such table yet, has none."""
        if self.absent():
            return False
        with self._read() as connection:
            there = inspect(connection).has_table(api_keys.name)
            return there and connection.execute(select(api_keys.c.id).limit(1)).first() is not None


def _key(row: RowMapping) -> Key:
    values = {name: row[name] for name in Key.__dataclass_fields__}
    return Key(**values | {"scopes": tuple(row["scopes"].split(","))})
