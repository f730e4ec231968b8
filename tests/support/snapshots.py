"""Complete common price snapshots of a store, as a test looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping, select

from service.store import Store
from service.store.tables import price_snapshots


def stored_snapshots(store: Store, provider: str | None = None) -> Sequence[RowMapping]:
    """Those of one provider or of all, newest first."""
    columns: Any = price_snapshots.c
    query = select(price_snapshots).where(columns.complete, columns.team.is_(None)).order_by(columns.taken_at.desc(), columns.name)
    with store.engine.connect() as connection:
        return connection.execute(query if provider is None else query.where(columns.provider == provider)).mappings().all()
