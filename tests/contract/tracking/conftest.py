"""A service of each module's own: runs that were closed teach later estimates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from tests.support.service import served


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A client of the service on an empty database, with the shipped prices."""
    with served(tmp_path_factory.mktemp("tracked")) as made:
        yield made
