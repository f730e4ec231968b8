"""/programs/{id}/runs/{run}: a run beside its plan, over time, with what interrupted and changed it, and its events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from service.config import load_settings
from service.formats.headline import money
from tests.contract.doors import House, house
from tests.contract.tracking.test_report_http import HOSTILE, NAMES
from tests.contract.tracking.tracked_program import MAIN, PROGRAM, Body, told
from tests.contract.web.visitor import Visitor, text_of, words_of
from tests.support.service import served


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A service without keys."""
    with served(tmp_path_factory.mktemp("runs")) as made:
        yield made


@pytest.fixture(scope="module")
def program(client: FlaskClient) -> Body:
    """A program after a month, with two runs."""
    return told(client)


def runs_of(client: FlaskClient, program: Body) -> dict[str, str]:
    """Addresses of a program's runs by name, as its page has them."""
    found = re.findall(r'<a href="(/programs/[^"]+/runs/[^"]+)">([^<]*)</a>', text_of(client.get(f"/programs/{program['id']}")))
    return {name: address for address, name in found}


@pytest.fixture(scope="module")
def main(client: FlaskClient, program: Body) -> str:
    """Where the main run is."""
    return runs_of(client, program)["main"]


def test_a_run_stands_beside_its_plan(client: FlaskClient, program: Body, main: str) -> None:
    """The figures are those of the status; what is not known is said so."""
    status = client.get(f"/v1/track/programs/{program['id']}/status").get_json()
    run = next(each for each in status["runs"] if each["name"] == "main")
    words = words_of(client.get(main))
    assert f"cost {money(145000)} {money(run['spend']['usd'])} {money(run['forecast']['cost_usd']['p50'])}" in words
    assert "tokens 990B 560B" in words
    assert "start 1 Aug 2025 2 Aug 2025" in words
    assert "MFU not known" in words
    assert "last checkpoint 22 Aug 2025 00:00 UTC" in words
    assert "1 interruption, 6 hours down" in words
    assert "2025-08-13 02:24 hardware 6 h" in words


def test_its_charts_are_drawn_with_tables_behind(client: FlaskClient, main: str) -> None:
    """Speed, position and each metric; there is none of what has no data."""
    page = text_of(client.get(main))
    pictures = re.findall(r'<img src="([^"]+\.svg)"', page)
    assert [address.removeprefix(f"{main}/") for address in pictures] == ["speed.svg", "position.svg", "quality-0.svg"]
    for address in pictures:
        for theme in ("", "?theme=dark"):
            assert client.get(address + theme).content_type == "image/svg+xml"
        assert '"tooltip":{"field":"tip"' in client.get(f"{address}?format=vega").text
    assert "Speed and position as a table" in page
    assert "Evaluations as a table" in page
    for name in ("nothing", "quality-9"):
        assert client.get(f"{main}/{name}.svg").status_code == 404


