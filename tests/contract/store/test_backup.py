"""A backup restores everything, on either database, and says what is wrong where it cannot."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from service import create_app
from service.config import Settings
from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.usecases.backup import decode_row, encode_row, make_backup, read_contents, restore_backup
from service.usecases.keys import make_key
from tests.support.servers import new_database

ESTIMATE = {"model": {"params": "1B"}, "data": {"tokens": "1B"}, "hardware": {"accelerator": "H100", "count": 8}}
Install = Callable[[str], Flask]


@pytest.fixture
def install(settings: Settings, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Install]:
    """Makes empty, migrated installations with a data directory of their own, on SQLite or PostgreSQL."""
    with ExitStack() as stack:

        def begin(kind: str) -> Flask:
            data_dir = tmp_path / f"installation {len(list(tmp_path.iterdir()))}"
            data_dir.mkdir()
            url = f"sqlite:///{data_dir}/outlay.db"
            if kind == "postgresql":
                server, model = (request.getfixturevalue(name) for name in ("postgres_server", "postgres_model"))
                url = stack.enter_context(new_database(server, model))
            app = create_app(replace(settings, data_dir=data_dir, database_url=url))
            store = stack.enter_context(closing(app.extensions["context"].store))
            store.migrate()
            return app

        yield begin


def context_of(app: Flask) -> AppContext:
    context: AppContext = app.extensions["context"]
    return context


def use(app: Flask) -> str:
    """Track a program with a run and events, keep a result, begin a scenario, make a key; the program's address."""
    client = app.test_client()
    price = {"price": {"usd_per_accelerator_hour": 2.0}}

    def post(path: str, body: object) -> Any:
        answer = client.post(path, json=body)
        assert answer.status_code in (200, 201, 202), answer.get_json()
        return answer.get_json()

    program = post("/v1/track/programs", {"name": "Größe 7B ☃", "budget_usd": 1e6})["id"]
    run = post(f"/v1/track/programs/{program}/runs", {"name": "main", "planned": {"tokens": 1e12}})["id"]
    progress = {"id": "e1", "type": "progress", "at": "2026-02-01T00:00:00Z", "tokens_done": 1e9, "accelerator_hours": 0.1, "cost_usd": 0.3}
    post(f"/v1/track/runs/{run}/events", {"events": [progress]})
    post("/v1/results", {"kind": "estimate", "request": ESTIMATE | price, "title": "kept"})
    post("/v1/scenarios", {"kind": "monte_carlo", "base": ESTIMATE | price, "trials": 1000, "seed": 1})
    make_key(context_of(app), "team", "key", ("read", "write"), "never")
    return f"/v1/track/programs/{program}"


@pytest.mark.own_database
@pytest.mark.parametrize(("source", "target"), [("sqlite", "sqlite"), ("sqlite", "postgresql"), ("postgresql", "sqlite")])
def test_everything_comes_back(install: Install, tmp_path: Path, source: str, target: str) -> None:
    """Every row of every table, the signing keys, and numbers that go on; the file is its owner's alone."""
    first, second, file = install(source), install(target), tmp_path / "backup.zip"
    status = f"{use(first)}/status?as_of=2026-03-01T00:00:00Z"
    contents = make_backup(context_of(first), file)
    assert {name for name, content in contents.items() if content.rows} >= {
        "track_programs",
        "track_runs",
        "results",
        "scenarios",
        "api_keys",
    }
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert restore_backup(context_of(second), file) == contents == read_contents(context_of(second)) == read_contents(context_of(first))
    keys = [(context_of(app).settings.data_dir / "signing-keys" / "0001.json").read_bytes() for app in (first, second)]
    assert keys[0] == keys[1]
    _, token = make_key(context_of(second), "default", "new", ("read", "write"), "never")
    client, headers = create_app(context_of(second).settings).test_client(), {"Authorization": f"Bearer {token}"}
    assert client.get(status, headers=headers).status_code == 200
    assert client.post("/v1/track/programs", json={"name": "next"}, headers=headers).status_code == 201


def test_nothing_is_written_beside_what_is_there(install: Install, tmp_path: Path) -> None:
    """A database in use, and a file that exists, are refused."""
    app, file = install("sqlite"), tmp_path / "backup.zip"
    use(app)
    make_backup(context_of(app), file)
    with pytest.raises(InvalidRequest, match="exists; name another"):
        make_backup(context_of(app), file)
    with pytest.raises(InvalidRequest, match="empty data directory"):
        restore_backup(context_of(app), file)
    other = install("sqlite")
    make_key(context_of(other), "team", "key", ("read",), "never")
    with pytest.raises(InvalidRequest, match="not empty"):
        restore_backup(context_of(other), file)


def test_what_is_no_backup_is_refused(install: Install, tmp_path: Path) -> None:
    """Another file, another schema, a missing table, a changed row: nothing is taken for restored."""
    app, file = install("sqlite"), tmp_path / "backup.zip"
    use(app)
    make_backup(context_of(app), file)
    text = tmp_path / "text"
    text.write_text("no archive")
    changes: dict[str, Callable[[str, bytes], bytes | None]] = {
        "restore it with the release that made it": lambda name, old: (
            old.replace(b'"schema": "', b'"schema": "9') if name == "manifest.json" else old
        ),
        "damaged": lambda name, old: None if name == "tables/track_runs.jsonl" else old,
        "differ from the backup's manifest": lambda name, old: old.replace(b"kept", b"gone") if name == "tables/results.jsonl" else old,
    }
    with pytest.raises(InvalidRequest, match="is no backup"):
        restore_backup(context_of(install("sqlite")), text)
    for number, (message, change) in enumerate(changes.items()):
        changed = tmp_path / f"changed-{number}.zip"
        with zipfile.ZipFile(file) as old, zipfile.ZipFile(changed, "w") as new:
            for name in old.namelist():
                if (content := change(name, old.read(name))) is not None:
                    new.writestr(name, content)
        with pytest.raises(InvalidRequest, match=message):
            restore_backup(context_of(install("sqlite")), changed)


VALUES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary()
VALUES |= st.datetimes(timezones=st.just(UTC)) | st.decimals(allow_nan=False, allow_infinity=False)
VALUES |= st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)).filter(
    lambda value: isinstance(value, dict | list)
)


@given(st.dictionaries(st.text(min_size=1), VALUES))
def test_rows_come_back_as_they_were(row: dict[str, Any]) -> None:
    """Whatever the values, also those that look like the encoding's own objects."""
    line = encode_row(row)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_row(line) == row
    assert json.loads(line).keys() == row.keys()
