"""Whether a database answers, found out without waiting for one that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from service.domain.errors import StoreUnavailable


@dataclass(slots=True)
class _Asked:
    """A ping under way, and whether it was answered once it is done."""

    began_s: float
    done: threading.Event = field(default_factory=threading.Event)
    answered: bool = False


class Ping:
    """Runs a query that may hang in a thread, one at a time: who asks meanwhile has the answer of the one under way."""

    def __init__(self, ask: Callable[[], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: _Asked | None = None

    def within(self, timeout_s: float) -> bool:
        """Whether a ping is answered within that time from its beginning: one that hangs already is not waited for again."""
        with self._lock:
            asked = self._under_way
            if asked is None:
                asked = self._under_way = _Asked(self._clock())
                threading.Thread(target=self._run, args=(asked,), name="store-ping", daemon=True).start()
        asked.done.wait(max(0.0, asked.began_s + timeout_s - self._clock()))
        return asked.answered

    def _run(self, asked: _Asked) -> None:
        try:
            self._ask()
            asked.answered = True
        except StoreUnavailable:
            return
        finally:
            with self._lock:
                self._under_way = None
            asked.done.set()
