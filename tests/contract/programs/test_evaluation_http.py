"""A program's evaluation over HTTP: the answer keeps to its schema, and every document shows it."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from flask.testing import FlaskClient
from icalendar import Calendar
from openpyxl import load_workbook

from service.schemas.programs.answer import ProgramAnswerSchema

ADDRESS = "/v1/estimate/program"
PROGRAM: dict[str, Any] = {
    "name": "assistant",
    "start": "2027-01-04",
    "outcome": {"metric": "helpdesk-eval", "baseline": 0.61, "target": 0.70},
    "defaults": {"hardware": {"accelerator": "H100", "count": 64}, "price": {"usd_per_accelerator_hour": 2.5}},
    "tiers": [
        {
            "tier": "production",
            "runs": [{"name": "main", "estimate": {"model": {"params": "7B"}, "data": {"tokens": "400B"}}}],
            "gate": {"decides": "release"},
        }
    ],
    "evaluation": {
        "suites": [
            {"name": "helpdesk-eval", "samples": 200, "generated": True, "sign_off": {"name": "Ada", "days": 3}},
            {"name": "=held-out <text>", "tokens": "50M", "every_tokens": "10B", "blocking": False},
        ],
        "checks": [{"name": "n-grams of the test sets", "kind": "contamination", "usd": 1200, "hours": 10}],
    },
}


def sent(client: FlaskClient, wanted: str, program: dict[str, Any] = PROGRAM) -> bytes:
    answer = client.post(f"{ADDRESS}?format={wanted}", json=program)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_data()


@pytest.fixture(scope="module")
def answer(client: FlaskClient) -> dict[str, Any]:
    body: dict[str, Any] = client.post(ADDRESS, json=PROGRAM).get_json()
    return body


def test_the_answer_keeps_to_its_schema(answer: dict[str, Any]) -> None:
    """All of it, with both suites, the check and who signs off."""
    assert ProgramAnswerSchema().validate(answer) == {}
    found = answer["evaluation"]
    assert [suite["suite"] for suite in found["suites"]] == ["helpdesk-eval", "=held-out <text>"]
    assert found["suites"][1]["evaluations"] == 40
    assert found["usd"] == pytest.approx(
        sum(line["usd"] for line in answer["lines"] if "evaluat" in line["line"] and "reserve" not in line["line"])
    )


@pytest.mark.parametrize("wanted", ["md", "html"])
def test_a_document_has_a_section(client: FlaskClient, wanted: str) -> None:
    """What it costs, what it sees, and who signs off."""
    text = sent(client, wanted).decode()
    for said in (
        "generated, the machine waits",
        "scored, in parallel with the runs",
        "437 samples",
        "sign-off by Ada",
        "n-grams of the test sets",
    ):
        assert said in text
    assert "<text>" not in text


def test_the_table_has_its_rows(client: FlaskClient, answer: dict[str, Any]) -> None:
    """Each suite with its cost, and what it can see."""
    rows = list(csv.DictReader(io.StringIO(sent(client, "csv").decode(), newline="")))
    costs = [float(row["usd"]) for row in rows if row["section"] == "evaluation"]
    assert costs == [suite["usd"] for suite in answer["evaluation"]["suites"]]
    (seen,) = [row for row in rows if row["section"] == "detection"]
    assert "437 samples" in seen["basis"]


def test_the_workbook_has_its_sheet(client: FlaskClient, answer: dict[str, Any]) -> None:
    """With the suites' cost, and no name that is a formula."""
    sheet = load_workbook(io.BytesIO(sent(client, "xlsx")))["Evaluation"]
    assert [sheet.cell(row, 7).value for row in (5, 6)] == [suite["usd"] for suite in answer["evaluation"]["suites"]]
    assert sheet.cell(6, 1).data_type == "s"


def test_the_calendar_has_its_days(client: FlaskClient) -> None:
    """The suite that blocks, and the sign-off; not the one beside."""
    names = [str(event["SUMMARY"]) for event in Calendar.from_ical(sent(client, "ics")).walk("VEVENT")]
    assert any("evaluation helpdesk-eval" in name for name in names)
    assert any("evaluation sign-off" in name for name in names)
    assert not any("held-out" in name for name in names)


def test_without_a_price_there_are_hours_and_no_dollars(client: FlaskClient) -> None:
    """As the rest of such a program."""
    unpriced = {**PROGRAM, "defaults": {"hardware": {"accelerator": "H800", "count": 64}}}
    answer = client.post(ADDRESS, json=unpriced).get_json()
    found = answer["evaluation"]
    assert (found["usd"], found["suites"][0]["usd"], answer["lines"]) == (None, None, [])
    assert found["accelerator_hours"] > 0
    assert not any(text.startswith("no evaluation") for text in answer["warnings"])
    assert any(entry["kind"] == "evaluation" for entry in answer["schedule"]["calendar"])
