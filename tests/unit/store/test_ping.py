"""Pings: a query that hangs holds up nobody for longer than it was given."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.domain.errors import StoreUnavailable
from service.store.ping import Ping
from tests.support.servers import wait_for

FOR_GOOD_S = 3600.0


class Database:
    """Answers pings once it is let, and counts them; a clock that stands until it is moved."""

    def __init__(self) -> None:
        self.answering = threading.Event()
        self.asked = 0
        self.now_s = 0.0

    def __call__(self) -> None:
        self.asked += 1
        self.answering.wait()

    def clock(self) -> float:
        return self.now_s


@pytest.fixture
def database() -> Iterator[Database]:
    """A database that hangs, and answers at the end."""
    made = Database()
    yield made
    made.answering.set()


def test_one_that_hangs_is_not_waited_for_again(database: Database) -> None:
    """Not even by who would wait for long: it has had that time."""
    ping = Ping(database, database.clock)
    assert not ping.within(0.0)
    database.now_s = FOR_GOOD_S
    assert not ping.within(FOR_GOOD_S)
    wait_for(lambda: database.asked == 1, "the query")


def test_who_asks_meanwhile_has_the_answer_of_the_one_under_way(database: Database) -> None:
    """Eight ask, and the database answers one query; the next is asked anew."""
    ping = Ping(database, database.clock)
    with ThreadPoolExecutor(8) as pool:
        asking = [pool.submit(ping.within, FOR_GOOD_S) for _ in range(8)]
        wait_for(lambda: all(each.running() for each in asking), "all to ask")
        assert not ping.within(0.0)
        database.answering.set()
        assert all(each.result() for each in asking)
    assert ping.within(FOR_GOOD_S)
    assert database.asked <= 3  # a thread may have come after the first answer


def test_a_database_that_is_away_is_a_no_and_asked_again() -> None:
    """At once, whatever the time."""
    asked: list[int] = []

    def away() -> None:
        asked.append(1)
        raise StoreUnavailable("refused")

    ping = Ping(away)
    assert not ping.within(FOR_GOOD_S)
    assert not ping.within(FOR_GOOD_S)
    assert len(asked) == 2
