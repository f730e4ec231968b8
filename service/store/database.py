"""Engine, connections and errors: settings of SQLite and PostgreSQL for durable commits without deadlocks of writers."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import URL, Column, Connection, Engine, Executable, Table, create_engine, event, func, make_url, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from service.domain.errors import StoreFull, StoreReadOnly, StoreUnavailable
from service.store.hang_guard import HangGuard
from service.store.ping import Ping

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from sqlalchemy.pool import ConnectionPoolEntry

BUSY_TIMEOUT_S = 5.0
_POLL_RANGE_S = (0.0002, 0.002)
POOL_TIMEOUT_S = 5
STATEMENT_TIMEOUT_S = 60
POOLER = "pooler"
"""Query parameter of a PostgreSQL URL that leads to a connection pooler; `transaction` is its only value."""
_CONNECTING = {"connect_timeout": 3, "tcp_user_timeout": 10_000}
_DIRECT = {**_CONNECTING, "options": f"-c statement_timeout={STATEMENT_TIMEOUT_S}s"}
# A pooler's client has another connection of the server in each transaction: nothing is prepared there, nothing set beyond the transaction.
_POOLED = {**_CONNECTING, "prepare_threshold": None}
_SYNCHRONOUS_FULL = 2
_T = TypeVar("_T")


_PRIMARY = 0xFF  # what is above tells more about one of SQLite's errors
_ERROR_CLASSES: Mapping[str | int, type[StoreUnavailable]] = {
    sqlite3.SQLITE_FULL: StoreFull,
    "53100": StoreFull,
    sqlite3.SQLITE_READONLY: StoreReadOnly,
    "25006": StoreReadOnly,
}
"""By SQLite's result code, or SQLSTATE (PostgreSQL, appendix A)."""


def make_engine(database_url: str) -> Engine:
    """An engine for `sqlite:///file` or a PostgreSQL URL. It connects on first use."""
    if not database_url.startswith("sqlite"):
        return _postgresql_engine(make_url(database_url).set(drivername="postgresql+psycopg"))
    # Everything after the slashes is the path: a "?", "#" or "%" in a directory's name is not a query.
    url = URL.create("sqlite+pysqlite", database=str(Path(database_url.partition(":///")[2])))
    engine = create_engine(url, pool_timeout=POOL_TIMEOUT_S, connect_args={"timeout": BUSY_TIMEOUT_S})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgresql_engine(url: URL) -> Engine:
    is_pooled = url.query.get(POOLER) == "transaction"
    url, args = url.difference_update_query([POOLER]), _POOLED if is_pooled else _DIRECT
    engine = create_engine(url, pool_pre_ping=True, pool_timeout=POOL_TIMEOUT_S, connect_args=args)
    event.listen(engine, "begin", partial(_limit_statements, is_pooled))
    return engine


def _limit_statements(is_pooled: bool, connection: Connection) -> None:
    """Set what a statement of this transaction may take, where the connection has not: through a pooler, or for a migration."""
    is_long = connection.get_execution_options().get("outlay_long_statements", False)
    if is_pooled or is_long:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{0 if is_long else STATEMENT_TIMEOUT_S}s'")


def _connect_watched(guard: HangGuard, _dialect: object, _record: object, cargs: Any, cparams: dict[str, Any]) -> Any:
    from service.store.watched_connection import WatchedConnection

    guard.check()
    connection = WatchedConnection.connect(*cargs, **cparams)
    connection.guard = guard
    return connection


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    """Set WAL and full synchronisation and read both back: a database without durable commits is refused."""
    connection.isolation_level = None  # SQLAlchemy's begin event below says which BEGIN is meant
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA synchronous=FULL")
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
    if (mode, synchronous) != ("wal", _SYNCHRONOUS_FULL):
        raise StoreUnavailable(f"SQLite runs with journal_mode={mode}, synchronous={synchronous}; wal and {_SYNCHRONOUS_FULL} are needed")


def _begin_sqlite(connection: Connection) -> None:
    """Begin a writer with BEGIN IMMEDIATE: a transaction that reads first and then writes would fail at once, whatever the busy timeout."""
    if not connection.get_execution_options().get("outlay_write", False):
        connection.exec_driver_sql("BEGIN")
        return
    driver: Any = connection.connection.driver_connection
    driver.execute("PRAGMA busy_timeout=0")
    try:
        begin_immediately(driver)
    except sqlite3.OperationalError:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # its error has SQLAlchemy's form
    finally:
        driver.execute(f"PRAGMA busy_timeout={round(1000 * BUSY_TIMEOUT_S)}")


