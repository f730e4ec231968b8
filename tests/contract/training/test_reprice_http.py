"""POST /v1/reprice: what moved since an earlier answer, and what bad input is told."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from service.api.resources.training.estimate import EXAMPLE as ESTIMATE
from service.api.resources.training.reprice import EXAMPLE
from service.schemas.training.reprice import RepriceAnswerSchema


@pytest.fixture
def earlier(client: FlaskClient) -> dict[str, Any]:
    """An earlier answer."""
    body: dict[str, Any] = client.post("/v1/estimate", json=ESTIMATE).get_json()
    return body


def moved(client: FlaskClient, **asked: Any) -> dict[str, Any]:
    answer = client.post("/v1/reprice", json=asked)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


def test_the_answer_is_what_the_specification_describes(client: FlaskClient, earlier: dict[str, Any]) -> None:
    """Then, now and the causes, with the snapshot and the engine at its top."""
    request = ESTIMATE | {"data": {"tokens": "3T"}, "price": {"pricing": "on_demand"}}
    found = moved(client, request=request, before=ESTIMATE, since=earlier["price_snapshot"], before_total_usd=1e5)
    assert RepriceAnswerSchema().validate(found) == {}
    assert (found["price_snapshot"], found["engine_version"]) == (earlier["price_snapshot"], earlier["engine_version"])
    assert found["before"]["price"] == earlier["price"]
    assert [cause["cause"] for cause in found["moved"]["causes"]] == ["engine", "price", "workload"]
    assert sum(round(cause["usd"] * 100) for cause in found["moved"]["causes"]) == round(found["moved"]["usd"] * 100)


def test_nothing_moves_by_itself(client: FlaskClient, earlier: dict[str, Any]) -> None:
    """The same request, prices and total."""
    total = earlier["cost"]["total_usd"]["p50"]
    found = moved(client, request=ESTIMATE, since=earlier["price_snapshot"], before_total_usd=total)["moved"]
    assert (found["from_usd"], found["to_usd"], found["usd"]) == (total, total, 0)
    assert [cause["usd"] for cause in found["causes"]] == [0, 0, 0]


def test_counts_that_mean_the_same_are_no_change(client: FlaskClient, earlier: dict[str, Any]) -> None:
    """2T and 2e12 are one number."""
    request = ESTIMATE | {"data": {"tokens": 2e12}}
    found = moved(client, request=request, before=ESTIMATE, since=earlier["price_snapshot"])["moved"]
    assert [cause["changes"] for cause in found["causes"]] == [[], []]


def test_a_request_that_asked_for_levers_can_be_sent_as_it_was(client: FlaskClient, earlier: dict[str, Any]) -> None:
    """They are not looked for, and are no change."""
    found = moved(client, request=ESTIMATE, before=ESTIMATE | {"levers": True}, since=earlier["price_snapshot"])
    assert found["moved"]["usd"] == 0
    assert "levers" not in found


@pytest.mark.parametrize(
    ("asked", "pointers"),
    [
        ({}, ["/request", "/since"]),
        ({"request": ESTIMATE}, ["/since"]),
        ({"request": ESTIMATE, "since": "nope"}, ["/since"]),
        ({"request": ESTIMATE | {"model": {"preset": "gpt-9"}}, "since": "CURRENT"}, ["/request/model/preset"]),
        ({"request": ESTIMATE, "before": {"model": {}}, "since": "CURRENT"}, ["/before/data", "/before/hardware"]),
        (
            {"request": ESTIMATE, "before": ESTIMATE | {"hardware": {"accelerator": "H10", "count": 8}}, "since": "CURRENT"},
            ["/before/hardware/accelerator"],
        ),
        ({"request": ESTIMATE, "since": "CURRENT", "before_total_usd": -1}, ["/before_total_usd"]),
        ({"request": ESTIMATE, "since": "CURRENT", "until": "nope"}, ["/until"]),
    ],
)
def test_mistakes_are_told_where_they_are(client: FlaskClient, earlier: dict[str, Any], asked: dict[str, Any], pointers: list[str]) -> None:
    """In whichever of the two requests."""
    if asked.get("since") == "CURRENT":
        asked = asked | {"since": earlier["price_snapshot"]}
    answer = client.post("/v1/reprice", json=asked)
    assert answer.status_code == 422
    assert sorted(error["pointer"] for error in answer.get_json()["errors"]) == pointers


def test_the_documented_example_is_answered(client: FlaskClient, earlier: dict[str, Any]) -> None:
    """With a snapshot that is there."""
    assert moved(client, **EXAMPLE | {"since": earlier["price_snapshot"]})["moved"]["usd"] > 0
