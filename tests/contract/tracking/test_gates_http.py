"""Gates of a tracked program over HTTP: ways on in status, report and documents."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.contract.tracking.tracked_program import made
from tests.unit.usecases.programs.test_branches import PIVOT, request

Body = dict[str, Any]
TRACK = "/v1/track/programs"
PLANNED = request(pivot=PIVOT, committed_usd=3000, continue_if={"metric_at_least": 0.64}) | {"start": "2025-08-01"}
del PLANNED["deadline"]


def tracked(client: FlaskClient) -> Body:
    """A program tracked from a plan with a pivot after validation; prototype is done, validation under way."""
    program = made(client, TRACK, {"name": "pivoting", "plan": PLANNED})
    run_of(client, program, "prototype", "ablations", 1.0)
    return program


def run_of(client: FlaskClient, program: Body, tier: str, name: str, share: float, metric: float | None = None) -> Body:
    """A run of the plan that has trained a share of its tokens, as planned."""
    run = made(client, f"{TRACK}/{program['id']}/runs", {"name": name, "tier": tier})
    plan = run["planned"]
    events: list[Body] = [
        {
            "id": f"e{step}",
            "type": "progress",
            "at": f"2025-08-{10 + step:02d}T00:00:00Z",
            "tokens_done": round(plan["tokens"] * share * step / 5),
            "accelerator_hours": plan["accelerator_hours"] * share * step / 5,
            "cost_usd": plan["usd"] * share * step / 5,
        }
        for step in range(1, 6)
    ]
    if metric is not None:
        events.append({"id": "eval", "type": "evaluation", "at": "2025-08-15T01:00:00Z", "metric": "helpdesk-eval", "value": metric})
    made(client, f"/v1/track/runs/{run['id']}/events", {"events": events})
    return run


def status(client: FlaskClient, program: Body) -> Body:
    found: Body = client.get(f"{TRACK}/{program['id']}/status?as_of=2025-08-20T00:00:00Z").get_json()
    return found


def test_a_gate_is_due_when_its_tier_is_done(client: FlaskClient) -> None:
    """With its ways on by the forecast, and both recommendations."""
    program = tracked(client)
    run_of(client, program, "validation", "scale check", 1.0, metric=0.6)
    found = status(client, program)
    gates = {gate["tier"]: gate for gate in found["tier_gates"]}
    assert [gates[tier]["due"] for tier in ("prototype", "validation", "production")] == [True, True, False]
    decision = gates["validation"]["decision"]
    assert [branch["branch"] for branch in decision["branches"]] == ["continue", "pivot", "stop"]
    assert decision["sunk_usd"] == found["spend"]["usd"]
    assert decision["branches"][0]["cost_usd"] == found["forecast"]["remaining_usd"]
    assert decision["branches"][0]["finish"] == found["forecast"]["finish"]
    assert (decision["by_criteria"], gates["validation"]["recommendation"]) == ("pivot", "pivot")
    assert found["gate"]["decision"]["by_criteria"] is None


def test_a_decision_closes_it(client: FlaskClient) -> None:
    """Its ways on are no longer shown."""
    program = tracked(client)
    run = run_of(client, program, "validation", "scale check", 1.0)
    decided = {"id": "d", "type": "decision", "at": "2025-08-16T00:00:00Z", "gate": "validation", "verdict": "continue"}
    made(client, f"/v1/track/runs/{run['id']}/events", {"events": [decided]})
    gate = status(client, program)["tier_gates"][1]
    assert (gate["due"], gate["decided"], gate["decision"]) == (False, "continue", None)


@pytest.mark.parametrize("form", ["md", "html", "csv", "xlsx", "json"])
def test_reports_show_the_ways_on(client: FlaskClient, form: str) -> None:
    """In every format."""
    program = tracked(client)
    answer = client.get(f"{TRACK}/{program['id']}/report?format={form}&as_of=2025-08-20T00:00:00Z")
    assert answer.status_code == 200
    if form != "xlsx":
        assert "3B for the pilot" in answer.get_data(as_text=True)
