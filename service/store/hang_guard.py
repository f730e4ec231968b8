"""A database that has stopped answering must not hold threads: statements that wait are given up once it does not answer a ping either.

A server that is frozen, or behind a network that swallows packets, keeps its connections open: no timeout of the server and none of TCP
(RFC 9293: what is sent is acknowledged by the other machine's kernel) ends the wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from service.domain.errors import StoreUnavailable

PATIENCE_S = 1.0
"""A statement may wait this long before it is asked whether the database answers at all [s]."""
PING_S = 3.0
"""What a ping may take then [s]: far more than on a machine whose processors are all busy."""
PROBE_S = 1.0
"""What a ping may take of a database that did not answer before [s]: one thread waits for it, the others are refused meanwhile."""
REMEMBER_S = 1.0
"""How long a ping's outcome holds for all threads [s]."""


class HangGuard:
    """Whether the database answers, asked at most once a second.

    A circuit breaker: once a ping was not answered, statements are refused until one is, and one thread at a time tries.
    """

    def __init__(self, ping: Callable[[float], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._ping = ping
        self._clock = clock
        self._lock = threading.Lock()
        self._asked_at = float("-inf")
        self._answers = True

    def check(self) -> None:
        """Raises StoreUnavailable where the last ping was not answered; after a second the first thread pings again."""
        if self._answers:
            return
        if self._clock() - self._asked_at >= REMEMBER_S and self._lock.acquire(blocking=False):
            try:
                self._ask(PROBE_S)
            finally:
                self._lock.release()
        if not self._answers:
            raise StoreUnavailable("the database does not answer")

    def answers(self) -> bool:
        """Whether the database answers a ping; another thread's ping is waited for."""
        with self._lock:
            if self._clock() - self._asked_at >= REMEMBER_S:
                self._ask(PING_S)
            return self._answers

    def _ask(self, timeout_s: float) -> None:
        self._answers = self._ping(timeout_s)
        self._asked_at = self._clock()
