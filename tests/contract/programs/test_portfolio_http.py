"""POST /v1/portfolio: its example, its refusals, and any portfolio of small programs."""

from __future__ import annotations

import copy
from typing import Any

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
