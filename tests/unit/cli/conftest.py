"""Both doors of one service, at one time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from flask.testing import FlaskClient

from service import create_app
from service.config import Settings, load_settings
from service.store import Store

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """One time for both doors, so that no midnight falls between two answers."""
    monkeypatch.setattr("service.container.utc_now", lambda: NOW)


@pytest.fixture
def client(served: FlaskClient, settings: Settings) -> FlaskClient:
    """The HTTP door, beside a command line whose own database is as empty as the door's."""
    with closing(Store(settings.database_url)) as store:
        store.migrate()
    return served


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """The HTTP door at that time; one for all tests of calculations: they leave nothing behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.container.utc_now", lambda: NOW)
        app = create_app(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("calculations") / "data"), "OUTLAY_OFFLINE": "1"}))
    with closing(app.extensions["context"].store) as store:
        store.migrate()
        yield app.test_client()
