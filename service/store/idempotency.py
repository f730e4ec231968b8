"""Responses stored under a caller's key, in the transaction that creates what they describe: both exist, or neither.

The key's row is inserted first. A concurrent request with the same key waits for that transaction, in PostgreSQL on the row and in SQLite
on the database, and then finds either the response or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NoReturn

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, select, update

from service.domain.idempotency import IdempotencyKeyReused, IdempotencyRecord, IdempotentReplay, StoredResponse
from service.store.database import Database, insert_into
from service.store.tables import idempotency_keys

KEY_RETENTION = timedelta(hours=24)
"""Time that a response is stored at least."""
_UNANSWERED = 0


def store_response(connection: Connection, record: IdempotencyRecord | None) -> Callable[[Any], None]:
    """Reserve the key at the start of a transaction; call the result with what was created, at its end.

    Raises IdempotentReplay with the first response for a repeated request, IdempotencyKeyReused for another request.
    """
    if record is None:
        return _discard
    here = _has_key(record)
    new = {"team": record.team, "key": record.key, "digest": record.digest, "status": _UNANSWERED, "body": {}, "created_at": record.at}
    row = insert_into(connection, idempotency_keys).values(new).on_conflict_do_nothing()
    if connection.execute(row.returning(idempotency_keys.c.key)).first() is None:
        _raise_replay(record, connection.execute(select(idempotency_keys).where(here)).mappings().one())

    def answered(made: Any) -> None:
        answer = record.answer(made)
        values = {"status": answer.status, "body": dict(answer.body), "location": answer.location}
        connection.execute(update(idempotency_keys).where(here).values(values))

    return answered


def _has_key(record: IdempotencyRecord) -> ColumnElement[bool]:
    return and_(idempotency_keys.c.team == record.team, idempotency_keys.c.key == record.key)


def _discard(made: object) -> None:
    del made


def _raise_replay(record: IdempotencyRecord, row: RowMapping) -> NoReturn:
    if row["digest"] != record.digest:
        raise IdempotencyKeyReused("this Idempotency-Key came with another request before; take a new one for a new request")
    raise IdempotentReplay(StoredResponse(row["status"], row["body"], row["location"]))


class IdempotencyRows(Database):
    """Statements for idempotency keys."""

    def check_new(self, record: IdempotencyRecord | None) -> None:
        """Raise as `store_response` does, without writing: before work that is costly or that may be refused by now."""
        if record is None:
            return
        with self._read() as connection:
            row = connection.execute(select(idempotency_keys).where(_has_key(record))).mappings().first()
        if row is not None:
            _raise_replay(record, row)

    def delete_old_responses(self, now: datetime) -> int:
        """Delete responses older than KEY_RETENTION; returns their number."""
        return self._change(delete(idempotency_keys).where(idempotency_keys.c.created_at < now - KEY_RETENTION))
