"""Request metrics under OpenTelemetry's names, summed over all worker processes.

With PROMETHEUS_MULTIPROC_DIR set, each process writes to files in that directory and a scrape adds them up. The files are named after a
slot that a process locks while it runs, not after its process id: a worker that follows a dead one continues its files, so that sums
survive restarts and the directory stays as small as the largest number of concurrent workers.
"""

from __future__ import annotations

import fcntl
import os
import sys
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from flask import Response

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Histogram

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
UNMATCHED = "unmatched"
OTHER_METHOD = "_OTHER"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
# OpenTelemetry's advice for http.server.request.duration, in seconds.
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)

FILE_BYTES = 4 * 1024 * 1024
"""Space of one process's series: each takes some 200 bytes, and there are some 17 for each route, method and status."""

_held_slots: list[int] = []


def start() -> None:
    """Create the series before requests arrive; two threads must not both do it."""
    _durations()


def observe(method: str, route: str, status: int, duration_s: float) -> None:
    """Count one request. `route` is a template or UNMATCHED, never a path: the number of series must not depend on input."""
    _series(method if method in METHODS else OTHER_METHOD, route, status).observe(duration_s)


def exposition() -> Response:
    """All series in Prometheus' text format, of all processes."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest, multiprocess

    registry = _registry()
    if os.environ.get(DIRECTORY):
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


@cache
def _registry() -> CollectorRegistry:
    from prometheus_client import CollectorRegistry

    return CollectorRegistry()


@cache
def _durations() -> Histogram:
    from prometheus_client import Histogram, values

    if directory := os.environ.get(DIRECTORY):
        slot = _claim_slot(Path(directory))
        _allocate(Path(directory) / f"histogram_{slot}.db")
        values.ValueClass = values.MultiProcessValue(lambda: slot)  # type: ignore[no-untyped-call]
    return Histogram(
        "http_server_request_duration_seconds",
        "Time from a request's arrival to its answer, in seconds.",
        ("http_request_method", "http_route", "http_response_status_code"),
        registry=_registry(),
        buckets=BUCKETS_S,
    )


@cache
def _series(method: str, route: str, status: int) -> Histogram:
    return _durations().labels(method, route, str(status))


def _claim_slot(directory: Path) -> str:
    """The first slot that no running process holds; the kernel frees it when this process ends."""
    directory.mkdir(parents=True, exist_ok=True)
    for number in count():
        handle = os.open(directory / f"slot_{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue
        _held_slots.append(handle)
        return f"slot{number}"
    raise AssertionError


def _allocate(path: Path) -> None:
    """Give the file its space before it is mapped: without it a full disk would end the process at a request (SIGBUS), not here."""
    if sys.platform == "darwin":
        return
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(handle, 0, FILE_BYTES)
    finally:
        os.close(handle)
