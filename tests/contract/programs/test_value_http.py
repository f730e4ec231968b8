"""A program's outcome over HTTP: what it is worth, and what a tracked program keeps of it."""

from __future__ import annotations

import copy
from typing import Any

from flask.testing import FlaskClient

from service.api.resources.programs import EXAMPLE
from service.domain.programs.outcome import Guardrail
from service.schemas.programs.answer import ProgramAnswerSchema
from service.usecases.tracking.baseline import baseline_of_plan, program_baseline
from tests.contract.programs.test_programs_http import ask, told

WORTH = {
    "value_usd_per_point": 50_000,
    "metrics": [{"metric": "latency, ms", "baseline": 800, "target": 500, "value_usd_per_point": 100}],
    "saving": {"usd_per_month": 40_000, "saved_share": 0.5, "months": 24},
    "guardrails": [{"metric": "safety-eval", "floor": 0.9}],
}


def with_outcome(**fields: Any) -> dict[str, Any]:
    asked = copy.deepcopy(EXAMPLE)
    asked["outcome"] |= fields
    return asked


def test_an_outcome_is_answered_with_its_worth(client: FlaskClient) -> None:
    """Nine points, 300 ms less and half the serving cost, each with its basis; no line of the budget changes for it."""
    body = ask(client, with_outcome(**WORTH))
    outcome = body["outcome"]
    assert [round(value["usd"]) for value in outcome["values"]] == [450_000, 30_000, 480_000]
    assert outcome["value_usd"] == sum(value["usd"] for value in outcome["values"])
    assert outcome["guardrails"] == WORTH["guardrails"]
    assert body["lines"] == ask(client, EXAMPLE)["lines"]


def test_the_answer_holds_to_its_schema(client: FlaskClient) -> None:
    """Also where the program only saves."""
    saving = with_outcome(target=EXAMPLE["outcome"]["baseline"], saving=WORTH["saving"])
    body = ask(client, saving)
    assert ProgramAnswerSchema().validate(body) == {}
    assert (body["outcome"]["usd_per_point"], body["outcome"]["value_usd"]) == (None, 480_000)


def test_a_document_says_what_the_outcome_is_worth(client: FlaskClient) -> None:
    """Worth by part, and the guardrails."""
    page = client.post("/v1/estimate/program?format=md", json=with_outcome(**WORTH)).get_data(as_text=True)
    assert "Worth: serving, USD" in page
    assert "safety-eval not below 0.9" in page


def test_a_worth_stated_twice_is_refused(client: FlaskClient) -> None:
    """A price of a point, or a curve."""
    curve = [{"value": 0, "usd": 0}, {"value": 1, "usd": 1}]
    assert "/outcome/value_curve" in told(client, with_outcome(value_usd_per_point=1, value_curve=curve))


def test_a_tracked_program_keeps_the_guardrails(client: FlaskClient) -> None:
    """They are part of the plan it is tracked against."""
    planned = baseline_of_plan(ask(client, with_outcome(**WORTH)), None)
    kept = program_baseline({**planned, "name": "guarded", "state": "open"}, planned).outcome
    assert kept is not None
    assert kept.guardrails == (Guardrail("safety-eval", 0.9),)


def test_robustness_that_avoids_thousands_a_dollar_is_funded(client: FlaskClient) -> None:
    """A risk of which the first dollar of robustness avoids 3,946: it got nothing of the budget while gains had no price."""
    asked = copy.deepcopy(EXAMPLE) | {"spend_choices": {"budget_usd": 5000}}

    def with_loss(usd: int) -> dict[str, Any]:
        jailbreak = {"name": "jailbreak", "probability": 0.5, "cost_usd": usd, "addressed_by": "robustness"}
        return ask(client, {**asked, "risks": [jailbreak]})["spend_choices"]  # type: ignore[no-any-return]

    slope = with_loss(10**6)["choices"][0]["loss_avoided_per_usd"]
    found = with_loss(round(3946 / slope * 10**6))
    robustness = found["choices"][0]
    assert robustness["choice"] == "robustness"
    assert round(robustness["loss_avoided_per_usd"]) == 3946
    assert robustness["allocated_usd"] > 0
    assert robustness["pays"] is True
    assert found["loss_avoided_usd"] > 3946
    assert "have no price" in found["missing"][0]
    priced = ask(client, {**asked, "spend_choices": {"budget_usd": 5000, "usd_per_gain": 10**6}})["spend_choices"]
    assert priced["usd_per_gain"] == 10**6
    assert not any("have no price" in text for text in priced["missing"])
    assert all(choice["usd_returned_per_usd"] is not None for choice in priced["choices"])


def test_each_gate_says_what_deciding_by_it_is_worth(client: FlaskClient) -> None:
    """What it costs, what a wrong decision costs, and whether the tier is worth running; the documents show it."""
    asked = with_outcome(**WORTH)
    gates = [tier["gate"]["information"] for tier in ask(client, asked)["tiers"]]
    assert [gate["worth_running"] for gate in gates] == [True, True, None]
    assert all(gate["decide_usd"] > 0 for gate in gates)
    assert gates[0]["wrong_stop_usd"] > gates[0]["wrong_go_usd"] > 0
    assert "worth running" in client.post("/v1/estimate/program?format=md", json=asked).get_data(as_text=True)
    assert "value_usd_per_point" in ask(client, EXAMPLE)["tiers"][0]["gate"]["information"]["statement"]
