"""The whole service in this process, on an empty database with the shipped prices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from flask.testing import FlaskClient

from service import create_app
from service.config import load_settings


@contextmanager
def served(folder: Path) -> Iterator[FlaskClient]:
    """A client of a service that keeps its data in a folder, without network and without keys."""
    app = create_app(load_settings({"OUTLAY_DATA_DIR": str(folder / "data"), "OUTLAY_OFFLINE": "1"}))
    with closing(app.extensions["context"].store) as store:
        store.migrate()
        yield app.test_client()
