"""A service of each module's own: runs that were closed teach later estimates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from flask.testing import FlaskClient

from service import create_app
from service.config import load_settings


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A client of the service on an empty database, with the shipped prices."""
    app = create_app(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("tracked") / "data"), "OUTLAY_OFFLINE": "1"}))
    with closing(app.extensions["context"].store) as store:
        store.migrate()
        yield app.test_client()
