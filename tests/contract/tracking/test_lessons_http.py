"""Lessons of finished runs have one version at a time, and every answer made with them names it and is made with the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service.api.resources.comparison import APPROACHES
from service.api.resources.scaling import LOSS_CURVE, OPTIMUM
from service.domain.teams import DEFAULT_TEAM, Principal
from service.domain.tracking.feedback import RunOutcome
from service.job_kinds import JOB_KINDS
from service.usecases.jobs import Worker, run_job
from service.usecases.resolution.feedback import FeedbackCache, context_for_team
from service.usecases.scenarios.worker import KIND, maintain_scenarios

Body = dict[str, Any]
H100 = "NVIDIA-H100-80GB-SXM"
SLOW = RunOutcome("run-1", H100, 0.7, 50_000.0, 25, {"evaluation": 0.1})
SECOND = replace(SLOW, run="run-2", throughput_ratio=0.9)
NOW = datetime(2026, 11, 1, tzinfo=UTC)
QUESTION: Body = {
    "model": {"params": "7B"},
    "data": {"tokens": "1T"},
    "hardware": {"accelerator": "H100", "count": 256},
    "price": {"usd_per_accelerator_hour": 2.0},
    "schedule": {"start": "2027-01-04", "deadline": "2027-01-11", "queue_hours": 0},
}
PROGRAM: Body = {
    "name": "one run",
    "start": "2027-01-04",
    "reserves": {"evaluation_and_debugging": 0, "contingency": 0},
    "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": QUESTION}]}],
}
COMPARE: Body = {
    "workload": {"model": QUESTION["model"], "data": QUESTION["data"]},
    "candidates": {"accelerators": ["H100"], "counts": [256], "pricing": ["on_demand"]},
    "limit": 1000,
}
SCENARIOS: Sequence[Body] = (
    {"kind": "monte_carlo", "base": QUESTION, "trials": 20_000, "seed": 7, "early_stop": False},
    {"kind": "monte_carlo", "base": PROGRAM, "trials": 100, "seed": 7},
    {"kind": "sensitivity", "base": QUESTION, "points": 0, "swing": 0.1},
    {"kind": "sweep", "base": QUESTION, "axes": {"hardware.count": [256]}},
    {"kind": "optimize", "base": QUESTION, "candidates": COMPARE["candidates"]},
)


@pytest.fixture
def app(tracking_app: Flask, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flask]:
    """The service after one finished run; its processes know of the next at once."""
    store, times = tracking_app.extensions["context"].store, iter(range(0, 10**9, 10))
    monkeypatch.setitem(tracking_app.extensions, "feedback", FeedbackCache(store, lambda: float(next(times))))
    store.save_run_outcome(DEFAULT_TEAM, SLOW, NOW)
    yield tracking_app
    for outcome in (SLOW, SECOND):
        store.delete_run_outcome(outcome.run)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def post(client: FlaskClient, route: str, request: Body) -> Body:
    answer = client.post(route, json=request)
    assert answer.status_code in (200, 202), answer.get_data(as_text=True)
    body: Body = answer.get_json()
    return body


def learn_another(app: Flask) -> None:
    """Another run is finished."""
    app.extensions["context"].store.save_run_outcome(DEFAULT_TEAM, SECOND, NOW)


def forget_all(app: Flask) -> None:
    """Every run is opened again."""
    for outcome in (SLOW, SECOND):
        app.extensions["context"].store.delete_run_outcome(outcome.run)


def result_of(app: Flask, request: Body) -> Body:
    """A scenario's result: submitted under the lessons, and evaluated by a worker when they have changed."""
    client = app.test_client()
    made = post(client, "/v1/scenarios", request)
    forget_all(app)
    context = app.extensions["context"]
    maintain_scenarios(context)
    while jobs := context.store.open_jobs(KIND):
        for job in jobs:
            run_job(context, job.id, JOB_KINDS, Worker("this/1"))
        maintain_scenarios(context)
    found = client.get(f"/v1/scenarios/{made['id']}").get_json()
    assert found["state"] == "succeeded", found["error"]
    result: Body = found["result"]
    return result


def named(answer: Body) -> list[Any]:
    """The lessons' version among the assumptions."""
    return [one["value"] for one in answer["assumptions"] if one["field"] == "lessons"]


