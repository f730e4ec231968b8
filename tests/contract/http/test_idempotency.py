"""`Idempotency-Key`: whoever asks twice for the same thing gets it once, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from service.config import Settings
from tests.contract.doors import House, house, is_problem

PROGRAMS = "/v1/track/programs"
BODY = {"name": "a program", "budget_usd": 1000}
MANY, AT_ONCE = 50, 10


@pytest.fixture
def doors(settings: Settings) -> Iterator[House]:
    """A house of the test's own."""
    with house(settings) as made:
        yield made


def ask(doors: House, key: str = "k-1", body: Any = BODY, who: str = "ours", path: str = PROGRAMS) -> Any:
    """The answer to a creation under that Idempotency-Key."""
    return doors.ask(who, "POST", path, json=body, headers={"Idempotency-Key": key})


def programs(doors: House, who: str = "ours") -> int:
    """How many the team has."""
    return len(doors.ask(who, "GET", PROGRAMS).get_json()["items"])


def test_the_same_request_again_gets_the_same_answer(doors: House) -> None:
    """Status, body, place and version; one program is made."""
    first, again = ask(doors), ask(doors)
    assert first.status_code == again.status_code == 201
    assert first.get_json() == again.get_json()
    assert first.headers["Location"] == again.headers["Location"]
    assert first.headers["ETag"] == again.headers["ETag"]
    assert programs(doors) == 1


def test_another_request_under_the_same_key_is_refused(doors: House) -> None:
    """Another body or another address: 422, and nothing is made."""
    program = ask(doors).get_json()["id"]
    for answer in (ask(doors, body=BODY | {"budget_usd": 2}), ask(doors, path=f"{PROGRAMS}/{program}/runs", body={"name": "a program"})):
        assert is_problem(answer, 422)["type"] == "/problems/idempotency-key-reused"
    assert programs(doors) == 1
    assert doors.ask("ours", "GET", f"{PROGRAMS}/{program}/runs").get_json()["items"] == []


def test_quotes_are_the_drafts_and_may_be_left_out(doors: House) -> None:
    """A structured-field string is the same key as its content."""
    assert ask(doors, '"k-1"').get_json() == ask(doors, "k-1").get_json()
    assert programs(doors) == 1


def test_teams_do_not_meet_under_a_key(doors: House) -> None:
    """The other team makes its own program, with the same key and the same body."""
    assert ask(doors).get_json()["id"] != ask(doors, who="theirs").get_json()["id"]
    assert (programs(doors), programs(doors, "theirs")) == (1, 1)


@pytest.mark.parametrize("key", ["", " ", '"', '""', '"a', "a b", "é", "x" * 201, "a\x00", "a,b"])
def test_what_can_be_no_key_is_refused(doors: House, key: str) -> None:
    """400, and nothing is made."""
    answer = doors.ask("ours", "POST", PROGRAMS, json=BODY, environ_overrides={"HTTP_IDEMPOTENCY_KEY": key})
    assert "Idempotency-Key" in is_problem(answer, 400)["detail"]
    assert programs(doors) == 0


def test_a_request_that_failed_has_used_no_key(doors: House) -> None:
    """What is corrected goes under the same key."""
    is_problem(ask(doors, body={"name": "a program", "start": "2027-02-01", "deadline": "2027-01-01"}), 422)
    assert ask(doors).status_code == 201


def test_fifty_at_once_make_one(doors: House) -> None:
    """Whoever comes while the first is being answered waits for it and gets its answer."""
    barrier = Barrier(AT_ONCE)

    def once(number: int) -> Any:
        if number < AT_ONCE:
            barrier.wait()
        return ask(doors)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(once, range(MANY)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.get_data() for answer in answers}) == 1
    assert programs(doors) == 1
