"""What is wrong with the service on this machine, and what to do: data directory, disk, database, Redis, worker, prices, clock."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypeVar

from service.context import AppContext
from service.domain.errors import StoreNotReady, StoreUnavailable
from service.usecases.prices.providers import list_providers

_Found = TypeVar("_Found")
State = Literal["good", "warning", "bad"]
DISK_LOW_BYTES, DISK_FULL_BYTES = 5 * 10**9, 500 * 10**6
"""Free space below which a month of prices and events may not fit, and below which the next refresh may not."""
WORKER_SILENCE = timedelta(seconds=30)
PING_S = 2.0
CLOCK_SLACK = timedelta(minutes=5)
"""How far a time that was written may lie ahead of the clock; the signatures of Slack and of webhooks allow as much."""
OTHERS_WRITE = 0o022
NAMED = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found: of what, its state, the facts, and what to do where it is not good."""

    subject: str
    state: State
    detail: str
    advice: str = ""


def diagnose(context: AppContext) -> list[Finding]:
    """The findings of all checks; none of them changes anything."""
    checks: tuple[Callable[[AppContext], Iterator[Finding]], ...] = (_directory, _disk, _database, _redis, _worker, _prices, _clock)
    return [finding for check in checks for finding in check(context)]


def _directory(context: AppContext) -> Iterator[Finding]:
    folder = context.settings.data_dir
    if not folder.exists():
        above = _existing(folder)
        if os.access(above, os.W_OK):
            yield Finding("data directory", "good", f"{folder} does not exist yet; the first start makes it")
        else:
            yield Finding("data directory", "bad", f"{folder} cannot be made", f"make {above} writable, or set OUTLAY_DATA_DIR")
    elif not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("data directory", "bad", f"{folder} cannot be written by this user", f"chown it, or set OUTLAY_DATA_DIR: {folder}")
    elif folder.stat().st_mode & OTHERS_WRITE:
        yield Finding("data directory", "warning", f"others can write to {folder}, which has the signing keys", f"chmod 700 {folder}")
    else:
        yield Finding("data directory", "good", str(folder))


def _disk(context: AppContext) -> Iterator[Finding]:
    folder = _existing(context.settings.data_dir)
    free = shutil.disk_usage(folder).free
    state: State = "bad" if free < DISK_FULL_BYTES else "warning" if free < DISK_LOW_BYTES else "good"
    advice = "" if state == "good" else f"free some space on the disk of {folder}, or set OUTLAY_DATA_DIR to another"
    yield Finding("disk", state, f"{free / 1e9:.1f} GB free at {folder}", advice)


def _database(context: AppContext) -> Iterator[Finding]:
    kind = context.settings.database_url.split(":", maxsplit=1)[0]
    if context.store.absent():
        yield Finding("database", "good", f"{kind}: there is none yet; the first start makes it")
        return
    if not context.store.ping(PING_S):
        yield Finding("database", "bad", f"{kind}: no answer within {PING_S:g} s", "start it, or correct OUTLAY_DATABASE_URL")
        return
    try:
        context.store.check_head()
    except StoreNotReady as error:
        yield Finding("database", "bad", f"{kind}: {error}", "stop the service, keep a copy of the database, and start `outlay serve`")
    except StoreUnavailable as error:
        yield Finding("database", "bad", f"{kind}: {error}", "look at the database's log")
    else:
        yield Finding("database", "good", f"{kind}: answers, its tables are of this release")


def _redis(context: AppContext) -> Iterator[Finding]:
    if context.settings.redis_url is None:
        yield Finding("Redis", "good", "not used: queue and cache are embedded")
    elif context.cache.ping():
        yield Finding("Redis", "good", "answers")
    else:
        yield Finding("Redis", "bad", "does not answer; jobs wait and limits are per process", "start it, or correct OUTLAY_REDIS_URL")


def _worker(context: AppContext) -> Iterator[Finding]:
    beat = _or_none(context, context.store.last_beat)
    if beat is None:
        yield Finding("worker", "warning", "none has ever run here", "`outlay serve` starts one; prices and scenarios need it")
        return
    silence = context.clock() - beat
    if silence > WORKER_SILENCE:
        yield Finding("worker", "warning", f"silent since {beat:%Y-%m-%d %H:%M} UTC", "start `outlay serve`, or look at its log")
    else:
        yield Finding("worker", "good", "alive")


def _prices(context: AppContext) -> Iterator[Finding]:
    if context.settings.offline:
        yield from price_findings([("", "offline")])
        return
    entries = _or_none(context, lambda: list_providers(context, operator=True))
    if entries is None:
        yield Finding("prices", "warning", "none fetched yet: the shipped ones are used", "`outlay prices refresh` fetches them")
        return
    yield from price_findings([(entry.name, entry.state) for entry in entries])


def price_findings(states: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """Findings of price sources by name and state."""
    if any(state == "offline" for _, state in states):
        yield Finding("prices", "warning", "OUTLAY_OFFLINE is set: nothing is fetched, the shipped prices age", "unset OUTLAY_OFFLINE")
        return
    by_state = {kind: [name for name, state in states if state == kind] for kind in ("failing", "stale", "never_asked", "ok")}
    for state, names in by_state.items():
        if names and state != "ok":
            shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
            what = state.replace("_", " ")
            yield Finding("prices", "warning", f"{what}: {shown}", "`outlay prices show` says why, `outlay prices refresh NAME` asks again")
    yield Finding("prices", "good" if by_state["ok"] else "warning", f"{len(by_state['ok'])} sources are fresh")


def _clock(context: AppContext) -> Iterator[Finding]:
    now = context.clock()
    read = max((offer.observed_at for offer in context.book().offers), default=None)
    newest = max(filter(None, (read, _or_none(context, context.store.last_beat))), default=None)
    if newest is not None and newest > now + CLOCK_SLACK:
        detail = f"it says {now:%Y-%m-%d %H:%M} UTC, and prices or a worker are of {newest:%Y-%m-%d %H:%M} UTC"
        yield Finding("clock", "bad", detail, "set this machine's clock by NTP (timedatectl set-ntp true)")
    else:
        yield Finding("clock", "good", f"{now:%Y-%m-%d %H:%M} UTC")


def _or_none(context: AppContext, read: Callable[[], _Found]) -> _Found | None:
    """What is read of the database; None where there is none, or it cannot be used."""
    if context.store.absent():
        return None
    try:
        return read()
    except (StoreUnavailable, StoreNotReady):
        return None


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
