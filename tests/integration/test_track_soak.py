"""The log of events under fire: what was acknowledged stays, once, whoever is killed when."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.usecases.tracking.projection import rebuild
from tests.integration.event_storm import (
    PAGE,
    as_sent,
    assert_exactly_once,
    background,
    children,
    kill_a_worker,
    make_runs,
    storm,
    web,
)
from tests.support.servers import wait_for

KILLS = 50
PAUSE_S = (0.2, 2.2)
FOLDED_IN_STEPS = 70_000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc to look for processes")


@pytest.fixture(params=["sqlite", "postgresql"])
def on(request: pytest.FixtureRequest, settings: Settings, free_port: int) -> Settings:
    """Two web workers on each kind of database."""
    served = replace(settings, port=free_port, web_workers=2, log_level="error")
    if request.param == "sqlite":
        return served
    return replace(served, database_url=request.getfixturevalue("postgres_url"))


@pytest.fixture
def context(on: Settings) -> Iterator[AppContext]:
    """The test's own context, on a migrated database."""
    on.data_dir.mkdir()
    made = build_context(on)
    with closing(made.store):
        made.store.migrate()
        yield made


def test_a_killed_web_worker_loses_and_doubles_nothing(on: Settings, context: AppContext, tmp_path: Path) -> None:
    """Workers are killed while eight clients tell overlapping batches; each client says again what was not acknowledged."""
    runs, rng = make_runs(context), random.Random(7)
    with web(on, tmp_path) as master, storm(on.port, runs, batches=6) as telling:
        for _ in range(2):
            kill_a_worker(master, rng)
        told = [each.result() for each in telling]
    assert_exactly_once(context, runs, told)


@pytest.mark.soak
def test_fifty_killed_web_workers_lose_and_double_nothing(on: Settings, context: AppContext, tmp_path: Path) -> None:
    """At random moments, with the background worker folding all the while and killed once as well."""
    runs, rng = make_runs(context), random.Random(7)
    begun = time.monotonic()
    with web(on, tmp_path) as master, background(on, tmp_path) as worker, storm(on.port, runs) as telling:
        for kill in range(KILLS):
            threading.Event().wait(rng.uniform(*PAUSE_S))
            kill_a_worker(master, rng)
            if kill == KILLS // 2:
                os.kill(rng.choice(children(worker)), signal.SIGKILL)
    seconds = time.monotonic() - begun
    told = [each.result() for each in telling]
    acknowledged = sum(len(each.acknowledged) for each in told)
    figure("acknowledged_while_killed", acknowledged / seconds, "events/s", on)
    figure("batches_said_again", sum(each.repeats for each in told), "batches", on)
    assert_exactly_once(context, runs, told)
    figure("killed_web_workers", KILLS, "kills, none of the events lost or doubled", on)
    figure("events_kept", sum(each.run.position for each in context.store.run_logs(runs)), "events", on)


@pytest.mark.soak
def test_a_background_worker_killed_while_it_folds_costs_nothing(on: Settings, context: AppContext, tmp_path: Path) -> None:
    """It and all its children are. The next one goes on from the last step that was committed, and the hours are those of the log."""
    (run,) = make_runs(context, 1)
    for begin in range(0, FOLDED_IN_STEPS, PAGE):
        context.store.append_events(run, as_sent(range(begin, begin + PAGE)), context.clock())

    def folded() -> int:
        found = context.store.run(run.team, run.id)
        return 0 if found is None else found.folded

    with background(on, tmp_path):
        wait_for(folded, "the first step to be folded")
    assert 0 < folded() < FOLDED_IN_STEPS
    with background(on, tmp_path):
        begun = time.monotonic()
        wait_for(lambda: folded() == FOLDED_IN_STEPS, "the next worker to fold the rest")
        figure("folded_after_kill", time.monotonic() - begun, "s", on)
    assert rebuild(context, [run]) == 0


def figure(name: str, value: float, unit: str, settings: Settings) -> None:
    """One measured figure as a line of JSON, for those who run `make soak`."""
    database = settings.database_url.partition(":")[0].partition("+")[0]
    print(json.dumps({"name": f"{name}.{database}", "value": round(value, 2), "unit": unit}))  # noqa: T201 - what the soak is run for
