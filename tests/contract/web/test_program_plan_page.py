"""The plan's tab of a program: a form that shows what a change does before it is saved, and what differs between versions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given, settings
from hypothesis import strategies as st

from service.config import load_settings
from service.formats.reading_order import in_order
from tests.contract.doors import House, house
from tests.contract.tracking.tracked_program import PROGRAM, Body, made
from tests.contract.web.visitor import Visitor, text_of, words_of
from tests.support.service import served

HTTPS = "https://localhost"
PLAN = json.loads((Path(__file__).parents[3] / "examples" / "program-1b-64.json").read_text())
MAIN = "plan.tiers.2.runs.0"
Fields = dict[str, str]
MARKUP = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a.b.c", "\u202egnirts", "{{7*7}}", "13")
HOSTILE_NAMES = st.one_of(st.sampled_from(MARKUP), st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=60))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A service without keys, whose programs are those of this module."""
    with served(tmp_path_factory.mktemp("plans")) as made:
        yield made


@pytest.fixture
def program(client: FlaskClient) -> Body:
    """A program tracked from a plan's request."""
    return made(client, "/v1/track/programs", {"name": "1B", "plan": PLAN})


def form_of(page: Any) -> Fields:
    """What the plan's form sends where nothing is changed."""
    form = text_of(page).partition('id="change"')[2].partition("</form>")[0]
    inputs = re.findall(r'<input (?:id="[^"]*" )?(?:type="hidden" )?name="([^"]+)"(?: type="\w+")? value="([^"]*)"', form)
    chosen = {}
    for name, options in re.findall(r'<select id="[^"]*" name="([^"]+)"[^>]*>(.*?)</select>', form, re.DOTALL):
        found = re.search(r'<option value="([^"]*)" selected', options)
        chosen[name] = found[1] if found else ""
    return {name: unescape(value) for name, value in inputs if not name.startswith("remove.")} | chosen


def opened(client: FlaskClient, program: Body) -> Fields:
    """The form as it is opened."""
    return form_of(client.get(f"/programs/{program['id']}?tab=plan"))


def send(client: FlaskClient, program: Body, fields: Fields, do: str = "preview") -> Any:
    """The answer to the form."""
    return client.post(f"/programs/{program['id']}/plan", data=fields | {"do": do}, base_url=HTTPS)


def saved(client: FlaskClient, program: Body, changes: Fields) -> Any:
    """The answer to saving after the change was seen."""
    seen = send(client, program, opened(client, program) | changes)
    assert seen.status_code == 200, words_of(seen)
    return send(client, program, form_of(seen), "save")


def now(client: FlaskClient, program: Body) -> Body:
    """The program as the API has it."""
    found: Body = client.get(f"/v1/track/programs/{program['id']}").get_json()
    return found


def test_what_changes_is_seen_before_it_is_saved(client: FlaskClient, program: Body) -> None:
    """Cost, finish and chance before and after as of the plan's own answer; nothing is saved by looking."""
    shown = send(client, program, opened(client, program) | {f"{MAIN}.estimate.data.tokens": "500B", "deadline": "2027-02-12"})
    words = words_of(shown)
    assert shown.status_code == 200
    plan = PLAN | {"deadline": "2027-02-12", "tiers": json.loads(json.dumps(PLAN["tiers"]).replace('"1T"', '"500B"'))}
    answer = client.post("/v1/estimate/program", json=plan).get_json()
    assert f"${answer['summary']['p50_usd']:,.0f}" in words
    assert f"chance to meet the deadline 100.0% {answer['schedule']['deadline_probability']:.1%}" in words
    assert "production, main, data: tokens 1T 500B changed" in words
    assert "Save this plan" in words
    assert now(client, program) == program


def test_a_saved_plan_is_followed_and_leads_to_the_difference(client: FlaskClient, program: Body) -> None:
    """Through the use case of the API; the page of the difference is a link."""
    answer = saved(client, program, {f"{MAIN}.estimate.data.tokens": "500B", "budget_usd": "60,000"})
    address = f"/programs/{program['id']}/versions?before=1&after=2"
    assert (answer.status_code, answer.headers["Location"]) == (303, address)
    body = now(client, program)
    assert (body["version"], body["budget_usd"]) == (2, 60000)
    assert body["planned_tokens"] == program["planned_tokens"] - 500_000_000_000
    words = words_of(client.get(address))
    assert "What changed from version 1 to 2" in words
    assert f"budget, USD {program['budget_usd']:,} 60,000 changed" in words
    assert "chance to keep to the budget" in words
    assert opened(client, program)[f"{MAIN}.estimate.data.tokens"] == "500B"


