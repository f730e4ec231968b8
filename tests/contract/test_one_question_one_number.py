"""The same question without a price, asked of every endpoint that answers it, has the same number."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

QUESTION: dict[str, Any] = {
    "model": {"preset": "llama-3-70b"},
    "data": {"tokens": "15T"},
    "hardware": {"accelerator": "h100", "count": 2048},
}
ROUNDING_USD = 0.05


@pytest.fixture
def alone(client: FlaskClient) -> dict[str, Any]:
    return post(client, "/v1/estimate", QUESTION)


def post(client: FlaskClient, route: str, request: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(route, json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


def test_a_batch_answers_as_the_estimate(client: FlaskClient, alone: dict[str, Any]) -> None:
    (answer,) = post(client, "/v1/estimate/batch", {"requests": [QUESTION]})["answers"]
    assert (answer["price"], answer["cost"]["total_usd"]) == (alone["price"], alone["cost"]["total_usd"])


def test_a_program_of_the_run_alone_costs_the_run(client: FlaskClient, alone: dict[str, Any]) -> None:
    """Both its tier and the run in it."""
    program = {
        "name": "one run",
        "start": "2027-01-04",
        "reserves": {"evaluation_and_debugging": 0, "contingency": 0},
        "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": QUESTION}]}],
    }
    (tier,) = post(client, "/v1/estimate/program", program)["tiers"]
    assert tier["runs"][0]["estimate"]["price"] == alone["price"]
    assert tier["runs"][0]["estimate"]["cost"]["total_usd"]["p50"] == pytest.approx(alone["cost"]["total_usd"]["p50"], abs=ROUNDING_USD)


def test_a_comparison_of_that_machine_begins_with_the_same_offer(client: FlaskClient, alone: dict[str, Any]) -> None:
    """Of fresh on-demand offers; stale ones may be lower."""
    request = {
        "workload": {name: QUESTION[name] for name in ("model", "data")},
        "candidates": {"accelerators": ["h100"], "counts": [2048], "pricing": ["on_demand"]},
        "limit": 1000,
    }
    options = post(client, "/v1/compare", request)["options"]
    best = next(option for option in options if option["feasible"] and not option["offer"]["stale"])
    assert best["offer"]["provider"] == alone["price"]["provider"]
    assert best["cost_usd"]["p50"] == pytest.approx(alone["cost"]["total_usd"]["p50"], abs=ROUNDING_USD)


def test_a_reprice_of_the_question_starts_from_the_same_number(client: FlaskClient, alone: dict[str, Any]) -> None:
    """Between a snapshot and itself nothing moves."""
    request = {"request": QUESTION, "since": alone["price_snapshot"]}
    answer = post(client, "/v1/reprice", request)
    assert answer["now"]["total_usd"] == pytest.approx(alone["cost"]["total_usd"]["p50"], abs=ROUNDING_USD)
    assert float(answer["moved"]["usd"]) == 0


@pytest.mark.parametrize("more", [{"data": {"tokens": "16T"}}, {"price": {"usd_per_accelerator_hour": 3.95}}])
def test_more_tokens_or_a_higher_price_cost_more(client: FlaskClient, alone: dict[str, Any], more: dict[str, Any]) -> None:
    """At every percentile; the price is above that of the chosen offer."""
    dearer = post(client, "/v1/estimate", QUESTION | more)
    assert alone["price"]["usd_per_accelerator_hour"] < 3.95
    for name in ("p10", "p50", "p90"):
        assert dearer["cost"]["total_usd"][name] > alone["cost"]["total_usd"][name]


def test_a_faster_network_is_never_slower(client: FlaskClient) -> None:
    """At one price, from an ordinary card to eight of the fastest."""
    rates = (10, 25, 100, 400, 1600, 3200)
    hours = [
        post(
            client,
            "/v1/estimate",
            QUESTION | {"hardware": QUESTION["hardware"] | {"inter_node_gbps": rate}, "price": {"usd_per_accelerator_hour": 2.0}},
        )["time"]["wall_clock_hours"]["p50"]
        for rate in rates
    ]
    assert hours == sorted(hours, reverse=True)
    assert hours[0] > 2 * hours[-1]
