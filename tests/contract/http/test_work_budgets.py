"""Work budgets: what one team makes the service do does not take it from the others, and each refusal says what was used up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service import create_app
from service.api.http.budgets import FileSlots, MemorySlots
from service.cache import COUNTERS_DIR
from service.config import Settings
from tests.contract.doors import House, house, is_problem

RUN = {"model": {"preset": "llama-2-7b"}, "data": {"tokens": "2T"}, "hardware": {"accelerator": "A100-80GB", "count": 1024}}
COSTLY = {"requests": [{**RUN, "levers": True}] * 3}
BATCH = "/v1/estimate/batch"


@contextmanager
def budgeted(settings: Settings, redis_url: str | None, **budgets: Any) -> Iterator[House]:
    """A house whose teams have these budgets."""
    with house(replace(settings, redis_url=redis_url, **budgets)) as made:
        yield made


@pytest.fixture(params=["memory", "redis"])
def redis_or_none(request: pytest.FixtureRequest) -> str | None:
    """Where is counted."""
    return request.getfixturevalue("redis_url") if request.param == "redis" else None


def refusal(answer: Any, name: str) -> dict[str, Any]:
    """The budget that a 429 names; its headers say when there is more."""
    body = is_problem(answer, 429)
    assert (body["type"], body["budget"]["name"]) == ("/problems/budget-used-up", name)
    budget: dict[str, Any] = body["budget"]
    assert re.search(rf'"{name}";r=0;t={answer.headers["Retry-After"]}$', answer.headers["RateLimit"])
    assert re.search(rf'"{name}";q={budget["limit"]};w={budget["window_s"]}$', answer.headers["RateLimit-Policy"])
    assert budget["used"] >= budget["limit"]
    assert 0 < int(answer.headers["Retry-After"]) <= budget["window_s"]
    return budget


def test_costly_batches_of_one_team_are_refused_once_its_time_is_used_up(settings: Settings, redis_or_none: str | None) -> None:
    """Eight batches of one read key: the first takes what there is, the others are refused; the other team is answered as before."""
    with budgeted(settings, redis_or_none, team_cpu="1/hour") as doors:
        batch = {"requests": [{**RUN, "levers": True}] * 15}
        answers = [doors.ask("we may read", "POST", BATCH, json=batch) for _ in range(8)]
        statuses = [answer.status_code for answer in answers]
        refused = statuses.index(429)
        assert statuses == refused * [200] + (8 - refused) * [429]
        budget = refusal(answers[-1], "cpu-seconds")
        assert (budget["limit"], budget["window_s"]) == (1, 3600)
        refusal(doors.ask("ours", "POST", "/v1/estimate", json=RUN), "cpu-seconds")
        assert doors.ask("theirs", "POST", BATCH, json=COSTLY).status_code == 200


def test_estimates_are_counted_one_by_one(settings: Settings, redis_or_none: str | None) -> None:
    """A batch counts as many as it holds; whoever has used them up may still read what is tracked."""
    with budgeted(settings, redis_or_none, team_estimates="4/hour") as doors:
        assert doors.ask("ours", "POST", "/v1/estimate", json=RUN).status_code == 200
        assert doors.ask("we may read", "POST", BATCH, json=COSTLY).status_code == 200
        assert refusal(doors.ask("ours", "POST", "/v1/estimate", json=RUN), "estimates")["used"] == 4
        assert doors.ask("ours", "GET", "/v1/track/programs").status_code == 200
        assert doors.ask("theirs", "POST", "/v1/estimate", json=RUN).status_code == 200


def test_rows_are_counted_one_by_one(settings: Settings, redis_or_none: str | None) -> None:
    """Events of a batch, and rows of an import."""
    with budgeted(settings, redis_or_none, team_rows="5/hour") as doors:
        program = doors.ask("ours", "POST", "/v1/track/programs", json={"name": "p"}).get_json()["id"]
        run = doors.ask("ours", "POST", f"/v1/track/programs/{program}/runs", json={"name": "r"}).get_json()["id"]
        events = [{"id": f"e{n}", "type": "progress", "at": "2026-11-20T00:00:00Z", "tokens_done": n} for n in range(5)]
        path = f"/v1/track/runs/{run}/events"
        assert doors.ask("ours", "POST", path, json={"events": events}).status_code == 200
        assert refusal(doors.ask("ours", "POST", path, json={"events": events}), "rows")["used"] == 5
        refusal(doors.ask("ours", "POST", "/v1/track/imports?kind=focus", data=b"x", content_type="text/csv"), "rows")
        assert doors.ask("ours", "POST", "/v1/estimate", json=RUN).status_code == 200


def test_costly_requests_of_a_team_run_so_many_at_a_time(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the machine's other processes count; each gives its place back, also where it failed."""
    monkeypatch.setenv(COUNTERS_DIR, str(tmp_path))
    with budgeted(settings, None, team_concurrency=2) as doors:
        team = doors.context.store.keys()[0].team
        other = FileSlots(tmp_path)
        releases = [other.take(team, 2) for _ in range(2)]
        held = is_problem(doors.ask("ours", "POST", BATCH, json=COSTLY), 429)
        assert held["budget"] == {"name": "concurrent-requests", "used": 2, "limit": 2, "window_s": None}
        assert doors.ask("ours", "POST", "/v1/estimate", json=RUN).status_code == 200
        assert doors.ask("theirs", "POST", BATCH, json=COSTLY).status_code == 200
        for release in releases:
            assert release is not None
            release()
        second = House(create_app(doors.context.settings), doors.tokens)
        statuses = [house.ask("ours", "POST", BATCH, json=body).status_code for body in ({}, COSTLY) for house in (doors, second)]
        assert statuses == [422, 422, 200, 200]