def test_the_difference_of_any_two_versions_is_shown(client: FlaskClient, program: Body) -> None:
    """In both directions, as JSON too; of no version there is none."""
    for budget in ("60000", "70000"):
        assert saved(client, program, {"budget_usd": budget}).status_code == 303
    found = client.get(f"/programs/{program['id']}/versions?before=3&after=1&format=json").get_json()
    assert [each["version"] for each in found["versions"]] == [3, 2, 1]
    first = f"{program['budget_usd']:,}"
    assert found["fields"] == [{"name": "budget_usd", "before": "70,000", "after": first, "change": "changed"}]
    assert client.get(f"/programs/{program['id']}/versions?before=1&after=9").status_code == 404
    assert "Nothing differs" not in words_of(client.get(f"/programs/{program['id']}/versions?before=nothing"))


def test_runs_and_risks_are_added_and_taken_out_without_scripts(client: FlaskClient, program: Body) -> None:
    """In the empty place, and by the box of what is there."""
    run = f"plan.tiers.0.runs.{len(PLAN['tiers'][0]['runs'])}"
    added = {f"{run}.name": "tokeniser study", f"{run}.estimate.data.tokens": "3B"}
    added |= {f"{run}.estimate.{name}": value for name, value in (("model.params", "150M"), ("hardware.count", "8"))}
    place = f"plan.risks.{len(PLAN['risks'])}"
    added |= {f"{place}.name": "outage", f"{place}.probability": "0.1", f"{place}.cost_usd": "2,000"}
    removed = {"remove.plan.tiers.0.runs.0": "yes", "remove.plan.risks.0": "yes"}
    assert saved(client, program, added | removed).status_code == 303
    runs = [run["name"] for run in now(client, program)["planned_runs"] if run["tier"] == "prototype"]
    assert runs == ["learning rate sweep", "tokeniser study"]
    fields = opened(client, program)
    names = [fields[f"plan.risks.{at}.name"] for at in range(len(PLAN["risks"]))]
    assert names == [*(risk["name"] for risk in PLAN["risks"][1:]), "outage"]


def test_what_the_form_does_not_show_stays(client: FlaskClient, program: Body) -> None:
    """Sweeps, calendars and the like; a name that is a number is a name."""
    assert saved(client, program, {"plan.risks.0.name": "13"}).status_code == 303
    base = json.loads(opened(client, program)["base"])
    assert base["risks"][0]["name"] == "13"
    left_out = {"start", "deadline", "risks"}
    assert {name: value for name, value in base.items() if name != "risks"} == {k: v for k, v in PLAN.items() if k not in left_out}


def test_gates_and_people_are_changed(client: FlaskClient, program: Body) -> None:
    """Criteria of a tier's gate, and what people cost; a field made blank is left out."""
    changes = {"plan.tiers.1.gate.continue_if.metric_at_least": "0.5", "plan.personnel.usd_per_hour": "100"}
    assert saved(client, program, changes).status_code == 303
    assert saved(client, program, {"plan.tiers.1.gate.continue_if.metric_at_least": ""}).status_code == 303
    base = json.loads(opened(client, program)["base"])
    assert "continue_if" not in base["tiers"][1]["gate"]
    assert base["personnel"]["usd_per_hour"] == 100


@pytest.mark.parametrize(
    ("sent", "field", "error"),
    [
        ({f"{MAIN}.estimate.data.tokens": "many"}, f"{MAIN}.estimate.data.tokens", "not a count"),
        ({"plan.risks.0.probability": "2"}, "plan.risks.0.probability", "must be a number from 0 to 1"),
        ({"budget_usd": "-1"}, "budget_usd", "must"),
        ({"deadline": "soon"}, "deadline", "must"),
        ({f"plan.tiers.0.runs.{len(PLAN['tiers'][0]['runs'])}.name": "half"}, "plan.tiers.0.runs.2.estimate.data.tokens", ""),
    ],
)
def test_what_is_wrong_stands_beside_its_field(client: FlaskClient, program: Body, sent: Fields, field: str, error: str) -> None:
    """What was typed stays, nothing is saved."""
    refused = send(client, program, opened(client, program) | sent, "save")
    assert refused.status_code == 422
    text = text_of(refused)
    assert "Nothing is saved" in text
    assert all(form_of(refused)[name] == value for name, value in sent.items())
    if error:
        beside = text.partition(f'id="e-{field}"')[2].partition("</p>")[0]
        assert error in beside
    assert now(client, program)["version"] == 1


def test_nothing_is_saved_that_was_not_seen(client: FlaskClient, program: Body) -> None:
    """Where a field was changed after the look, the page shows what changes again."""
    unseen = send(client, program, opened(client, program) | {"budget_usd": "1000"}, "save")
    assert "Not saved yet" in words_of(unseen)
    changed = send(client, program, form_of(unseen) | {"budget_usd": "2000"}, "save")
    assert "Not saved yet" in words_of(changed)
    assert now(client, program)["version"] == 1
    assert send(client, program, form_of(changed), "save").status_code == 303
    assert "Nothing: the form says" in words_of(send(client, program, opened(client, program)))


