"""All hosts have the database's time, whatever their own clocks say."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.config import Settings
from service.container import build_context, utc_now
from service.domain.errors import StoreUnavailable
from service.store import Store
from service.store.database_clock import ASK_EVERY_S, RETRY_S, DatabaseClock
from tests.support.servers import wait_for

DATABASE = datetime(2026, 2, 1, tzinfo=UTC)


class Elapsed:
    """A monotonic clock that a test advances."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


def asked(answers: list[Any]) -> Callable[[], datetime]:
    """What the database says, one after another; an exception is raised."""

    def ask() -> datetime:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ask


def test_time_goes_on_from_the_databases_answer() -> None:
    """By a clock that nobody sets, and without another question within a minute."""
    elapsed = Elapsed()
    clock = DatabaseClock(asked([DATABASE]), elapsed)
    assert clock() == DATABASE
    elapsed.s += ASK_EVERY_S - 1
    assert clock() == DATABASE + timedelta(seconds=ASK_EVERY_S - 1)


def test_the_database_is_asked_again() -> None:
    """The answer that it gave last counts."""
    elapsed = Elapsed()
    later = DATABASE + timedelta(days=1)
    clock = DatabaseClock(asked([DATABASE, later]), elapsed)
    clock()
    elapsed.s += ASK_EVERY_S
    wait_for(lambda: clock() >= later, "the second answer")


def test_until_the_database_answers_the_hosts_time_counts() -> None:
    """It is asked again, but not at once."""
    elapsed, answers = Elapsed(), [StoreUnavailable("away"), DATABASE]
    clock = DatabaseClock(asked(answers), elapsed)
    assert abs(clock() - utc_now()) < timedelta(minutes=1)
    assert abs(clock() - utc_now()) < timedelta(minutes=1)
    assert answers == [DATABASE]
    elapsed.s += RETRY_S
    assert clock() == DATABASE


def test_an_outage_does_not_set_the_clock() -> None:
    """What was known goes on."""
    elapsed = Elapsed()
    answers: list[Any] = [DATABASE, StoreUnavailable("away")]
    clock = DatabaseClock(asked(answers), elapsed)
    clock()
    elapsed.s += ASK_EVERY_S
    clock()
    wait_for(lambda: not answers, "the question")
    assert clock() == DATABASE + timedelta(seconds=ASK_EVERY_S)


def test_a_host_whose_clock_is_wrong_has_postgresqls_time(settings: Settings, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The context's clock is not the machine's."""
    context = build_context(replace(settings, database_url=postgres_url))
    with closing(context.store) as store:
        at = store.time()
        monkeypatch.setattr("service.store.database_clock.datetime", None)  # the host's clock is not read
        assert timedelta(0) <= context.clock() - at < timedelta(minutes=1)


@pytest.mark.parametrize("read", ["_beside", "_read"])
def test_a_read_that_outlasts_its_store_leaves_no_connection(postgres_url: str, read: str) -> None:
    """A question that is answered after the store was closed: its connection is closed, and not kept by a pool that is gone."""
    with closing(Store(postgres_url)) as store, getattr(store, read)() as connection:
        store.close()
        driver: Any = connection.connection.driver_connection
        assert not driver.closed
    assert driver.closed
