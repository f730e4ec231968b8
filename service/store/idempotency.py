"""Responses stored under a caller's key, in the transaction that creates what they describe: both exist, or neither.

The key's row is inserted first. A concurrent request with the same key waits for that transaction, in PostgreSQL on the row and in SQLite
on the database, and then finds either the response or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NoReturn

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, select, update

from service.domain.idempotency import IdempotencyKeyReused, IdempotencyRecord, IdempotentReplay, StoredResponse
from service.store.database import insert_into
from service.store.secret_box import Sealing
from service.store.secrets import SecretRows
from service.store.tables import idempotency_keys

KEY_RETENTION = timedelta(hours=24)
"""Time that a response is stored at least."""
SEALED = "sealed"
"""The only member of a stored body that holds a secret."""
_UNANSWERED = 0


def store_response(connection: Connection, record: IdempotencyRecord | None, sealing: Sealing | None = None) -> Callable[[Any], None]:
    """Reserve the key at the start of a transaction; call the result with what was created, at its end.

    With `sealing` the response holds a secret.
    Raises IdempotentReplay with the first response for a repeated request, IdempotencyKeyReused for another request.
    """
    if record is None:
        return _discard
    here = _has_key(record)
    new = {"team": record.team, "key": record.key, "digest": record.digest, "status": _UNANSWERED, "body": {}, "created_at": record.at}
    row = insert_into(connection, idempotency_keys).values(new).on_conflict_do_nothing()
    if connection.execute(row.returning(idempotency_keys.c.key)).first() is None:
        _raise_replay(record, connection.execute(select(idempotency_keys).where(here)).mappings().one(), sealing)

    def answered(made: Any) -> None:
        answer = record.answer(made)
        body = {SEALED: sealing.seal(json.dumps(answer.body))} if sealing else dict(answer.body)
        values = {"status": answer.status, "body": body, "location": answer.location}
        connection.execute(update(idempotency_keys).where(here).values(values))

    return answered


def _has_key(record: IdempotencyRecord) -> ColumnElement[bool]:
    return and_(idempotency_keys.c.team == record.team, idempotency_keys.c.key == record.key)


def _discard(made: object) -> None:
    del made


def _raise_replay(record: IdempotencyRecord, row: RowMapping, sealing: Sealing | None = None) -> NoReturn:
    if row["digest"] != record.digest:
        raise IdempotencyKeyReused("this Idempotency-Key came with another request before; take a new one for a new request")
    body = row["body"]
    if sealing is not None and SEALED in body:
        body = json.loads(sealing.open(body[SEALED]))
    raise IdempotentReplay(StoredResponse(row["status"], body, row["location"]))


class IdempotencyRows(SecretRows):
    """Statements for idempotency keys."""

    def check_new(self, record: IdempotencyRecord | None) -> None:
        """Raise as `store_response` does, without writing: before work that is costly or that may be refused by now."""
        if record is None:
            return
        with self._read() as connection:
            row = connection.execute(select(idempotency_keys).where(_has_key(record))).mappings().first()
        if row is not None:
            _raise_replay(record, row, Sealing(self._box.seal, self._box.open))

    def delete_old_responses(self, now: datetime) -> int:
        """Delete responses older than KEY_RETENTION; returns their number."""
        return self._change(delete(idempotency_keys).where(idempotency_keys.c.created_at < now - KEY_RETENTION))
