"""Work budgets: how much CPU time, how many estimates and rows a team may ask for, and how many costly requests at a time.

A request is refused while a budget that it uses is used up (429). What it uses is counted when that is known, so that the last request
before a refusal may use more than was left. Without API keys there are no budgets, as there is no rate limit.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from flask import Flask, current_app, g

from service.cache import COUNTERS_DIR, FileCounter, MemoryCache
from service.config import Settings
from service.context import AppContext
from service.domain.budgets import BudgetStatus, BudgetUse, BudgetUsedUp
from service.domain.teams import Principal

Budget = Literal["cpu-seconds", "estimates", "rows"]
CPU: Budget = "cpu-seconds"
CONCURRENT = "concurrent-requests"
REQUESTS = "requests"
"""Of a key, not of a team."""
CONCURRENT_RETRY_S = 1
"""A costly request takes about this long [s]."""
_COUNTS_PER: dict[Budget, int] = {"cpu-seconds": 1000, "estimates": 1, "rows": 1}
"""CPU time is counted in whole milliseconds."""
_NO_USE = 0
_View = TypeVar("_View", bound=Callable[..., Any])
Release = Callable[[], None]
Counts = FileCounter | MemoryCache


def uses(*names: Budget, costly: bool = False) -> Callable[[_View], _View]:
    """Mark a view as using these budgets besides CPU time, and as one of which a team runs only so many at a time."""

    def mark(view: _View) -> _View:
        view.budgets, view.costly = names, costly  # type: ignore[attr-defined]
        return view

    return mark


def unbudgeted(view: _View) -> _View:
    """Mark a view as answered whatever budget is used up: it tells how they stand."""
    view.unbudgeted = True  # type: ignore[attr-defined]
    return view


def register(app: Flask) -> None:
    """Install the counters and places of `app`, and count each request's CPU time at its end."""
    directory = os.environ.get(COUNTERS_DIR)
    app.extensions["counts"] = FileCounter(Path(directory)) if directory else MemoryCache()
    app.extensions["slots"] = FileSlots(Path(directory)) if directory else MemorySlots()
    app.before_request(_begin)
    app.teardown_request(_end)


def count(context: AppContext, name: str, window_s: int, amount: int = 1) -> tuple[int, float]:
    """Count for all processes, in Redis or, while there is none, on this machine: no request is refused because of an outage.

    Returns the count in its window, and the window's remaining time [s].
    """
    return _counted(context, current_app.extensions["counts"], name, window_s, amount)


def used_shares(context: AppContext, counts: Counts, team: str) -> dict[Budget, float]:
    """Part of each budget of a team that is used now, by the budget's name."""
    limits = {name: _limit(context.settings, name) for name in _COUNTS_PER}
    used = {name: _counted(context, counts, f"{name}:{team}", window_s, _NO_USE)[0] for name, (_, window_s) in limits.items()}
    return {name: used[name] / _COUNTS_PER[name] / limit for name, (limit, _) in limits.items()}


def standing(context: AppContext, who: Principal) -> list[BudgetStatus]:
    """How the requests of a key and the work budgets of its team stand; none without a key, for whom none holds."""
    if who.key is None:
        return []
    requests = _status(REQUESTS, context.settings.quota, count(context, request_key(who.key), context.settings.quota[1], _NO_USE))
    work = []
    for name, per in _COUNTS_PER.items():
        limit = _limit(context.settings, name)
        work.append(_status(name, limit, count(context, _key(who, name), limit[1], _NO_USE), per))
    most = context.settings.team_concurrency
    taken = current_app.extensions["slots"].count_taken(who.team, most)
    return [requests, *work, BudgetStatus(CONCURRENT, taken, most, None, None)]


def request_key(key: str) -> str:
    """What the requests of a key are counted under."""
    return f"{REQUESTS}:{key}"


def _status(name: str, limit: tuple[int, int], counted: tuple[int, float], per: int = 1) -> BudgetStatus:
    return BudgetStatus(name, counted[0] / per, *limit, math.ceil(counted[1]))


