"""A real Celery worker, on embedded defaults and on Redis with PostgreSQL: jobs are done once, whatever happens to the worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from providers.snapshot import SnapshotProvider
from service.config import load_settings, to_env
from service.container import build_context, utc_now
from service.context import AppContext
from service.domain.jobs import Job
from service.domain.teams import EVERYBODY, Principal
from service.runtime import serve
from service.usecases.jobs import LEASE_S, submit
from service.usecases.prices.refresh import KIND, request_refresh
from service.usecases.tracking import import_jobs
from service.usecases.tracking.imports import CHUNK
from tests.integration.import_workers import begin_import, event_count, stored_parts, submit_bill
from tests.support.servers import DEADLINE_S, wait_for
from tests.support.snapshots import stored_snapshots

ROOT = Path(__file__).parents[2]
PLUGIN = '''
"""Providers of a package that is not ours: those that wait for a file, one that always fails, one that takes its process along."""
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
    def fetch(self):
        (HERE / f"{self.name}-begun").touch()
        while not (HERE / f"{self.name}-go").exists():
            time.sleep(0.02)
        make = lambda n: Offer(self.name, "r", f"i{n}", "NVIDIA-H100-80GB-SXM", 1, "on_demand", Decimal(2), AT, "test")
        return Fetched(tuple(make(n) for n in range(1200)), f"{self.name}-1")

class Poison(Ours):
    name = "poison"
    def fetch(self):
        raise ProviderError("the source answers with rubbish")

class Killer(Ours):
    name = "killer"
    def fetch(self):
        os._exit(9)
'''
WORKER = '''
"""The worker without the refreshes of its clock: on a slow machine those would ask the providers above before a test does.

