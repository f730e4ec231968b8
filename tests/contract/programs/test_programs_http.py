"""POST /v1/estimate/program: its answer, its exports, the difference of two programs, and what bad input is told."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import math
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from service.api.resources.programs import CHEAPER, EXAMPLE
from service.formats.documents.render import content_policy
from service.schemas.base import ProblemSchema
from service.schemas.programs.answer import ProgramAnswerSchema, ProgramDifferenceSchema
from service.schemas.programs.request import ProgramRequestSchema
from tests.contract.http.test_fuzz import RUBBISH, numbers

ADDRESS = "/v1/estimate/program"
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.json"))
CONTRACT = {
    *("outcome", "total_usd", "expected_usd", "envelope", "tiers", "overhead", "lines", "schedule", "risks", "burn_plan"),
    *("assumptions", "warnings"),
}


def changed(**sections: Any) -> dict[str, Any]:
    return copy.deepcopy(EXAMPLE) | sections


def ask(client: FlaskClient, request: object) -> dict[str, Any]:
    answer = client.post(ADDRESS, json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    assert ProgramAnswerSchema().validate(body) == {}
    return body


def told(client: FlaskClient, request: object, address: str = ADDRESS) -> dict[str, str]:
    """What is wrong where."""
    answer = client.post(address, json=request)
    assert answer.status_code == 422, answer.get_data(as_text=True)[:500]
    assert answer.content_type == "application/problem+json"
    return {entry["pointer"]: entry["message"] for entry in answer.get_json()["errors"]}


def cents(usd: float) -> Decimal:
    return Decimal(repr(usd)).quantize(Decimal("0.01"))


def added_up(body: dict[str, Any]) -> None:
    """Lines, envelope and weeks are each the budget, to the cent."""
    budget = cents(body["total_usd"]["p50"])
    assert sum(cents(line["usd"]) for line in body["lines"]) == budget
    assert sum(cents(usd) for usd in body["envelope"].values()) == budget
    assert sum(cents(week["usd"]) for week in body["burn_plan"]) == budget


def test_the_contracts_example_is_answered_whole(client: FlaskClient) -> None:
    """Every block, with the names of the contract."""
    body = ask(client, EXAMPLE)
    assert body.keys() >= CONTRACT
    assert body["outcome"].keys() >= {"usd_per_point", "flops_per_point", *(name for name in EXAMPLE["outcome"])}
    assert [tier["tier"] for tier in body["tiers"]] == ["prototype", "validation", "production"]
    for tier in body["tiers"]:
        assert {"cost_usd", "accelerator_hours", "wall_clock_hours"} <= tier.keys()
        assert {"decides", "pass_probability", "cost_to_decide_usd", "earliest", "date"} <= tier["gate"].keys()
        assert all({"name", "repeat", "cost_usd", "estimate"} <= run.keys() for run in tier["runs"])
    assert {"line", "tier", "usd", "share", "basis"} == body["overhead"][0].keys()
    assert body["reserves"] == {"evaluation_and_debugging": 0.05, "contingency": None, "confidence": 0.8}
    assert {"critical_path", "calendar", "finish", "deadline_probability"} <= body["schedule"].keys()
    assert {"what", "start", "finish"} <= body["schedule"]["calendar"][0].keys()
    assert {"week", "tokens", "accelerator_hours", "usd", "checkpoints"} <= body["burn_plan"][0].keys()
    added_up(body)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_examples_are_answered(client: FlaskClient, file: Path) -> None:
    """Complete programs: gates, a midpoint gate, reviews, risks, data and choices, without loose ends."""
    request = json.loads(file.read_text(encoding="utf-8"))
    body = ask(client, request)
    added_up(body)
    assert all(tier["gate"] for tier in body["tiers"])
    assert all(run["estimate"]["memory"]["fits"] for tier in body["tiers"] for run in tier["runs"])
    assert body["midpoint_gate"]["date"]
    assert body["schedule"]["deadline_probability"] > 0.5
    assert (body["tokens"]["flow"] is not None) == ("raw_tokens" in request["data"])
    assert body["tokens"]["suggested"] or body["tokens"]["flow"]
    assert body["risks"]


def test_the_least_request_is_a_run(client: FlaskClient) -> None:
    """A tier with a run; what is missing is warned of or assumed."""
    run = {
        "name": "main",
        "estimate": {"model": {"params": "1B"}, "data": {"tokens": "20B"}, "hardware": {"accelerator": "H100", "count": 8}},
    }
    body = ask(client, {"name": "least", "tiers": [{"tier": "production", "runs": [run]}]})
    assert (body["outcome"], body["midpoint_gate"], body["tokens"], body["spend_choices"]) == (None, None, None, None)
    assert len(body["warnings"]) >= 4
    assert body["expected_usd"] == body["total_usd"]["p50"]
    added_up(body)


def test_an_answer_is_repeated(client: FlaskClient) -> None:
    """The same request has the same answer."""
    assert ask(client, EXAMPLE) == ask(client, EXAMPLE)


@pytest.mark.parametrize(
    ("wanted", "kind"), [("md", "text/markdown"), ("html", "text/html"), ("csv", "text/csv"), ("ics", "text/calendar")]
)
def test_a_plan_is_had_as_a_document(client: FlaskClient, wanted: str, kind: str) -> None:
    """By its name or by Accept, the same."""
    pytest.importorskip("service.formats.documents.render")
    by_name = client.post(f"{ADDRESS}?format={wanted}", json=EXAMPLE)
    by_accept = client.post(ADDRESS, json=EXAMPLE, headers={"Accept": kind})
    assert (by_name.status_code, by_name.mimetype) == (200, kind)
    assert by_accept.mimetype == kind
    assert len(by_name.get_data()) == pytest.approx(len(by_accept.get_data()), rel=0.01)


def test_a_page_is_sent_under_the_policy_that_lets_its_own_style_in(client: FlaskClient) -> None:
    """The header names the digest of the style that stands in the page, and lets in nothing else; no other document may load anything."""
    answer = client.post(f"{ADDRESS}?format=html", json=EXAMPLE)
    style = answer.get_data(as_text=True).split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = answer.headers["Content-Security-Policy"]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'"
    assert policy.startswith(content_policy("program"))
    assert "style-src" not in client.post(f"{ADDRESS}?format=md", json=EXAMPLE).headers["Content-Security-Policy"]


def test_what_overheads_and_reserves_were_made_with_is_answered(client: FlaskClient) -> None:
    """The tier an overhead was stated for, and a contingency that was stated."""
    overhead = {"reruns": {"share": 0.1, "tier": "production"}, "sweeps": 0.02}
    body = ask(client, changed(overhead=overhead, reserves={"contingency": 0.2}))
    assert {line["line"]: line["tier"] for line in body["overhead"]} == {"reruns": "production", "sweeps": None}
    assert body["reserves"]["contingency"] == 0.2


@pytest.mark.parametrize(("start", "holidays", "day"), [("2027-01-04", [], 0), ("2026-12-30", [0], 1), ("2027-01-09", [], 0)])
def test_the_midpoint_gate_is_on_a_working_day(client: FlaskClient, start: str, holidays: list[int], day: int) -> None:
    """The week's Monday in which the share is spent, the next day where that is a holiday, never before the program begins."""
    plain = ask(client, changed(start=start, schedule={}))
    spent, half = 0.0, plain["total_usd"]["p50"] / 2
    weeks = plain["burn_plan"]
    due = next(week for week in weeks if (spent := spent + week["usd"]) >= half)
    monday = date.fromisoformat(due["monday"])
    off = [str(monday + timedelta(days=each)) for each in holidays]
    found = ask(client, changed(start=start, schedule={"holidays": off}))["midpoint_gate"]
    assert date.fromisoformat(found["date"]) == monday + timedelta(days=day)


