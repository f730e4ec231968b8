"""The service behind PgBouncer in transaction mode."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from service.config import Settings
from service.container import build_context
from service.store import Store
from service.store.database import STATEMENT_TIMEOUT_S
from tests.integration.event_storm import assert_exactly_once, kill_a_worker, make_runs, storm, web
from tests.support.pooler import pooled
from tests.support.servers import new_database

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc to look for processes")


@pytest.fixture
def empty_database(postgres_server: str, tmp_path: Path) -> Iterator[str]:
    """A database without tables, through a pooler."""
    with new_database(postgres_server) as url, pooled(url, tmp_path) as through:
        yield through


def test_processes_that_migrate_at_once_take_turns(empty_database: str) -> None:
    """The lock belongs to a transaction; no later statement runs without a limit, and none is left locked."""

    def migrate(_: int) -> None:
        with closing(Store(empty_database)) as store:
            store.migrate()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(migrate, range(3)))
    with closing(Store(empty_database)) as store:
        store.check_head()
        for _ in range(8):
            with store.engine.connect() as one, store.engine.connect() as other:
                assert {each.scalar(text("SHOW statement_timeout")) for each in (one, other)} == {f"{STATEMENT_TIMEOUT_S // 60}min"}
        with store.engine.connect() as connection:
            assert connection.scalar(text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")) == 0


def test_events_behind_a_pooler_are_taken_once(settings: Settings, postgres_url: str, tmp_path: Path, free_port: int) -> None:
    """Also while web workers are killed: nothing acknowledged is lost or doubled."""
    with pooled(postgres_url, tmp_path) as through:
        served = replace(settings, database_url=through, port=free_port, web_workers=2, log_level="error")
        served.data_dir.mkdir()
        context = build_context(served)
        with closing(context.store):
            runs = make_runs(context)
            with web(served, tmp_path) as master, storm(free_port, runs, batches=6) as telling:
                kill_a_worker(master, random.Random(7))
            assert_exactly_once(context, runs, [each.result() for each in telling])
