"""PATCH of a program's plan over HTTP: what it is held to follows, what was decided up front stays, versions keep both."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.contract.tracking.test_gates_http import PLANNED, changed, decide, run_of, tracked
from tests.contract.tracking.tracked_program import made

TRACK = "/v1/track/programs"
REQUEST = json.loads((Path(__file__).parents[3] / "examples" / "program-1b-64.json").read_text())
Body = dict[str, Any]


def replanned(**fields: Any) -> Body:
    """The plan with half of the tokens in its main run."""
    request: Body = copy.deepcopy(REQUEST) | fields
    request["tiers"][2]["runs"][0]["estimate"]["data"]["tokens"] = "500B"
    return request


def test_a_program_follows_another_plan(client: FlaskClient) -> None:
    """Budget, scope, dates and runs are its own; the version goes on."""
    program = made(client, TRACK, {"name": "1B", "plan": REQUEST})
    answer = client.post("/v1/estimate/program", json=replanned(start="2027-02-01")).get_json()
    body = changed(client, program, plan=replanned(start="2027-02-01")).get_json()
    assert body["budget_usd"] == answer["total_usd"]["p50"] < program["budget_usd"]
    assert body["planned_tokens"] == round(sum(tier["tokens"] for tier in answer["tiers"]))
    assert (body["start"], body["name"], body["version"]) == ("2027-02-01", "1B", 2)


def test_what_is_stated_beside_the_plan_counts(client: FlaskClient) -> None:
    """As of a new program."""
    program = made(client, TRACK, {"name": "1B", "plan": REQUEST})
    body = changed(client, program, plan=replanned(), budget_usd=60000, deadline="2027-05-31").get_json()
    assert (body["budget_usd"], body["deadline"]) == (60000, "2027-05-31")


def test_open_runs_follow_where_what_is_planned_of_them_was_the_plans(client: FlaskClient) -> None:
    """Not a stated amount, not a closed run."""
    program = made(client, TRACK, {"name": "1B", "plan": REQUEST})
    main: Body = {"tier": "production", "name": "main"}
    follows, stated, closed = (
        made(client, f"{TRACK}/{program['id']}/runs", main | more) for more in ({}, {"planned": {"tokens": "900B"}}, {})
    )
    address = "/v1/track/runs/{}".format
    client.patch(address(closed["id"]), json={"state": "closed"}, headers={"If-Match": '"1"'})
    assert changed(client, program, plan=replanned()).status_code == 200
    tokens = [client.get(address(run["id"])).get_json()["planned"]["tokens"] for run in (follows, stated, closed)]
    assert tokens == [500_000_000_000, 900_000_000_000, 1_000_000_000_000]


def test_criteria_that_were_agreed_up_front_stay(client: FlaskClient) -> None:
    """Of the half-spend gate, whatever the new plan says."""
    program = made(client, TRACK, {"name": "1B", "plan": REQUEST})
    body = changed(client, program, plan=replanned(midpoint_gate={"continue_if": {"cpi_at_least": 0.1}})).get_json()
    for name in ("continue_if", "stop_if", "pivot_to", "at_spend_share"):
        assert body["midpoint_gate"][name] == program["midpoint_gate"][name]
    assert body["midpoint_gate"]["at_usd"] < program["midpoint_gate"]["at_usd"]


@pytest.mark.parametrize(("plan", "pointer"), [({"name": "no tiers"}, "/plan/tiers"), (REQUEST | {"reserves": 1}, "/plan/reserves")])
def test_a_plan_that_is_none_is_refused(client: FlaskClient, plan: Body, pointer: str) -> None:
    """With the place of what is wrong; nothing is changed."""
    program = made(client, TRACK, {"name": "1B", "plan": REQUEST})
    answer = changed(client, program, plan=plan)
    assert (answer.status_code, answer.get_json()["errors"][0]["pointer"]) == (422, pointer)
    assert client.get(f"{TRACK}/{program['id']}").get_json()["version"] == 1


def test_a_pivots_plan_is_not_replaced(client: FlaskClient) -> None:
    """Nor at the same time: it holds what was spent before."""
    program = tracked(client)
    decide(client, run_of(client, program, "validation", "scale check", 0.5), "validation", "pivot")
    both = changed(client, program, pivot_at="validation", plan=PLANNED)
    assert both.get_json()["errors"][0]["pointer"] == "/plan"
    assert changed(client, program, pivot_at="validation", pivot_from="2025-08-21").status_code == 200
    assert changed(client, program, plan=PLANNED).get_json()["errors"][0]["pointer"] == "/plan"
    assert changed(client, program, budget_usd=1).status_code == 200
