"""A plan in time as documents: who waits for whom, and what is spent in which month, in every format and chart."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Any

import pytest
from openpyxl import load_workbook

from service.formats.documents.program.charts import gantt_chart, months_chart
from service.formats.documents.render import render
from tests.unit.formats.documents.program.program_answers import answer_of, complete

WAIT = {"run": "validation: scale check", "waits_for": ["production: main"], "days": 12.0}
POOL = {
    "pool": "H100",
    "accelerators": 128,
    "waits": [WAIT],
    "one_more_node": {"added": 8, "days_saved": 0.5},
    "least_useful": {"added": 64, "days_saved": 9.0},
}
MONTHS = [("2027-01", "1000.50", 900.0, 1200.0, "1000.50"), ("2027-02", "500.25", 300.0, 900.0, "1500.75")]


def month(name: str, usd: str, low: float, high: float, by_then: str) -> dict[str, Any]:
    drawn = {"p10": low, "p50": float(usd), "p90": high}
    return {"month": name, "usd": float(usd), "drawn_usd": drawn, "by_then_usd": float(by_then), "drawn_by_then_usd": drawn}


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    plain = answer_of(complete())
    return {**plain, "schedule": {**plain["schedule"], "pools": [POOL]}, "months": [month(*each) for each in MONTHS]}


def test_a_run_that_waits_is_drawn_from_when_it_could_begin(answer: dict[str, Any]) -> None:
    """A hollow bar of its days before its own, and words for whom it waits."""
    drawn = gantt_chart(answer).to_dict()
    hollow, words, *_ = drawn["layer"]
    (row,) = drawn["datasets"][hollow["data"]["name"]]
    entry = next(entry for entry in answer["schedule"]["calendar"] if entry["what"] == WAIT["run"])
    assert row["what"] == WAIT["run"]
    assert (row["from"][:10], row["until"]) == ("2027-01-13", entry["start"])
    assert words["mark"]["type"] == "text"
    assert row["label"] == "waits 12 days for production: main"
    assert "hollow: waits for accelerators" in drawn["title"]["subtitle"]


def test_who_waits_for_whom_is_a_table_with_what_more_accelerators_save(answer: dict[str, Any]) -> None:
    """How long, on which pool, what a node saves, and how many it takes to wait no more."""
    text = render("program", answer, "md")[0].decode()
    line = next(line for line in text.splitlines() if line.startswith("| validation: scale check | production: main"))
    assert [cell.strip() for cell in line.strip("|").split("|")][2:] == [
        *("12", "H100", "128", "0.5", "64 more accelerators: the end is 9 days earlier"),
    ]
    sheet = load_workbook(io.BytesIO(render("program", answer, "xlsx")[0]))["Waiting"]
    assert [cell.value for cell in sheet[5]][:5] == ["validation: scale check", "production: main", 12, "H100", 128]


def test_without_waits_the_document_says_that_nobody_waits(answer: dict[str, Any]) -> None:
    quiet = {**answer, "schedule": {**answer["schedule"], "pools": [{**POOL, "waits": [], "one_more_node": None, "least_useful": None}]}}
    assert "No run waits for another: the runs share 128 accelerators of H100." in render("program", quiet, "html")[0].decode()
    assert "Waiting" not in load_workbook(io.BytesIO(render("program", quiet, "xlsx")[0])).sheetnames


def test_spend_by_month_is_in_every_format(answer: dict[str, Any]) -> None:
    """A table and a chart on the page, rows of the CSV that add up, a sheet with a chart."""
    page = render("program", answer, "html")[0].decode()
    assert "Spend by month" in page
    assert "January 2027 costs most" in page
    rows = list(csv.DictReader(io.StringIO(render("program", answer, "csv")[0].decode(), newline="")))
    months = [row for row in rows if row["section"] == "month"]
    assert [(row["name"], row["usd_p10"], row["usd_p90"]) for row in months] == [
        ("2027-01", "900.00", "1200.00"),
        ("2027-02", "300.00", "900.00"),
    ]
    assert sum(Decimal(row["usd"]) for row in months) == Decimal("1500.75")
    sheet = load_workbook(io.BytesIO(render("program", answer, "xlsx")[0]))["Months"]
    assert sheet["A5"].value == "2027-01"
    assert sheet["B7"].value.startswith("=SUM(")
    assert months_chart({**answer, "months": []}) is None
