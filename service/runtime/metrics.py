"""What processes count as they work, summed over all processes of a machine.

With PROMETHEUS_MULTIPROC_DIR set, each process writes to files in that directory and a scrape adds them up. The files are named after a
slot that a process locks while it runs, not after its process id: a process that follows a dead one continues its files, so that sums
survive restarts and the directory stays as small as the largest number of concurrent processes.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from collections.abc import Iterable
from functools import cache
from itertools import count as numbers
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.domain.metrics import COUNTED, JOB_ATTEMPTS, JOB_OUTCOMES, REQUEST_DURATION, Metric

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
UNMATCHED = "unmatched"
OTHER_METHOD = "_OTHER"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
# OpenTelemetry's advice for http.server.request.duration, in seconds, and for jobs the same shape at their scale.
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
JOB_BUCKETS_S = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)

FILE_BYTES = {"histogram": 4 * 1024 * 1024, "counter": 256 * 1024, "gauge_livesum": 64 * 1024}
"""Space of one process's series by kind: each takes some 200 bytes, and there are some 17 for each route, method and status."""

_held_slots: list[int] = []
_making = threading.Lock()


def start() -> None:
    """Create the series before there is something to count."""
    _instrument(REQUEST_DURATION)


def start_jobs(kinds: Iterable[str]) -> None:
    """Begin the series of these kinds of jobs at 0, so that the first failure is seen as a rise."""
    for kind in kinds:
        for outcome in JOB_OUTCOMES:
            _series(JOB_ATTEMPTS, (kind, outcome))


def observe_request(method: str, route: str, status: int, duration_s: float) -> None:
    """Count one request. `route` is a template or UNMATCHED, never a path: the number of series must not depend on input."""
    observe(REQUEST_DURATION, duration_s, method if method in METHODS else OTHER_METHOD, route, str(status))


def count(metric: Metric, *labels: str) -> None:
    """Count one. `labels` are of a set that does not depend on input."""
    _series(metric, labels).inc()


def observe(metric: Metric, value: float, *labels: str) -> None:
    """Add a value to a histogram."""
    _series(metric, labels).observe(value)


def set_gauge(metric: Metric, value: float) -> None:
    """Set this process's part of a sum."""
    _series(metric, ()).set(value)


def begin_anew() -> None:
    """Count from 0: a service that begins in a process where another one ran shows what it counts itself."""
    for made in (_own_registry, _instruments, _series):
        made.cache_clear()


def registry() -> CollectorRegistry:
    """What all processes counted: gauges of those that run, the rest of those that have ended too."""
    from prometheus_client import CollectorRegistry

    directory = os.environ.get(DIRECTORY)
    if not directory:
        return _own_registry()
    found = CollectorRegistry()
    found.register(_AllProcesses(Path(directory)))
    return found


def serve(host: str, port: int) -> None:
    """Serve what all processes counted, from a thread of this one. Raises OSError where the port is taken."""
    from prometheus_client import start_http_server

    start_http_server(port, host, registry())


class _AllProcesses:
    """Collector of a directory's files; the interface is prometheus_client's."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterable[Any]:
        """The sums of all files, but for gauges of processes that have ended."""
        from prometheus_client import multiprocess

        files = [str(path) for path in self._directory.glob("*.db") if not path.name.startswith("gauge_")]
        files += [str(path) for path in self._directory.glob("gauge_*.db") if _is_held(path)]
        found: Iterable[Any] = multiprocess.MultiProcessCollector.merge(files, accumulate=True)  # type: ignore[no-untyped-call]
        return found


@cache
def _own_registry() -> CollectorRegistry:
    from prometheus_client import CollectorRegistry

    return CollectorRegistry()


@cache
def _instruments() -> dict[str, Any]:
    """All instruments of this process, by name."""
    from prometheus_client import values

    if directory := os.environ.get(DIRECTORY):
        slot = _claim_slot(Path(directory))
        (Path(directory) / f"gauge_livesum_{slot}.db").unlink(missing_ok=True)  # of a process that has ended
        for kind, size in FILE_BYTES.items():
            _allocate(Path(directory) / f"{kind}_{slot}.db", size)
        values.ValueClass = values.MultiProcessValue(lambda: slot)  # type: ignore[no-untyped-call]
    made = {metric.name: _make(metric) for metric in COUNTED}
    for metric in COUNTED:
        for value in metric.values:
            made[metric.name].labels(value)
    return made


def _make(metric: Metric) -> Any:
    from prometheus_client import Counter, Gauge, Histogram

    named = (metric.name, f"{metric.help}.", metric.labels)
    if metric.kind == "counter":
        return Counter(*named, registry=_own_registry())
    if metric.kind == "gauge":
        return Gauge(*named, registry=_own_registry(), multiprocess_mode="livesum")
    return Histogram(*named, registry=_own_registry(), buckets=BUCKETS_S if metric is REQUEST_DURATION else JOB_BUCKETS_S)


def _instrument(metric: Metric) -> Any:
    with _making:
        return _instruments()[metric.name]


@cache
def _series(metric: Metric, labels: tuple[str, ...]) -> Any:
    instrument = _instrument(metric)
    return instrument.labels(*labels) if labels else instrument


def _claim_slot(directory: Path) -> str:
    """The first slot that no running process holds; the kernel frees it when this process ends."""
    directory.mkdir(parents=True, exist_ok=True)
    for number in numbers():
        handle = _locked(directory / f"slot{number}.lock")
        if handle is not None:
            _held_slots.append(handle)
            return f"slot{number}"
    raise AssertionError


def _is_held(file: Path) -> bool:
    """Whether the process whose file this is still runs."""
    handle = _locked(file.with_name(f"{file.stem.rpartition('_')[2]}.lock"))
    if handle is None:
        return True
    os.close(handle)
    return False


def _locked(path: Path) -> int | None:
    """A handle of the file with its lock; None where a process, this one too, holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _allocate(path: Path, size: int) -> None:
    """Give the file its space before it is mapped: without it a full disk would end the process at a request (SIGBUS), not here."""
    if sys.platform == "darwin":
        return
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(handle, 0, size)
    finally:
        os.close(handle)
