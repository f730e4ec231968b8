"""The same question without a price, asked of every endpoint that answers it, has the same number."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.unit.usecases.scenarios.scenario_requests import given, result_of

QUESTION: dict[str, Any] = {
    "model": {"preset": "llama-3-70b"},
    "data": {"tokens": "15T"},
    "hardware": {"accelerator": "h100", "count": 2048},
}
ROUNDING_USD = 0.05
# Trials multiply the ranges that an estimate combines into one, and draw failures: percentiles differ by less than a percent.
TRIALS_OFF = 0.01


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


def test_a_scenario_plans_with_the_same_number(client: FlaskClient, alone: dict[str, Any]) -> None:
    """Its planned cost; trials draw speed and failures of their own, so their median is near it by design, not equal."""
    found = scenario(client, "monte_carlo", trials=20_000, seed=1)
    assert found["planned"]["cost_usd"] == pytest.approx(alone["cost"]["total_usd"]["p50"], abs=ROUNDING_USD)
    assert found["planned"]["wall_clock_hours"] == pytest.approx(alone["time"]["wall_clock_hours"]["p50"])
    for name in ("p10", "p50", "p90"):
        assert found["cost_usd"][name] == pytest.approx(alone["cost"]["total_usd"][name], rel=TRIALS_OFF)
    assert found["price_snapshot"] == alone["price_snapshot"]


def test_a_sensitivity_starts_from_the_same_number(client: FlaskClient, alone: dict[str, Any]) -> None:
    """Its base is the estimate."""
    found = scenario(client, "sensitivity", inputs={"data.tokens": {"uniform": [14e12, 16e12]}}, points=0)
    assert found["base"]["cost_usd"] == pytest.approx(alone["cost"]["total_usd"]["p50"], abs=ROUNDING_USD)


def test_a_sweep_has_the_same_number_in_its_cell(client: FlaskClient, alone: dict[str, Any]) -> None:
    """At all percentiles, hours too."""
    one, _ = scenario(client, "sweep", axes={"hardware.count": [2048, 4096]})["rows"]
    assert one["cost_usd"] == alone["cost"]["total_usd"]
    assert one["wall_clock_hours"] == alone["time"]["wall_clock_hours"]


def scenario(client: FlaskClient, kind: str, **options: Any) -> dict[str, Any]:
    """The result over the question, evaluated as workers do."""
    return result_of(client.application.extensions["context"], given(kind, QUESTION, **options))


def test_levers_leave_the_number_as_it_is(client: FlaskClient, alone: dict[str, Any]) -> None:
    """They are weighed against it: what one saves and what is left add up to it."""
    answer = post(client, "/v1/estimate", QUESTION | {"levers": True})
    assert answer["cost"] == alone["cost"]
    for lever in answer["levers"]:
        assert lever["total_usd"] + lever["saves_usd"] == pytest.approx(alone["cost"]["total_usd"]["p50"], abs=ROUNDING_USD)


def test_serving_adds_the_same_number_for_the_training(client: FlaskClient, alone: dict[str, Any]) -> None:
    """To the cost of the model's life."""
    request = {
        "model": QUESTION["model"],
        "traffic": {"prompt_tokens": 2000, "output_tokens": 500, "lifetime_tokens": "10T"},
        "training": {"estimate": QUESTION},
    }
    assert post(client, "/v1/serving", request)["lifetime"]["training_usd"] == alone["cost"]["total_usd"]


def test_an_optimum_is_estimated_as_its_suggestion_asked_alone(client: FlaskClient) -> None:
    """The suggested model and data on the machine of the question."""
    hardware = QUESTION["hardware"]
    answer = post(client, "/v1/optimal", {"budget": {"usd": 20e6}, "hardware": hardware})
    suggested = {name: answer["suggestion"][name] for name in ("model", "data")}
    alone = post(client, "/v1/estimate", {**suggested, "hardware": hardware})
    assert answer["estimate"]["price"] == alone["price"]
    assert answer["estimate"]["cost"]["total_usd"] == alone["cost"]["total_usd"]


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
