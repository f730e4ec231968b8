"""`outlay archive` and `outlay unarchive` killed at moments spread over their whole time: nothing is lost, and they go on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.teams import DEFAULT_TEAM
from service.domain.tracking.archive import ProgramArchived, archive_mark
from service.domain.tracking.records import RunRecord
from service.usecases.archiving.archive_file import check_archive
from service.usecases.tracking.projection import rebuild
from tests.integration.event_storm import PAGE, ROOT, as_sent, log_of, make_runs
from tests.integration.test_track_soak import figure

EVENTS = 10_000
KILLS = 8
"""Of each command, evenly over the time that it takes undisturbed."""

pytestmark = [pytest.mark.soak, pytest.mark.own_database]


@pytest.fixture(params=["sqlite", "postgresql"])
def on(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """The installation."""
    return settings if request.param == "sqlite" else replace(settings, database_url=request.getfixturevalue("postgres_url"))


@pytest.fixture
def context(on: Settings) -> Iterator[AppContext]:
    """Its context, migrated."""
    on.data_dir.mkdir(exist_ok=True)
    made = build_context(on)
    with closing(made.store):
        made.store.migrate()
        yield made


def filled(context: AppContext) -> list[RunRecord]:
    """Runs of a closed program with events of the past."""
    runs = make_runs(context)
    for run in runs:
        for begin in range(0, EVENTS // 2, PAGE):
            context.store.append_events(run, as_sent(range(begin, begin + PAGE)), context.clock())
    program = context.store.program(DEFAULT_TEAM, runs[0].program)
    assert program is not None
    context.store.change_program(program, {**program.body, "state": "closed"}, context.clock(), None)
    rebuild(context, context.store.runs(program.id))
    return runs


def outlay(on: Settings, *words: str, kill_after_s: float | None = None) -> int:
    """The exit status of a command, which is killed after so many seconds unless it has ended."""
    place = {"OUTLAY_DATA_DIR": str(on.data_dir), "OUTLAY_DATABASE_URL": on.database_url}
    env = os.environ | place | {"OUTLAY_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-m", "service.cli", *words], env=env, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        timer = threading.Timer(kill_after_s or 600, process.kill)
        timer.start()
        process.wait()
        timer.cancel()
    return process.returncode


def hours(context: AppContext, runs: list[RunRecord]) -> list[dict[int, str]]:
    """What stays of the runs."""
    return [dict(log.hours) for log in context.store.run_logs(runs)]


def killed_through(on: Settings, words: tuple[str, ...], whole_s: float, check: Callable[[], None]) -> int:
    """Kill a command at moments over its time, each attempt on what the one before has left; the number of those that were killed."""
    killed = 0
    for number in range(KILLS):
        killed += outlay(on, *words, kill_after_s=whole_s * (number + 0.5) / KILLS) < 0
        check()
    return killed


def test_archives_that_are_killed_lose_nothing(on: Settings, context: AppContext, tmp_path: Path) -> None:
    """The log is whole until the program is archived, and from then on its file; the hours never change."""
    rehearsed, runs = filled(context), filled(context)
    rehearsal, file = tmp_path / "rehearsal", tmp_path / "file"
    logs, kept = [list(log_of(context, run)) for run in runs], hours(context, runs)
    begun = time.monotonic()
    assert outlay(on, "archive", rehearsed[0].program, "--to", str(rehearsal)) == 0
    archive_s = time.monotonic() - begun
    assert outlay(on, "unarchive", str(rehearsal)) == 0
    unarchive_s = time.monotonic() - begun - archive_s
    figure("archive_seconds", archive_s, "s", on)
    figure("unarchive_seconds", unarchive_s, "s", on)

    def nothing_is_lost() -> None:
        assert hours(context, runs) == kept
        program = context.store.program(DEFAULT_TEAM, runs[0].program)
        assert program is not None
        mark = archive_mark(program)
        if mark is None:
            assert [list(log_of(context, run)) for run in runs] == logs
        else:
            assert check_archive(file)[1] == mark.sha256

    archive = ("archive", runs[0].program, "--to", str(file))
    killed = killed_through(on, archive, archive_s, nothing_is_lost)
    assert outlay(on, *archive) == 0
    nothing_is_lost()
    with pytest.raises(ProgramArchived):
        context.store.events(runs[0], 0, 1)
    killed += killed_through(on, ("unarchive", str(file)), unarchive_s, nothing_is_lost)
    assert outlay(on, "unarchive", str(file)) in (0, 1)  # 1: an attempt before was done
    assert [list(log_of(context, run)) for run in runs] == logs
    assert rebuild(context, context.store.runs(runs[0].program)) == 0
    figure("kills", killed, "kills", on)
    assert killed
