"""The worker's sign of life."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest
from gunicorn.config import Config

from service.api.http.web_worker.gunicorn_log import ErrorLog
from service.api.http.web_worker.gunicorn_worker import ProblemWorker

HOUR_S = 3600.0


@pytest.fixture
def worker() -> Iterator[ProblemWorker]:
    config = Config()
    made = ProblemWorker(1, os.getppid(), [], None, 30, config, ErrorLog(config))
    with closing(made.tmp):
        yield made


def test_the_arbiter_sees_a_worker_at_once_and_then_when_it_is_due(worker: ProblemWorker) -> None:
    made_s = worker.tmp.last_update()
    worker.notify_s = HOUR_S
    worker.notify()
    first_s = worker.tmp.last_update()
    worker.notify()
    assert worker.tmp.last_update() == first_s != made_s


def test_each_event_shows_it_where_it_is_always_due(worker: ProblemWorker) -> None:
    worker.notify_s = 0.0
    worker.notify()
    first_s = worker.tmp.last_update()
    worker.notify()
    assert worker.tmp.last_update() > first_s
