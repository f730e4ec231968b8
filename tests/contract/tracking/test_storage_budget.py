"""Storage budgets: a client that writes without end fills its team's budget, not the disk; the others go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from service.cache import MemoryCache
from service.config import Settings
from service.usecases import storage
from tests.contract.doors import House, house, is_problem

RUN = {"model": {"preset": "llama-2-7b"}, "data": {"tokens": "2T"}, "hardware": {"accelerator": "A100-80GB", "count": 1024}}


@pytest.fixture
def doors(settings: Settings, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A house on each kind of database whose teams store little; every count is made anew."""
    monkeypatch.setattr(storage, "FRESH_S", -1.0)
    with house(replace(settings, database_url=url, team_stored_rows=25, team_stored_bytes=100_000)) as made:
        yield made


def new_run(doors: House, key: str) -> str:
    """The address of a new run's events."""
    program = doors.ask(key, "POST", "/v1/track/programs", json={"name": "p"}).get_json()["id"]
    run = doors.ask(key, "POST", f"/v1/track/programs/{program}/runs", json={"name": "r"}).get_json()["id"]
    return f"/v1/track/runs/{run}/events"


def events(first: int, count: int) -> dict[str, Any]:
    """A batch of new events."""
    at = "2026-11-20T00:00:00Z"
    return {"events": [{"id": f"e{n}", "type": "progress", "at": at, "tokens_done": n} for n in range(first, first + count)]}


def test_a_team_that_has_stored_all_it_may_is_refused_and_told(doors: House) -> None:
    """With the budget, its use, and what to do; nothing is half-written, and reads and other teams go on."""
    path = new_run(doors, "ours")
    statuses = [doors.ask("ours", "POST", path, json=events(10 * n, 10)).status_code for n in range(4)]
    assert statuses == [200, 200, 200, 507]
    body = is_problem(doors.ask("ours", "POST", path, json=events(90, 1)), 507)
    assert (body["type"], body["budget"]) == (
        "/problems/storage-budget-used-up",
        {"name": "stored-rows", "used": 30, "limit": 25, "window_s": None},
    )
    assert "OUTLAY_TEAM_STORED_ROWS" in body["detail"]
    assert len(doors.ask("ours", "GET", f"{path}?limit=100").get_json()["items"]) == 30
    assert doors.ask("theirs", "POST", new_run(doors, "theirs"), json=events(0, 10)).status_code == 200


def test_repeats_take_no_storage(doors: House) -> None:
    """What is sent again is stored once, and counted once."""
    path = new_run(doors, "ours")
    assert [doors.ask("ours", "POST", path, json=events(0, 20)).status_code for _ in range(5)] == [200] * 5
    team = doors.context.store.keys()[0].team
    use = doors.context.store.team_storage(team)
    assert use.rows == 20
    assert 20 * 100 < use.bytes < 20 * 1000


def test_kept_results_count_in_bytes_until_they_are_deleted(doors: House) -> None:
    """Keeping is refused like writing, and goes on once something was deleted."""
    kept: list[str] = []
    while (answer := doors.ask("ours", "POST", "/v1/results", json={"kind": "estimate", "request": RUN})).status_code == 201:
        kept.append(answer.get_json()["id"])
        assert len(kept) < 100
    assert is_problem(answer, 507)["budget"]["name"] == "stored-bytes"
    assert is_problem(doors.ask("ours", "POST", new_run(doors, "ours"), json=events(0, 1)), 507)["budget"]["name"] == "stored-bytes"
    for result in kept:
        assert doors.ask("ours", "DELETE", f"/v1/results/{result}").status_code == 204
    assert doors.ask("ours", "POST", "/v1/results", json={"kind": "estimate", "request": RUN}).status_code == 201


def test_a_count_is_made_anew_after_a_while(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at every batch: a team may exceed its budget by what it sends in that time."""
    now = [0.0]
    with house(replace(settings, team_stored_rows=5)) as doors:
        context = replace(doors.context, cache=MemoryCache(lambda: now[0]))
        counted: list[str] = []
        team_storage = context.store.team_storage
        monkeypatch.setattr(context.store, "team_storage", lambda team: counted.append(team) or team_storage(team), raising=True)
        for _ in range(3):
            storage.check_storage(context, "t")
        assert counted == ["t"]
        now[0] += storage.FRESH_S
        storage.check_storage(context, "t")
        assert counted == ["t", "t"]
