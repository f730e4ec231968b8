"""The storage of a team: what it has stored, and what it may."""

from __future__ import annotations

import json

from service.context import AppContext
from service.domain.budgets import BudgetUse, StorageBudgetUsedUp, StorageUse

FRESH_S = 2.0
"""How old a count may be [s]: a team stores what it may send meanwhile beyond its budget at most."""
ROWS, BYTES = "stored-rows", "stored-bytes"


def check_storage(context: AppContext, team: str) -> None:
    """Raise StorageBudgetUsedUp where a team has stored all that it may. Raises StoreUnavailable."""
    use = _storage_of(context, team)
    for name, used, limit, setting in (
        (ROWS, use.rows, context.settings.team_stored_rows, "OUTLAY_TEAM_STORED_ROWS"),
        (BYTES, use.bytes, context.settings.team_stored_bytes, "OUTLAY_TEAM_STORED_BYTES"),
    ):
        if used >= limit:
            what = name.replace("-", " ")
            text = f"Your team's events and kept results are {used:,} of its {limit:,} {what}; nothing more is stored. Delete kept results"
            raise StorageBudgetUsedUp(f"{text}, or ask who runs the service to raise {setting}.", BudgetUse(name, used, limit, None), None)


def _storage_of(context: AppContext, team: str) -> StorageUse:
    key = f"storage:{team}"
    known = context.cache.get(key)
    if known is not None:
        return StorageUse(*json.loads(known))
    found = context.store.team_storage(team)
    context.cache.set(key, json.dumps([found.rows, found.bytes]).encode(), FRESH_S)
    return found
