"""What the benchmarks share: the service in this process or under load, CPU, time and memory, and figures as lines of JSON."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bench.servers import find_free_port

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from service.context import AppContext

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
WORKERS, CLIENTS, WARM_S, MEASURED_S = 2, 4, 1.0, 5.0
REPEATS = 15
SERVICE = "service:create_app()"


def report(name: str, value: float, unit: str, versus: str | None = None, reference: float | None = None) -> None:
    """One figure as a line of JSON; `ratio` is value over reference."""
    ratio = None if reference is None else round(value / reference, 3)
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit, "vs": versus, "ratio": ratio}), flush=True)


def read_request(name: str) -> dict[str, Any]:
    """A request of bench/requests."""
    request: dict[str, Any] = json.loads((ROOT / "bench" / "requests" / f"{name}.json").read_text(encoding="utf-8"))
    return request


@contextmanager
def offline_context(**settings: str) -> Iterator[AppContext]:
    """A context with the shipped prices on an empty database, without network."""
    from service.config import load_settings
    from service.container import build_context

    with tempfile.TemporaryDirectory() as folder:
        context = build_context(load_settings(offline_settings(folder) | settings))
        with closing(context.store):
            context.store.migrate()
            yield context


@contextmanager
def offline_client() -> Iterator[FlaskClient]:
    """A client of the service in this process, with the shipped prices on an empty database, without network."""
    from service import create_app
    from service.config import load_settings

    with tempfile.TemporaryDirectory() as folder:
        app = create_app(load_settings(offline_settings(folder)))
        with closing(app.extensions["context"].store) as store:
            store.migrate()
            yield app.test_client()


def offline_settings(folder: str) -> dict[str, str]:
    """Settings of a service without network, on a data directory."""
    return {"OUTLAY_DATA_DIR": folder, "OUTLAY_OFFLINE": "1", "OUTLAY_LOG_LEVEL": "error"}


def timed(work: Callable[[], T], clock: Callable[[], float] = time.perf_counter) -> tuple[float, T]:
    """Seconds of some work by a clock, and its result."""
    begun = clock()
    result = work()
    return clock() - begun, result


def post_cpu_s(client: FlaskClient, path: str, request: dict[str, Any]) -> tuple[float, Any]:
    """CPU seconds of a request, and its answer. Raises RuntimeError for an answer that is no success."""
    spent_s, answer = timed(lambda: client.post(path, json=request), time.process_time)
    if answer.status_code >= 300:
        raise RuntimeError(f"{path} answered {answer.status_code}: {answer.text}")
    return spent_s, answer.get_json()


def loaded(app: str, path: str, environment: dict[str, str], clients: list[Iterator[bytes]], *, workers: int = WORKERS) -> dict[str, float]:
    """Figures of an application that those clients send one request after another."""
    with gunicorn(app, environment, workers) as (pid, port):
        idle = memory_mb(pid)
        load(port, path, WARM_S, clients)
        before = cpu_s(pid)
        latencies = load(port, path, MEASURED_S, clients)
        used = cpu_s(pid) - before
    ranked = statistics.quantiles(latencies, n=100)
    return {
        "requests_per_s": len(latencies) / MEASURED_S,
        "cpu_ms": used / len(latencies) * 1e3,
        "p50_ms": ranked[49] * 1e3,
        "p99_ms": ranked[98] * 1e3,
        "idle_mb": idle,
    }


@contextmanager
def gunicorn(app: str, environment: dict[str, str], workers: int) -> Iterator[tuple[int, int]]:
    """A gunicorn on a free port; its pid and port.

    The service has its own configuration, on a migrated database, but keeps its workers; other applications have gunicorn's own threads.
    """
    if app == SERVICE:
        _migrate(environment)
    port = find_free_port()
    plain = ["--worker-class", "gthread", "--threads", "4", "--log-level", "warning", "--no-control-socket"]
    how = ["--config", "python:service.runtime.gunicorn_conf", "--max-requests", "0"] if app == SERVICE else plain
    command = [sys.executable, "-m", "gunicorn", app, "--bind", f"127.0.0.1:{port}", "--workers", str(workers), *how]
    process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        wait_until_answering(port, process)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(30)


def _migrate(environment: dict[str, str]) -> None:
    from service.config import load_settings
    from service.store import Store

    settings = load_settings(environment)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    with closing(Store(settings.database_url)) as store:
        store.migrate()


def wait_until_answering(port: int, process: subprocess.Popen[bytes], path: str = "/healthz") -> None:
    """Return at the first HTTP answer. Raises RuntimeError when the server has ended or 60 s have passed."""
    give_up_s = time.monotonic() + 60
    while time.monotonic() < give_up_s:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", path)
            if connection.getresponse().status < 500:
                return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("the server did not answer within 60 s")


def load(port: int, path: str, seconds: float, clients: list[Iterator[bytes]]) -> list[float]:
    """Latencies in seconds of as many requests as the clients get through, each with its own requests."""
    latencies: list[float] = []
    stop_s = time.monotonic() + seconds
    threads = [threading.Thread(target=client, args=(port, path, stop_s, latencies, bodies)) for bodies in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return latencies


def client(port: int, path: str, stop_s: float, latencies: list[float], bodies: Iterator[bytes]) -> None:
    """One connection's requests until `stop_s`. Raises RuntimeError for an answer other than 200."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    while time.monotonic() < stop_s:
        latencies.append(request_s(connection, "POST", path, next(bodies)))


def request_s(connection: HTTPConnection, method: str, path: str, body: bytes | None = None) -> float:
    """Seconds of one request. Raises RuntimeError for an answer other than 200."""
    begun = time.perf_counter()
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    seconds = time.perf_counter() - begun
    if answer.status != 200:
        raise RuntimeError(f"{path} answered {answer.status}")
    return seconds


def processes(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(int(child) for child in children)]


def cpu_s(pid: int) -> float:
    """CPU seconds that a process and its children have used."""
    ticks = os.sysconf("SC_CLK_TCK")
    fields = (Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split() for each in processes(pid))
    return sum(int(row[11]) + int(row[12]) for row in fields) / ticks


def memory_mb(pid: int) -> float:
    """Proportional set size of a process and its children in MB."""
    rollups = (Path(f"/proc/{each}/smaps_rollup").read_text(encoding="ascii") for each in processes(pid))
    return sum(int(line.split()[1]) for text in rollups for line in text.splitlines() if line.startswith("Pss:")) / 1000


def median_s(work: Callable[[], object]) -> float:
    """Wall-clock seconds of some work: the median of several times, the first apart."""
    work()
    return statistics.median(timed(work)[0] for _ in range(REPEATS))
