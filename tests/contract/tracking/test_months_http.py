"""Spend by calendar month in a tracked program's report: planned, actual and still to come, in every format and on its page."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from flask.testing import FlaskClient
from openpyxl import load_workbook

from service import create_app
from service.config import load_settings
from service.formats.documents.report.months import months_chart
from tests.contract.tracking.test_gates_http import run_of, tracked
from tests.contract.tracking.tracked_program import made

AS_OF = "2025-08-16T00:00:00Z"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """On SQLite: documents are the same on every database."""
    app = create_app(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("data")), "OUTLAY_OFFLINE": "1"}))
    app.extensions["context"].store.migrate()
    return app.test_client()


@pytest.fixture(scope="module")
def program(client: FlaskClient) -> str:
    """Prototype done, half of validation; begun in August 2025 by a plan that goes on until September."""
    found = tracked(client)
    run_of(client, found, "validation", "scale check", 0.5)
    return str(found["id"])


def written(client: FlaskClient, program: str, form: str) -> bytes:
    answer = client.get(f"/v1/track/programs/{program}/report?format={form}&as_of={AS_OF}")
    assert answer.status_code == 200, answer.text
    return answer.get_data()


def report_of(client: FlaskClient, program: str) -> dict[str, Any]:
    body: dict[str, Any] = client.get(f"/v1/track/programs/{program}/report?format=json&as_of={AS_OF}").get_json()
    return body


def test_months_add_up_to_budget_spend_and_forecast(client: FlaskClient, program: str) -> None:
    """The present month has what is spent and what is still to come; earlier ones only the first, later ones only the second."""
    body = report_of(client, program)
    months, status = {month["month"]: month for month in body["months"]}, body["status"]
    assert sum(month["planned_usd"] for month in months.values()) == pytest.approx(body["program"]["budget_usd"], abs=0.05)
    spent = sum(month["actual_usd"] or 0.0 for month in months.values())
    assert spent == pytest.approx(status["spend"]["usd"], abs=0.05)
    for point in ("p10", "p50", "p90"):
        ahead = sum(month["forecast_usd"][point] for month in months.values() if month["forecast_usd"])
        assert spent + ahead == pytest.approx(status["forecast"]["cost_usd"][point], rel=1e-6)
    present = months["2025-08"]
    assert present["actual_usd"] > 0
    assert present["forecast_usd"]["p50"] > 0
    assert months["2025-09"]["actual_usd"] is None


def test_a_budget_without_a_plan_is_spent_evenly(client: FlaskClient) -> None:
    """31 of 62 days are July's; nothing is spent and the end is not known."""
    bare = made(client, "/v1/track/programs", {"name": "bare", "budget_usd": 6100, "start": "2025-07-01", "deadline": "2025-08-31"})
    months = report_of(client, bare["id"])["months"]
    assert [(month["month"], month["planned_usd"], month["forecast_usd"]) for month in months] == [
        ("2025-07", 3100, None),
        ("2025-08", 3000, None),
    ]
    assert [month["actual_usd"] for month in months] == [0.0, 0.0]


def test_documents_and_the_page_have_them(client: FlaskClient, program: str) -> None:
    """A table with its sums, a chart, a sheet, rows of the CSV, and a picture on the page."""
    body = report_of(client, program)
    text = written(client, program, "md").decode()
    assert "Spend by month" in text
    assert "| all " in text
    chart = months_chart(body)
    assert chart is not None
    drawn = chart.to_dict()
    assert drawn["title"]["text"].startswith("August 2025 takes ")
    assert drawn["layer"][0]["encoding"]["x"]["scale"]["domain"] == [month["month"] for month in body["months"]]
    assert "Spend by month" in written(client, program, "html").decode()
    sheet = load_workbook(io.BytesIO(written(client, program, "xlsx")))["Months"]
    assert [cell.value for cell in sheet["A"]][4 : 4 + len(body["months"])] == [month["month"] for month in body["months"]]
    rows = list(csv.DictReader(io.StringIO(written(client, program, "csv").decode(), newline="")))
    planned = [float(row["value"]) for row in rows if row["section"] == "month" and row["name"] == "planned"]
    assert planned == [month["planned_usd"] for month in body["months"]]
    page = client.get(f"/programs/{program}").get_data(as_text=True)
    assert f"/programs/{program}/months.svg" in page
    assert client.get(f"/programs/{program}/months.svg").status_code == 200


def test_a_report_of_the_far_past_has_as_many_months_as_a_page_holds(client: FlaskClient) -> None:
    """What is planned after them is in the last."""
    old = made(client, "/v1/track/programs", {"name": "old", "budget_usd": 1000, "start": "1900-01-01", "deadline": "2000-01-01"})
    months = report_of(client, old["id"])["months"]
    assert len(months) == 600
    assert sum(month["planned_usd"] for month in months) == pytest.approx(1000, abs=3)
    assert months[-1]["month"] == "1949-12"