Imports store no second part as long as the file `hold-imports` is there.
"""
import time
from pathlib import Path
from service.usecases.tracking import import_jobs
from workers.app import app
del app.conf.beat_schedule["refresh"]

store_part, held = import_jobs.store_part, Path(__file__).with_name("hold-imports")

def store_when_let(context, matched, part):
    while part and held.exists():
        time.sleep(0.02)
    return store_part(context, matched, part)

import_jobs.store_part = store_when_let
'''
GATED = ("handed", "killed", "swept", "cancelled", "stuck", "leased")
"""Providers that wait, one for each test that needs one: workers and databases are shared."""
ON = ("embedded", "redis and postgresql")


@dataclass
class Site:
    """The service on settings of its own, with a folder in which a package brings providers by entry point."""

    context: AppContext
    folder: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker with its clock."""
        env = {**os.environ, **to_env(self.context.settings), "PYTHONPATH": os.pathsep.join((str(ROOT), str(self.folder)))}
        command = ["worker_under_test" if part == "workers.app" else part for part in serve.worker_command(self.context.settings)]
        with self.log.open("ab") as out:
            worker = subprocess.Popen(
                command, env=env, cwd=self.folder, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self.started.append(worker)
        return worker

    @property
    def log(self) -> Path:
        """What the workers write."""
        return self.folder / "worker.log"

    def begun(self, provider: str) -> Path:
        """The file that is there once the provider is asked."""
        return self.folder / f"{provider}-begun"

    def begin(self, provider: str) -> Job:
        """Return a job that is being run and waits."""
        job = request_refresh(self.context, provider)
        wait_for(self.begun(provider).exists, "the job to begin")
        return job

    def let_go(self, provider: str) -> None:
        """End the provider's waiting."""
        (self.folder / f"{provider}-go").touch()

    @contextmanager
    def imports_held(self) -> Iterator[None]:
        """Imports stop after their first part in the block: they are not over before a test has interrupted them."""
        hold = self.folder / "hold-imports"
        hold.touch()
        try:
            yield
        finally:
            hold.unlink()


@contextmanager
def site_in(folder: Path, database_url: str | None, redis_url: str | None) -> Iterator[Site]:
    """A site on a migrated database, whose workers are ended with the block.

    The network is not refused, because the test's providers count as remote.
    """
    settings = load_settings({"OUTLAY_DATA_DIR": str(folder / "data"), "OUTLAY_WORKER_CONCURRENCY": "1"})
    if database_url:
        settings = replace(settings, database_url=database_url, redis_url=redis_url)
    settings.data_dir.mkdir()
    install_plugin(folder)
    site = Site(build_context(settings), folder)
    site.context.store.migrate()
    yield site
    for worker in site.started:
        end(worker)
    site.context.store.close()


def install_plugin(folder: Path) -> None:
    """Write the package with the providers, and the worker that the tests start."""
    info = folder / "outlay_test_plugin-1.dist-info"
    info.mkdir()
    classes = {name: name.title() for name in (*GATED, "poison", "killer")}
    gated = "".join(f'class {classes[name]}(Gated):\n    name = "{name}"\n' for name in GATED)
    (folder / "outlay_test_plugin.py").write_text(PLUGIN + gated)
    (folder / "worker_under_test.py").write_text(WORKER)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outlay-test-plugin\nVersion: 1\n")
    entries = "".join(f"{name} = outlay_test_plugin:{class_}\n" for name, class_ in classes.items())
    (info / "entry_points.txt").write_text(f"[outlay.providers]\n{entries}")


def end(worker: subprocess.Popen[bytes]) -> None:
    """Leave nothing of a worker behind."""
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait(DEADLINE_S)


@pytest.fixture(params=ON)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A site of the test's own; the log of its workers is shown when the test fails."""
    urls = (None, None) if request.param == "embedded" else tuple(map(request.getfixturevalue, ("postgres_url", "redis_url")))
    with site_in(tmp_path, *urls) as site:
        yield site
    sys.stdout.write(site.log.read_text())


@pytest.fixture(scope="module", params=ON)
def unserved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site that the tests share which leave a worker's main process alive, before it has one."""
    names = ("module_postgres_url", "module_redis_url")
    urls = (None, None) if request.param == "embedded" else tuple(map(request.getfixturevalue, names))
    with site_in(tmp_path_factory.mktemp("shared"), *urls) as site:
        yield site


@pytest.fixture(scope="module")
def backlog(unserved: Site) -> tuple[Job, Job]:
    """Jobs from before the worker: one whose message was never sent, one whose worker vanished with its message."""
    past = utc_now() - timedelta(seconds=2 * LEASE_S)
    unsent, orphan = (unserved.context.store.create_job(KIND, {"provider": name}, past) for name in ("snapshot", "swept"))
    assert unserved.context.store.claim_job(orphan.id, "vanished/1", past, LEASE_S)
    unserved.let_go("swept")
    return unsent, orphan


@pytest.fixture(scope="module")
def served(unserved: Site, backlog: tuple[Job, Job]) -> Site:
    """That site with its one worker."""
    del backlog
    unserved.start_worker()
    return unserved


@pytest.fixture
def shared(served: Site) -> Iterator[Site]:
    """The same; the worker's log is shown when the test fails."""
    yield served
    sys.stdout.write(served.log.read_text())


def job_now(context: AppContext, job: Job) -> Job:
    """The job as it stands."""
    found = context.store.job(job.id)
    assert found is not None
    return found


def wait_for_state(context: AppContext, job: Job, state: str) -> Job:
    """Wait until the job is in `state`."""
    wait_for(lambda: job_now(context, job).state == state, f"job {job.kind} to be {state}")
    return job_now(context, job)


def assert_done_once(context: AppContext, job: Job) -> None:
    """All offers are there, each once, and the result says so."""
    done = wait_for_state(context, job, "succeeded")
    assert done.result is not None
    kept = context.store.load_snapshot(done.result["snapshot"])
    assert kept is not None
    assert len(kept.offers) == len(set(kept.offers)) == done.result["offers"] == 1200
    assert (done.progress_done, done.progress_total) == (1200, 1200)


def test_a_refresh_keeps_the_shipped_prices(shared: Site) -> None:
    """The job fetches the packaged snapshot and stores every offer under its name."""
    context = shared.context
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


def test_a_job_from_before_the_worker_is_found(shared: Site, backlog: tuple[Job, Job]) -> None:
    """A row whose message was never sent is run all the same."""
    unsent, _ = backlog
    wait_for_state(shared.context, unsent, "succeeded")


def test_sigterm_gives_the_job_to_the_next_worker(own: Site) -> None:
    """A worker asked to stop hands its job back and exits cleanly; the next one finishes it, with one result."""
    worker = own.start_worker()
    job = own.begin("handed")
    worker.terminate()
    wait_for(lambda: "shutdown" in own.log.read_text(), "the worker to note that it should stop")
    own.let_go("handed")
    assert worker.wait(DEADLINE_S) == 0
    handed = job_now(own.context, job)
    assert (handed.state, handed.lease_owner, handed.handed_back) == ("running", None, 1)
    own.start_worker()
    assert_done_once(own.context, job)


def test_a_killed_process_is_replaced_and_the_job_done(shared: Site) -> None:
    """The worker notices that the process under a job died and gives the job to another, long before the lease is over."""
    job = shared.begin("killed")
    shared.begun("killed").unlink()
    os.kill(int(str(job_now(shared.context, job).lease_owner).rpartition("/")[2]), signal.SIGKILL)
    wait_for(shared.begun("killed").exists, "another process to begin the job")
    shared.let_go("killed")
    assert_done_once(shared.context, job)
    assert job_now(shared.context, job).attempt == 2


def test_the_job_of_a_dead_worker_is_swept(shared: Site, backlog: tuple[Job, Job]) -> None:
    """A job whose worker vanished with its message is run by the next worker once the lease is over."""
    _, orphan = backlog
    assert_done_once(shared.context, orphan)


def test_a_poison_job_fails_with_its_reason(shared: Site) -> None:
    """A job that fails each time ends after three attempts with the last reason, and the others go on."""
    context = shared.context
    unknown = submit(context, "brew_tea", {})
    wait_for_state(context, request_refresh(context, "snapshot"), "succeeded")
    assert "no job of kind 'brew_tea'" in str(wait_for_state(context, unknown, "failed").error)
    assert job_now(context, unknown).attempt == 3


def test_a_provider_that_fails_is_left_alone_and_says_why(shared: Site) -> None:
    """Its job is done with one call: trying again at once would only hammer the source."""
    done = wait_for_state(shared.context, request_refresh(shared.context, "poison"), "succeeded")
    state = shared.context.store.provider_state("poison")
    assert done.attempt == 1
    assert (state.failures, state.last_error) == (1, "the source answers with rubbish")
    assert state.retry_at is not None


def test_a_job_that_kills_its_process_fails(shared: Site) -> None:
    """Three processes die of the job, then it is over; the others go on."""
    context = shared.context
    killer = request_refresh(context, "killer")
    assert wait_for_state(context, killer, "failed").error == "its worker died or hung in each of 3 attempts"
    wait_for_state(context, request_refresh(context, "snapshot"), "succeeded")


def test_a_running_job_is_cancelled(shared: Site) -> None:
    """The process that runs a job learns that it is not wanted any more and stops at its next step."""
    context, job = shared.context, shared.begin("cancelled")
    ask_to_cancel(context, job)
    shared.let_go("cancelled")
    wait_for_state(context, job, "cancelled")
    assert stored_snapshots(context.store, "cancelled") == []


def ask_to_cancel(context: AppContext, job: Job) -> None:
    """Cancel a running job, and return when its process knows."""
    for _ in range(2):  # the second renewal begins after the first has told the job
        asked = context.store.request_cancel(job.id, utc_now())
        assert asked is not None
        wait_for(lambda since=asked.updated_at: job_now(context, job).updated_at > since, "the lease to be renewed")


def test_an_import_whose_process_is_killed_goes_on(shared: Site) -> None:
    """Each charge is stored once, and counted as accepted but for the part that was being stored; the file is deleted."""
    context, rows = shared.context, 15_000
    with shared.imports_held():
        run, job = begin_import(context, rows)
        os.kill(int(str(job_now(context, job).lease_owner).rpartition("/")[2]), signal.SIGKILL)
    done = wait_for_state(context, job, "succeeded")
    assert done.result is not None
    assert done.result["accepted"] + done.result["duplicates"] == rows
    assert done.result["duplicates"] <= CHUNK
    assert (done.attempt, done.progress_done, done.progress_total) == (2, rows, rows)
    assert event_count(context, run) == rows
    wait_for(lambda: context.store.import_content(job.id) is None, "the file to be deleted")


def test_an_import_is_cancelled_while_it_is_stored(shared: Site) -> None:
    """What is stored stays; the file is deleted."""
    context, rows = shared.context, 3 * CHUNK
    with shared.imports_held():
        run, job = begin_import(context, rows)
        import_jobs.cancel_import(context, EVERYBODY, job.id)
        ask_to_cancel(context, job)
    wait_for_state(context, job, "cancelled")
    assert CHUNK <= event_count(context, run) < rows
    wait_for(lambda: context.store.import_content(job.id) is None, "the file to be deleted")


@pytest.mark.soak
def test_a_stuck_job_is_cut_off_on_sigterm(own: Site) -> None:
    """A job that reaches no step is cut off when the soft shutdown is over, and its row is free at once."""
    context, worker = own.context, own.start_worker()
    job = own.begin("stuck")
    asked = time.monotonic()
    worker.terminate()
    worker.wait(DEADLINE_S)
    took_s = time.monotonic() - asked
    figure("stuck_job_sigterm_to_exit", took_s, context)
    assert took_s < 15
    assert job_now(context, job).lease_owner is None
    own.let_go("stuck")
    own.start_worker()
    assert_done_once(context, job)


@pytest.mark.soak
def test_a_killed_worker_costs_its_lease(own: Site) -> None:
    """SIGKILL for the worker's main process: its children follow, and the next worker has the job when the lease is over."""
    context, worker = own.context, own.start_worker()
    job = own.begin("leased")
    worker.kill()
    killed = time.monotonic()
    worker.wait(DEADLINE_S)
    wait_for(lambda: not alive(worker.pid), "the children to follow")
    own.start_worker()
    own.let_go("leased")
    assert_done_once(context, job)
    figure("worker_killed_to_job_done", time.monotonic() - killed, context)


@pytest.mark.soak
def test_an_import_outlives_two_killed_workers(own: Site) -> None:
    """Each charge is stored once; at most the part under each kill is counted as duplicates."""
    context, worker, rows = own.context, own.start_worker(), 60_000
    run, job = begin_import(context, rows)
    for _ in range(2):
        worker.kill()
        worker.wait(DEADLINE_S)
        wait_for(lambda gone=worker.pid: not alive(gone), "the children to follow")
        before, worker = stored_parts(context, job.id), own.start_worker()
        wait_for(lambda before=before: stored_parts(context, job.id) > before, "the import to go on")
    done = wait_for_state(context, job, "succeeded")
    assert done.result is not None
    assert (done.attempt, event_count(context, run), done.result["accepted"] + done.result["duplicates"]) == (3, rows, rows)
    assert done.result["duplicates"] <= 2 * CHUNK


@pytest.mark.soak
def test_large_imports_of_a_team_do_not_hold_up_another_teams_small_one(own: Site) -> None:
    """Of one process: the small one is done before the second of the large ones, which were sent before it, has stored its rows."""
    context, large = own.context, 40_000
    own.start_worker()
    run, first = begin_import(context, large)
    jobs = [first, *(submit_bill(context, EVERYBODY, large + more, run) for more in (1, 2))]
    asked = time.monotonic()
    small = submit_bill(context, Principal("another", None, ()), 10)
    wait_for_state(context, small, "succeeded")
    figure("small_import_beside_three_large", time.monotonic() - asked, context)
    second, third = (job_now(context, job) for job in jobs[1:])
    assert second.state in ("queued", "running")  # it may have begun since the small one ended
    assert third.state == "queued"
    for job in jobs[1:]:
        import_jobs.cancel_import(context, EVERYBODY, job.id)
    done = wait_for_state(context, first, "succeeded")
    assert done.result is not None
    assert (event_count(context, run), done.result["accepted"] + done.result["duplicates"]) == (large, large)


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
