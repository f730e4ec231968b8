"""Migrations forwards and back, on databases with rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import MetaData, inspect, select

from service import create_app
from service.config import Settings
from service.store import Store
from service.store.migration import revisions
from service.store.tables import metadata
from tests.contract.store.test_backup import use

pytestmark = pytest.mark.own_database
REVISIONS = revisions()
Contents = dict[str, list[dict[str, Any]]]


@pytest.fixture
def used(url: str, settings: Settings) -> Iterator[Store]:
    """The store of an installation that is in use, with rows of many kinds."""
    app: Flask = create_app(replace(settings, database_url=url))
    context = app.extensions["context"]
    with closing(context.store) as store:
        store.migrate()
        use(app)
        yield store


def contents(store: Store) -> Contents:
    """The rows of every table, as they are stored."""
    tables = MetaData()
    tables.reflect(store.engine)
    with store.engine.connect() as connection:
        return {
            name: sorted((dict(row) for row in connection.execute(select(table)).mappings()), key=repr)
            for name, table in tables.tables.items()
            if name != "alembic_version"
        }


def test_back_and_forwards_again_keeps_what_the_older_schema_holds(used: Store) -> None:
    """One step and up again, then step by step to the first schema and up: rows that the older schema holds stay."""
    before = contents(used)
    assert before["track_events"]
    used.migrate_to(REVISIONS[-2])
    older = contents(used)
    used.migrate()
    _assert_same(before, older)
    _assert_same(contents(used), older)
    for revision in reversed(REVISIONS):
        used.migrate_to(revision)
    oldest = contents(used)
    for revision in REVISIONS:
        used.migrate_to(revision)
    assert sorted(oldest) == ["heartbeats", "jobs", "offers", "price_snapshots"]
    assert oldest["jobs"]
    _assert_same(before, oldest)
    _assert_same(contents(used), oldest)
    seen = inspect(used.engine)
    for table in metadata.tables.values():
        assert {column["name"] for column in seen.get_columns(table.name)} == set(table.columns.keys())
        assert {index["name"] for index in seen.get_indexes(table.name)} >= {index.name for index in table.indexes}


def test_a_schema_of_a_later_release_is_named(store: Store) -> None:
    """A release that does not know the database's revision changes nothing and says what to do."""
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(LookupError, match="revision 9999, which this release does not know"):
        store.migrate_to(REVISIONS[-2])


def _assert_same(newer: Contents, older: Contents) -> None:
    """Every row of the older schema's tables is in the newer's, in the columns that both have."""
    for name, rows in older.items():
        assert _shared(newer[name], rows) == _shared(rows, newer[name]), name


def _shared(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    columns = rows[0].keys() & others[0].keys() if rows and others else set()
    return sorted(({name: row[name] for name in sorted(columns)} for row in rows), key=repr)
