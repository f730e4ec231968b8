"""However large a run is, none of the log's statements walks through the whole of it, but for those that want all of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from service.domain.tracking.events import Event
from service.domain.tracking.records import RunRecord
from service.store import Store

NOW = datetime(2027, 2, 1, 12, tzinfo=UTC)
OPEN = {"name": "main", "state": "open"}
MANY = 100_000
WHOLE_RUN = re.compile(r"track_events (AS \w+ )?USING (INDEX \w+|PRIMARY KEY) \(run=\?\)$|SCAN track_events")


@pytest.fixture
def run(store: Store) -> RunRecord:
    """A run of a program."""
    program = store.create_program("default", OPEN, None, NOW)
    return store.create_run(program, "main", OPEN, NOW)


def progress(number: int) -> Event:
    """The number-th of a run's minutes."""
    return Event(f"step-{number}", "progress", NOW + timedelta(minutes=number), step=number)


@contextmanager
def statements(store: Store) -> Iterator[list[tuple[str, Any]]]:
    """What the store asks of its log meanwhile, with the parameters."""
    seen: list[tuple[str, Any]] = []

    def note(_connection: Connection, _cursor: object, statement: str, parameters: Any, _context: object, many: bool) -> None:
        if "FROM track_events" in statement and not many:
            seen.append((statement, parameters))

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(store.engine, "before_cursor_execute", note)


def told(events: Any, corrections: Any) -> str:
    """A fold that shows what it was given."""
    return f"{len(events)},{len(corrections)}"


WORK: dict[str, Callable[[Store, RunRecord], object]] = {
    "events kept": lambda store, run: store.append_events(run, [progress(number) for number in range(100)], NOW),
    "a page": lambda store, run: store.events(run, 10, 10),
    "events by id": lambda store, run: store.find_events(run, ["step-1", "step-2"]),
    "events as corrected": lambda store, run: store.latest_revisions(run, ["step-1", "step-2"]),
    "a state with hours to be made": lambda store, run: store.run_logs([run]),
    "an hour": lambda store, run: store.events_of_hour([run], int(NOW.timestamp()) // 3600),
    "hours made": lambda store, run: store.project_hours(run, told, 50),
}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("work", WORK)
def test_sqlite_finds_what_it_wants_by_an_index(store: Store, run: RunRecord, work: str) -> None:
    """A new database has no statistics, and would take every run to be tiny; the migration says otherwise."""
    corrections = [Event(f"fix-{number}", "correction", NOW, supersedes=f"step-{number}") for number in range(0, 40, 9)]
    store.append_events(run, [*(progress(number * 7) for number in range(60)), *corrections], NOW)
    with statements(store) as seen:
        WORK[work](store, run)
    assert seen
    with store.engine.connect() as connection:
        plans = [row[3] for asked, given in seen for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}", given)]
    assert [step for step in plans if WHOLE_RUN.search(step)] == []


def test_a_program_of_many_runs_takes_no_more_statements_than_one_of_few(store: Store, run: RunRecord) -> None:
    """Its hours, those to be made again, their events and its corrections: each is asked for all runs at once."""
    program = store.program("default", run.program)
    assert program is not None
    runs = [run, *(store.create_run(program, f"run {number}", OPEN, NOW) for number in range(20))]
    for each in runs:
        store.append_events(each, [progress(number * 7) for number in range(30)], NOW)
        store.project_hours(each, told, 20)
    with statements(store) as few:
        store.run_logs(runs[:2])
        store.events_of_hour(runs[:2], int(NOW.timestamp()) // 3600)
    with statements(store) as many:
        logs = store.run_logs(runs)
        hours = store.events_of_hour(runs, int(NOW.timestamp()) // 3600)
    assert len(many) == len(few)
    assert [log.touched.keys() for log in logs] == [logs[0].touched.keys()] * len(runs)
    assert [[event.id for event in events] for events, _ in hours] == [[f"step-{number * 7}" for number in range(9)]] * len(runs)


@pytest.mark.own_database
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_postgresql_finds_ids_by_the_unique_index_in_a_run_it_never_counted(store: Store, run: RunRecord) -> None:
    """A run grows faster than statistics are taken: those of a time before it are no reason to walk through it."""
    fill = text(
        "INSERT INTO track_events (run, position, event, type, at, received_at, body)"
        " SELECT :run, n, 'old-' || n, 'note', n, 0, '{}' FROM generate_series(1, :many) AS n"
    )
    program = store.create_program("default", OPEN, None, NOW)
    before = store.create_run(program, "before", OPEN, NOW)
    with store.engine.connect() as connection, connection.begin():
        connection.execute(fill, {"run": before.key, "many": MANY})
        connection.execute(text("ANALYZE track_events"))
        connection.execute(fill, {"run": run.key, "many": MANY})
    with statements(store) as seen:
        store.find_events(run, [f"step-{number}" for number in range(100)])
    ((asked, given),) = seen
    with store.engine.connect() as connection:
        plan = "\n".join(row[0] for row in connection.exec_driver_sql(f"EXPLAIN {asked}", given))
    assert "track_events_once" in plan
    assert plan.count("Scan") == 1
