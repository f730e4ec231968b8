"""/programs/new: a program tracked from a page, by somebody without curl."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from service import create_app
from service.config import load_settings
from service.web.program_file import described_plan
from tests.contract.doors import House, house
from tests.contract.web.visitor import Visitor, text_of, words_of
from tests.support.service import served

HTTPS = "https://localhost"
PLAN = (Path(__file__).parents[3] / "examples" / "program-lora-node.json").read_text()
TOML = """
name = "from a table"
start = 2027-01-04
[[tiers]]
tier = "production"
[[tiers.runs]]
name = "main"
estimate = {model = {params = "1B"}, data = {tokens = "20B"}, hardware = {accelerator = "H100", count = 8}}
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A service without keys and without programs."""
    with served(tmp_path_factory.mktemp("new")) as made:
        yield made


def send(client: FlaskClient, do: str = "track", **fields: Any) -> Any:
    """The answer to the form."""
    return client.post("/programs/new", data={"do": do, **fields}, content_type="multipart/form-data", base_url=HTTPS)


def made(client: FlaskClient, answer: Any) -> dict[str, Any]:
    """The program that an answer leads to."""
    assert answer.status_code == 303, words_of(answer)
    found: dict[str, Any] = client.get(answer.headers["Location"].replace("/programs/", "/v1/track/programs/")).get_json()
    return found


def plan_in(page: Any) -> str:
    """The text of the plan's field."""
    return unescape(re.search(r"<textarea[^>]*>\n(.*?)</textarea>", text_of(page), re.DOTALL)[1])  # type: ignore[index]


def test_the_empty_list_says_how_to_begin(tmp_path: Path) -> None:
    """With an example that runs."""
    app = create_app(load_settings({"OUTLAY_DATA_DIR": str(tmp_path / "data"), "OUTLAY_OFFLINE": "1"}))
    with closing(app.extensions["context"].store) as store:
        store.migrate()
        page = app.test_client().get("/programs")
    assert 'href="/programs/new?from=example"' in text_of(page)
    assert 'href="/programs/new"' in text_of(page)


def test_the_example_is_tracked_as_it_stands(client: FlaskClient) -> None:
    """Looking at it says what it costs and makes nothing."""
    before = client.get("/v1/track/programs").get_json()
    text = plan_in(client.get("/programs/new?from=example"))
    seen = send(client, "preview", plan=text)
    answer = client.post("/v1/estimate/program", json=json.loads(text)).get_json()
    assert answer["summary"]["text"] in words_of(seen)
    assert '<img src="/programs/gates.svg?ending=prototype%2C' in text_of(seen)
    assert f"completed {answer['completion_probability']:.0%}" in words_of(seen)
    assert client.get("/v1/track/programs").get_json() == before
    assert made(client, send(client, plan=plan_in(seen)))["budget_usd"] == answer["total_usd"]["p50"]


def test_a_form_that_is_sent_twice_makes_one_program(client: FlaskClient) -> None:
    """The second leads to the same page."""
    form = re.search(r'name="form" value="([0-9a-f]+)"', text_of(client.get("/programs/new")))
    assert form is not None
    places = {send(client, plan=TOML, form=form[1]).headers["Location"] for _ in range(2)}
    assert len(places) == 1


@pytest.mark.parametrize(("name", "text"), [("plan.json", PLAN), ("plan.toml", TOML), ("bom.json", f"\ufeff{PLAN}")])
def test_a_plan_comes_as_a_file(client: FlaskClient, name: str, text: str) -> None:
    """JSON or TOML, in place of the text; what is stated beside it counts."""
    program = made(client, send(client, plan="{", file=(BytesIO(text.encode()), name), name=name, budget_usd="90,000"))
    assert (program["name"], program["budget_usd"]) == (name, 90000)
    assert program["planned_runs"]


