"""Stores on every database the service supports."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service import create_app
from service.config import load_settings
from service.store import Store
from service.store.secret_box import SecretKeys
from tests.support.servers import new_database
from tests.support.service import served

if TYPE_CHECKING:
    from tests.contract.teams.team_books import Teams

KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()
"""Of stored secrets."""


@pytest.fixture(scope="session", autouse=True)
def valid_charts() -> Iterator[None]:
    """Whatever is drawn is valid Vega-Lite."""
    from tests.support.chart_check import charts_checked

    with charts_checked():
        yield


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    """A database of each kind, to be migrated."""
    return sqlite_url if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, sqlite_url: str) -> Iterator[str]:
    """A database of each kind that no migration has seen."""
    with ExitStack() as stack:
        yield sqlite_url if request.param == "sqlite" else stack.enter_context(new_database(request.getfixturevalue("postgres_server")))


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A file that is not there yet, in a directory with a name that is hard on URLs."""
    folder = tmp_path / "a b%20c?d#e"
    folder.mkdir()
    return f"sqlite:///{folder}/outlay.db"


@pytest.fixture
def open_store() -> Iterator[Callable[[str], Store]]:
    """Stores on a URL, closed when the test is over."""
    with ExitStack() as stack:
        yield lambda url: stack.enter_context(closing(Store(url, SecretKeys("the tests' key", lambda: (KEY,), lambda: None))))


@pytest.fixture
def store(open_store: Callable[[str], Store], url: str) -> Store:
    """A migrated store."""
    made = open_store(url)
    made.migrate()
    return made


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A client of the service on an empty database, with the shipped prices; one for all calculations: they leave nothing behind."""
    with served(tmp_path_factory.mktemp("calculations")) as made:
        yield made


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def tracking_app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    """The service on each kind of database, one for a whole module: its tests make programs of their own and look at nothing else."""
    with ExitStack() as stack:
        env = {"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("served") / "data"), "OUTLAY_OFFLINE": "1"}
        if request.param == "postgresql":
            model = request.getfixturevalue("postgres_model")
            env["OUTLAY_DATABASE_URL"] = stack.enter_context(new_database(request.getfixturevalue("postgres_server"), model))
        settings = load_settings(env)
        settings.data_dir.mkdir()
        app = create_app(settings)
        stack.enter_context(closing(app.extensions["context"].store)).migrate()
        yield app


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Teams]:
    """Two teams that may have price books, and one without."""
    from tests.contract.teams.team_books import opened

    made = opened(tmp_path_factory.mktemp("books"), ("vision", "speech", "plain"))
    yield made
    made.context.store.close()
