"""Programs on accelerators that nobody sells: dates, hours and gates without a budget, and refusals of what is a budget alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from service.api.resources.programs import EXAMPLE
from service.cli import main
from service.schemas.programs.answer import ProgramAnswerSchema

STATED = "price.usd_per_accelerator_hour"
DEFAULTS: dict[str, Any] = {"hardware": {"accelerator": "H800", "count": 256}}
UNPRICED: dict[str, Any] = {**EXAMPLE, "defaults": DEFAULTS, "schedule": {**EXAMPLE.get("schedule", {})}}
PRICED: dict[str, Any] = {**UNPRICED, "defaults": {**DEFAULTS, "price": {"usd_per_accelerator_hour": 2.5}}}
PLAN = "/v1/estimate/program"


def planned(client: FlaskClient, program: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(PLAN, json=program)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.get_json()
    assert not ProgramAnswerSchema().validate(body)
    return body


def test_dates_and_hours_are_those_of_a_stated_price(client: FlaskClient) -> None:
    """Only the budget is missing, and one warning says what to state."""
    unpriced, priced = planned(client, UNPRICED), planned(client, PRICED)
    for field in ("calendar", "finish", "critical_path", "deadline_probability", "latest_start"):
        assert unpriced["schedule"][field] == priced["schedule"][field], field
    for ours, theirs in zip(unpriced["tiers"], priced["tiers"], strict=True):
        for field in ("accelerator_hours", "wall_clock_hours", "flops", "tco2e"):
            assert ours[field] == theirs[field], field
    assert unpriced["completion_probability"] == priced["completion_probability"]
    assert sum(STATED in warning for warning in unpriced["warnings"]) == 1


def test_nothing_of_the_budget_is_shown(client: FlaskClient) -> None:
    """Null and empty, never 0: not in the tiers, gates, risks and deadline options either."""
    body = planned(client, {**UNPRICED, "deadline": "2027-03-01", "start": "2027-01-04"})
    assert (body["total_usd"], body["expected_usd"], body["envelope"]) == (None, None, None)
    assert (body["lines"], body["burn_plan"], body["endings"], body["overhead"]) == ([], [], [], [])
    for tier in body["tiers"]:
        assert (tier["cost_usd"], tier["overhead_usd"], tier["usd"], tier["failures"]["rollback_allowance_usd"]) == (None, None, None, None)
        assert all((run["cost_usd"] is None) == (run["estimate"]["price"] is None) for run in tier["runs"])
        assert tier["gate"] is None or (tier["gate"]["cost_to_decide_usd"], tier["gate"]["spent_usd"]) == (None, None)
    assert {option["price_usd"] for option in body["schedule"]["deadline_options"]} <= {None}
    assert {risk["loss_usd"] for risk in body["risks"]} == {None}
    assert "$" not in json.dumps(body["summary"])
    assert STATED in body["summary"]["text"]


def test_a_run_with_a_price_keeps_its_cost_beside_one_without(client: FlaskClient) -> None:
    """The sum of both is not known."""
    run = {"model": {"preset": "llama-3-8b"}, "data": {"tokens": "1T"}}
    runs = [{"name": name, "estimate": {**run, "hardware": {"accelerator": name, "count": 256}}} for name in ("H800", "H100")]
    body = planned(client, {"name": "both", "tiers": [{"tier": "production", "runs": runs}]})
    unsold, sold = body["tiers"][0]["runs"]
    assert unsold["cost_usd"] is None
    assert sold["cost_usd"] > 0
    assert body["total_usd"] is None


@pytest.mark.parametrize("form", ["md", "html", "xlsx", "csv", "focus"])
def test_a_document_of_the_budget_asks_for_the_price(client: FlaskClient, form: str) -> None:
    """A calendar holds dates alone, and is written."""
    refused = client.post(f"{PLAN}?format={form}", json=UNPRICED)
    assert refused.status_code == 422
    assert STATED in refused.get_json()["errors"][0]["message"]
    assert client.post(f"{PLAN}?format=ics", json=UNPRICED).status_code == 200


def test_a_difference_of_budgets_asks_for_the_price(client: FlaskClient) -> None:
    """Of the program that lacks it."""
    refused = client.post(f"{PLAN}/difference", json={"before": PRICED, "after": UNPRICED})
    (problem,) = refused.get_json()["errors"]
    assert (refused.status_code, problem["pointer"]) == (422, "/after")
    assert STATED in problem["message"]


def test_the_command_line_shows_dashes(tmp_path: Path) -> None:
    """For what a tier and its gate cost."""
    file = tmp_path / "program.json"
    file.write_text(json.dumps(UNPRICED))
    shown = CliRunner().invoke(main, ["plan", str(file)], env={"OUTLAY_DATA_DIR": str(tmp_path), "OUTLAY_OFFLINE": "1"})
    assert shown.exit_code == 0, shown.output
    assert "cost not known" in shown.stdout
    assert STATED in shown.stdout