def test_a_midpoint_before_the_programs_first_monday_waits_for_it(client: FlaskClient) -> None:
    """A program that begins on a Saturday and is half spent by Sunday has its gate on Monday."""
    found = ask(client, changed(start="2027-01-09", schedule={}, midpoint_gate={"at_spend_share": 0.0, "continue_if": {}}))
    assert found["burn_plan"][0]["monday"] == "2027-01-04"
    assert found["midpoint_gate"]["date"] == "2027-01-11"


def test_accept_that_takes_json_or_anything_has_json(client: FlaskClient) -> None:
    """And one that takes nothing there is has a 406."""
    for accept in ("application/json", "*/*", "text/html;q=0.2, application/json"):
        assert client.post(ADDRESS, json=EXAMPLE, headers={"Accept": accept}).content_type == "application/json"
    assert client.post(ADDRESS, json=EXAMPLE, headers={"Accept": "image/png"}).status_code == 406
    assert client.post(f"{ADDRESS}?format=pdf", json=EXAMPLE).status_code == 422


def test_a_difference_says_why(client: FlaskClient) -> None:
    """The causes add up to it to the cent."""
    answer = client.post(f"{ADDRESS}/difference", json={"before": EXAMPLE, "after": CHEAPER})
    assert answer.status_code == 200
    body = answer.get_json()
    assert ProgramDifferenceSchema().validate(body) == {}
    assert sum(cents(cause["usd"]) for cause in body["causes"]) == cents(body["usd"])
    assert cents(body["usd"]) == cents(body["after_usd"]) - cents(body["before_usd"])
    assert body["causes"][0]["cause"] == "price"
    assert body["price_snapshot"] == body["before_price_snapshot"] == client.post(ADDRESS, json=EXAMPLE).get_json()["price_snapshot"]
    wrong = {"before": EXAMPLE, "after": changed(deadline="2026-01-01")}
    assert list(told(client, wrong, f"{ADDRESS}/difference")) == ["/after/deadline"]