def admit(context: AppContext, who: Principal, view: Any) -> None:
    """Let a request of a team in, with a place among the costly ones where the view is one. Raises BudgetUsedUp."""
    for name in () if getattr(view, "unbudgeted", False) else (CPU, *getattr(view, "budgets", ())):
        _check(context, who, name)
    if getattr(view, "costly", False):
        most = context.settings.team_concurrency
        g.release = current_app.extensions["slots"].take(who.team, most)
        if g.release is None:
            text = f"Your team runs {most} costly requests on this machine, which is all it may at a time; send this one when one is done."
            raise BudgetUsedUp(text, BudgetUse(CONCURRENT, most, most, None), CONCURRENT_RETRY_S)
    g.spender = who


def spend(context: AppContext, who: Principal, name: Budget, amount: int) -> None:
    """Count what a request of a team uses of a budget, in the budget's unit; nothing for whom no budget holds."""
    if who.key is not None and amount:
        count(context, _key(who, name), _limit(context.settings, name)[1], amount)


def _counted(context: AppContext, counts: Counts, name: str, window_s: int, amount: int) -> tuple[int, float]:
    in_redis = None if context.settings.embedded else context.cache.count(name, window_s, amount)
    return in_redis or counts.count(name, window_s, amount)


def _begin() -> None:
    g.thread_s = time.thread_time()


def _end(_error: BaseException | None) -> None:
    release: Release | None = g.pop("release", None)
    if release is not None:
        release()
    who: Principal | None = g.pop("spender", None)
    if who is not None:
        spent_ms = round((time.thread_time() - g.thread_s) * _COUNTS_PER[CPU])
        spend(current_app.extensions["context"], who, CPU, spent_ms)


def _check(context: AppContext, who: Principal, name: Budget) -> None:
    limit, window_s = _limit(context.settings, name)
    counted, left_s = count(context, _key(who, name), window_s, _NO_USE)
    used = counted / _COUNTS_PER[name]
    if used >= limit:
        back_s = max(1, math.ceil(left_s))
        text = (
            f"Your team has used {used:,.10g} of its {limit:,} {name.replace('-', ' ')} in {window_s:,} s; there are more in {back_s:,} s."
        )
        raise BudgetUsedUp(text, BudgetUse(name, used, limit, window_s), back_s)


def _limit(settings: Settings, name: Budget) -> tuple[int, int]:
    return settings.work_budgets[name]


def _key(who: Principal, name: Budget) -> str:
    return f"{name}:{who.team}"


class FileSlots:
    """So many places for each name over the processes of one machine: locked files, which the kernel unlocks when a process ends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def take(self, name: str, most: int) -> Release | None:
        """Take one of `most` places; returns what gives it back, None where all are taken. Raises OSError where the directory is away."""
        for number in range(most):
            handle = os.open(self._place(name, number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                continue
            return partial(os.close, handle)
        return None

    def count_taken(self, name: str, most: int) -> int:
        """Number of places that are taken. Raises OSError where the directory is away."""
        return sum(self._is_taken(self._place(name, number)) for number in range(most))

    def _place(self, name: str, number: int) -> Path:
        return self._directory / f"{hashlib.sha256(name.encode()).hexdigest()}.{number}"

    @staticmethod
    def _is_taken(place: Path) -> bool:
        try:
            handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # for less than a request takes to come: who takes places looks at all
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(handle)


class MemorySlots:
    """So many places for each name in one process."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, name: str, most: int) -> Release | None:
        """Take one of `most` places; returns what gives it back, None where all are taken."""
        with self._lock:
            if self._taken[name] >= most:
                return None
            self._taken[name] += 1
            return partial(self._give_back, name)

    def count_taken(self, name: str, most: int) -> int:
        """Number of places that are taken."""
        with self._lock:
            return min(self._taken[name], most)

    def _give_back(self, name: str) -> None:
        with self._lock:
            self._taken -= Counter([name])
