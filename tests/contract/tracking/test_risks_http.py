"""A tracked program's risks over HTTP: a plan's register, notes on it, and what the status says of reserve and forecast."""

from __future__ import annotations

import copy

import pytest
from flask.testing import FlaskClient

from service.api.resources.programs import EXAMPLE
from service.schemas.tracking.status import ProgramStatusSchema
from tests.contract.tracking.tracked_program import Body, made

SPIKE = {"name": "loss spike", "probability": 0.3, "cost_share_of_tier": 0.1, "tier": "production", "days": 4, "owner": "Ada"}
AT = "2026-11-02T00:00:00Z"


@pytest.fixture
def program(client: FlaskClient) -> Body:
    """A program that is tracked against a plan with one risk."""
    return made(client, "/v1/track/programs", {"name": "at risk", "plan": copy.deepcopy(EXAMPLE) | {"risks": [SPIKE]}})


def tracked(client: FlaskClient, program: Body) -> Body:
    status: Body = client.get(f"/v1/track/programs/{program['id']}/status").get_json()
    assert ProgramStatusSchema().validate(status) == {}
    return status


def test_a_note_on_a_risk_draws_on_the_reserve(client: FlaskClient, program: Body) -> None:
    """Told twice it counts once; a correction takes it back."""
    run = made(client, f"/v1/track/programs/{program['id']}/runs", {"name": "main", "tier": "production"})
    before = tracked(client, program)
    assert [risk["state"] for risk in before["risks"]] == ["open"]
    note = {"id": "n1", "type": "note", "at": AT, "text": "spiked", "risk": "loss spike", "state": "occurred", "usd": 9000, "days": 3}
    for _ in range(2):
        assert client.post(f"/v1/track/runs/{run['id']}/events", json={"events": [note]}).status_code == 200
    after = tracked(client, program)
    assert after["risks"][0]["usd"] == 9000
    assert after["reserve"]["left_usd"] == pytest.approx(before["reserve"]["left_usd"] - 9000)
    page = client.get(f"/v1/track/programs/{program['id']}/report?format=md").get_data(as_text=True)
    assert "loss spike" in page
    back = {"id": "c1", "type": "correction", "at": AT, "supersedes": "n1"}
    assert client.post(f"/v1/track/runs/{run['id']}/events", json={"events": [back]}).status_code == 200
    assert tracked(client, program)["risks"] == before["risks"]
    logged = client.get(f"/v1/track/runs/{run['id']}/events").get_json()
    assert "9000" in str(logged)
