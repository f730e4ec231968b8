"""The lock of writers of price books."""

from __future__ import annotations

from sqlalchemy import Connection, text

_LOCK_KEY = 0x0071_6C61_7A  # one book at a time, so that none misses another refresh's prices


def lock_books(connection: Connection) -> None:
    """Lock against other writers; SQLite has one writer at a time."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