@pytest.mark.parametrize("make", [FileSlots, lambda _: MemorySlots()])
def test_places_are_taken_and_given_back(tmp_path: Path, make: Callable[[Path], FileSlots | MemorySlots]) -> None:
    """No more than there are, each name for itself."""
    slots = make(tmp_path)
    first, second, none = (slots.take("team", 2) for _ in range(3))
    assert first is not None
    assert second is not None
    assert none is None
    assert slots.take("another", 1) is not None
    assert slots.count_taken("team", 2) == 2
    first()
    assert slots.count_taken("team", 2) == 1
    assert slots.take("team", 2) is not None
    assert slots.take("team", 2) is None


def standing(doors: House, key: str) -> dict[str, dict[str, Any]]:
    """How the budgets of a key and its team stand, by name."""
    answer = doors.ask(key, "GET", "/v1/usage")
    assert answer.status_code == 200, answer.text
    return {budget.pop("name"): budget for budget in answer.get_json()["budgets"]}


def test_a_team_sees_the_use_of_its_budgets(settings: Settings, redis_or_none: str | None) -> None:
    """Under the names of the refusals, with any of its keys and before it is refused; another team sees its own."""
    with budgeted(settings, redis_or_none, team_estimates="100/hour", team_cpu="50/hour", team_stored_rows=10) as doors:
        for _ in range(2):
            doors.ask("ours", "POST", BATCH, json=COSTLY)
        program = doors.ask("ours", "POST", "/v1/track/programs", json={"name": "p"}).get_json()["id"]
        run = doors.ask("ours", "POST", f"/v1/track/programs/{program}/runs", json={"name": "r"}).get_json()["id"]
        events = [{"id": f"e{n}", "type": "progress", "at": "2026-11-20T00:00:00Z", "tokens_done": n} for n in range(4)]
        doors.ask("ours", "POST", f"/v1/track/runs/{run}/events", json={"events": events})
        ours = standing(doors, "we may read")
        work = ["requests", "cpu-seconds", "estimates", "rows", "concurrent-requests"]
        assert list(ours) == [*work, "stored-rows", "stored-bytes"]
        assert ours["requests"]["used"] == 1  # of this key
        assert (ours["estimates"]["used"], ours["estimates"]["limit"], ours["estimates"]["window_s"]) == (6, 100, 3600)
        assert 0 < ours["cpu-seconds"]["used"] < 50
        assert 0 < ours["estimates"]["resets_in_s"] <= 3600
        assert (ours["rows"]["used"], ours["stored-rows"]["used"], ours["stored-rows"]["limit"]) == (4, 4, 10)
        assert ours["stored-rows"]["window_s"] is ours["stored-rows"]["resets_in_s"] is None
        theirs = standing(doors, "theirs")
        assert [theirs[name]["used"] for name in ("estimates", "rows", "stored-rows", "stored-bytes")] == [0, 0, 0, 0]


def test_use_is_told_where_a_budget_is_used_up(settings: Settings) -> None:
    """Who is refused elsewhere sees why and for how long."""
    with budgeted(settings, None, team_cpu="1/hour", team_concurrency=2) as doors:
        while doors.ask("ours", "POST", BATCH, json={"requests": [{**RUN, "levers": True}] * 15}).status_code == 200:
            pass
        assert standing(doors, "ours")["cpu-seconds"]["used"] >= 1
        take = doors.app.extensions["slots"].take
        release = take(doors.context.store.keys()[0].team, 2)
        assert standing(doors, "ours")["concurrent-requests"]["used"] == 1
        release()
        assert standing(doors, "ours")["concurrent-requests"]["used"] == 0


def test_a_service_without_keys_tells_of_its_storage(settings: Settings) -> None:
    """The one thing that is limited there."""
    app = create_app(settings)
    app.extensions["context"].store.migrate()
    usage = app.test_client().get("/v1/usage").get_json()
    assert (usage["team"], [budget["name"] for budget in usage["budgets"]]) == ("default", ["stored-rows", "stored-bytes"])


def test_a_service_without_keys_has_no_budgets(settings: Settings) -> None:
    """Who works alone meets none."""
    app = create_app(replace(settings, team_estimates="1/hour", team_rows="1/hour", team_cpu="1/hour", team_concurrency=1))
    app.extensions["context"].store.migrate()
    answers = [app.test_client().post(BATCH, json=COSTLY) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
