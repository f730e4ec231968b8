"""Two teams at once, with the same ids: each gets its own, and nothing of the other's can be read, guessed or altered."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from service.config import load_settings
from tests.contract.doors import House, house

TEAMS = ("ours", "theirs")
IDS = 60


@pytest.fixture(params=["sqlite", "postgresql"])
def doors(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """The service with the keys of two teams, on each kind of database."""
    env = {"OUTLAY_DATA_DIR": str(tmp_path / "data"), "OUTLAY_OFFLINE": "1", "OUTLAY_RATE_LIMIT": "1000000/hour"}
    if request.param == "postgresql":
        env["OUTLAY_DATABASE_URL"] = str(request.getfixturevalue("postgres_url"))
    with house(load_settings(env)) as made:
        yield made


def test_the_same_ids_of_two_teams_are_different_things(doors: House) -> None:
    """Same Idempotency-Key, same names, same event ids, eight threads: each team has its events once, and none of the other's."""
    made = {team: _made(doors, team) for team in TEAMS}
    assert made["ours"] != made["theirs"]

    def hammer(seed: int) -> set[int]:
        team = TEAMS[seed % 2]
        run, other = made[team], made[TEAMS[1 - seed % 2]]
        picked = random.Random(seed).sample(range(IDS), 20)
        own = doors.ask(team, "POST", f"/v1/track/runs/{run}/events", json={"events": [_event(team, number) for number in picked]})
        foreign = doors.ask(team, "POST", f"/v1/track/runs/{other}/events", json={"events": [_event(team, number) for number in picked]})
        read = doors.ask(team, "GET", f"/v1/track/runs/{other}/events")
        assert own.status_code == 200, own.text
        assert not own.get_json()["rejected"]
        return {foreign.status_code, read.status_code}

    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(hammer, range(80))) == {404}
    for team in TEAMS:
        kept = doors.ask(team, "GET", f"/v1/track/runs/{made[team]}/events?limit=1000").get_json()["items"]
        assert sorted(one["id"] for one in kept) == sorted(f"step-{number}" for number in range(IDS))
        assert {one["accelerator_hours"] for one in kept} == {float(TEAMS.index(team))}
        assert len(doors.ask(team, "GET", "/v1/track/programs").get_json()["items"]) == 1


def _made(doors: House, team: str) -> str:
    """A run of a new program of the team, asked for four times under one key."""
    asked = [doors.ask(team, "POST", "/v1/track/programs", json={"name": "7B"}, headers={"Idempotency-Key": "same"}) for _ in range(4)]
    (program,) = {answer.get_json()["id"] for answer in asked}
    return str(doors.ask(team, "POST", f"/v1/track/programs/{program}/runs", json={"name": "main"}).get_json()["id"])


def _event(team: str, number: int) -> dict[str, Any]:
    told = {"id": f"step-{number}", "type": "progress", "at": "2026-02-01T00:00:00Z", "step": number}
    return told | {"accelerator_hours": float(TEAMS.index(team))}
