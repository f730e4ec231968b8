"""Teams and API keys. Only the digest of a secret is stored; keys are revoked, never deleted."""

from __future__ import annotations

import uuid
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import insert, inspect, select, update

from service.domain.audit import Change
from service.domain.teams import DEFAULT_TEAM, Key, Team
from service.store.audit import record_change
from service.store.database import Database, insert_new
from service.store.tables import api_keys, teams

_KEY = (*(column for column in api_keys.c if column.name != "digest"), teams.c.name.label("team_name"))


class KeyRows(Database):
    """Statements for teams and keys."""

    def team(self, name: str, now: datetime) -> Team:
        """The team of that name, created if needed; concurrent calls get the same one."""
        made = DEFAULT_TEAM if name == DEFAULT_TEAM else str(uuid.uuid4())
        with self._write() as connection:
            insert_new(connection, teams, [{"id": made, "name": name, "created_at": now}])
            return Team(**connection.execute(select(teams).where(teams.c.name == name)).mappings().one())

    def find_team(self, name: str) -> Team | None:
        """The team of that name, or None."""
        return self._find(Team, select(teams).where(teams.c.name == name))

    def put_person(self, person: Key, digest: str) -> None:
        """Store the key of a person who signs in, in the place of the person's earlier one; `digest` is that of no secret."""
        stated = {"name": person.name, "scopes": ",".join(person.scopes), "expires_at": person.expires_at, "revoked_at": None}
        row = {column.name: getattr(person, column.name) for column in api_keys.c if column.name != "digest"} | {"digest": digest}
        with self._write() as connection:
            known = connection.execute(select(*_KEY).join(teams).where(api_keys.c.id == person.id)).mappings().first()
            if known is None:
                insert_new(connection, api_keys, [row | stated])  # of two sign-ins at once one makes it
            connection.execute(update(api_keys).where(api_keys.c.id == person.id).values(stated))
            before = _state(_key(**known)) if known else None
            after = _state(person if known is None else replace(person, created_at=known["created_at"]))
            record_change(connection, Change(person.team, "key.sign_in", person.id, before, after), person.created_at)

    def create_key(self, key: Key, digest: str) -> None:
        """Store a key of an existing team, and the digest of its secret."""
        row = {column.name: getattr(key, column.name) for column in api_keys.c if column.name != "digest"}
        with self._write() as connection:
            connection.execute(insert(api_keys).values(row | {"digest": digest, "scopes": ",".join(key.scopes)}))
            record_change(connection, Change(key.team, "key.create", key.id, None, _state(key)), key.created_at)

    def keys(self) -> tuple[Key, ...]:
        """All keys, revoked ones too, by team and age."""
        query = select(*_KEY).join(teams).order_by(teams.c.name, api_keys.c.created_at, api_keys.c.id)
        return tuple(self._list(_key, query))

    def find_key(self, key_id: str) -> tuple[Key, str] | None:
        """The key of that id and the digest of its secret, or None."""
        query = select(*_KEY, api_keys.c.digest).join(teams).where(api_keys.c.id == key_id)
        return self._find(lambda digest, **row: (_key(**row), digest), query)

    def revoke_key(self, key_id: str, now: datetime) -> Key | None:
        """The key, now revoked, or None. A key revoked before keeps that time."""
        with self._write() as connection:
            revoked = update(api_keys).where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None)).values(revoked_at=now)
            changed = connection.execute(revoked).rowcount
            row = connection.execute(select(*_KEY).join(teams).where(api_keys.c.id == key_id)).mappings().first()
            key = _key(**row) if row else None
            if key is not None and changed:
                before = _state(key) | {"revoked_at": None}
                record_change(connection, Change(key.team, "key.revoke", key.id, before, _state(key)), now)
            return key

    def rotate_key(self, old: Key, new: Key, digest: str, until: datetime) -> None:
        """Store a key in the place of another of its team, which ends at `until`."""
        ended = replace(old, expires_at=until, successor=new.id)
        row = {column.name: getattr(new, column.name) for column in api_keys.c if column.name != "digest"}
        with self._write() as connection:
            connection.execute(insert(api_keys).values(row | {"digest": digest, "scopes": ",".join(new.scopes)}))
            connection.execute(update(api_keys).where(api_keys.c.id == old.id).values(expires_at=until, successor=new.id))
            record_change(connection, Change(old.team, "key.create", new.id, None, _state(new)), new.created_at)
            record_change(connection, Change(old.team, "key.rotate", old.id, _state(old), _state(ended)), new.created_at)

    def touch_key(self, key_id: str, now: datetime) -> None:
        """Note that a key is used."""
        self._change(update(api_keys).where(api_keys.c.id == key_id).values(last_used_at=now))

    def any_key(self) -> bool:
        """Whether any key exists, valid or not; False for a database without schema."""
        if self.absent():
            return False
        with self._read() as connection:
            there = inspect(connection).has_table(api_keys.name)
            return there and connection.execute(select(api_keys.c.id).limit(1)).first() is not None


def _state(key: Key) -> dict[str, Any]:
    """What the audit trail has of a key: without its last use, which no entry tells of."""
    return {name: value for name, value in asdict(key).items() if name != "last_used_at"}


def _key(**row: Any) -> Key:
    return Key(**row | {"scopes": tuple(row["scopes"].split(","))})
