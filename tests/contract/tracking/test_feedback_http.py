"""Finished runs calibrate the team's later estimates, and no other team's."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service.usecases.resolution.feedback import FeedbackCache

EXAMPLE = Path(__file__).parents[3] / "examples" / "program-1b-64.json"
ESTIMATE = {
    "model": {"params": "1B"},
    "data": {"tokens": "100B"},
    "hardware": {"accelerator": "H100", "count": 64},
    "price": {"usd_per_accelerator_hour": 2.0},
}
START = datetime(2026, 1, 5, tzinfo=UTC)
Body = dict[str, Any]


@pytest.fixture
def app(tracking_app: Flask, monkeypatch: pytest.MonkeyPatch) -> Flask:
    """The service, whose processes see what was learned at once."""
    times = iter(range(0, 10**9, 10))
    monkeypatch.setitem(
        tracking_app.extensions, "feedback", FeedbackCache(tracking_app.extensions["context"].store, lambda: float(next(times)))
    )
    return tracking_app


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client of the service on each database."""
    return app.test_client()


def finished(client: FlaskClient, share: float, interruptions: int) -> Body:
    """The example's main run, trained for four days at a share of the speed that was planned, and closed."""
    plan = json.loads(EXAMPLE.read_text())
    program = client.post("/v1/track/programs", json={"name": "1B", "plan": plan}).get_json()
    name = plan["tiers"][-1]["runs"][0]["name"]
    run = client.post(f"/v1/track/programs/{program['id']}/runs", json={"name": name, "tier": "production"}).get_json()
    answer = client.post("/v1/estimate/program", json=plan).get_json()
    planned = answer["tiers"][-1]["runs"][0]["estimate"]
    rate = planned["throughput"]["effective_tokens_per_s"] / planned["reliability"]["goodput"] * share
    told = [
        {
            "id": f"h{hour}",
            "type": "progress",
            "at": (START + timedelta(hours=hour)).isoformat(),
            "tokens_done": round(rate * 3600 * hour),
            "accelerator_hours": 64.0 * hour,
            "cost_usd": 128.0 * hour,
            "step": hour,
        }
        for hour in range(97)
    ]
    told += [
        {
            "id": f"i{number}",
            "type": "interruption",
            "at": (START + timedelta(hours=10 + number, seconds=1)).isoformat(),
            "cause": "network",
        }
        for number in range(interruptions)
    ]
    told.append({"id": "e", "type": "cost", "at": START.isoformat(), "usd": 0.1 * 128 * 96, "line": "evaluation"})
    client.post(f"/v1/track/runs/{run['id']}/events", json={"events": told})
    closed = client.patch(f"/v1/track/runs/{run['id']}", json={"state": "closed"}, headers={"If-Match": "*"})
    assert closed.status_code == 200, closed.get_data(as_text=True)
    body: Body = closed.get_json()
    return body


def assumed(answer: Body, field: str) -> Body | None:
    """What was assumed of a field."""
    return next((one for one in answer["assumptions"] if one["field"] == field), None)


def test_estimates_learn_from_closed_runs_and_forget_those_that_are_opened_again(client: FlaskClient) -> None:
    """Speed, failures and overheads, each with how many runs it rests on."""
    before = client.post("/v1/estimate", json=ESTIMATE).get_json()
    assert assumed(before, "throughput.learned") is None
    run = finished(client, share=0.64, interruptions=4)
    after = client.post("/v1/estimate", json=ESTIMATE).get_json()
    learned = assumed(after, "throughput.learned")
    assert learned is not None
    assert learned["value"] == pytest.approx(0.8, abs=0.01)
    assert "1 finished run" in learned["source"]
    ratio = after["throughput"]["tokens_per_s"] / before["throughput"]["tokens_per_s"]
    assert ratio == pytest.approx(0.8, abs=0.02)
    mttf = assumed(after, "failures.mttf_hours_per_accelerator")
    usual = assumed(before, "failures.mttf_hours_per_accelerator")
    assert mttf is not None
    assert usual is not None
    assert mttf["value"] == pytest.approx((usual["value"] + 64 * 96) / 5, rel=0.01)
    assert assumed(after, "overhead.evaluation")["value"] == pytest.approx(0.1)  # type: ignore[index]
    assert any("evaluation" in line["line"] for line in after["cost"]["lines"])
    client.patch(f"/v1/track/runs/{run['id']}", json={"state": "open"}, headers={"If-Match": "*"})
    assert client.post("/v1/estimate", json=ESTIMATE).get_json()["throughput"] == before["throughput"]


def test_what_is_stated_stands_above_what_was_learned(client: FlaskClient) -> None:
    """A caller's own figures are taken as they are."""
    run = finished(client, share=0.5, interruptions=9)
    stated = ESTIMATE | {"failures": {"mttf_hours_per_accelerator": 9000}, "overhead": {"debugging": 0.02}, "efficiency": {"mfu": 0.4}}
    answer = client.post("/v1/estimate", json=stated).get_json()
    assert answer["throughput"]["mfu"]["p50"] == pytest.approx(0.4)
    assert answer["reliability"]["mttf_hours"] == pytest.approx(9000 / 64)
    assert assumed(answer, "throughput.learned") is None
    client.patch(f"/v1/track/runs/{run['id']}", json={"state": "open"}, headers={"If-Match": "*"})
