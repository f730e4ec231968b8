"""What the worker and its clock write of an outage: one line, whatever number of tasks, processes and attempts meet it."""

from __future__ import annotations

import json
import logging
import multiprocessing
import shutil
import threading
from datetime import timedelta

import pytest
from celery.beat import ScheduleEntry

from service.config import Settings
from service.domain.errors import StoreFull, StoreUnavailable
from service.queue import celery_app
from service.runtime import logs
from workers import outages, tasks


@pytest.fixture(autouse=True)
def nothing_met() -> None:
    """No outage is remembered from one test to the next."""
    for slot in range(len(outages._last_met_s)):
        outages._last_met_s[slot] = 0


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, str]]:
    """What this thread has written to the log, as it is written; threads that other tests have left write too."""
    ours = [record for record in caplog.records if record.thread == threading.get_ident()]
    return [json.loads(logs.JsonFormatter().format(record)) for record in ours]


def test_a_database_that_is_away_is_one_line_for_all_periodic_tasks(
    settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without traceback, and without what follows the first line of its reason."""

    def away() -> None:
        raise StoreUnavailable("connection refused\n[SQL: SELECT 1]")

    monkeypatch.setattr(tasks, "context", away)
    app = celery_app(settings)
    tasks.register(app)
    for _ in range(2):
        for name in (tasks.SWEEP, tasks.REFRESH, tasks.FOLD, tasks.FORGET, tasks.PRUNE, tasks.JUDGE, tasks.DELIVER, tasks.FIGURES):
            app.tasks[name].apply().get()
        app.tasks[tasks.RUN_JOB].apply(args=["a job"]).get()
    (line,) = (line for line in lines(caplog) if line["level"] == "error")
    assert (line["error"], line["reason"]) == ("StoreUnavailable", "connection refused")
    assert "exception" not in line


def test_other_errors_of_a_task_are_its_own() -> None:
    """They end in Celery's log with their traceback."""

    def broken() -> None:
        raise KeyError("a defect")

    with pytest.raises(KeyError):
        outages.without_database_errors(broken)()


def test_a_disk_that_is_full_during_an_outage_is_a_line_of_its_own() -> None:
    """Each kind of trouble counts by itself."""
    assert [outages.is_new(kind) for kind in (StoreUnavailable, StoreFull, StoreUnavailable, StoreFull)] == [True, True, False, False]


def test_an_outage_that_was_not_met_for_long_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one has a line again; one that goes on has none, however long it lasts."""
    now = [1000.0]
    monkeypatch.setattr(outages.time, "monotonic", lambda: now[0])
    found = []
    for pause_s in (0, outages.QUIET_S, outages.QUIET_S, outages.QUIET_S + 1):
        now[0] += pause_s
        found.append(outages.is_new(outages.BROKER))
    assert found == [True, False, False, True]


def test_all_processes_of_a_worker_share_the_line() -> None:
    """What a forked process met is known to its parent."""
    process = multiprocessing.get_context("fork").Process(target=outages.is_new, args=(outages.BROKER,))
    process.start()
    process.join()
    assert not outages.is_new(outages.BROKER)


def test_a_broker_that_is_away_is_one_line_of_the_clock(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """Whichever of its tasks were due; the worker's own attempts to connect add none."""
    app = celery_app(settings)
    shutil.rmtree(settings.data_dir / "queue")
    scheduler = outages.Scheduler(app, lazy=True)
    for name in ("sweep", "fold", "sweep"):
        scheduler.apply_entry(ScheduleEntry(name, f"outlay.{name}", schedule=timedelta(seconds=2), app=app))
    (line,) = lines(caplog)
    assert line["message"].startswith("the message broker cannot be reached")
    assert "exception" not in line
    retry = logging.LogRecord("consumer", logging.ERROR, "f", 1, "consumer: Cannot connect to %s: %s.\n%s", ("a", "b", "c"), None)
    other = logging.LogRecord("consumer", logging.ERROR, "f", 1, "another error", (), None)
    assert (outages.is_no_repeat(retry), outages.is_no_repeat(other)) == (False, True)


def test_a_task_that_cannot_be_sent_for_another_reason_has_its_traceback(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """That is a defect, no outage."""
    app = celery_app(settings)
    entry = ScheduleEntry("fold", "outlay.fold", schedule=timedelta(seconds=2), args=(object(),), app=app)
    outages.Scheduler(app, lazy=True).apply_entry(entry)
    (line,) = lines(caplog)
    assert "exception" in line
