"""A real Celery worker, on embedded defaults and on Redis with PostgreSQL: jobs are done once, whatever happens to the worker."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from providers.snapshot import SnapshotProvider
from service.config import Settings, to_env
from service.container import build_context, utc_now
from service.context import AppContext
from service.runtime import serve
from service.store import Job
from service.usecases.jobs import LEASE_S, submit
from service.usecases.prices.refresh import KIND, request_refresh
from tests.conftest import DEADLINE_S, wait_for

ROOT = Path(__file__).parents[2]
PLUGIN = '''
"""Providers of a package that is not ours: one that waits for a file, one that always fails, one that takes its process along."""
import os, time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from providers.offer import Fetched, Offer, Provider, ProviderError

HERE = Path(__file__).parent
AT = datetime(2027, 1, 4, tzinfo=UTC)

class Ours(Provider):
    fresh_for = timedelta(days=1)
    def __init__(self, context):
        pass

class Gated(Ours):
    name = "gated"
    def fetch(self):
        (HERE / "begun").touch()
        while not (HERE / "go").exists():
            time.sleep(0.02)
        make = lambda n: Offer("gated", "r", f"i{n}", "NVIDIA-H100-80GB-SXM", 1, "on_demand", Decimal(2), AT, "test")
        return Fetched(tuple(make(n) for n in range(1200)), "gated-1")

class Poison(Ours):
    name = "poison"
    def fetch(self):
        raise ProviderError("the source answers with rubbish")

class Killer(Ours):
    name = "killer"
    def fetch(self):
        os._exit(9)
'''
ENTRY_POINTS = (
    "[outlay.providers]\ngated = outlay_test_plugin:Gated\npoison = outlay_test_plugin:Poison\nkiller = outlay_test_plugin:Killer\n"
)


@pytest.fixture(params=["embedded", "redis and postgresql"])
def on(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """The embedded parts, and those of production; the network is not refused, because the test's providers count as remote."""
    online = replace(settings, offline=False)
    if request.param == "embedded":
        return online
    return replace(online, redis_url=request.getfixturevalue("redis_url"), database_url=request.getfixturevalue("postgres_url"))


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A folder with an installed package that brings providers by entry point; `begun` and `go` appear in it."""
    folder = tmp_path / "plugins"
    info = folder / "outlay_test_plugin-1.dist-info"
    info.mkdir(parents=True)
    (folder / "outlay_test_plugin.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outlay-test-plugin\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


@pytest.fixture
def context(on: Settings) -> Iterator[AppContext]:
    """The test's own context, on a migrated database."""
    on.data_dir.mkdir()
    made = build_context(on)
    made.store.migrate()
    yield made
    made.store.close()


StartWorker = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def start_worker(on: Settings, plugin: Path, tmp_path: Path) -> Iterator[StartWorker]:
    """Starts a worker with its clock; the log of all of them is shown when the test fails."""
    env = {**os.environ, **to_env(on), "PYTHONPATH": os.pathsep.join((str(ROOT), str(plugin)))}
    log = tmp_path / "worker.log"
    with contextlib.ExitStack() as stack, log.open("ab") as out:

        def start() -> subprocess.Popen[bytes]:
            command = serve.worker_command(on)
            worker = subprocess.Popen(
                command, env=env, cwd=tmp_path, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
            )
            stack.callback(end, worker)
            return worker

        yield start
    sys.stdout.write(log.read_text())


