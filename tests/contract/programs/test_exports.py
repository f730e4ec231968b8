"""The documents of every example, as HTTP sends them: LibreOffice calculates the same totals, and a calendar is read back."""

from __future__ import annotations

import json
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from icalendar import Calendar
from openpyxl import Workbook, load_workbook

from tests.support.libreoffice import recalculate
from tests.unit.formats.documents.program.test_workbook import amounts, planned_amounts

ADDRESS = "/v1/estimate/program"
EXAMPLES = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in (Path(__file__).parents[3] / "examples").glob("*.json")}


def sent(client: FlaskClient, name: str, wanted: str) -> bytes:
    answer = client.post(f"{ADDRESS}?format={wanted}", json=EXAMPLES[name])
    assert answer.status_code == 200
    return answer.get_data()


def body_of(client: FlaskClient, name: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(sent(client, name, "json"))
    return body


@pytest.fixture(scope="module")
def calculated(client: FlaskClient, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Workbook]:
    """Every example's workbook as LibreOffice calculates it, all in one go: its saved values are dropped before."""
    workbooks = {name: load_workbook(BytesIO(sent(client, name, "xlsx"))) for name in EXAMPLES}
    return recalculate(workbooks, tmp_path_factory.mktemp("workbooks"))


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_libreoffice_calculates_the_answers_totals(client: FlaskClient, calculated: dict[str, Workbook], name: str) -> None:
    """Lines, envelope, total and expected cost come out of the formulas to the cent, and no cell is an error."""
    made = calculated[name]
    assert amounts(made) == pytest.approx(planned_amounts(body_of(client, name)), abs=0.001)
    assert [cell.coordinate for sheet in made for row in sheet.iter_rows() for cell in row if cell.data_type == "e"] == []


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_calendar_has_the_answers_days(client: FlaskClient, name: str) -> None:
    """A calendar library reads every activity, the end, the deadline and the midpoint gate, each on its days, ends exclusive."""
    body = body_of(client, name)
    events = Calendar.from_ical(sent(client, name, "ics")).walk("VEVENT")
    found = {str(event["summary"]).removeprefix(f"{body['name']}: "): event for event in events}
    for entry in body["schedule"]["calendar"]:
        assert found[entry["what"]].decoded("dtstart") == date.fromisoformat(entry["start"])
        assert found[entry["what"]].decoded("dtend").toordinal() == date.fromisoformat(entry["finish"]).toordinal() + 1
    assert set(found) == {entry["what"] for entry in body["schedule"]["calendar"]} | {"finish", "deadline", "midpoint gate"}
    assert found["midpoint gate"].decoded("dtstart") == date.fromisoformat(body["midpoint_gate"]["date"])
