"""POST /v1/portfolio: its example, its refusals, and any portfolio of small programs."""

from __future__ import annotations

import copy
import csv
import io
from typing import Any

import pytest
from flask.testing import FlaskClient

from service.api.resources.portfolio import EXAMPLE
from service.schemas.base import ProblemSchema
from service.schemas.programs.portfolio import PortfolioAnswerSchema

ADDRESS = "/v1/portfolio"
CONTRACT = {
    *("summary", "programs", "pools", "contention", "options", "assumptions", "warnings", "price_snapshot", "engine_version"),
    *("start", "finish", "total_usd", "months"),
}


def test_the_example_answers_as_described(client: FlaskClient) -> None:
    """The contract's members, twice the same."""
    answer = client.post(ADDRESS, json=EXAMPLE)
    assert answer.status_code == 200, answer.text
    body = answer.get_json()
    assert set(body) == CONTRACT
    assert PortfolioAnswerSchema().validate(body) == {}
    assert client.post(ADDRESS, json=EXAMPLE).get_data() == answer.get_data()


def test_the_table_adds_up(client: FlaskClient) -> None:
    """Programs and months each come to the total; every program, wait, week and activity has its row."""
    body = client.post(ADDRESS, json=EXAMPLE).get_json()
    answer = client.post(f"{ADDRESS}?format=csv", json=EXAMPLE)
    assert answer.content_type.startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.get_data(as_text=True), newline="")))
    (total,) = [row for row in rows if row["section"] == "total"]
    for section in ("program", "month"):
        amounts = [float(row["usd"]) for row in rows if row["section"] == section]
        assert sum(amounts) == pytest.approx(float(total["usd"]), abs=0.005)
    assert float(total["usd"]) == body["total_usd"]
    counted = {section: sum(row["section"] == section for row in rows) for section in ("wait", "pool", "calendar")}
    assert counted == {
        "wait": len(body["contention"]),
        "pool": sum(len(pool["weeks"]) for pool in body["pools"]),
        "calendar": sum(len(program["calendar"]) for program in body["programs"]),
    }


def test_the_document_says_who_waits_and_what_to_do(client: FlaskClient) -> None:
    """By Accept or by format; names are text, and a format that is not there is refused."""
    request = copy.deepcopy(EXAMPLE)
    request["programs"][1]["name"] = "=translator <b>|"
    answer = client.post(ADDRESS, json=request, headers={"Accept": "text/markdown"})
    assert answer.content_type == "text/markdown; charset=utf-8"
    said = answer.get_data(as_text=True)
    for title in ("Programs", "Who waits for whom", "What to delay and what to rent", "Pools", "Spend by month", "Calendar"):
        assert f"## {title}" in said
    assert "=translator \\<b\\>\\|" in said
    assert "<b>" not in said
    table = client.post(f"{ADDRESS}?format=csv", json=request).get_data(as_text=True)
    assert "'=translator" in table
    assert client.post(f"{ADDRESS}?format=pdf", json=EXAMPLE).status_code == 422


def test_a_portfolio_without_a_price_has_its_documents(client: FlaskClient) -> None:
    """Dates alone."""
    request = copy.deepcopy(EXAMPLE)
    request["pools"] = [{"accelerator": "H800", "count": 256}]
    for program in request["programs"]:
        program["defaults"] = {"hardware": {"accelerator": "H800", "count": 256}}
    said = client.post(f"{ADDRESS}?format=md", json=request).get_data(as_text=True)
    assert "not known" in said
    assert client.post(f"{ADDRESS}?format=csv", json=request).status_code == 200


def test_limits_and_mistakes_are_named(client: FlaskClient) -> None:
    """Too many programs, an unknown field, a program without a name."""
    (program, *_) = EXAMPLE["programs"]
    many = [program | {"name": f"p{place}"} for place in range(21)]
    nameless = {name: value for name, value in program.items() if name != "name"}
    cases: dict[str, dict[str, Any]] = {
        "/programs": {"programs": many},
        "/programs/0/prioritty": {"programs": [program | {"prioritty": 1}]},
        "/programs/0/name": {"programs": [nameless]},
        "/pools/0/count": {"programs": [copy.deepcopy(program)], "pools": [{"accelerator": "H100"}]},
    }
    for pointer, request in cases.items():
        answer = client.post(ADDRESS, json=request)
        assert answer.status_code == 422, answer.text
        body = answer.get_json()
        assert ProblemSchema().validate(body) == {}
        assert pointer in {error["pointer"] for error in body["errors"]}, body