def test_another_change_meanwhile_is_shown(client: FlaskClient, program: Body) -> None:
    """409 with what changed; the form can be saved over it once that was seen."""
    seen = form_of(send(client, program, opened(client, program) | {"budget_usd": "70000"}))
    client.patch(f"/v1/track/programs/{program['id']}", json={"deadline": "2027-05-31"}, headers={"If-Match": '"1"'})
    late = send(client, program, seen, "save")
    assert late.status_code == 409
    assert f"deadline {program['deadline']} 2027-05-31 changed" in words_of(late)
    assert now(client, program)["budget_usd"] == program["budget_usd"]
    assert send(client, program, form_of(late), "save").status_code == 303
    assert now(client, program)["budget_usd"] == 70000


def test_a_program_without_a_plan_has_its_own_fields(client: FlaskClient) -> None:
    """Budget, tokens, dates and caps; a cap can be taken away."""
    program = made(client, "/v1/track/programs", PROGRAM)
    assert saved(client, program, {"planned_tokens": "2T", "caps.program_usd": "140000"}).status_code == 303
    body = now(client, program)
    assert (body["planned_tokens"], body["caps"]) == (2_000_000_000_000, {"program_usd": 140000})
    assert saved(client, program, {"caps.program_usd": ""}).status_code == 303
    assert now(client, program)["caps"] == {}


def test_a_program_is_closed_and_opened(client: FlaskClient, program: Body) -> None:
    """Without a plan of its own to be made anew."""
    for state in ("closed", "open"):
        assert saved(client, program, {"state": state}).status_code == 303
        assert now(client, program)["state"] == state
    assert now(client, program)["budget_usd"] == program["budget_usd"]


@pytest.mark.parametrize("sent", [{"base": "{"}, {"base": '{"tiers": 1}'}, {"version": "x"}, {"plan.nothing": "1"}])
def test_a_form_of_no_page_is_refused(client: FlaskClient, program: Body, sent: Fields) -> None:
    """Without a fault."""
    assert send(client, program, opened(client, program) | sent).status_code == 422


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with keys."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("web") / "data"), "OUTLAY_OFFLINE": "1"})) as made_house:
        yield made_house


def test_who_may_write_changes_and_is_named(doors: House) -> None:
    """Readers see the versions; other teams nothing."""
    program = doors.ask("ours", "POST", "/v1/track/programs", json=PROGRAM).get_json()
    address = f"/programs/{program['id']}"
    visitors = {key: Visitor(doors) for key in ("ours", "we may read", "theirs")}
    for key, visitor in visitors.items():
        visitor.sign_in(key)
    writer, reader, other = visitors.values()
    assert 'id="change"' not in text_of(reader.open(f"{address}?tab=plan"))
    fields = form_of(writer.open(f"{address}?tab=plan")) | {"budget_usd": "1000", "do": "preview"}
    assert reader.send(f"{address}/plan", fields | {"csrf_token": reader.form_token(address)}).status_code == 403
    assert other.send(f"{address}/plan", fields | {"csrf_token": other.form_token()}).status_code == 404
    assert writer.send(f"{address}/plan", {name: value for name, value in fields.items() if name != "csrf_token"}).status_code == 403
    seen = form_of(writer.send(f"{address}/plan", fields)) | {"do": "save"}
    assert writer.send(f"{address}/plan", seen).status_code == 303
    versions = reader.open(f"{address}/versions?format=json").get_json()["versions"]
    assert [version["by"] is None for version in versions] == [False, True]
    assert other.open(f"{address}/versions").status_code == 404


def test_the_form_of_a_large_plan_can_be_sent(client: FlaskClient, program: Body) -> None:
    """It has more fields than other forms may have."""
    blank = {f"plan.tiers.0.runs.{place}.name": "" for place in range(2, 400)}
    assert send(client, program, opened(client, program) | blank).status_code == 200


@given(name=HOSTILE_NAMES)
@settings(max_examples=8, deadline=None)
def test_names_are_no_markup_and_stay_as_they_are(client: FlaskClient, name: str) -> None:
    """In the form, in what changes and between versions: of runs, risks and the program."""
    plan = json.loads(json.dumps(PLAN))
    plan["tiers"][2]["runs"][0]["name"] = plan["risks"][0]["name"] = name
    program = made(client, "/v1/track/programs", {"name": name, "plan": plan})
    fields = opened(client, program)
    shown = in_order(name)
    assert (fields["name"], fields[f"{MAIN}.name"], fields["plan.risks.0.name"]) == (shown, shown, shown)
    seen = send(client, program, fields | {f"{MAIN}.estimate.data.tokens": "500B"})
    assert seen.status_code == 200
    answer = send(client, program, form_of(seen), "save")
    for page in (seen, client.get(answer.headers["Location"])):
        assert "<script>alert" not in text_of(page)
    after = now(client, program)
    assert (after["name"], after["planned_runs"][-1]["name"]) == (name, name)
