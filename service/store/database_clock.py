"""The database's time for every host: leases and heartbeats, which hosts judge of each other, must not depend on the hosts' clocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from service.domain.errors import StoreUnavailable

ASK_EVERY_S = 60.0
"""How old the database's answer may get [s]; meanwhile the host's monotonic clock goes on from it."""
RETRY_S = 5.0
"""How soon it is asked again where it did not answer [s]."""
FIRST_WAIT_S = 1.0
"""How long the first caller waits for the first answer [s]; without one it has the host's time."""


class _Reading(NamedTuple):
    at: datetime
    monotonic_s: float


class DatabaseClock:
    """The present UTC time by the database's clock; the host's own until the database has answered.

    Parameters
    ----------
    ask
        Returns the database's time. Raises StoreUnavailable.
    monotonic
        Seconds of a clock that nobody sets.
    """

    def __init__(self, ask: Callable[[], datetime], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._monotonic = ask, monotonic
        self._lock = threading.Lock()
        self._reading: _Reading | None = None
        self._ask_at_s = float("-inf")

    def __call__(self) -> datetime:
        """The present time in UTC."""
        if self._monotonic() >= self._ask_at_s:
            self._refresh()
        reading = self._reading
        if reading is None:
            return datetime.now(UTC)
        return reading.at + timedelta(seconds=self._monotonic() - reading.monotonic_s)

    def _refresh(self) -> None:
        """Ask beside the caller, who waits for the first answer only: a database that hangs holds up nobody who needs no database."""
        if not self._lock.acquire(blocking=False):
            return
        self._ask_at_s = self._monotonic() + RETRY_S
        asking = threading.Thread(target=self._read, name="database-clock", daemon=True)
        asking.start()
        if self._reading is None:
            asking.join(FIRST_WAIT_S)

    def _read(self) -> None:
        try:
            before_s = self._monotonic()
            at = self._ask()
            after_s = self._monotonic()
            self._reading = _Reading(at.astimezone(UTC), (before_s + after_s) / 2)
            self._ask_at_s = after_s + ASK_EVERY_S
        except StoreUnavailable:
            return
        finally:
            self._lock.release()
