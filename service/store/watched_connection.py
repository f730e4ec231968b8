"""Connections to PostgreSQL whose statements are given up when the database has stopped answering."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

from service.store.hang_guard import PATIENCE_S, HangGuard

_NOTHING_READY = 0
"""psycopg sends it into a waiting generator about ten times a second."""
_T = TypeVar("_T")


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that is closed, with an OperationalError, when the database has stopped answering."""

    guard: HangGuard | None = None

    def wait(self, gen: Generator[Any, Any, _T], *args: Any, **kwargs: Any) -> _T:
        """Wait for a statement, as long as the database answers others."""
        return super().wait(self._watch(gen), *args, **kwargs)

    def _watch(self, gen: Generator[Any, Any, _T]) -> Generator[Any, Any, _T]:
        ask_at = time.monotonic() + PATIENCE_S
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready == _NOTHING_READY and time.monotonic() > ask_at:
                    self._give_up_if_hung()
                    ask_at = time.monotonic() + PATIENCE_S
                wanted = gen.send(ready)
        except StopIteration as finished:
            result: _T = finished.value
            return result

    def _give_up_if_hung(self) -> None:
        if self.guard is not None and not self.guard.answers():
            self.pgconn.finish()
            raise psycopg.OperationalError("the database does not answer")
