"""Migrations only expand: processes of the release before go on writing to a database that the next one has migrated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from service.store import Store
from service.store.migration import alembic_config

BEFORE_THE_RULE = "0012"
"""The newest migration of the time when nothing was released yet; it moves a table, those after it only expand."""
NEW_ONES = [
    script.revision
    for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()
    if script.revision > BEFORE_THE_RULE and script.down_revision
]
Schema = Mapping[str, Mapping[str, Any]]


def schema_of(connection: sa.Connection) -> Schema:
    """What statements of a release rely on, by table: columns, unique keys, references and conditions."""
    inspector = sa.inspect(connection)
    found = {}
    for table in inspector.get_table_names():
        unique = [tuple(key["column_names"]) for key in inspector.get_unique_constraints(table)]
        unique += [tuple(index["column_names"]) for index in inspector.get_indexes(table) if index["unique"]]
        references = [tuple(key["constrained_columns"]) for key in inspector.get_foreign_keys(table)]
        checks = [check["sqltext"] for check in inspector.get_check_constraints(table)]
        columns = {column["name"]: column for column in inspector.get_columns(table)}
        found[table] = {"columns": columns, "limits": {*unique, *references, *checks}, "key": inspector.get_pk_constraint(table)}
    return found


def breaks(before: Schema, after: Schema) -> list[str]:
    """What the release before cannot live with: it reads and writes all columns that it knows, and no other."""
    found = [f"table {table} is gone" for table in before.keys() - after.keys()]
    for table in sorted(before.keys() & after.keys()):
        old, new = before[table], after[table]
        found += [f"{table}.{name} is gone" for name in old["columns"].keys() - new["columns"].keys()]
        for name in sorted(old["columns"].keys() & new["columns"].keys()):
            was, now = old["columns"][name], new["columns"][name]
            if str(was["type"]) != str(now["type"]):
                found.append(f"{table}.{name} was {was['type']} and is {now['type']}")
            if was["nullable"] and not now["nullable"]:
                found.append(f"{table}.{name} must be there now")
        for name in sorted(new["columns"].keys() - old["columns"].keys()):
            column = new["columns"][name]
            if not column["nullable"] and column["default"] is None:
                found.append(f"{table}.{name} is new, must be there and has no default in the database")
        if old["key"]["constrained_columns"] != new["key"]["constrained_columns"]:
            found.append(f"{table} has another primary key")
        found += [f"{table} has a new limit: {limit}" for limit in new["limits"] - old["limits"]]
    return found


@pytest.fixture
def at(tmp_path: Path) -> Callable[[str], Schema]:
    """The schema at a revision, on a database that is migrated step by step."""

    def migrated(revision: str) -> Schema:
        config = alembic_config()
        with closing(Store(f"sqlite:///{tmp_path / 'steps.db'}")) as store:
            with store.engine.connect().execution_options(outlay_write=True) as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, revision)
            with store.engine.connect() as connection:
                return schema_of(connection)

    return migrated


@pytest.mark.parametrize("revision", NEW_ONES)
def test_a_migration_only_expands(at: Callable[[str], Schema], revision: str) -> None:
    """CONTRIBUTING.md says how to change what is there in two releases."""
    before = ScriptDirectory.from_config(alembic_config()).get_revision(revision).down_revision
    assert isinstance(before, str)
    assert breaks(at(before), at(revision)) == []


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO c", "t.a is gone"),
        ("ALTER TABLE t DROP COLUMN b", "t.b is gone"),
        ("ALTER TABLE t ADD COLUMN c VARCHAR(5) NOT NULL DEFAULT 'x'", None),
        ("ALTER TABLE t ADD COLUMN c VARCHAR(5)", None),
        ("CREATE INDEX t_a ON t (a)", None),
        ("CREATE UNIQUE INDEX t_a ON t (a)", "t has a new limit: ('a',)"),
        ("DROP TABLE t", "table t is gone"),
        ("CREATE TABLE u (a VARCHAR(5) NOT NULL)", None),
    ],
)
def test_what_breaks_an_older_release_is_noticed(statement: str, why: str | None) -> None:
    """Else the rule would hold whatever a migration does."""
    with sa.create_engine("sqlite://").connect() as connection:
        connection.exec_driver_sql("CREATE TABLE t (id INTEGER PRIMARY KEY, a VARCHAR(5), b INTEGER)")
        before = schema_of(connection)
        connection.exec_driver_sql(statement)
        found = breaks(before, schema_of(connection))
    assert (found and found[0]) == (why or [])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("a VARCHAR(5)", "a VARCHAR(9)", "t.a was VARCHAR(5) and is VARCHAR(9)"),
        ("a VARCHAR(5)", "a VARCHAR(5) NOT NULL", "t.a must be there now"),
        ("a VARCHAR(5) PRIMARY KEY", "a VARCHAR(5)", "t has another primary key"),
        ("a VARCHAR(5)", "a VARCHAR(5), b INTEGER NOT NULL", "t.b is new, must be there and has no default in the database"),
        ("a VARCHAR(5)", "a VARCHAR(5) CHECK (a <> 'x')", "t has a new limit: a <> 'x'"),
    ],
)
def test_a_column_that_changes_is_noticed(old: str, new: str, why: str) -> None:
    """Its type, whether it must be there, and what it may hold."""
    schemas = []
    for columns in (old, new):
        with sa.create_engine("sqlite://").connect() as connection:
            connection.exec_driver_sql(f"CREATE TABLE t ({columns})")
            schemas.append(schema_of(connection))
    assert why in breaks(*schemas)
