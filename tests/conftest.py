"""Real servers and settings for every test, and what the processes of a test run share."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from itertools import chain, cycle
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
from tests.support.patience import ANSWER_WAITS, STORE_WAITS, patient
from tests.support.servers import (
    DEADLINE_S,
    RUN_FOLDER,
    find_free_port,
    new_database,
    once_a_run,
    start_postgres,
    start_redis,
    wait_for,
)

DATABASES_A_PROCESS = 16
"""Redis databases of a test process: the first for its modules, the others for its tests in turn, so that what a thread of the last test
still sends does not reach the next one."""
turns = cycle(range(1, DATABASES_A_PROCESS))
PID_FILES = ("redis/redis.pid", "postgres/postmaster.pid")
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
    leave_out_constants()
    with contextlib.ExitStack() as turn:
        turn.enter_context(FileLock(Path(os.environ[RUN_FOLDER]) / "collection.lock"))
        if sys.dont_write_bytecode or any(Path(__file__).parent.glob("unit/__pycache__/test_*")):
            turn.close()
        return (yield)


def leave_out_constants() -> None:
    """Examples that are the same in every run hold no constants of the modules loaded so far: those depend on which tests ran before."""
    if hypothesis_settings.default is not None and hypothesis_settings.default.derandomize:
        hypothesis_providers._get_local_constants = hypothesis_providers.Constants


def pytest_collection_finish() -> None:
    """Spare the garbage collector thousands of tests and modules that stay until the end, and let it run more seldom: 5 % of the time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
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


READING_THREADS = {REFRESH_THREAD, "metrics-readings", "metrics-programs", "database-clock", "store-ping"}
"""Threads that hold a database connection beside the one that a test closes."""


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
def patient_service() -> Iterator[None]:
    """A database, a Redis, a price or a receiver that answers late is no outage; readiness, metrics and batches wait for what is late."""
    with patient((*STORE_WAITS, *ANSWER_WAITS)):
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


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The embedded defaults on a data directory of the test's own, never calling a price API."""
    return load_settings({"OUTLAY_DATA_DIR": str(tmp_path / "data"), "OUTLAY_OFFLINE": "1", "OUTLAY_WORKER_CONCURRENCY": "1"})


@pytest.fixture
def redis_url() -> str:
    """A database on a real Redis, emptied. Settings of the whole server belong to other tests too: `own_redis_url` is for those."""
    return emptied_redis(DATABASES_A_PROCESS * process_number() + next(turns))


@pytest.fixture(scope="module")
def module_redis_url() -> str:
    """Another one, for what all tests of a module share."""
    return emptied_redis(DATABASES_A_PROCESS * process_number())


def process_number() -> int:
    """The number of this test process among those of the run."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def emptied_redis(database: int) -> str:
    """The URL of an emptied database of the Redis of this run."""
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


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The URL of the PostgreSQL of this run, with `{}` for the database's name."""
    return once_a_run("postgres", start_postgres)


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
