"""`outlay serve`: starts web server and background worker in the foreground, watches both, ends both."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from service.cache import COUNTERS_DIR
from service.config import Settings, database_label, to_env
from service.container import build_context
from service.domain.errors import SecretsUnavailable, StoreUnavailable
from service.domain.training.utilisation import BadMeasurement
from service.runtime import bind_guard, process_guard
from service.runtime.memory_files import memory_dir
from service.usecases.prices.refresh import refresh_local
from service.usecases.secrets import seal_plain

log = logging.getLogger(__name__)

STOP_S = 30.0
"""Time for the children to end after the drain [s]: gunicorn finishes requests for 25 s, jobs are released within 10 s."""
HEALTHY_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
OWNER_ONLY = 0o077
"""Permissions that files and directories of the service give to nobody but their owner."""
_LOOK_S = 1.0
_FIRST_LOOK_S = 0.2
"""Time between two looks [s], and between those at a web server that has not answered yet."""


class ServeError(Exception):
    """The service cannot start; the text is for the terminal."""


def serve(settings: Settings) -> int:
    """Migrate, start both processes, wait. Returns 0 after SIGTERM or SIGINT, or the web server's status if it exits by itself.

    Raises ServeError before anything is started.
    """
    with _owner_only_files(), _data_dir_lock(settings.data_dir):
        _prepare(settings)
        with _signals() as asked, tempfile.TemporaryDirectory(prefix="outlay-", dir=memory_dir()) as shared:
            return _Children(settings, asked, Path(shared)).run()


@contextmanager
def _owner_only_files() -> Iterator[None]:
    """New files, the children's too, are for this user alone: the database has secrets of webhooks."""
    before = os.umask(OWNER_ONLY)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def _data_dir_lock(data_dir: Path) -> Iterator[None]:
    """Lock of the data directory: two supervisors would share the embedded queue and the metrics."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if data_dir.stat().st_mode & OWNER_ONLY:
            sys.stderr.write(f"other users of this machine may read {data_dir}, which holds budgets and keys: chmod -R go= '{data_dir}'\n")
        lock = FileLock(data_dir / "serve.lock")
        lock.acquire(timeout=0)
    except Timeout as error:
        raise ServeError(f"another Outlay is running on {data_dir}; stop it, or set OUTLAY_DATA_DIR to another directory") from error
    except OSError as error:
        raise ServeError(f"OUTLAY_DATA_DIR={data_dir} cannot be used: {error}") from error
    try:
        yield
    finally:
        lock.release()


def _prepare(settings: Settings) -> None:
    _check_bind(settings.host, settings.port)
    context = build_context(settings)
    try:
        context.measurements()
        context.store.migrate()
        seal_plain(context)
        if not bind_guard.check(context.store, [settings.host]):
            sys.stderr.write(f"{bind_guard.NO_KEYS}\n")
        refresh_local(context)
    except (BadMeasurement, bind_guard.ExposedWithoutKeys) as error:
        raise ServeError(str(error)) from error
    except SecretsUnavailable as error:
        raise ServeError(str(error)) from error
    except StoreUnavailable as error:
        raise ServeError(f"the database {database_label(settings)} cannot be used: {error}") from error
    finally:
        context.store.close()


def _check_bind(host: str, port: int) -> None:
    """Raise ServeError at once where the address cannot be bound; gunicorn would retry five times."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise ServeError(f"cannot listen on {host}:{port}: {error.strerror or error}; set OUTLAY_HOST or OUTLAY_PORT") from error


class _StopSignal:
    """Signals received so far; the handler only sets a flag."""

    def __init__(self) -> None:
        self.stops = 0
        self.something = threading.Event()

    def note(self, number: int, _frame: object) -> None:
        self.stops += number != signal.SIGCHLD
        self.something.set()

    def wait(self, seconds: float) -> None:
        """Wait for a signal, at most `seconds`."""
        self.something.wait(seconds)
        self.something.clear()


