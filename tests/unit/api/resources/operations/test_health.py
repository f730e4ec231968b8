"""Liveness and readiness with parts away or hung."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from service.api.resources.operations import health
from service.usecases.diagnosis import DISK_FULL_BYTES
from tests.support.probe_app import build
from tests.support.servers import wait_for


@pytest.fixture
def hung() -> Iterator[SimpleNamespace]:
    """A part that does not answer before the test is over, and counts who waits for it."""
    released, waiting = threading.Event(), list[int]()

    def ping(*_: float) -> bool:
        waiting.append(1)
        return released.wait()

    yield SimpleNamespace(ping=ping, last_beat=ping, waiting=waiting)
    released.set()


def away(*_: float) -> NoReturn:
    raise ConnectionError("refused")


def ready(**parts: Any) -> Any:
    return build(**parts).test_client().get("/readyz")


def test_ready_when_all_is_well() -> None:
    """Every part is named."""
    answer = ready()
    assert answer.status_code == 200
    assert answer.json == {"status": "ok", "degraded": [], "checks": dict.fromkeys(("database", "cache", "queue", "worker", "disk"), "ok")}


def test_only_a_database_that_is_away_makes_it_unready() -> None:
    """A problem with Retry-After, and the other parts' state still told."""
    answer = ready(store=SimpleNamespace(ping=away, last_beat=away))
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert answer.json["checks"]["database"] == "away"
    assert "refused" not in answer.get_data(as_text=True)


def test_what_else_is_away_is_named() -> None:
    """A cache that says no, a queue that raises and a silent worker are degraded, not unready."""
    silent = SimpleNamespace(ping=lambda _timeout_s: True, last_beat=lambda: datetime.now(UTC) - timedelta(minutes=5))
    answer = ready(store=silent, cache=SimpleNamespace(ping=lambda: False), queue=SimpleNamespace(ping=away))
    assert answer.status_code == 200
    assert answer.json["status"] == "degraded"
    assert answer.json["degraded"] == ["cache", "queue", "worker"]


def test_a_disk_that_is_nearly_full_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is full; requests are answered all the same."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=DISK_FULL_BYTES - 1, total=10**12))
    answer = ready()
    assert (answer.status_code, answer.json["degraded"]) == (200, ["disk"])


def test_a_service_without_any_worker_yet_is_degraded() -> None:
    """No heartbeat ever is as bad as an old one."""
    assert ready(store=SimpleNamespace(ping=lambda _timeout_s: True, last_beat=lambda: None)).json["degraded"] == ["worker"]


def test_hung_parts_neither_hold_the_answer_nor_pile_up(hung: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readiness answers while everything hangs, and asks a hung part once however often it is polled."""
    monkeypatch.setattr(health, "DEADLINE_S", 0.2)
    client = build(store=hung, cache=hung, queue=hung).test_client()
    for _ in range(3):
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert {state for name, state in answer.json["checks"].items() if name != "disk"} == {"hung"}
    wait_for(lambda: len(hung.waiting) >= 4, "every part to be asked")
    assert len(hung.waiting) == 4


def test_liveness_touches_nothing(hung: SimpleNamespace) -> None:
    """The process answers whatever hangs."""
    client = build(store=hung, cache=hung, queue=hung).test_client()
    assert client.get("/healthz").json == {"status": "ok"}
    assert not hung.waiting
