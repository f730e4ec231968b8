"""Continue, pivot and stop over HTTP and in every document of a plan."""

from __future__ import annotations

import copy
import csv
from io import BytesIO, StringIO
from typing import Any

import openpyxl
import pytest
from flask.testing import FlaskClient

from service.schemas.programs.answer import ProgramAnswerSchema
from tests.contract.programs.test_programs_http import ask, told
from tests.unit.usecases.programs.test_branches import PIVOT, request

PLAN = "/v1/estimate/program"


def test_each_gate_is_answered_with_its_branches(client: FlaskClient) -> None:
    """Those of the tiers and the midpoint gate; the answer holds to its schema."""
    body = ask(client, request(pivot=PIVOT, committed_usd=1000))
    assert ProgramAnswerSchema().validate(body) == {}
    named = [[each["branch"] for each in tier["gate"]["decision"]["branches"]] for tier in body["tiers"]]
    assert named == [["continue", "stop"], ["continue", "pivot", "stop"], ["continue", "stop"]]
    assert body["tiers"][1]["gate"]["decision"]["branches"][1]["program"] == PIVOT["name"]
    assert body["midpoint_gate"]["decision"]["recommendation"] == "continue"
    assert body["tiers"][1]["gate"]["committed_usd"] == 1000


def test_unknown_fields_of_a_pivot_are_refused(client: FlaskClient) -> None:
    """At their own place."""
    assert "/tiers/1/gate/pivot/tokens" in told(client, request(pivot=PIVOT | {"tokens": "1T"}))


@pytest.mark.parametrize("form", ["md", "html"])
def test_documents_show_the_ways_on(client: FlaskClient, form: str) -> None:
    """A row each, and what is recommended with its reasons."""
    page = client.post(f"{PLAN}?format={form}", json=request(pivot=PIVOT)).get_data(as_text=True)
    assert "pivot to 3B for the pilot" in page
    assert "At the gate validation: The figures recommend" in page


def test_the_workbook_shows_the_ways_on(client: FlaskClient) -> None:
    """A sheet of them: figures as numbers, days as days, sentences in words."""
    sent = client.post(f"{PLAN}?format=xlsx", json=request(pivot=PIVOT)).get_data()
    rows = list(openpyxl.load_workbook(BytesIO(sent))["Branches"].iter_rows(min_row=5, values_only=True))
    pivot = next(row for row in rows if row[2] == "pivot to 3B for the pilot")
    assert pivot[0] == "validation"
    assert all(isinstance(figure, float) for figure in (*pivot[3:7], pivot[9]))
    assert "Pivot to 3B for the pilot" in str(pivot[10])


def test_the_table_has_a_row_for_each_way_on(client: FlaskClient) -> None:
    """And one for each recommendation."""
    sent = client.post(f"{PLAN}?format=csv", json=request(pivot=PIVOT)).get_data(as_text=True)
    rows = [row for row in csv.DictReader(StringIO(sent)) if row["section"] in ("branch", "decision")]
    assert [row["name"] for row in rows if row["tier"] == "validation"][:3] == ["continue", "pivot to 3B for the pilot", "stop"]
    assert sum(row["section"] == "decision" for row in rows) == 4


def test_a_figure_that_is_not_known_is_not_shown_as_nothing(client: FlaskClient) -> None:
    """Without a worth: not known, with what to state."""
    asked: dict[str, Any] = copy.deepcopy(request(pivot=PIVOT))
    del asked["outcome"]["value_usd_per_point"]
    page = client.post(f"{PLAN}?format=md", json=asked).get_data(as_text=True)
    assert "not known" in page
    assert "state what the outcome is worth" in page
