"""The plan's tab of a program without a plan: one from a sentence, a file, a text or an example, seen and changed before it is saved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from flask.testing import FlaskClient

from service.config import load_settings
from service.web.pages.program_first_plan import AN_ANSWER, NO_RUN
from service.web.pages.program_first_plan import NO_PLAN as NOTHING_SENT
from tests.contract.doors import House, house
from tests.contract.tracking.tracked_program import PROGRAM, Body, made
from tests.contract.web.test_program_new_page import TOML
from tests.contract.web.test_program_plan_page import PLAN, form_of, now, send
from tests.contract.web.visitor import Visitor, text_of, words_of
from tests.support.service import served

HTTPS = "https://localhost"
OFFER = 'id="first-plan"'
RUN = "llama-3-8b 1T on 256 h100"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A service without keys, whose programs are those of this module."""
    with served(tmp_path_factory.mktemp("first")) as found:
        yield found


@pytest.fixture
def program(client: FlaskClient) -> Body:
    """A program begun by hand, with a budget and dates."""
    stated = {"budget_usd": 2e6, "planned_tokens": 10**12, "start": "2030-10-01", "deadline": "2031-05-01"}
    return made(client, "/v1/track/programs", {"name": "by hand"} | stated)


def give(client: FlaskClient, program: Body, **fields: Any) -> Any:
    """The answer to the form of a first plan."""
    return client.post(f"/programs/{program['id']}/plan/first", data=fields, content_type="multipart/form-data", base_url=HTTPS)


def test_a_sentence_becomes_the_plan(client: FlaskClient, program: Body) -> None:
    """Seen with what it changes, then saved as it was seen; the program's own budget and dates stay."""
    address = f"/programs/{program['id']}?tab=plan"
    assert OFFER in text_of(client.get(address))
    seen = give(client, program, text=RUN)
    assert seen.status_code == 200
    assert "not known before" in words_of(seen)
    assert "production, main, hardware: count - 256 added" in words_of(seen)
    assert OFFER not in text_of(seen)
    assert now(client, program) == program
    assert send(client, program, form_of(seen), "save").status_code == 303
    body = now(client, program)
    assert [(run["tier"], run["name"]) for run in body["planned_runs"]] == [("production", "main")]
    assert {name: body[name] for name in ("name", "budget_usd", "start", "deadline")} == {
        name: program[name] for name in ("name", "budget_usd", "start", "deadline")
    }
    assert OFFER not in text_of(client.get(address))
    assert "not known before" in words_of(client.get(f"/programs/{program['id']}/versions"))


def test_the_plan_is_changed_before_it_is_saved(client: FlaskClient, program: Body) -> None:
    """In the fields that every plan has."""
    seen = give(client, program, do="example")
    changed = send(client, program, form_of(seen) | {"plan.tiers.0.runs.0.name": "first sweep"})
    assert send(client, program, form_of(changed), "save").status_code == 303
    assert now(client, program)["planned_runs"][0]["name"] == "first sweep"


@pytest.mark.parametrize("sent", [{"plan": TOML}, {"file": (BytesIO(TOML.encode()), "plan.toml")}])
def test_a_plan_of_ones_own_is_taken(client: FlaskClient, sent: Body) -> None:
    """Its start too, where the program has none."""
    begun = made(client, "/v1/track/programs", {"name": "by hand"})
    seen = give(client, begun, **sent)
    assert send(client, begun, form_of(seen), "save").status_code == 303
    body = now(client, begun)
    assert (body["name"], body["start"], body["planned_tokens"]) == ("by hand", "2027-01-04", 20_000_000_000)


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ({}, NOTHING_SENT),
        ({"text": "hello"}, NO_RUN),
        ({"text": "h100 price"}, NO_RUN),
        ({"text": "llama-3-8b on 256 h100"}, "on how many tokens"),
        ({"plan": "x"}, "is neither JSON nor TOML"),
        ({"plan": '{"total_usd": 1}'}, AN_ANSWER),
        ({"plan": '{"name": "x"}'}, "tiers : this field is required"),
        ({"plan": json.dumps(PLAN).replace("H100", "H1000")}, "unknown accelerator 'H1000'"),
        ({"text": "<script>alert(1)</script>"}, NO_RUN),
    ],
)
def test_what_is_wrong_is_said_and_nothing_changes(client: FlaskClient, program: Body, sent: Body, error: str) -> None:
    """With what was sent still in the form."""
    answer = give(client, program, **sent)
    assert answer.status_code == 422
    assert error in words_of(answer)
    assert "<script>alert" not in text_of(answer)
    assert now(client, program) == program


def test_a_program_with_a_plan_has_no_first_one(client: FlaskClient) -> None:
    """Nor has one that is closed; the form of such a page leads to its plan."""
    planned = made(client, "/v1/track/programs", {"name": "1B", "plan": PLAN})
    closed = made(client, "/v1/track/programs", {"name": "by hand"})
    client.patch(f"/v1/track/programs/{closed['id']}", json={"state": "closed"}, headers={"If-Match": "*"})
    for each in (planned, closed):
        assert OFFER not in text_of(client.get(f"/programs/{each['id']}?tab=plan"))
        answer = give(client, each, text=RUN)
        assert (answer.status_code, answer.headers["Location"]) == (303, f"/programs/{each['id']}?tab=plan")


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with keys."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("web") / "data"), "OUTLAY_OFFLINE": "1"})) as found:
        yield found


def test_who_may_read_gives_no_plan(doors: House) -> None:
    """Neither does another team."""
    begun = doors.ask("ours", "POST", "/v1/track/programs", json=PROGRAM).get_json()
    for key, status in (("we may read", 403), ("theirs", 404)):
        visitor = Visitor(doors)
        visitor.sign_in(key)
        if status == 403:
            assert OFFER not in text_of(visitor.open(f"/programs/{begun['id']}?tab=plan"))
        fields = {"text": RUN, "csrf_token": visitor.form_token()}
        assert visitor.send(f"/programs/{begun['id']}/plan/first", fields).status_code == status
