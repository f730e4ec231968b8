"""/programs and /programs/{id}: how tracked programs stand, what they are held to, and where their gates are decided."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from service.config import load_settings
from service.formats.documents.render import REPORT_FORMATS
from service.formats.documents.report.charts import report_charts
from service.formats.headline import money
from service.web.program_tabs import TABS
from tests.contract.doors import House, house
from tests.contract.tracking.test_gates_http import run_of, tracked
from tests.contract.tracking.test_report_http import HOSTILE, NAMES
from tests.contract.tracking.tracked_program import MAIN, PROGRAM, Body, told
from tests.contract.web.visitor import Visitor, text_of, words_of
from tests.support.service import served

HTTPS = "https://localhost"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A service without keys, whose programs are those of this module."""
    with served(tmp_path_factory.mktemp("programs")) as made:
        yield made


@pytest.fixture(scope="module")
def program(client: FlaskClient) -> Body:
    """A program after a month, whose half-spend gate is due."""
    return told(client)


@pytest.fixture(scope="module")
def staged(client: FlaskClient) -> Body:
    """A program tracked from a plan, whose gate after validation is due."""
    made = tracked(client)
    run_of(client, made, "validation", "scale check", 1.0, metric=0.6)
    return made


def report_of(client: FlaskClient, program: Body) -> Body:
    """The report over the API."""
    found: Body = client.get(f"/v1/track/programs/{program['id']}/report?format=json").get_json()
    return found


def form_of(page: Any, gate: str) -> dict[str, str]:
    """What the form of a gate sends before anything is chosen."""
    form = next(each for each in re.findall(r"<form action=.*?</form>", text_of(page), re.DOTALL) if f'value="{gate}"' in each)
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
    options = re.findall(r'<option value="([^"]+)"( selected)?', form)
    return hidden | {"run": next((value for value, selected in options if selected), options[0][0])}


def send(client: FlaskClient, program: Body, fields: dict[str, str]) -> Any:
    """The answer to a decision."""
    return client.post(f"/programs/{program['id']}/decisions", data=fields, base_url=HTTPS)


def test_the_list_says_how_each_program_stands(client: FlaskClient, program: Body, staged: Body) -> None:
    """Verdict, sentence, spend of budget and next gate, each with a link; the first page has them too."""
    page, home = client.get("/programs"), client.get("/")
    for each in (program, staged):
        report = report_of(client, each)
        assert report["headline"]["text"] in words_of(page)
        for shown in (page, home):
            assert f'href="/programs/{each["id"]}"' in text_of(shown)
            assert money(report["status"]["spend"]["usd"]) in words_of(shown)
            assert report["headline"]["health"].replace("_", " ") in words_of(shown)
    assert "Half-spend gate is due" in words_of(page)
    assert "Gate after prototype is due" in words_of(page)


def test_a_program_off_its_track_says_why_at_once(client: FlaskClient, program: Body) -> None:
    """By how much, on the list and on the first page, which draws spend, forecast and budget too."""
    said = report_of(client, program)["headline"]
    reason = f"off track: {money(said['over_usd'])} over the budget, {said['late_days']:,.0f} days late"
    for page in (client.get("/programs"), client.get("/")):
        assert reason in words_of(page)
        assert re.search(r'<svg class="range"[^>]*aria-label="\$92,700 spent, forecast [^"]+, budget \$150,000"', text_of(page))


def test_warnings_do_not_repeat_the_sentence(client: FlaskClient, program: Body) -> None:
    """The forecast beyond budget and deadline is said once; the others follow the figures, three of them at once."""
    page, report = text_of(client.get(f"/programs/{program['id']}")), report_of(client, program)
    assert any(warning.startswith("the forecast cost is") for warning in report["status"]["warnings"])
    assert "The forecast cost is" not in page
    assert '<p class="warning">the forecast cost' not in page
    assert '<p class="warning">the deadline, ' not in page
    assert 0 < page.partition("<details")[0].count('class="warning"') <= 3
    assert page.index('<dl class="figures">') < page.index('class="warning"')


def test_gates_come_in_the_order_of_what_is_to_do(client: FlaskClient, staged: Body) -> None:
    """Due ones, then those to come, then decided ones."""
    gates = re.findall(r"<h3>([^<]*gate[^<]*): (due|not due|decided)", text_of(client.get(f"/programs/{staged['id']}")), re.IGNORECASE)
    order = [("due", "not due", "decided").index(state) for _, state in gates]
    assert len(order) > 2
    assert order == sorted(order)