def begin_immediately(driver: sqlite3.Connection) -> None:
    """Retry BEGIN IMMEDIATE after short random pauses. Raises sqlite3.OperationalError where others write for too long.

    SQLite itself retries every 100 ms, so that a constant writer would lock the others out: its own `busy_timeout` is to be 0 meanwhile.
    An attempt takes some 10 us of the driver.
    """
    until = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            driver.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(random.uniform(*_POLL_RANGE_S))  # noqa: S311 - not a secret
        else:
            return


class Database:
    """Short transactions on one engine."""

    def __init__(self, database_url: str) -> None:
        self._closed = False
        self._ping = Ping(self._select_one)
        self._guard = HangGuard(self._ping.within)
        self.engine = self._ping_engine = make_engine(database_url)
        if self.engine.dialect.name == "postgresql":
            self._ping_engine = make_engine(database_url)  # a pool that is used up is no hung database
            event.listen(self.engine, "do_connect", partial(_connect_watched, self._guard))
        for engine in {self.engine, self._ping_engine}:
            event.listen(engine, "checkin", self._close_late)

    def close(self) -> None:
        """Close every pooled connection."""
        self._closed = True
        self.engine.dispose()
        self._ping_engine.dispose()

    def absent(self) -> bool:
        """Whether this is an SQLite file that does not exist."""
        return self.engine.dialect.name == "sqlite" and not Path(str(self.engine.url.database)).exists()

    def ping(self, timeout_s: float = 0.2) -> bool:
        """Whether the database answers a query within `timeout_s`; never raises and never takes longer."""
        return self._ping.within(timeout_s)

    def time(self) -> datetime:
        """The time of the database's machine. Raises StoreUnavailable."""
        with self._beside() as connection:
            at: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
        return at

    def _select_one(self) -> None:
        with self._beside() as connection:
            connection.execute(text("SELECT 1"))

    @contextmanager
    def _beside(self) -> Iterator[Connection]:
        """A connection for reads in threads of their own."""
        with translate_db_errors(), self._ping_engine.connect() as connection:
            yield connection

    def _close_late(self, _driver_connection: object, entry: ConnectionPoolEntry) -> None:
        """Close a connection that a thread gives back after `close`: its pool is no longer there to do it."""
        if self._closed:
            entry.invalidate()

    def _connect(self) -> Connection:
        """A connection of the pool. Raises StoreUnavailable at once while the database is known not to answer."""
        self._guard.check()
        return self.engine.connect()

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with translate_db_errors(), self._connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        """Several reads of one state; every SQLite transaction is one."""
        level = {} if self.engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        with translate_db_errors(), self._connect() as plain:
            connection = plain.execution_options(**level)
            with connection.begin():
                yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with translate_db_errors(), self._connect() as plain:
            connection = plain.execution_options(outlay_write=True)
            with connection.begin():
                yield connection

    def _find(self, kind: Callable[..., _T], query: Executable) -> _T | None:
        """The record of a query's first row, by column names; None where there is no row."""
        with self._read() as connection:
            row = connection.execute(query).mappings().first()
        return kind(**row) if row else None

    def _list(self, kind: Callable[..., _T], query: Executable) -> list[_T]:
        """A record for each row of a query, by column names."""
        with self._read() as connection:
            return [kind(**row) for row in connection.execute(query).mappings()]

    def _scalar(self, query: Executable) -> Any:
        """First column of a query's first row; None where there is no row."""
        with self._read() as connection:
            return connection.scalar(query)

    def _change(self, statement: Executable) -> int:
        """Execute one statement in a transaction; returns the number of rows changed."""
        with self._write() as connection:
            return connection.execute(statement).rowcount


@contextmanager
def translate_db_errors() -> Iterator[None]:
    """Context that raises StoreUnavailable for the drivers' errors of an unreachable, full or read-only database."""
    try:
        yield
    except (OperationalError, InternalError, PoolTimeout, sqlite3.OperationalError) as error:
        raise _store_unavailable(getattr(error, "orig", None) or error) from error
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
        raise _store_unavailable(error.orig or error) from error


def _store_unavailable(cause: BaseException) -> StoreUnavailable:
    code = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorcode", 0) & _PRIMARY
    return _ERROR_CLASSES.get(code, StoreUnavailable)(str(cause).strip())


def sanitize_text(text: str) -> str:
    """The text without NUL and lone surrogates, which no database accepts."""
    return text.replace("\0", "").encode("utf-8", errors="replace").decode()


def chunks(values: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """The values in lists of at most `size`, in order."""
    rest = iter(values)
    while chunk := list(islice(rest, size)):
        yield chunk


def columns_of(table: Table, record: type[DataclassInstance]) -> tuple[Column[Any], ...]:
    """The table's columns that are fields of a record."""
    return tuple(table.c[field.name] for field in fields(record))


def insert_new(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert the rows whose keys do not exist."""
    connection.execute(insert_into(connection, table).on_conflict_do_nothing(), rows)


def insert_into(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An insert with ON CONFLICT; SQLAlchemy has one for each database."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)