@contextmanager
def _signals() -> Iterator[_StopSignal]:
    asked = _StopSignal()
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
    before = {number: signal.signal(number, asked.note) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Children:
    """The two processes. Each leads a process group: a Ctrl-C reaches only this process, which passes it on once."""

    def __init__(self, settings: Settings, asked: _StopSignal, shared: Path) -> None:
        self._asked = asked
        self._env = {**os.environ, **to_env(settings), process_guard.SUPERVISOR: str(os.getpid())}
        for variable, name in (("PROMETHEUS_MULTIPROC_DIR", "metrics"), (COUNTERS_DIR, "counters")):
            (shared / name).mkdir()
            self._env[variable] = str(shared / name)
        self.worker_command = worker_command(settings)
        self._pause_s = FIRST_PAUSE_S
        self._stop_s = STOP_S + settings.drain_seconds
        self._place = (settings.host, settings.port)
        self._is_ready = False

    def run(self) -> int:
        """Start both, watch them until a stop signal or the web server's exit, stop the rest."""
        self._web = self._start([sys.executable, "-m", "gunicorn", "-c", "python:service.runtime.gunicorn_conf", "service:create_app()"])
        self._start_worker()
        try:
            while not self._asked.stops and self._web.poll() is None:
                self._look_for_answers()
                self._asked.wait(_LOOK_S if self._is_ready else _FIRST_LOOK_S)
                self._look_after_worker()
            return self._verdict()
        finally:
            self._stop_all()

    def _look_for_answers(self) -> None:
        """Say once that the service is ready: not before the web server answers, since who reads it asks at once."""
        if self._is_ready or not _answers(*self._place):
            return
        self._is_ready = True
        host, port = self._place
        sys.stderr.write(f"Outlay is ready: open http://{host}:{port}, or http://{host}:{port}/docs for its API. Ctrl-C stops it.\n")

    def _verdict(self) -> int:
        if self._asked.stops:
            return 0
        status = self._web.wait()
        log.error("the web server exited with status %s; its messages are above", status)
        return status if status > 0 else 1

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=self._env, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603  # our own command line

    def _start_worker(self) -> None:
        self._worker = self._start(self.worker_command)
        self._worker_since = time.monotonic()
        self._worker_due = 0.0

    def _look_after_worker(self) -> None:
        """Restart a dead worker after a pause that doubles with each early death."""
        now = time.monotonic()
        if self._worker.poll() is None or self._asked.stops:
            return
        if not self._worker_due:
            _kill_group(self._worker)
            self._pause_s = FIRST_PAUSE_S if now - self._worker_since > HEALTHY_S else self._pause_s
            log.error("the background worker ended with status %s; starting it again in %.0f s", self._worker.returncode, self._pause_s)
            self._worker_due = now + self._pause_s
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        elif now >= self._worker_due:
            self._start_worker()

    def _stop_all(self) -> None:
        """Terminate both; kill after `STOP_S` and the drain, or at once at a second signal."""
        children = (self._web, self._worker)
        for child in children:
            child.terminate()
        deadline, asked_before = time.monotonic() + self._stop_s, self._asked.stops
        while any(child.poll() is None for child in children) and time.monotonic() < deadline and self._asked.stops == asked_before:
            self._asked.wait(0.1)
        for child in children:
            _kill_group(child)
            child.wait()


def _answers(host: str, port: int) -> bool:
    """Whether the web server answers a request."""
    try:
        with socket.create_connection((host, port), timeout=_LOOK_S) as connection:
            connection.sendall(f"GET /healthz HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())
            return bool(connection.recv(1))
    except OSError:
        return False


def worker_command(settings: Settings) -> list[str]:
    """Command of the worker, with the scheduler inside: one supervisor has one worker."""
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "workers.app", "worker", "-B", "--pool", "prefork"]
    command += ["--concurrency", str(settings.worker_concurrency), "--loglevel", settings.log_level]
    return [*command, "--without-gossip", "--without-mingle", "--without-heartbeat"]


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill the rest of a child's group."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