def tiers(**fields: Any) -> list[dict[str, Any]]:
    """The example's tiers with fields of the first set."""
    found = copy.deepcopy(EXAMPLE["tiers"])
    found[0] |= fields
    return found


def first_run(**fields: Any) -> list[dict[str, Any]]:
    return tiers(runs=[EXAMPLE["tiers"][0]["runs"][0] | fields])


EXTREMES = [1, 2, 3.5, 0.999, 1e-6, 1e6, 1e15, 10**18, "1T", "9999-12-31", "0001-01-01", "2027-03-01", "production", "main", "focus"]
GATE_WITHOUT_TIER = [{"gate": {"decides": "release"}, "runs": EXAMPLE["tiers"][2]["runs"]}]
CIRCLE = {"milestones": [{"name": "review", "days": 2, "after": ["production"], "blocks": ["prototype"]}]}


@pytest.mark.parametrize(
    ("sections", "pointer"),
    [
        ({"tiers": []}, "/tiers"),
        ({"tiers": GATE_WITHOUT_TIER}, "/tiers/0/tier"),
        ({"tiers": tiers(tier="exploration")}, "/tiers/0/tier"),
        ({"tiers": tiers(tier="production")}, "/tiers/1/tier"),
        ({"tiers": tiers(runs=[])}, "/tiers/0/runs"),
        ({"tiers": tiers(gate={"decides": "any", "pass_probability": 1.2})}, "/tiers/0/gate/pass_probability"),
        ({"tiers": first_run(repeat=0)}, "/tiers/0/runs/0/repeat"),
        ({"tiers": first_run(grid={"rate": 0})}, "/tiers/0/runs/0/grid/rate"),
        ({"tiers": first_run(estimate={"model": {"params": "1B", "layer": 3}})}, "/tiers/0/runs/0/estimate/model/layer"),
        ({"tiers": first_run(estimate={"model": {"preset": "lama"}, "data": {"tokens": 1}})}, "/tiers/0/runs/0/estimate/model/preset"),
        ({"tiers": first_run(after=["nobody"])}, "/tiers/0/runs/0/after/0"),
        ({"tiers": first_run(early_stopping={"rungs": [{"at": 0.5, "keep": 0}]})}, "/tiers/0/runs/0/early_stopping"),
        (  # rungs without end
            {"tiers": first_run(early_stopping={"factor": math.nextafter(1, 2), "least_share": 1e-4})},
            "/tiers/0/runs/0/early_stopping/factor",
        ),
        ({"defaults": {"hardware": {"accelerator": "H100", "cont": 3}}}, "/defaults/hardware/cont"),
        ({"overhead": {"sweeps": 1.1}}, "/overhead/sweeps"),
        ({"overhead": {"sweeps": {}}}, "/overhead/sweeps"),
        ({"overhead": {"travel": 0.1}}, "/overhead/travel"),
        ({"reserves": {"contingency": 1.5}}, "/reserves/contingency"),
        ({"reserves": {"confidence": 0.4}}, "/reserves/confidence"),
        ({"risks": [{"name": "any", "probability": 1.5}]}, "/risks/0/probability"),
        ({"outcome": {"metric": "any", "baseline": 1, "target": 1}}, "/outcome/target"),
        ({"deadline": "2026-12-31"}, "/deadline"),
        ({"start": "tomorrow"}, "/start"),
        ({"schedule": CIRCLE}, "/tiers/2/gate"),
        ({"schedule": {"queue_days": {"p10": 3, "p50": 2, "p90": 4}}}, "/schedule/queue_days"),
        ({"schedule": {"queue_days": -1}}, "/schedule/queue_days"),
        ({"schedule": {"upgrades": [{"name": "any", "first": "2027-02-02", "last": "2027-02-01"}]}}, "/schedule/upgrades/0/last"),
        ({"data": {"raw_tokens": "1T", "mixture": [{"name": "any", "share": 1.2}]}}, "/data/mixture/0/share"),
        ({"data": {"params": "1B", "complexity": "hard"}}, "/data/complexity"),
        ({"spend_choices": {"law": "newton"}}, "/spend_choices/law"),
        ({"budget": 3}, "/budget"),
    ],
)
def test_bad_input_points_to_itself(client: FlaskClient, sections: dict[str, Any], pointer: str) -> None:
    """A 422 with the pointer."""
    found = told(client, changed(**sections))
    assert any(entry.startswith(pointer) for entry in found), found


