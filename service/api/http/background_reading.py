"""Results of a read that may hang: made in a thread, waited for until a deadline, and kept until there is a newer one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


class BackgroundReading(Generic[Result]):
    """The newest result of `read`, which is called in a thread; a call that hangs is not repeated, so that threads do not pile up."""

    def __init__(self, name: str, read: Callable[[], Result], clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._running: threading.Event | None = None
        self._newest: tuple[Result, float] | None = None

    def refresh(self) -> threading.Event:
        """Begin a read, or join the running one; the event is set at its end."""
        with self._lock:
            if self._running is None:
                self._running = threading.Event()
                threading.Thread(target=self._run, args=(self._running,), name=self._name, daemon=True).start()
            return self._running

    def newest(self) -> tuple[Result, float] | None:
        """The newest result and its age [s]; None where there is none yet."""
        found = self._newest
        return None if found is None else (found[0], self._clock() - found[1])

    def _run(self, done: threading.Event) -> None:
        began = self._clock()
        try:
            self._newest = self._read(), began
        except Exception as error:  # noqa: BLE001 - whatever is wrong with what is read, the rest is shown
            _log.warning("%s failed", self._name, extra={"fields": {"error": type(error).__name__}})
        finally:
            with self._lock:
                self._running = None
            done.set()
