"""What tests of scaling share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from service.config import load_settings
from service.container import build_context
from service.context import AppContext


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppContext]:
    """A context with the shipped prices."""
    made = build_context(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("scaling")), "OUTLAY_OFFLINE": "1"}))
    with closing(made.store):
        made.store.migrate()
        yield made
