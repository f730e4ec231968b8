"""Secrets in the database: sealed where they are stored, opened where they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sqlalchemy import Column, Connection, Table, select, update

from service.domain.errors import SecretsUnavailable
from service.domain.tracking.records import AlertRuleRecord
from service.store.database import Database, insert_new
from service.store.secret_box import Sealing, SecretBox, SecretKeys
from service.store.tables import secrets_check

CHECK_ID = 1
CHECK_TEXT = "outlay"
SECRET_PARTS = ("url", "secret")
"""Parts of a target of deliveries that are secrets: paths of addresses often are."""
Body = Mapping[str, Any]


def _no_keys() -> tuple[str, ...]:
    return ()


def _make_none() -> None:
    raise SecretsUnavailable("this store was opened without a key of stored secrets")


NO_KEYS = SecretKeys("none was given", _no_keys, _make_none)


class SecretRows(Database):
    """Sealing and opening for the stores of secrets."""

    def __init__(self, database_url: str, keys: SecretKeys = NO_KEYS) -> None:
        super().__init__(database_url)
        self._box = SecretBox(keys)
        self._checked = False

    def check_secrets(self) -> None:
        """Raise SecretsUnavailable where this machine's key is not the installation's; the first call of an installation makes it."""
        with self._write() as connection:
            self._check(connection)

    def reseal_check(self) -> None:
        """Seal the check under the newest key, once all that is sealed is. Raises SecretsUnavailable."""
        with self._write() as connection:
            self._check(connection)
            self._reseal_column(connection, secrets_check, secrets_check.c.sealed, self._box.reseal)

    def _seal(self, connection: Connection, text: str) -> str:
        """Seal a text for this transaction's rows. Raises SecretsUnavailable."""
        if not self._checked:
            self._check(connection)
        return self._box.seal(text)

    def _check(self, connection: Connection) -> None:
        query = select(secrets_check.c.sealed).where(secrets_check.c.id == CHECK_ID)
        if connection.scalar(query) is None:
            self._box.make_first_key()
            insert_new(connection, secrets_check, [{"id": CHECK_ID, "sealed": self._box.seal(CHECK_TEXT)}])
        self._box.open(connection.execute(query).scalar_one())
        self._checked = True

    def _sealing(self, connection: Connection) -> Sealing:
        """How this transaction stores a response that holds a secret."""
        return Sealing(partial(self._seal, connection), self._box.open)

    def _rule(self, **row: Any) -> AlertRuleRecord:
        """An alert rule of its row, opened."""
        return AlertRuleRecord(**row | {"body": with_targets(row["body"], self._box.open)})

    def _resealing(self, *, plain_only: bool) -> Callable[[str], str]:
        """What seals a stored text under the newest key, with `plain_only` where it is not sealed."""
        return self._box.seal_plain if plain_only else self._box.reseal

    def _reseal_column(self, connection: Connection, table: Table, column: Column[Any], reseal: Callable[[Any], Any]) -> int:
        """Seal a column's values anew; returns the number of rows that this changes."""
        keys = tuple(table.primary_key.columns)
        rows = connection.execute(select(*keys, column).where(column.is_not(None))).all()
        changed = 0
        for *row_keys, value in rows:
            sealed = reseal(value)
            if sealed == value:
                continue
            here = [key == row_key for key, row_key in zip(keys, row_keys, strict=True)]
            changed += connection.execute(update(table).where(*here).values({column: sealed})).rowcount
        return changed


def with_target(target: Body, change: Callable[[str], str]) -> dict[str, Any]:
    """A target of deliveries with its secrets changed."""
    return {name: change(value) if name in SECRET_PARTS and value is not None else value for name, value in target.items()}


def with_targets(body: Body, change: Callable[[str], str]) -> dict[str, Any]:
    """An alert rule's body with the secrets of its targets changed."""
    return {**body, "targets": [with_target(target, change) for target in body["targets"]]}
