"""Clients that tell runs' events while the service is hurt, and what must be true of the log afterwards."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from service.config import Settings, to_env
from service.context import AppContext
from service.domain.teams import DEFAULT_TEAM
from service.domain.tracking.records import RunRecord
from service.runtime.serve import worker_command
from service.schemas.tracking.events import EventsSchema
from service.usecases.tracking.projection import rebuild
from tests.support.servers import DEADLINE_S, listens, wait_for

ROOT = Path(__file__).parents[2]
START = datetime(2026, 2, 1, tzinfo=UTC)
CLIENTS = 8
BATCH = 50
PAGE = 1000
Body = dict[str, Any]


@dataclass
class Told:
    """What a client told of a run: the numbers of the events that were acknowledged, and how often it had to say them again."""

    run: str
    acknowledged: set[int] = field(default_factory=set)
    repeats: int = 0


def event(number: int) -> Body:
    """The number-th event of a run, the same whoever tells it."""
    at = (START + timedelta(seconds=7 * number)).isoformat()
    common: Body = {"id": f"event-{number}", "at": at}
    if number % 97 == 50:
        corrected = event(number - 9)
        change = {"loss": 1.5} if number % 2 and corrected["type"] == "progress" else {}
        return common | {"type": "correction", "supersedes": corrected["id"]} | change
    if number % 41 == 0:
        return common | {"type": "interruption", "cause": "hardware"}
    if number % 29 == 0:
        return common | {"type": "cost", "usd": 12.5, "line": "storage"}
    if number % 23 == 0:
        return common | {"type": "checkpoint", "bytes": 10**12, "step": number}
    totals = {"tokens_done": number * 4_194_304, "accelerator_hours": number * 1.25, "cost_usd": number * 2.5}
    return common | {"type": "progress", "step": number, "loss": 3.0} | totals


@contextmanager
def web(settings: Settings, folder: Path) -> Iterator[int]:
    """The service's gunicorn as `outlay serve` starts it; the process id of its master."""
    metrics = folder / "metrics"
    metrics.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "gunicorn", "-c", "python:service.runtime.gunicorn_conf", "service:create_app()"]
    with started(command, settings, folder, PROMETHEUS_MULTIPROC_DIR=str(metrics)) as process:
        wait_for(lambda: listens(settings.port), "the web server to listen")
        yield process.pid


@contextmanager
def background(settings: Settings, folder: Path) -> Iterator[int]:
    """The background worker with its clock; the process id of its main process."""
    with started(worker_command(settings), settings, folder) as process:
        yield process.pid


@contextmanager
def started(command: list[str], settings: Settings, folder: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with these settings, killed with all its children at the end of the block; its log stays in the folder."""
    env = {**os.environ, **to_env(settings), "PYTHONPATH": str(ROOT), **variables}
    with (folder / "processes.log").open("ab") as out:
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(DEADLINE_S)


def children(pid: int) -> list[int]:
    """The child processes of a process."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def kill_a_worker(master: int, rng: random.Random) -> None:
    """SIGKILL one of the web server's workers; return when its master has noticed."""
    wait_for(lambda: children(master), "a worker of the web server")
    worker = rng.choice(children(master))
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: worker not in children(master), "the web server to notice a dead worker")


def tell(port: int, told: Told, batches: Iterable[Sequence[int]]) -> Told:
    """Tell batches of events one after another, each again and again, with the same ids, until it is acknowledged."""
    for numbers in batches:
        body = json.dumps({"events": [event(number) for number in numbers]}).encode()
        while not acknowledged(port, told.run, body):
            told.repeats += 1
        told.acknowledged.update(numbers)
    return told


def acknowledged(port: int, run: str, body: bytes) -> bool:
    """Whether the service answers that all events are kept; fails where it refuses one of them for good."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)) as connection:
        try:
            connection.request("POST", f"/v1/track/runs/{run}/events", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            return False
    if answer.status == 503:
        return False
    assert (answer.status, json.loads(text)["rejected"] if answer.status == 200 else text) == (200, [])
    return True


def overlapping(seed: int, over: threading.Event) -> Iterator[list[int]]:
    """Batches of one client, in no order within themselves: all clients of a run tell the same events, cut in other places."""
    rng = random.Random(seed)
    begin = 0
    while not over.is_set():
        size = rng.randint(1, 2 * BATCH)
        numbers = list(range(begin, begin + size))
        rng.shuffle(numbers)
        yield numbers
        begin += rng.randint(size // 2, size)


@contextmanager
def storm(port: int, runs: Sequence[RunRecord], batches: int | None = None) -> Iterator[list[Future[Told]]]:
    """Clients that tell of the runs until the block ends, or each so many batches; what they told is known after the block."""
    over = threading.Event()
    with ThreadPoolExecutor(CLIENTS) as pool:
        telling = []
        for client in range(CLIENTS):
            numbers = overlapping(client, over)
            limited = numbers if batches is None else (each for _, each in zip(range(batches), numbers, strict=False))
            telling.append(pool.submit(tell, port, Told(runs[client % len(runs)].id), limited))
        try:
            yield telling
        finally:
            if batches is None:
                over.set()


def make_runs(context: AppContext, count: int = 2) -> list[RunRecord]:
    """Runs of a new program."""
    now = context.clock()
    program = context.store.create_program(DEFAULT_TEAM, {"name": "storm", "state": "open"}, None, now)
    bodies = [{"name": f"run {number}", "state": "open", "planned": {}} for number in range(count)]
    return [context.store.create_run(program, body["name"], body, now) for body in bodies]


def log_of(context: AppContext, run: RunRecord) -> Iterator[tuple[int, Any]]:
    """Positions and events of a run's whole log."""
    position = 0
    while page := context.store.events(run, position, PAGE):
        yield from ((logged.position, logged.event) for logged in page)
        position = page[-1].position


def assert_exactly_once(context: AppContext, runs: Sequence[RunRecord], told: Sequence[Told]) -> None:
    """Every acknowledged event is there once, as it was told, nothing else is, and the hours are those of the log."""
    for run in runs:
        kept = list(log_of(context, run))
        numbers = set().union(*(each.acknowledged for each in told if each.run == run.id))
        expected = {sent.id: sent for begin in range(0, max(numbers) + 1, PAGE) for sent in as_sent(range(begin, begin + PAGE))}
        assert [position for position, _ in kept] == list(range(1, len(kept) + 1))
        assert sorted(each.id for _, each in kept) == sorted(f"event-{number}" for number in numbers)
        assert all(each == expected[each.id] for _, each in kept)
    assert rebuild(context, runs) == 0


def as_sent(numbers: Iterable[int]) -> list[Any]:
    """The events of these numbers as the service reads them."""
    found: list[Any] = EventsSchema().load({"events": [event(number) for number in numbers]})["events"]
    return found
