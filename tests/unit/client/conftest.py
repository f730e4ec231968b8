"""A service that listens, and trackers that try again at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from outlay_client import Tracker, sender, sending
from tests.unit.client.service import RUN, Service
from tests.unit.providers.misbehaving_server import listening

PATIENCE_S = 300.0
"""No healthy run of a test comes near."""
Open = Callable[..., Tracker]


@pytest.fixture
def service() -> Iterator[Service]:
    """The service, listening and well."""
    with listening(Service()) as server:
        assert isinstance(server, Service)
        yield server


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are not waited for, pauses are short, and no rank is inherited."""
    monkeypatch.setattr(sender, "BATCH_S", 0.0)
    monkeypatch.setattr(sender, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(sender, "MAX_PAUSE_S", 0.02)
    monkeypatch.setattr(sender, "CLOSING_S", PATIENCE_S)
    monkeypatch.setattr(sending, "TIMEOUT_S", 60.0)
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "NODE_RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tracker(service: Service, tmp_path: Path) -> Iterator[Open]:
    """Opens trackers of the run on the service, closed at the end."""
    opened = []

    def open_tracker(url: str = service.url, **options: Any) -> Tracker:
        made = Tracker(url, RUN, **{"buffer_dir": tmp_path / "buffer", "launch": False, **options})
        opened.append(made)
        return made

    yield open_tracker
    for each in opened:
        each.close(0.0)