def test_a_circle_is_named(client: FlaskClient) -> None:
    """All who wait for each other."""
    (message,) = told(client, changed(schedule=CIRCLE)).values()
    assert "form a cycle" in message
    found = message.split(": ", 1)[1].split(";")[0].split(" → ")
    assert found[0] == found[-1]
    runs = {"prototype: ablations", "validation: scale check", "production: main"}
    gates = {"gate: prototype", "gate: validation", "gate: production"}
    assert {"review", *runs, *gates} <= set(found)
    assert {name for name in set(found) - {"review", *runs, *gates} if ": overhead " not in name} == {"risk: loss spike needs a rollback"}


@given(data=st.data())
def test_any_value_anywhere_is_answered_or_refused(client: FlaskClient, data: st.DataObject) -> None:
    """Rubbish in one place of the example, found by its path: never a failure, never a figure that is none."""
    request = changed(spend_choices={"budget_usd": 1000}, data={"raw_tokens": "3T", "epochs": 2, "params": "7B"})
    *path, last = data.draw(st.sampled_from(sorted(_paths(request), key=str)))
    place: Any = request
    for step in path:
        place = place[step]
    place[last] = data.draw(RUBBISH | st.sampled_from(EXTREMES))
    answer = client.post(ADDRESS, data=json.dumps(request), content_type="application/json")
    assert answer.status_code in {200, 400, 422}, (path, last, place[last], answer.get_data(as_text=True)[:500])
    if answer.status_code == 200:
        assert ProgramAnswerSchema().validate(answer.get_json()) == {}
        assert [path for path, number in numbers(answer.get_json()) if not math.isfinite(number)] == []
        added_up(answer.get_json())
    elif answer.status_code == 422:
        assert ProblemSchema().validate(answer.get_json()) == {}


def _paths(node: Any, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    """Every place below a JSON value."""
    steps = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return {found for step, below in steps for found in ({(*path, step)} | _paths(below, (*path, step)))}


def test_two_hundred_runs_are_taken(client: FlaskClient) -> None:
    """Those that ask the same are answered the same."""
    run = EXAMPLE["tiers"][0]["runs"][0]
    body = ask(client, changed(tiers=tiers(runs=[run | {"name": f"ablation {at}", "repeat": 1} for at in range(198)])))
    found = body["tiers"][0]["runs"]
    assert len(found) == 198
    assert len({each["cost_usd"] for each in found}) == 1
    assert ProgramRequestSchema().validate(EXAMPLE) == {}
    added_up(body)