def end(worker: subprocess.Popen[bytes]) -> None:
    """Leave nothing of a worker behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait(DEADLINE_S)


def job_now(context: AppContext, job: Job) -> Job:
    """The job as it stands."""
    found = context.store.job(job.id)
    assert found is not None
    return found


def wait_for_state(context: AppContext, job: Job, state: str) -> Job:
    """Wait until the job is in `state`."""
    wait_for(lambda: job_now(context, job).state == state, f"job {job.kind} to be {state}")
    return job_now(context, job)


def begin_gated(context: AppContext, plugin: Path) -> Job:
    """A job that is being run and waits for the file `go`."""
    job = request_refresh(context, "gated")
    wait_for((plugin / "begun").exists, "the job to begin")
    return job


def assert_done_once(context: AppContext, job: Job) -> None:
    """All offers are there, each once, and the result says so."""
    done = wait_for_state(context, job, "succeeded")
    assert done.result is not None
    kept = context.store.load_snapshot(done.result["snapshot"])
    assert kept is not None
    assert len(kept.offers) == len(set(kept.offers)) == done.result["offers"] == 1200
    assert (done.progress_done, done.progress_total) == (1200, 1200)


def test_a_refresh_keeps_the_shipped_prices(context: AppContext, start_worker: StartWorker) -> None:
    """The job fetches the packaged snapshot and stores every offer under its name."""
    start_worker()
    job = request_refresh(context, "snapshot")
    assert request_refresh(context, "snapshot").id == job.id
    done = wait_for_state(context, job, "succeeded")
    shipped = SnapshotProvider().fetch()
    kept = context.store.load_snapshot(shipped.snapshot)
    assert kept is not None
    assert set(kept.offers) == set(shipped.offers)
    assert done.result is not None
    assert (done.result["snapshot"], done.result["offers"], done.attempt) == (shipped.snapshot, len(shipped.offers), 1)
    wait_for(lambda: context.store.last_beat() is not None, "the worker's heartbeat")


def test_a_job_from_before_the_worker_is_found(context: AppContext, start_worker: StartWorker) -> None:
    """A row whose message was never sent is run all the same."""
    job = context.store.create_job(KIND, {"provider": "snapshot"}, utc_now() - timedelta(seconds=60))
    start_worker()
    wait_for_state(context, job, "succeeded")


def test_sigterm_gives_the_job_to_the_next_worker(context: AppContext, start_worker: StartWorker, plugin: Path) -> None:
    """A worker asked to stop hands its job back and exits cleanly; the next one finishes it, with one result."""
    worker = start_worker()
    job = begin_gated(context, plugin)
    worker.terminate()
    wait_for(lambda: "shutdown" in stop_message(plugin), "the worker to note that it should stop")
    (plugin / "go").touch()
    assert worker.wait(DEADLINE_S) == 0
    handed = job_now(context, job)
    assert (handed.state, handed.lease_owner, handed.handed_back) == ("running", None, 1)
    start_worker()
    assert_done_once(context, job)


def stop_message(plugin: Path) -> str:
    """What the workers have written so far."""
    return (plugin.parent / "worker.log").read_text()


def test_a_killed_process_is_replaced_and_the_job_done(context: AppContext, start_worker: StartWorker, plugin: Path) -> None:
    """The worker notices that the process under a job died and gives the job to another, long before the lease is over."""
    start_worker()
    job = begin_gated(context, plugin)
    (plugin / "begun").unlink()
    os.kill(int(str(job_now(context, job).lease_owner).rpartition("/")[2]), signal.SIGKILL)
    wait_for((plugin / "begun").exists, "another process to begin the job")
    (plugin / "go").touch()
    assert_done_once(context, job)
    assert job_now(context, job).attempt == 2


def test_the_job_of_a_dead_worker_is_swept(context: AppContext, start_worker: StartWorker, plugin: Path) -> None:
    """A job whose worker vanished with its message is run by the next worker once the lease is over."""
    (plugin / "go").touch()
    past = utc_now() - timedelta(seconds=2 * LEASE_S)
    job = context.store.create_job(KIND, {"provider": "gated"}, past)
    assert context.store.claim_job(job.id, "vanished/1", past, LEASE_S)
    start_worker()
    assert_done_once(context, job)


def test_a_poison_job_fails_with_its_reason(context: AppContext, start_worker: StartWorker) -> None:
    """A job that fails each time ends after three attempts with the last reason, and the others go on."""
    start_worker()
    unknown = submit(context, "brew_tea", {})
    wait_for_state(context, request_refresh(context, "snapshot"), "succeeded")
    assert "no job of kind 'brew_tea'" in str(wait_for_state(context, unknown, "failed").error)
    assert job_now(context, unknown).attempt == 3


def test_a_provider_that_fails_is_left_alone_and_says_why(context: AppContext, start_worker: StartWorker) -> None:
    """Its job is done with one call: trying again at once would only hammer the source."""
    start_worker()
    done = wait_for_state(context, request_refresh(context, "poison"), "succeeded")
    state = context.store.provider_state("poison")
    assert done.attempt == 1
    assert (state.failures, state.last_error) == (1, "the source answers with rubbish")
    assert state.retry_at is not None


def test_a_job_that_kills_its_process_fails(context: AppContext, start_worker: StartWorker) -> None:
    """Three processes die of the job, then it is over; the others go on."""
    start_worker()
    killer = request_refresh(context, "killer")
    assert wait_for_state(context, killer, "failed").error == "its worker died or hung in each of 3 attempts"
    wait_for_state(context, request_refresh(context, "snapshot"), "succeeded")


def test_a_running_job_is_cancelled(context: AppContext, start_worker: StartWorker, plugin: Path) -> None:
    """The process that runs a job learns that it is not wanted any more and stops at its next step."""
    start_worker()
    job = begin_gated(context, plugin)
    for _ in range(2):  # the second renewal begins after the first has told the job
        asked = context.store.request_cancel(job.id, utc_now())
        assert asked is not None
        wait_for(lambda since=asked.updated_at: job_now(context, job).updated_at > since, "the lease to be renewed")
    (plugin / "go").touch()
    wait_for_state(context, job, "cancelled")
    assert context.store.latest_snapshot("gated") is None


@pytest.mark.soak
def test_a_stuck_job_is_cut_off_on_sigterm(context: AppContext, start_worker: StartWorker, plugin: Path) -> None:
    """A job that reaches no step is cut off when the soft shutdown is over, and its row is free at once."""
    worker = start_worker()
    job = begin_gated(context, plugin)
    asked = time.monotonic()
    worker.terminate()
    worker.wait(DEADLINE_S)
    took_s = time.monotonic() - asked
    figure("stuck_job_sigterm_to_exit", took_s, context)
    assert took_s < 15
    assert job_now(context, job).lease_owner is None
    (plugin / "go").touch()
    start_worker()
    assert_done_once(context, job)


@pytest.mark.soak
def test_a_killed_worker_costs_its_lease(context: AppContext, start_worker: StartWorker, plugin: Path) -> None:
    """SIGKILL for the worker's main process: its children follow, and the next worker has the job when the lease is over."""
    worker = start_worker()
    job = begin_gated(context, plugin)
    worker.kill()
    killed = time.monotonic()
    worker.wait(DEADLINE_S)
    wait_for(lambda: not alive(worker.pid), "the children to follow")
    start_worker()
    (plugin / "go").touch()
    assert_done_once(context, job)
    figure("worker_killed_to_job_done", time.monotonic() - killed, context)


def figure(name: str, seconds: float, context: AppContext) -> None:
    """One measured figure as a line of JSON, for those who run `make soak`."""
    transport = "embedded" if context.settings.embedded else "redis"
    print(json.dumps({"name": f"{name}.{transport}", "value": round(seconds, 2), "unit": "s"}))  # noqa: T201 - what the soak is run for


def alive(group: int) -> bool:
    """Whether any process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
