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
REMEMBER_S = 1.0
"""How long a ping's outcome holds for all threads [s]."""


class HangGuard:
    """Whether the database answers, asked at most once a second."""

    def __init__(self, ping: Callable[[float], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._ping = ping
        self._clock = clock
        self._lock = threading.Lock()
        self._asked_at = float("-inf")
        self._answers = True

    def check(self) -> None:
        """Raises StoreUnavailable where the last ping, of less than a second ago, was not answered."""
        if not self._answers and self._clock() - self._asked_at < REMEMBER_S:
            raise StoreUnavailable("the database does not answer")

    def answers(self) -> bool:
        """Whether the database answers a ping; another thread's ping is waited for."""
        with self._lock:
            if self._clock() - self._asked_at >= REMEMBER_S:
                self._answers = self._ping(PING_S)
                self._asked_at = self._clock()
            return self._answers
