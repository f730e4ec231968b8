"""Refreshing prices: fetch a provider's offers and keep them as a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.desk import Desk
from service.store import Job
from service.store.prices import Step
from service.usecases.jobs import submit

KIND = "refresh_prices"
LOCAL = frozenset({"snapshot"})
"""Providers that read what is shipped with the project and call nobody."""


def refresh_prices(desk: Desk, payload: Mapping[str, Any], step: Step) -> dict[str, Any]:
    """The job `refresh_prices`, payload `{"provider": name}`: fetch, then save. Saving goes on where an interrupted attempt stopped."""
    name = payload["provider"]
    if not _allowed(desk, name):
        return {"provider": name, "skipped": "offline"}
    fetched = desk.providers.load(name).fetch()
    new = desk.store.save_snapshot(name, fetched, desk.clock(), step)
    counts = {"offers": len(fetched.offers), "new_rows": new, "rejected": len(fetched.rejected)}
    return {"provider": name, "snapshot": fetched.snapshot, **counts}


def request_refresh(desk: Desk, provider: str) -> Job:
    """A refresh of one provider: the one that is under way already, or a new one."""
    waiting = [job for job in desk.store.open_jobs(KIND) if job.payload.get("provider") == provider]
    return waiting[0] if waiting else submit(desk, KIND, {"provider": provider})


def refresh_all(desk: Desk) -> tuple[Job, ...]:
    """A refresh of every provider that may be called: what the clock asks for."""
    return tuple(request_refresh(desk, name) for name in desk.providers.names() if _allowed(desk, name))


def refresh_unknown(desk: Desk) -> tuple[Job, ...]:
    """A refresh of every provider whose prices were never kept: what a fresh installation starts with."""
    names = [name for name in desk.providers.names() if _allowed(desk, name) and desk.store.latest_snapshot(name) is None]
    return tuple(request_refresh(desk, name) for name in names)


def _allowed(desk: Desk, provider: str) -> bool:
    return provider in LOCAL or not desk.settings.offline
