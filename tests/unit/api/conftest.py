"""A client of the shell."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from tests.support.probe_app import build


@pytest.fixture
def client() -> FlaskClient:
    """A client of the HTTP shell with the probe's addresses."""
    return build().test_client()
