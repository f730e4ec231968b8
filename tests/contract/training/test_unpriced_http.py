"""Accelerators without a known price: a whole estimate without its cost, and what to state to have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from service.cli import main
from service.schemas.training.answer import EstimateAnswerSchema

UNSOLD = ("H800", "GB300", "MI325X", "MI355X", "tpu-v7", "trainium2", "trainium3", "gaudi2", "gaudi3", "H20")
STATED = "price.usd_per_accelerator_hour"


def request_on(accelerator: str, **sections: Any) -> dict[str, Any]:
    hardware = {"accelerator": accelerator, "count": 256}
    return {"model": {"preset": "llama-3-8b"}, "data": {"tokens": "1T"}, "hardware": hardware, **sections}


@pytest.mark.parametrize("accelerator", UNSOLD)
def test_an_accelerator_that_nobody_sells_has_everything_but_a_cost(client: FlaskClient, accelerator: str) -> None:
    """Price and totals are null, never 0; the warning names the field to state."""
    answer = client.post("/v1/estimate", json=request_on(accelerator))
    body = answer.get_json()
    assert answer.status_code == 200, body
    assert not EstimateAnswerSchema().validate(body)
    assert (body["price"], body["cost"]["total_usd"], body["cost"]["usd_per_million_tokens"]) == (None, None, None)
    assert "compute" not in {line["line"] for line in body["cost"]["lines"]}
    assert sum(STATED in warning for warning in body["warnings"]) == 1
    assert "no price is known" in body["summary"]["text"]


def test_the_summary_says_what_to_state_and_holds_no_dollars(client: FlaskClient) -> None:
    """Nobody forwards a total of 0."""
    summary = client.post("/v1/estimate", json=request_on("H800")).get_json()["summary"]
    assert STATED in summary["text"]
    assert "$" not in json.dumps(summary, ensure_ascii=False)
    assert (summary["p50_usd"], summary["p80_usd"]) == (None, None)
    assert summary["p80_finish_days"] > summary["p50_finish_days"] > 0


def test_what_it_takes_is_that_of_a_stated_price(client: FlaskClient) -> None:
    """Only the price is missing: hours, memory and energy are the same."""
    unpriced = client.post("/v1/estimate", json=request_on("H800")).get_json()
    priced = client.post("/v1/estimate", json=request_on("H800", price={"usd_per_accelerator_hour": 2})).get_json()
    for block in ("flops", "throughput", "memory", "reliability", "time", "energy", "assumptions"):
        assert unpriced[block] == priced[block], block
    assert priced["cost"]["total_usd"]["p50"] > 0


def test_a_filter_that_matches_nothing_stays_a_refusal(client: FlaskClient) -> None:
    """The caller named what to search: an answer without a price would hide that it is not there."""
    for price in ({"provider": "aws"}, {"pricing": "spot"}, {"region": "us-east-1"}):
        answer = client.post("/v1/estimate", json=request_on("H800", price=price))
        assert (answer.status_code, answer.get_json()["errors"][0]["pointer"]) == (422, "/price"), price


def test_levers_of_an_unpriced_run_are_left_out_and_that_is_said(client: FlaskClient) -> None:
    """A lever is first of all dollars saved."""
    body = client.post("/v1/estimate", json=request_on("H800", levers=True)).get_json()
    assert "levers" not in body
    assert "levers" in body["warnings"][0]


@pytest.mark.parametrize("budget", [{"days": 60}, {"accelerator_hours": 3e6}, {"flops": 1e24}])
def test_an_optimum_is_found_in_time_and_hours_and_without_dollars(client: FlaskClient, budget: dict[str, float]) -> None:
    """Size and tokens are those of a stated price: only dollars are missing, and one warning says what to state."""
    request = {"budget": budget, "hardware": {"accelerator": "H800", "count": 1024}, "lifetime_inference_tokens": 1e13}
    unpriced = client.post("/v1/optimal", json=request).get_json()
    priced = client.post("/v1/optimal", json={**request, "price": {"usd_per_accelerator_hour": 2}}).get_json()
    for field in ("params", "tokens"):
        assert unpriced[field]["p50"] == pytest.approx(priced[field]["p50"], rel=1e-3)
    assert unpriced["lifetime"]["saves_share"] == pytest.approx(priced["lifetime"]["saves_share"], rel=1e-3)
    assert unpriced["training"]["accelerator_hours"]["p50"] > 0
    assert unpriced["estimate"]["cost"]["total_usd"] is None
    assert dollars({**unpriced, "estimate": None}) == set()
    assert sum(STATED in warning for warning in unpriced["warnings"]) == 1


def dollars(body: Any) -> set[float]:
    """Amounts in the fields of an answer that are named as dollars."""
    if isinstance(body, list):
        return {amount for entry in body for amount in dollars(entry)}
    if not isinstance(body, dict):
        return set()
    named = {name: value for name, value in body.items() if name.endswith("usd") or name.startswith("usd_per")}
    own = {value for value in named.values() if isinstance(value, (int, float))}
    ranges = {value["p50"] for value in named.values() if isinstance(value, dict) and "p50" in value}
    return own | ranges | {amount for value in body.values() for amount in dollars(value)}


def test_serving_finds_the_replica_and_its_fleet_without_a_cost(client: FlaskClient) -> None:
    """They are those of a stated price; levers, which are weighed by dollars, are left out."""
    traffic = {"prompt_tokens": 2000, "output_tokens": 500, "requests_per_s": 10, "lifetime_tokens": 1e12}
    hardware = {"accelerators": ["H800"]}
    request = {"model": {"preset": "llama-3-70b"}, "traffic": traffic, "hardware": hardware, "levers": True}
    unpriced = client.post("/v1/serving", json=request).get_json()
    priced = client.post("/v1/serving", json={**request, "price": {"usd_per_accelerator_hour": 2}}).get_json()
    for block in ("configuration", "memory", "throughput", "latency", "fleet"):
        assert unpriced["best"][block] == priced["best"][block], block
    assert (unpriced["best"]["cost"], unpriced["best"]["price"], unpriced["levers"]) == (None, None, None)
    assert unpriced["lifetime"]["months"] == priced["lifetime"]["months"]
    assert dollars(unpriced) == set()
    assert sum(STATED in warning for warning in unpriced["warnings"]) == 1
    assert STATED in unpriced["summary"]["text"]


def test_serving_with_a_training_that_nobody_prices_has_no_total(client: FlaskClient) -> None:
    """The serving's own cost is known, what both cost is not."""
    traffic = {"prompt_tokens": 2000, "output_tokens": 500, "lifetime_tokens": 1e12}
    request = {"model": {"preset": "llama-3-8b"}, "traffic": traffic, "training": {"estimate": request_on("H800")}}
    body = client.post("/v1/serving", json=request).get_json()
    assert body["lifetime"]["serving_usd"]["p50"] > 0
    assert (body["lifetime"]["training_usd"], body["lifetime"]["total_usd"]) == (None, None)
    assert any(f"training.estimate.{STATED}" in warning for warning in body["warnings"])