def test_every_answer_names_the_lessons_it_is_made_with(client: FlaskClient) -> None:
    """The same version, as a field and among the assumptions."""
    alone = post(client, "/v1/estimate", QUESTION)
    assert alone["lessons"]["runs"] == 1
    others = [
        *post(client, "/v1/estimate/batch", {"requests": [QUESTION | {"levers": True}]})["answers"],
        post(client, "/v1/estimate/program", PROGRAM)["tiers"][0]["runs"][0]["estimate"],
        post(client, "/v1/compare", COMPARE),
        post(client, "/v1/optimal", OPTIMUM),
        post(client, "/v1/reprice", {"request": QUESTION, "since": alone["price_snapshot"]}),
        post(client, "/v1/approaches", APPROACHES),
    ]
    for answer in (alone, *others):
        assert answer["lessons"] == alone["lessons"]
        assert named(answer) == [alone["lessons"]["version"]]
    for route, request in (
        ("/v1/estimate/program", PROGRAM),
        ("/v1/estimate/program/difference", {"before": PROGRAM, "after": PROGRAM}),
        ("/v1/loss-curves/extrapolate", LOSS_CURVE),
    ):
        assert post(client, route, request)["lessons"] == alone["lessons"]


def test_the_version_changes_when_a_run_is_finished_and_returns_when_it_is_opened_again(app: Flask, client: FlaskClient) -> None:
    """It names content, as a price snapshot does; without a finished run there is none."""
    first = post(client, "/v1/estimate", QUESTION)
    learn_another(app)
    second = post(client, "/v1/estimate", QUESTION)
    app.extensions["context"].store.delete_run_outcome(SECOND.run)
    assert post(client, "/v1/estimate", QUESTION)["lessons"] == first["lessons"]
    forget_all(app)
    nothing = post(client, "/v1/estimate", QUESTION)
    assert first["lessons"]["version"] != second["lessons"]["version"]
    assert (second["lessons"]["runs"], nothing["lessons"], named(nothing)) == (2, None, [])


def test_a_team_has_its_own_lessons(app: Flask) -> None:
    """Another team's answers know nothing of them."""
    context = app.extensions["context"]
    ours, theirs = (
        context_for_team(context, FeedbackCache(context.store), Principal(team, None, (), team)).lessons()
        for team in (DEFAULT_TEAM, "another")
    )
    assert [outcome.run for outcome in ours.outcomes] == [SLOW.run]
    assert theirs is None


def test_a_comparison_costs_what_the_estimate_of_its_best_offer_does(client: FlaskClient) -> None:
    """Speed, failures and overheads are learned in both."""
    question = {name: section for name, section in QUESTION.items() if name not in ("price", "schedule")}
    alone, options = post(client, "/v1/estimate", question), post(client, "/v1/compare", COMPARE)["options"]
    best = next(option for option in options if option["feasible"] and not option["offer"]["stale"])
    assert best["offer"]["provider"] == alone["price"]["provider"]
    assert best["cost_usd"]["p50"] == pytest.approx(alone["cost"]["total_usd"]["p50"], abs=0.05)
    assert best["time"]["wall_clock_hours"] == pytest.approx(alone["time"]["wall_clock_hours"])


@pytest.mark.parametrize("request_body", SCENARIOS, ids=("run", "program", "sensitivity", "sweep", "optimize"))
def test_a_scenario_keeps_the_lessons_it_was_submitted_with(app: Flask, client: FlaskClient, request_body: Body) -> None:
    """A worker that evaluates it later uses and names them, whatever was learned since."""
    lessons = post(client, "/v1/estimate", QUESTION)["lessons"]
    assert result_of(app, request_body)["lessons"] == lessons


def test_a_scenario_and_an_estimate_of_the_same_request_agree(app: Flask, client: FlaskClient) -> None:
    """What is planned is equal; median and chance to meet the deadline are within the trials' error of the estimate's."""
    alone = post(client, "/v1/estimate", QUESTION)
    result = result_of(app, SCENARIOS[0])
    assert result["planned"]["cost_usd"] == pytest.approx(alone["cost"]["total_usd"]["p50"])
    hours = 24 * alone["summary"]["p50_finish_days"]  # with the overhead that was learned
    assert result["planned"]["wall_clock_hours"] == pytest.approx(hours)
    assert result["wall_clock_hours"]["p50"] == pytest.approx(hours, rel=0.02)
    assert 0.2 < alone["time"]["deadline_probability"] < 0.9
    assert result["deadline_probability"] == pytest.approx(alone["time"]["deadline_probability"], abs=0.03)
    assert named(result) == [alone["lessons"]["version"]]


def test_sweeps_and_sensitivities_evaluate_the_estimate(app: Flask, client: FlaskClient) -> None:
    """Cell and base cost what the estimate does."""
    usd = post(client, "/v1/estimate", QUESTION)["cost"]["total_usd"]["p50"]
    assert result_of(app, SCENARIOS[3])["rows"][0]["cost_usd"]["p50"] == pytest.approx(usd)
    app.extensions["context"].store.save_run_outcome(DEFAULT_TEAM, SLOW, NOW)
    assert result_of(app, SCENARIOS[2])["base"]["cost_usd"] == pytest.approx(usd)