def test_an_estimate_is_tracked(client: FlaskClient) -> None:
    """Its link has the run with dates and prices of the estimate."""
    query = "model=llama-3-8b&data.tokens=100B&hardware.accelerator=H100&hardware.count=64&price.usd_per_accelerator_hour=2"
    page = text_of(client.get(f"/estimate?{query}&schedule.start=2027-01-04&schedule.deadline=2027-03-01"))
    link = re.search(r'href="(/programs/new\?from=estimate[^"]*)"', page)
    assert link is not None
    program = made(client, send(client, plan=plan_in(client.get(unescape(link[1])))))
    assert (program["start"], program["deadline"]) == ("2027-01-04", "2027-03-01")
    assert program["planned_tokens"] == 100_000_000_000
    assert program["name"] == "llama-3-8b on 64 H100"


def test_a_program_is_made_by_hand(client: FlaskClient) -> None:
    """Of a name and a budget."""
    program = made(client, send(client, name="by hand", budget_usd="1000", planned_tokens="1T"))
    assert (program["name"], program["planned_tokens"], program["planned_runs"]) == ("by hand", 10**12, [])


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, "this field is required"),
        ({"plan": "{"}, "cannot be read as JSON"),
        ({"plan": "a = [" + "[" * 5000}, "too many levels"),
        ({"plan": "name = 1 = 2"}, "neither JSON nor TOML"),
        ({"plan": "[1]"}, "must be an object"),
        ({"plan": '{"name": "x"}'}, "plan.tiers"),
        ({"plan": '{"name": "<script>alert(1)</script>", "tiers": []}'}, "plan.tiers"),
        ({"name": "x", "deadline": "soon"}, "must be"),
        ({"name": "x", "start": "2027-02-01", "deadline": "2027-01-01"}, "lies before the start"),
        ({"file": (BytesIO(b"\xff\xfe\x00"), "plan.json")}, "text file in UTF-8"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_tracked(client: FlaskClient, fields: dict[str, Any], error: str) -> None:
    """What was typed stays."""
    before = len(client.get("/v1/track/programs?limit=100").get_json()["items"])
    refused = send(client, **fields)
    assert refused.status_code == 422
    assert error in words_of(refused)
    assert "<script>alert" not in text_of(refused)
    assert len(client.get("/v1/track/programs?limit=100").get_json()["items"]) == before


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with keys."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("web") / "data"), "OUTLAY_OFFLINE": "1"})) as made_house:
        yield made_house


def test_who_may_read_tracks_nothing(doors: House) -> None:
    """The form is for those who may write, with the token of their session."""
    reader, writer = Visitor(doors), Visitor(doors)
    reader.sign_in("we may read")
    writer.sign_in("ours")
    assert "needs a key with the scope write" in words_of(reader.open("/programs/new"))
    sent = {"name": "mine", "do": "track"}
    assert reader.send("/programs/new", sent | {"csrf_token": reader.form_token()}).status_code == 403
    assert writer.send("/programs/new", sent).status_code == 403
    assert writer.send("/programs/new", sent | {"csrf_token": writer.form_token()}).status_code == 303


def test_the_page_begins_with_what_somebody_has(client: FlaskClient) -> None:
    """A sentence, an example, a file, or name and budget; JSON opens when it is asked for, or where it is wrong."""
    text = text_of(client.get("/programs/new"))
    places = ('name="text"', 'href="/programs/new?from=example"', 'name="budget_usd"', 'type="file"', "<textarea")
    assert sorted(places, key=text.index) == list(places)
    assert '<details class="group"><summary>The plan as text' in text
    wrong = text_of(send(client, "preview", plan="{"))
    assert '<details class="group" open><summary>The plan as text' in wrong


def test_a_plan_is_said_in_words(client: FlaskClient) -> None:
    """Its name, tiers and runs; what is no plan says nothing."""
    assert "support-assistant 7B: 3 tiers, 3 runs." in words_of(client.get("/programs/new?from=example"))
    assert described_plan(TOML) == "from a table: 1 tier, 1 run"
    for text in ("", "{", "[]", '{"tiers": 5}', '{"tiers": [5]}', '{"name": "x"}'):
        assert described_plan(text) == ""
