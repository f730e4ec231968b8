"""The circuit breaker before a database that has stopped answering."""

from __future__ import annotations

import pytest

from service.domain.errors import StoreUnavailable
from service.store import hang_guard
from service.store.hang_guard import PROBE_S, REMEMBER_S, HangGuard


class Database:
    """A database that answers or not, its pings by how long each was waited for, and a clock."""

    def __init__(self) -> None:
        self.answers, self.now_s = True, 0.0
        self.pings: list[float] = []
        self.guard = HangGuard(self.ping, lambda: self.now_s)

    def ping(self, timeout_s: float) -> bool:
        """Whether it answers; a statement that comes while it is asked again is refused without waiting."""
        self.pings.append(timeout_s)
        if timeout_s == PROBE_S and not self.answers:
            self.refuses()
        return self.answers

    def refuses(self) -> None:
        """A statement is refused."""
        with pytest.raises(StoreUnavailable):
            self.guard.check()


def test_one_thread_at_a_time_waits_for_a_hung_database() -> None:
    """The first statement that waits finds it out; later ones are refused at once but for one ping a second."""
    database = Database()
    database.guard.check()
    database.answers = False
    assert not database.guard.answers()
    database.refuses()
    assert database.pings == [hang_guard.PING_S]
    database.now_s = REMEMBER_S
    database.refuses()
    database.refuses()
    assert database.pings == [hang_guard.PING_S, PROBE_S]


def test_an_answered_ping_lets_statements_in_again() -> None:
    """The first statement after it is that thread's own."""
    database = Database()
    database.answers = False
    assert not database.guard.answers()
    database.answers, database.now_s = True, REMEMBER_S
    database.guard.check()
    database.guard.check()
    assert database.pings == [hang_guard.PING_S, PROBE_S]
