"""Gates of a tracked program over HTTP: ways on in status, report and documents."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from flask.testing import FlaskClient

from service.usecases.programs.pivots import pivot_request
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


def decide(client: FlaskClient, run: Body, gate: str, verdict: str) -> None:
    event = {"id": f"d-{gate}-{verdict}", "type": "decision", "at": "2025-08-16T00:00:00Z", "gate": gate, "verdict": verdict}
    made(client, f"/v1/track/runs/{run['id']}/events", {"events": [event]})


def changed(client: FlaskClient, program: Body, **given: Any) -> Any:
    url = f"{TRACK}/{program['id']}"
    return client.patch(url, json=given, headers={"If-Match": client.get(url).headers["ETag"]})


def test_a_program_goes_on_with_its_pivot(client: FlaskClient) -> None:
    """What is spent stays; budget, scope, runs and gates ahead are the pivot's, and its end is forecast by the pivot's calendar."""
    program = tracked(client)
    run = run_of(client, program, "validation", "scale check", 0.5)
    decide(client, run, "validation", "pivot")
    before = status(client, program)
    alone = client.post("/v1/estimate/program", json=pivot_request(PLANNED, PIVOT, "2025-08-21")).get_json()
    answer = changed(client, program, pivot_at="validation", pivot_from="2025-08-21")
    assert answer.status_code == 200, answer.text
    body = answer.get_json()
    assert body["pivoted"] == {"gate": "validation", "program": PIVOT["name"], "from": "2025-08-21"}
    assert body["budget_usd"] == pytest.approx(before["spend"]["usd"] + alone["total_usd"]["p50"], abs=0.01)
    assert body["planned_tokens"] == pytest.approx(before["spend"]["tokens"] + sum(tier["tokens"] for tier in alone["tiers"]), rel=1e-9)
    assert body["planned_runs"] == [{"tier": "production", "name": "main"}]
    after = status(client, program)
    assert after["spend"]["usd"] == pytest.approx(before["spend"]["usd"])
    assert after["forecast"]["cost_usd"]["p50"] == pytest.approx(body["budget_usd"], rel=0.001)
    assert after["forecast"]["finish"]["p50"] == alone["schedule"]["finish"]["p50"]
    assert [gate["tier"] for gate in after["tier_gates"]] == ["production"]
    assert {each["state"] for each in after["runs"]} <= {"closed", "finished"}


def test_runs_of_the_pivot_take_its_plan(client: FlaskClient) -> None:
    """By tier and name; a name that a run has already is told from it by the pivot's."""
    program = tracked(client)
    run = run_of(client, program, "production", "main", 0.1)
    decide(client, run, "validation", "pivot")
    assert changed(client, program, pivot_at="validation", pivot_from="2025-08-21").status_code == 200
    name = f"main, {PIVOT['name']}"
    assert client.get(f"{TRACK}/{program['id']}").get_json()["planned_runs"] == [{"tier": "production", "name": name}]
    made_run = made(client, f"{TRACK}/{program['id']}/runs", {"name": name, "tier": "production"})
    assert made_run["planned"]["tokens"] == 600_000_000_000


def test_a_pivot_is_decided_before_it_is_followed(client: FlaskClient) -> None:
    """Without the decision, without a pivot in the gate, and for a second time it is refused, with what to do."""
    program = tracked(client)
    run = run_of(client, program, "validation", "scale check", 0.5)
    undecided = changed(client, program, pivot_at="validation")
    assert undecided.status_code == 422
    assert "decide first" in undecided.get_data(as_text=True)
    decide(client, run, "validation", "pivot")
    without = changed(client, program, pivot_at="production")
    assert (without.status_code, without.get_json()["errors"][0]["pointer"]) == (422, "/pivot_at")
    assert changed(client, program, pivot_at="validation", pivot_from="2025-08-21").status_code == 200
    assert "already" in changed(client, program, pivot_at="validation").get_data(as_text=True)


def test_the_pivots_own_gates_are_decided_anew(client: FlaskClient) -> None:
    """The decision that led to it is not theirs, a later one is."""
    staged = copy.deepcopy(PIVOT)
    staged["tiers"] = [{**staged["tiers"][0], "tier": "validation"}]
    plan = copy.deepcopy(PLANNED)
    plan["tiers"][1]["gate"]["pivot"] = staged
    program = made(client, TRACK, {"name": "pivoting", "plan": plan})
    run = run_of(client, program, "validation", "scale check", 0.5)
    decide(client, run, "validation", "pivot")
    assert changed(client, program, pivot_at="validation", pivot_from="2025-08-16").status_code == 200
    assert status(client, program)["tier_gates"][0]["decided"] is None
    later = {"id": "later", "type": "decision", "at": "2025-08-17T00:00:00Z", "gate": "validation", "verdict": "continue"}
    made(client, f"/v1/track/runs/{run['id']}/events", {"events": [later]})
    assert status(client, program)["tier_gates"][0]["decided"] == "continue"


def test_a_day_without_a_gate_is_refused(client: FlaskClient) -> None:
    """It says which field is missing."""
    answer = changed(client, tracked(client), pivot_from="2025-08-21")
    assert (answer.status_code, answer.get_json()["errors"][0]["pointer"]) == (422, "/pivot_from")


def test_reports_of_a_pivoted_program_are_made(client: FlaskClient) -> None:
    """In every format, with the weeks before the pivot as they were used."""
    program = tracked(client)
    decide(client, run_of(client, program, "validation", "scale check", 0.5), "validation", "pivot")
    assert changed(client, program, pivot_at="validation", pivot_from="2025-08-21").status_code == 200
    for form in ("json", "md", "html", "csv", "xlsx", "ics"):
        assert client.get(f"{TRACK}/{program['id']}/report?format={form}&as_of=2025-08-22T00:00:00Z").status_code == 200


def test_half_of_the_budget_is_not_spent_before_the_start(client: FlaskClient) -> None:
    """Of a program that is to begin in months, spending is spread from its start on."""
    program = made(client, TRACK, {"name": "to come", "plan": PLANNED})
    address = f"{TRACK}/{program['id']}/report?format=json&as_of="
    winter, summer = (client.get(f"{address}{day}T00:00:00Z").get_json()["gate_date"] for day in ("2025-01-01", "2025-06-01"))
    assert PLANNED["start"] < winter == summer
