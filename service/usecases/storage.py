"""The storage of a team: what it has stored, and what it may."""

from __future__ import annotations

from service.cache import remembered
from service.context import AppContext
from service.domain.budgets import BudgetStatus, BudgetUse, StorageBudgetUsedUp, StorageUse

FRESH_S = 2.0
"""How old a count may be [s]: a team stores what it may send meanwhile beyond its budget at most."""
ROWS, BYTES = "stored-rows", "stored-bytes"


def check_storage(context: AppContext, team: str) -> None:
    """Raise StorageBudgetUsedUp where a team has stored all that it may. Raises StoreUnavailable."""
    for use, setting in _uses(context, _storage_of(context, team)):
        if use.used >= use.limit:
            what = f"{use.used:,} of its {use.limit:,} {use.name.replace('-', ' ')}"
            text = f"Your team's events and kept results are {what}; nothing more is stored. Delete kept results"
            advice = f"or ask who runs the service to archive closed programs, or to raise {setting}"
            raise StorageBudgetUsedUp(f"{text}, {advice}.", use, None)


def storage_budgets(context: AppContext, team: str) -> list[BudgetStatus]:
    """How the storage of a team stands, counted now. Raises StoreUnavailable."""
    return [BudgetStatus(use.name, use.used, use.limit, None, None) for use, _ in _uses(context, context.store.team_storage(team))]


def _uses(context: AppContext, stored: StorageUse) -> list[tuple[BudgetUse, str]]:
    """Each storage budget with the setting that holds its limit."""
    settings = context.settings
    return [
        (BudgetUse(ROWS, stored.rows, settings.team_stored_rows, None), "OUTLAY_TEAM_STORED_ROWS"),
        (BudgetUse(BYTES, stored.bytes, settings.team_stored_bytes, None), "OUTLAY_TEAM_STORED_BYTES"),
    ]


def _storage_of(context: AppContext, team: str) -> StorageUse:
    def read() -> list[int]:
        found = context.store.team_storage(team)
        return [found.rows, found.bytes]

    return StorageUse(*remembered(context.cache, f"storage:{team}", FRESH_S, read))
