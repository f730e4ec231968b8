"""All rows of all tables, read from one state of the database and written into an empty one. Works from SQLite to PostgreSQL and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select, text

from service.store.database import Database, chunks
from service.store.tables import metadata

Row = Mapping[str, Any]
ROWS_AT_ONCE = 1000


class StoreNotEmpty(Exception):
    """Rows would be written beside others; the text names a table that has some."""


class BackupRows(Database):
    """Reading and writing whole tables."""

    @contextmanager
    def all_rows(self) -> Iterator[Iterator[tuple[str, Iterator[Row]]]]:
        """Each table's name with its rows by column, tables in the order of their references, rows in that of their keys."""
        with self._snapshot() as connection:
            yield ((table.name, _rows(connection, table)) for table in metadata.sorted_tables)

    def write_all_rows(self, read: Callable[[str], Iterable[Row]]) -> None:
        """Write what `read` has for each table, all or nothing. Raises StoreNotEmpty where any table has rows."""
        with self._write() as connection:
            for table in metadata.sorted_tables:
                if connection.execute(select(table).limit(1)).first() is not None:
                    raise StoreNotEmpty(f"the table {table.name} has rows")
            for table in metadata.sorted_tables:
                for rows in chunks(read(table.name), ROWS_AT_ONCE):
                    connection.execute(insert(table), [dict(row) for row in rows])
                _continue_numbering(connection, table)


def _rows(connection: Connection, table: Table) -> Iterator[Row]:
    query = select(table).order_by(*table.primary_key.columns)
    with connection.execution_options(yield_per=ROWS_AT_ONCE).execute(query) as result:
        yield from (dict(row) for row in result.mappings())


def _continue_numbering(connection: Connection, table: Table) -> None:
    """Let PostgreSQL number new rows after those that were written with their numbers; SQLite does so by itself."""
    column = table.autoincrement_column
    if column is None or connection.dialect.name != "postgresql":
        return
    sequence = connection.scalar(text("SELECT pg_get_serial_sequence(:table, :column)"), {"table": table.name, "column": column.name})
    if sequence is not None and (highest := connection.scalar(select(func.max(column)))) is not None:
        connection.execute(text("SELECT setval(:sequence, :highest)"), {"sequence": sequence, "highest": highest})