def test_serving_refuses_a_filter_that_matches_nothing(client: FlaskClient) -> None:
    """As an estimate does."""
    traffic = {"prompt_tokens": 2000, "output_tokens": 500}
    request = {"model": {"preset": "llama-3-8b"}, "traffic": traffic, "hardware": {"accelerators": ["H800"]}, "price": {"pricing": "spot"}}
    answer = client.post("/v1/serving", json=request)
    assert (answer.status_code, answer.get_json()["errors"][0]["pointer"]) == (422, "/price")


def test_a_budget_of_dollars_says_that_a_price_is_to_be_stated(client: FlaskClient) -> None:
    """What dollars buy is not known; it names budgets that need no price."""
    request = {"budget": {"usd": 5e6}, "hardware": {"accelerator": "H800", "count": 1024}}
    answer = client.post("/v1/optimal", json=request)
    (problem,) = answer.get_json()["errors"]
    assert (answer.status_code, problem["pointer"]) == (422, "/price")
    assert STATED in problem["message"]
    assert "accelerator_hours" in problem["message"]


def test_a_batch_answers_it_as_the_single_request(client: FlaskClient) -> None:
    """Among others that have a price."""
    requests = [request_on("H800"), request_on("H100")]
    unpriced, priced = client.post("/v1/estimate/batch", json={"requests": requests}).get_json()["answers"]
    assert unpriced == client.post("/v1/estimate", json=requests[0]).get_json()
    assert priced["cost"]["total_usd"]["p50"] > 0


def test_the_command_line_says_that_the_price_is_not_known(tmp_path: Path) -> None:
    """In the sentence and beside its cost."""
    arguments = ["estimate", "--model", "llama-3-8b", "--tokens", "1T", "--accelerator", "H800", "--count", "256"]
    shown = CliRunner().invoke(main, arguments, env={"OUTLAY_DATA_DIR": str(tmp_path), "OUTLAY_OFFLINE": "1"})
    assert shown.exit_code == 0, shown.output
    assert "not known: state --usd-per-hour" in shown.stdout
    assert STATED in shown.stdout


def test_the_command_line_shows_a_dash_for_what_serving_costs(tmp_path: Path) -> None:
    """In the table of options, and as a row of its own."""
    arguments = ["serving", "--model", "llama-3-8b", "--prompt", "1000", "--output", "200", "--accelerators", "H800,H20"]
    shown = CliRunner().invoke(main, arguments, env={"OUTLAY_DATA_DIR": str(tmp_path), "OUTLAY_OFFLINE": "1"})
    assert shown.exit_code == 0, shown.output
    assert "no price" in shown.stdout
    assert "cost not known" in shown.stdout
    assert STATED in shown.stdout
