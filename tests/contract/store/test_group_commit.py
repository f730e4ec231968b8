"""Threads that write at the same time share a commit, and each has what writing alone would have given it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import update

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import StoreUnavailable
from service.domain.teams import DEFAULT_TEAM
from service.domain.tracking.archive import ProgramArchived
from service.domain.tracking.events import Event
from service.store.group_commit import GroupCommit, GroupRefusedError
from service.store.tracking.tables import track_runs
from tests.integration.event_storm import log_of, make_runs
from tests.support.servers import wait_for

THREADS = 6
AT = datetime(2026, 2, 1, tzinfo=UTC)


class Writer:
    """Writes numbers, and remembers each transaction; the first waits until the others do."""

    def __init__(self, refuses: Exception | None = None) -> None:
        self.commits: list[list[int]] = []
        self.go = threading.Event()
        self._refuses = refuses

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.go.wait()
        if len(items) > 1 and self._refuses is not None:
            raise self._refuses
        if -1 in items:
            raise StoreUnavailable("the disk is full")
        self.commits.append(list(items))
        return [item + 1 for item in items]


def written(writer: Writer, numbers: Sequence[int]) -> list[int | BaseException]:
    """What each thread gets, the first of which holds the others up."""
    group = GroupCommit(writer)
    with ThreadPoolExecutor(len(numbers)) as pool:
        first = pool.submit(group.write, numbers[0])
        wait_for(lambda: not group._waiting, "the first to write")
        others = [pool.submit(group.write, number) for number in numbers[1:]]
        wait_for(lambda: len(group._waiting) == len(others), "the others to wait")
        writer.go.set()
        return [future.exception() or future.result() for future in (first, *others)]


def test_those_that_wait_share_the_next_commit() -> None:
    """Two commits for all, and each has its own result."""
    writer = Writer()
    assert written(writer, range(THREADS)) == list(range(1, THREADS + 1))
    assert [len(commit) for commit in writer.commits] == [1, THREADS - 1]


@pytest.mark.parametrize("refused", [GroupRefusedError(), StoreUnavailable("busy")])
def test_a_group_that_is_refused_is_written_one_by_one(refused: Exception) -> None:
    """Each once."""
    writer = Writer(refused)
    assert written(writer, range(THREADS)) == list(range(1, THREADS + 1))
    assert sorted(writer.commits) == [[number] for number in range(THREADS)]


def test_only_the_one_at_fault_fails() -> None:
    """Its neighbours are written."""
    writer = Writer()
    *good, bad = written(writer, [0, 1, 2, -1])
    assert good == [1, 2, 3]
    assert isinstance(bad, StoreUnavailable)
    assert sorted(number for commit in writer.commits for number in commit) == [0, 1, 2]


@pytest.fixture
def context(settings: Settings) -> Iterator[AppContext]:
    """The service's context with an SQLite database."""
    settings.data_dir.mkdir()
    made = build_context(settings)
    with closing(made.store):
        made.store.migrate()
        yield made


def test_threads_that_append_to_one_log_at_a_time_leave_no_gap_and_no_double(context: AppContext) -> None:
    """New and known batches mixed: each event once, positions without gaps."""
    store, runs = context.store, make_runs(context)
    batches = [[Event(f"event-{number + more}", "note", AT, text="x") for more in range(20)] for number in range(0, 200, 10)]
    with ThreadPoolExecutor(THREADS) as pool:
        added = [list(pool.map(lambda batch, run=run: store.append_events(run, batch, AT), batches)) for run in runs]
    for run, parts in zip(runs, added, strict=True):
        log = list(log_of(context, run))
        assert [position for position, _ in log] == list(range(1, 211))
        assert sorted(event for part in parts for event in part.accepted) == sorted(event.id for _, event in log)
        assert not any(part.conflicts for part in parts)


def test_an_archived_run_is_refused_alone(context: AppContext) -> None:
    """Threads that append to another run at the same time are not."""
    store = context.store
    archived, taking = (make_runs(context, 1)[0] for _ in range(2))
    program = store.program(DEFAULT_TEAM, archived.program)
    assert program is not None
    store.mark_archived(program, {archived.id: 0}, program.body, AT, None)

    def is_taken(number: int) -> bool:
        try:
            event = Event(f"event-{number}", "note", AT, text="x")
            return bool(store.append_events((archived, taking)[number % 2], [event], AT).accepted)
        except ProgramArchived:
            return False

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(is_taken, range(40))) == [bool(number % 2) for number in range(40)]
    assert len(list(log_of(context, taking))) == 20


def test_a_run_set_back_behind_its_log_fails_alone(context: AppContext) -> None:
    """Threads that append to another run at the same time are answered."""
    store, (broken, sound) = context.store, make_runs(context)
    store.append_events(broken, [Event("first", "note", AT, text="x")], AT)
    with store.engine.begin() as connection:
        connection.execute(update(track_runs).where(track_runs.c.key == broken.key).values(position=0))

    def is_taken(number: int) -> bool:
        try:
            return bool(store.append_events((broken, sound)[number % 2], [Event(f"event-{number}", "note", AT, text="x")], AT).accepted)
        except sqlite3.IntegrityError:
            return False

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(is_taken, range(40))) == [bool(number % 2) for number in range(40)]


def test_a_closed_store_holds_no_connection_for_appends(context: AppContext) -> None:
    """SQLite removes its write-ahead log with the last connection; a late append opens another."""
    store, (run, _) = context.store, make_runs(context)
    log = Path(f"{store.engine.url.database}-wal")
    for number in range(2):
        store.append_events(run, [Event(f"event-{number}", "note", AT, text="x")], AT)
        assert log.exists()
        store.close()
        assert not log.exists()