def test_the_speed_is_that_of_the_events(client: FlaskClient, main: str) -> None:
    """20B tokens a day, but for the hours down; the median says so."""
    rates = [point["tokens_per_s"] for point in client.get(f"{main}?format=json").get_json()["points"][1:]]
    assert sorted(rates)[len(rates) // 2] == pytest.approx(20e9 / 86_400, rel=0.01)


def test_events_come_newest_first_and_by_pages(client: FlaskClient, main: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once; the last page has no link to older ones."""
    monkeypatch.setattr("service.web.pages.program_run.EVENTS_SHOWN", 10)
    total, seen, address = 0, 0, main
    for _ in range(20):
        text = text_of(client.get(address)).partition('id="events"')[2]
        seen += len(re.findall(r'<th role="rowheader" scope="row" class="machine">', text))
        older = re.search(r'href="([^"]+\?before=\d+)#events">Older', text)
        total += 1
        if older is None:
            break
        address = older[1]
    assert (seen, total) == (39, 4)
    newest = text_of(client.get(main)).partition('id="events"')[2]
    assert newest.index("storage") < newest.index("helpdesk")
    assert "two switches replaced" in text_of(client.get(f"{main}?before=39"))


def test_a_run_without_events_says_what_to_do(client: FlaskClient, program: Body) -> None:
    """Nothing is drawn."""
    made = client.post(f"/v1/track/programs/{program['id']}/runs", json={"name": "later"}).get_json()
    page = client.get(f"/programs/{program['id']}/runs/{made['id']}")
    assert f"/v1/track/runs/{made['id']}/events" in text_of(page)
    assert "<img" not in text_of(page)
    assert "not started" in words_of(page)
    assert client.get(f"/programs/{program['id']}/runs/{made['id']}/speed.svg").status_code == 404


def test_names_are_no_markup(client: FlaskClient) -> None:
    """Of runs, causes, metrics and notes."""
    for address in runs_of(client, told(client, NAMES)).values():
        page = client.get(address)
        assert "<script>alert" not in text_of(page)
    assert HOSTILE


def test_a_run_is_of_its_program(client: FlaskClient, program: Body, main: str) -> None:
    """Under another it is not found."""
    other = client.post("/v1/track/programs", json=PROGRAM).get_json()
    run = main.rpartition("/")[2]
    assert client.get(f"/programs/{other['id']}/runs/{run}").status_code == 404
    assert client.get(f"/programs/{program['id']}/runs/nothing").status_code == 404


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with keys."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("web") / "data"), "OUTLAY_OFFLINE": "1"})) as made:
        yield made


def test_another_team_finds_no_such_run(doors: House) -> None:
    """Nor its pictures."""
    program = doors.ask("ours", "POST", "/v1/track/programs", json=PROGRAM).get_json()
    run = doors.ask("ours", "POST", f"/v1/track/programs/{program['id']}/runs", json=MAIN).get_json()
    address = f"/programs/{program['id']}/runs/{run['id']}"
    reader, other = Visitor(doors), Visitor(doors)
    reader.sign_in("we may read")
    other.sign_in("theirs")
    assert reader.open(address).status_code == 200
    for path in ("", "?format=json", "/speed.svg"):
        assert other.open(address + path).status_code == 404, path


def test_a_run_is_tracked_from_the_page(client: FlaskClient) -> None:
    """Planned or not; a form that is sent twice makes one run; the run has the plan of its name."""
    plan = json.loads((Path(__file__).parents[3] / "examples" / "program-1b-64.json").read_text())
    plan["tiers"][1]["runs"][0]["name"] = "\u202escale check"
    made = client.post("/v1/track/programs", json={"name": "1B", "plan": plan}).get_json()
    page = text_of(client.get(f"/programs/{made['id']}"))
    form = next(each for each in re.findall(r"<form.*?</form>", page, re.DOTALL) if 'scale check"' in each)
    sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    answers = [client.post(f"/programs/{made['id']}/runs", data=sent, base_url="https://localhost") for _ in range(2)]
    assert {answer.status_code for answer in answers} == {303}
    other = client.post(f"/programs/{made['id']}/runs", data={"name": "unplanned"}, base_url="https://localhost")
    runs = client.get(f"/v1/track/programs/{made['id']}/runs").get_json()["items"]
    assert [(run["name"], run["tier"], run["planned"]["tokens"]) for run in runs] == [
        ("\u202escale check", "validation", 80_000_000_000),
        ("unplanned", None, None),
    ]
    assert [answers[0].headers["Location"], other.headers["Location"]] == [f"/programs/{made['id']}/runs/{run['id']}" for run in runs]
    assert 'scale check"' not in text_of(client.get(f"/programs/{made['id']}"))


def test_a_run_needs_a_name(client: FlaskClient, program: Body) -> None:
    """What is wrong is shown next to its field."""
    refused = client.post(f"/programs/{program['id']}/runs", data={"tier": "nothing"}, base_url="https://localhost")
    assert refused.status_code == 422
    assert "must be one of" in text_of(refused).partition('id="e-tier"')[2].partition("</p>")[0]
    assert 'id="e-name"' in text_of(refused)