def test_older_programs_are_a_link_away(client: FlaskClient, program: Body, staged: Body, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until there are none."""
    monkeypatch.setattr("service.web.pages.programs.MOST_LISTED", 1)
    seen, address = [], "/programs"
    for _ in range(10):
        text = text_of(client.get(address))
        seen += re.findall(r'<th role="rowheader" scope="row"><a href="/programs/([^"]+)"', text)
        older = re.search(r'href="(/programs\?before=\d+)"', text)
        if older is None:
            break
        address = older[1]
    assert {program["id"], staged["id"]} <= set(seen)
    assert len(seen) == len(set(seen))


def test_a_program_begins_with_its_verdict(client: FlaskClient, program: Body) -> None:
    """In words, then the sentence, what it notes, and the figures of the report."""
    report, text = report_of(client, program), words_of(client.get(f"/programs/{program['id']}"))
    assert text.index(report["headline"]["health"].replace("_", " ")) < text.index(report["headline"]["text"])
    for note in (*report["headline"]["notes"], *report["status"]["gate"]["reasons"]):
        assert note in text
    assert f"Spent {money(report['status']['spend']['usd'])} 62% of $150,000" in text
    assert text.index("From the budget to the forecast") < text.index("Why the cost moved") < text.index("Spend by month")
    assert f'href="/programs/{program["id"]}/report.xlsx"' in text_of(client.get(f"/programs/{program['id']}"))
    twin = client.get(f"/programs/{program['id']}?format=json").get_json()
    assert twin["headline"] == report["headline"]


@pytest.mark.parametrize("which", ["program", "staged"])
def test_every_chart_of_the_report_is_drawn_on_a_tab(client: FlaskClient, which: str, request: pytest.FixtureRequest) -> None:
    """Each has a table behind it and an address that draws it; there is none for what has no data."""
    made = request.getfixturevalue(which)
    addresses: list[str] = []
    for tab in TABS:
        page = client.get(f"/programs/{made['id']}?tab={tab}")
        assert page.status_code == 200
        pictures = re.findall(r'<img src="([^"]+\.svg)"', text_of(page))
        assert text_of(page).count("<table ") >= len(pictures)
        addresses += pictures
    assert len(addresses) == sum(len(charts) for charts in report_charts(report_of(client, made)).values())
    for address in addresses:
        for theme in ("", "?theme=dark"):
            drawn = client.get(address + theme)
            assert (drawn.status_code, drawn.content_type) == (200, "image/svg+xml"), address
        assert '"tooltip":{"field":"tip"' in client.get(f"{address}?format=vega").text, address
    for name in ("nothing", "quality-9", "quality-x"):
        assert client.get(f"/programs/{made['id']}/{name}.svg").status_code == 404


def test_the_plan_says_where_the_program_may_end(client: FlaskClient, staged: Body) -> None:
    """As a picture whose figures stand in its address, with the same figures as a table."""
    page = client.get(f"/programs/{staged['id']}?tab=plan")
    address = re.search(r'<img src="(/programs/gates\.svg\?[^"]+)"', text_of(page))
    assert address is not None
    drawn, stated = client.get(unescape(address[1])), client.get(unescape(address[1]) + "&format=vega").get_json()
    assert (drawn.status_code, drawn.content_type) == (200, "image/svg+xml")
    finding = " ".join(stated["title"]["text"])
    assert finding in unescape(text_of(page))
    assert re.fullmatch(r".+ after (prototype|validation|production) in \d+% of cases, complete in \d+%", finding)
    assert "of all cases" in words_of(page)


@pytest.mark.parametrize(
    "said",
    [
        [],
        ["completed,1,5,"],
        ["pilot,0.5,5,", "completed,0.5,5,"],
        ["prototype,0.5,5,", "validation,0.5,5,"],
        ["completed,0.5,5,", "completed,0.5,5,"],
        ["prototype,2,5,", "completed,0.5,5,"],
        ["prototype,nan,5,", "completed,0.5,5,"],
        ["prototype,0.5,-5,", "completed,0.5,5,"],
        ["prototype,0.5", "completed,0.5,5,"],
        5 * ["prototype,0.1,5,"] + ["completed,0.5,5,"],
    ],
)
def test_an_address_that_says_no_tree_has_no_picture(client: FlaskClient, said: list[str]) -> None:
    """Whatever stands in it."""
    assert client.get("/programs/gates.svg?" + urlencode([("ending", text) for text in said])).status_code == 404


def test_a_program_without_events_draws_nothing_of_no_rows(client: FlaskClient) -> None:
    """Of a layer without rows a browser's console says that its field has no extent."""
    started = client.post("/v1/track/programs", json=PROGRAM | {"name": "not begun"}).get_json()
    charts = [chart.to_dict() for drawn in report_charts(report_of(client, started)).values() for chart in drawn]
    assert charts
    assert [chart["title"] for chart in charts for rows in chart["datasets"].values() if not rows] == []


def test_a_tab_of_no_name_is_the_first(client: FlaskClient, program: Body) -> None:
    """Links of other versions open."""
    assert "Gates" in words_of(client.get(f"/programs/{program['id']}?tab=nothing"))


@pytest.mark.parametrize("form", [*REPORT_FORMATS, "json"])
def test_the_report_is_had_as_a_file(client: FlaskClient, program: Body, form: str) -> None:
    """In every format that the API has, from the tab of documents."""
    address = f"/programs/{program['id']}/report.{form}"
    assert f'href="{address}"' in text_of(client.get(f"/programs/{program['id']}?tab=documents"))
    assert client.get(address).status_code == 200
    assert client.get(f"/programs/{program['id']}/report.exe").status_code == 404


def test_the_ways_on_stand_beside_each_other(client: FlaskClient, staged: Body) -> None:
    """Each with its figures; the recommended one says so."""
    gate = report_of(client, staged)["status"]["tier_gates"][1]
    text = text_of(client.get(f"/programs/{staged['id']}"))
    card = text.partition('id="gate-validation"')[2].partition("</article>")[0]
    assert all(branch["statement"] in card for branch in gate["decision"]["branches"])
    assert re.search(rf'value="{gate["recommendation"]}"[^<]*<span class="muted">recommended', card)


def test_a_decision_is_recorded_where_it_is_recommended(client: FlaskClient) -> None:
    """In the log of the run; sent twice it counts once; the gate is then decided, and may be decided otherwise."""
    program = told(client)
    address = f"/programs/{program['id']}"
    fields = form_of(client.get(address), "midpoint") | {"verdict": "continue", "text": "on\r\nbudget"}
    for _ in range(2):
        answer = send(client, program, fields)
        assert (answer.status_code, answer.headers["Location"]) == (303, f"{address}#gates")
    events = client.get(f"/v1/track/runs/{fields['run']}/events?limit=1000").get_json()["items"]
    assert [(each["verdict"], each["text"]) for each in events if each.get("gate") == "midpoint"] == [("continue", "on\nbudget")]
    assert report_of(client, program)["status"]["gate"]["decided"] == "continue"
    page = client.get(address)
    assert "Half-spend gate: decided, continue" in words_of(page)
    assert send(client, program, form_of(page, "midpoint") | {"verdict": "stop"}).status_code == 303
    assert "Half-spend gate: decided, stop" in words_of(client.get(address))


def test_the_run_of_the_tier_is_chosen(client: FlaskClient, staged: Body) -> None:
    """Another can be."""
    runs = {run["tier"]: run["id"] for run in client.get(f"/v1/track/programs/{staged['id']}/runs").get_json()["items"]}
    assert form_of(client.get(f"/programs/{staged['id']}"), "validation")["run"] == runs["validation"]


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ({}, "Decision: an event of type decision needs it"),
        ({"verdict": "maybe"}, "must be one of continue, pivot, stop"),
        ({"verdict": "stop", "text": "<b>" * 700}, "must have 1 to 2000 characters"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(client: FlaskClient, program: Body, sent: dict[str, str], error: str) -> None:
    """And what was written stays."""
    fields = form_of(client.get(f"/programs/{program['id']}"), "midpoint") | sent
    refused = send(client, program, fields)
    assert refused.status_code == 422
    card = text_of(refused).partition('id="gate-midpoint"')[2].partition("</article>")[0]
    assert error in card
    assert sent.get("text", "").replace("<b>", "&lt;b&gt;") in card


def test_a_decision_is_of_a_gate_and_a_run_of_the_program(client: FlaskClient, program: Body, staged: Body) -> None:
    """Others are refused."""
    fields = form_of(client.get(f"/programs/{program['id']}"), "midpoint") | {"verdict": "stop"}
    assert send(client, program, fields | {"gate": "validation"}).status_code == 422
    assert send(client, program, fields | {"run": "nobody"}).status_code == 404
    assert send(client, staged, fields).status_code == 404
    assert report_of(client, program)["status"]["gate"]["decided"] is None


def test_a_program_without_events_says_what_to_do(client: FlaskClient) -> None:
    """What is not known is not known."""
    made = client.post("/v1/track/programs", json={"name": "empty"}).get_json()
    for tab, words in (("track", "no run is tracked yet"), ("plan", "No dates are planned"), ("risks", "No risk is known")):
        assert words in words_of(client.get(f"/programs/{made['id']}?tab={tab}"))
    assert "not known yet" in words_of(client.get("/programs"))


def test_a_question_leads_to_its_program(client: FlaskClient) -> None:
    """The answer's link opens it."""
    made = client.post("/v1/track/programs", json=PROGRAM | {"name": "translator 3B"}).get_json()
    page = client.get("/?" + urlencode({"text": "status translator 3B"}))
    assert f'href="/programs/{made["id"]}">Open the program' in text_of(page)


def test_names_are_no_markup(client: FlaskClient) -> None:
    """On no tab."""
    made = told(client, NAMES)
    for address in ("/programs", "/", *(f"/programs/{made['id']}?tab={tab}" for tab in TABS)):
        page = client.get(address)
        assert "<script>alert" not in text_of(page)
        assert HOSTILE.split()[0].split("(")[0] in words_of(page)


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with keys."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("web") / "data"), "OUTLAY_OFFLINE": "1"})) as made:
        yield made


@pytest.fixture(scope="module")
def ours(doors: House) -> Body:
    """A program of one of the teams, with a run."""
    made = doors.ask("ours", "POST", "/v1/track/programs", json=PROGRAM).get_json()
    run = doors.ask("ours", "POST", f"/v1/track/programs/{made['id']}/runs", json=MAIN).get_json()
    found: Body = made | {"run": run["id"]}
    return found


def test_who_may_read_decides_nothing(doors: House, ours: Body) -> None:
    """The form is for those who may write."""
    reader, writer = Visitor(doors), Visitor(doors)
    reader.sign_in("we may read")
    writer.sign_in("ours")
    address = f"/programs/{ours['id']}"
    assert "/decisions" not in text_of(reader.open(address))
    sent = {"gate": "midpoint", "verdict": "stop", "run": ours["run"]}
    assert reader.send(f"{address}/decisions", sent | {"csrf_token": reader.form_token(address)}).status_code == 403
    assert writer.send(f"{address}/decisions", sent).status_code == 403
    assert writer.send(f"{address}/decisions", sent | {"csrf_token": writer.form_token(address)}).status_code == 303


def test_a_picture_can_be_of_an_earlier_time(client: FlaskClient, program: Body) -> None:
    """Of the time that `as_of` states, with what was known then; of none that is no time."""
    address = f"/programs/{program['id']}/spend.svg"
    now, then = (client.get(address + query) for query in ("", "?as_of=2026-09-20T00:00:00Z"))
    assert (now.status_code, then.status_code) == (200, 200)
    assert now.data != then.data
    assert client.get(f"{address}?as_of=yesterday").status_code == 422


def test_another_team_finds_no_such_program(doors: House, ours: Body) -> None:
    """Nor its pictures, files and decisions."""
    other = Visitor(doors)
    other.sign_in("theirs")
    assert ours["id"] not in text_of(other.open("/programs"))
    address = f"/programs/{ours['id']}"
    for path in ("", "?format=json", "/spend.svg", "/report.json"):
        assert other.open(address + path).status_code == 404, path
    sent = {"csrf_token": other.form_token(), "gate": "midpoint", "verdict": "stop", "run": ours["run"]}
    assert other.send(f"{address}/decisions", sent).status_code == 404


def sent_by_curl(client: FlaskClient, page: Any, title: str) -> Any:
    """The answer to the request that a page says as curl."""
    text = unescape(re.search(rf"<summary>{title}</summary>\s*<pre[^>]*><code>(.*?)</code>", text_of(page), re.DOTALL)[1])  # type: ignore[index]
    words = shlex.split(text)
    headers = dict(words[at + 1].split(": ") for at, word in enumerate(words) if word == "-H")
    method = words[words.index("-X") + 1] if "-X" in words else "POST"
    address = next(word for word in words if word.startswith("$OUTLAY_SERVER")).removeprefix("$OUTLAY_SERVER")
    return client.open(address, method=method, data=words[words.index("--data-raw") + 1], headers=headers)


def test_a_program_without_plan_says_what_to_state(client: FlaskClient) -> None:
    """What a gate's ways cost comes from a plan, a risk from a plan or a note: each with an example that runs."""
    made = client.post("/v1/track/programs", json={"name": "by hand", "budget_usd": 150000}).get_json()
    address = f"/programs/{made['id']}"
    assert f'<a href="{address}#runs">track one</a>' in text_of(client.get(f"{address}?tab=risks"))
    client.post(f"/v1/track/programs/{made['id']}/runs", json={"name": "main"})
    assert text_of(client.get(address)).count('<a href="#no-plan">state a plan</a>') == 3
    risks = client.get(f"{address}?tab=risks")
    assert 'href="/programs/new?from=example"' in text_of(risks)
    assert sent_by_curl(client, risks, "A risk, as curl").get_json()["accepted"] == 1
    assert "loss spike needs a rollback" in words_of(client.get(f"{address}?tab=risks"))
    assert sent_by_curl(client, client.get(address), "A plan, as curl").status_code == 200
    planned = text_of(client.get(address))
    assert "#no-plan" not in planned
    assert 'id="no-plan"' not in planned
