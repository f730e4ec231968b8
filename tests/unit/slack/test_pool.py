"""Threads that work on answers: a bounded number waits, and a failure is reported without ending a thread."""

from __future__ import annotations

import threading

from service.slack.pool import AnswerPool
from tests.support.servers import wait_for


def test_more_than_fits_is_refused_until_there_is_a_place() -> None:
    pool, free, failures = AnswerPool(threads=1, waiting=1), threading.Event(), list[BaseException]()
    assert pool.submit(lambda: wait(free), failures.append)
    assert pool.submit(lambda: wait(free), failures.append)
    assert not pool.submit(lambda: wait(free), failures.append)
    free.set()
    wait_for(lambda: pool.submit(lambda: wait(free), failures.append), "a place")
    assert failures == []


def test_a_failure_is_reported_and_the_thread_goes_on() -> None:
    pool, failures, done = AnswerPool(threads=1, waiting=1), list[BaseException](), threading.Event()
    assert pool.submit(lambda: 1 // 0, failures.append)
    wait_for(lambda: failures, "the report")
    assert pool.submit(done.set, failures.append)
    wait_for(done.is_set, "the next work")
    assert [type(failure) for failure in failures] == [ZeroDivisionError]


def wait(for_what: threading.Event) -> None:
    for_what.wait(60)
