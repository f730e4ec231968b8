"""Answers that are worked out after the acknowledgement: a few threads of the web process, and a bounded number that waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

THREADS = 2
MOST_WAITING = 50


class AnswerPool:
    """Runs work in threads, which start with the first work: the process may fork before."""

    def __init__(self, threads: int = THREADS, waiting: int = MOST_WAITING) -> None:
        self._places = threading.BoundedSemaphore(threads + waiting)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="slack")

    def submit(self, work: Callable[[], None], on_failure: Callable[[BaseException], None]) -> bool:
        """Let a thread do the work, or what is to be done where it fails; False where too much waits already."""
        if not self._places.acquire(blocking=False):
            return False
        self._threads.submit(work).add_done_callback(partial(self._finish, on_failure))
        return True

    def _finish(self, on_failure: Callable[[BaseException], None], done: Future[None]) -> None:
        self._places.release()
        error = done.exception()
        if error is not None:
            on_failure(error)
