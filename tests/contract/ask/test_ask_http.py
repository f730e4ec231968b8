"""POST /v1/ask: what is read, answered, asked back and refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.api.resources.ask import EXAMPLE
from service.domain.ask import EXAMPLES
from service.domain.errors import StoreUnavailable
from service.schemas.ask import LONGEST_QUESTION, AskAnswerSchema
from service.schemas.base import ProblemSchema


def ask(client: FlaskClient, text: str, *, answer: bool = False) -> dict[str, Any]:
    response = client.post("/v1/ask", json={"text": text, "answer": answer})
    assert response.status_code == 200, response.get_data(as_text=True)
    body: dict[str, Any] = response.get_json()
    assert AskAnswerSchema().validate(body) == {}
    return body


def test_a_question_is_read_as_the_request_that_its_endpoint_takes(client: FlaskClient) -> None:
    body = ask(client, "llama 3 8b, 1 trillion tokens on 512 h100s at $2")
    understood = body["understood"]
    assert understood["kind"] == "estimate"
    assert understood["echo"] == "I read: an estimate of llama-3-8b, 1 trillion tokens, on 512 H100, at $2 per hour."
    assert body["answer"] is None
    method, path = understood["endpoint"].split()
    assert client.open(path, method=method, json=understood["request"]).status_code == 200


@pytest.mark.parametrize(
    "text",
    [
        EXAMPLE["text"],
        "lora on qwen3 8b, 50M tokens, one a100",
        "compare 7B 1T on h100,h200 x 64,128 in EU under $300k",
        "what can $1M train on 256 h100",
        "biggest model for 1e22 flops",
        "compare 7B and 13B on 1T tokens, 64 h100",
        "fp8 vs bf16 for 13B 200B on 256 H100",
        "lora or qlora of llama 3 8b on 20M tokens, 8 h100 with a 2 day queue and 10% overhead",
        "buy 256 h100 at 32k for 3 years use 70% vs $1.89",
        "own or rent 64 h200 for 4 years, capex $38k each, cost of capital 9%, electricity at $0.09 per kWh",
    ],
)
def test_the_answer_is_that_of_the_endpoint(client: FlaskClient, text: str) -> None:
    body = ask(client, text, answer=True)
    method, path = body["understood"]["endpoint"].split()
    direct = client.open(path, method=method, json=body["understood"]["request"]).get_json()
    assert body["problem"] is None
    assert body["answer"] == direct
    assert body["summary"] == direct["summary"]
    assert body["price_snapshot"] == direct["price_snapshot"]


def test_a_chance_is_the_probability_of_deadline_and_budget(client: FlaskClient) -> None:
    body = ask(client, "chance llama-3-8b 1T tokens on 512 h100 at $2 starting 2027-01-04 by 2027-03-01 under $80k", answer=True)
    assert body["problem"] is None
    assert 0 <= body["answer"]["deadline_probability"] <= 1
    assert 0 < body["answer"]["budget_probability"] < 1
    assert body["summary"]["text"]


def test_the_request_of_a_chance_is_that_of_a_scenario(tracking_app: Flask) -> None:
    client = tracking_app.test_client()
    understood = ask(client, "chance llama-3-8b 1T tokens on 512 h100 under $600k")["understood"]
    assert understood["endpoint"] == "POST /v1/scenarios"
    assert client.post("/v1/scenarios", json=understood["request"]).status_code == 202


def test_each_way_that_is_weighed_is_answered_with_its_best_option(client: FlaskClient) -> None:
    body = ask(client, "fp8 vs bf16 for 7B 100B on 64 H100", answer=True)
    assert [variant["name"] for variant in body["answer"]["variants"]] == ["fp8", "bf16"]
    assert re.search(r"Each at its best: fp8 \$[\d,]+ and [\d.]+ days; bf16 \$[\d,]+ and [\d.]+ days\.", body["summary"]["text"])


def test_the_cheapest_price_of_each_of_several_providers_or_parts_is_answered(client: FlaskClient) -> None:
    body = ask(client, "aws vs lambda h100 price on demand", answer=True)
    assert body["understood"]["request"] == {"accelerator": "H100", "provider": "aws,lambda", "pricing": "on_demand"}
    assert {item["provider"] for item in body["answer"]["items"]} == {"aws", "lambda"}
    assert body["summary"]["text"].startswith("H100 on demand aws, lambda, cheapest an accelerator-hour: aws $6.88 (")
    listed = client.get("/v1/offers", query_string=body["understood"]["request"]).get_json()["items"]
    assert {item["provider"] for item in listed} == {"aws", "lambda"}
    assert "; H200 " in ask(client, "price h100 vs h200", answer=True)["summary"]["text"]


def test_the_cheapest_price_of_each_of_several_kinds_is_answered(client: FlaskClient) -> None:
    body = ask(client, "spot vs on demand price of h100", answer=True)
    assert body["understood"]["request"] == {"accelerator": "H100", "pricing": "spot,on_demand"}
    assert re.search(r"accelerator-hour: spot \$.*; on demand \$", body["summary"]["text"])
    listed = client.get("/v1/offers", query_string={**body["understood"]["request"], "limit": 1000}).get_json()["items"]
    assert {item["pricing"] for item in listed} == {"spot", "on_demand"}
    refused = client.get("/v1/offers?pricing=spot,demand")
    assert refused.status_code == 422
    assert "did you mean 'on_demand'?" in refused.get_data(as_text=True)


def test_prices_are_answered_the_cheapest_first_in_a_sentence(client: FlaskClient) -> None:
    body = ask(client, "price h100 on demand on aws", answer=True)
    assert body["understood"]["request"] == {"accelerator": "H100", "provider": "aws", "pricing": "on_demand"}
    items = body["answer"]["items"]
    assert {item["provider"] for item in items} == {"aws"}
    least, text = min(items, key=lambda item: item["usd_per_accelerator_hour"]), body["summary"]["text"]
    assert text.startswith(
        f"H100 aws, an accelerator-hour: on demand from ${least['usd_per_accelerator_hour']:.2f} (aws {least['region']})"
    )
    assert re.search(r"\d+ offers of 1 provider from \$", text)
    page = client.get("/v1/offers", query_string={**body["understood"]["request"], "limit": 1000}).get_json()
    assert body["answer"]["found"] == len(page["items"])


def test_without_the_database_what_is_of_no_program_is_read(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise StoreUnavailable("gone")

    store = client.application.extensions["context"].store
    monkeypatch.setattr(type(store), "absent", lambda _: False)
    monkeypatch.setattr(type(store), "programs", away)
    read = ask(client, "llama 3 8b 1T tokens on 512 h100 rn")
    assert read["understood"]["kind"] == "estimate"
    assert client.post("/v1/ask", json={"text": "status 7B"}).status_code == 503


def test_who_asks_the_least_is_said_for_each_kind_of_pricing(client: FlaskClient) -> None:
    """A fresh price before a stale one, and on demand beside on demand where several sellers are named."""
    body = ask(client, "who is the cheapest for h100", answer=True)
    fresh = [item for item in client.get("/v1/offers?accelerator=H100&limit=1000").get_json()["items"] if not item["stale"]]
    for pricing, words in (("on_demand", "on demand"), ("spot", "spot")):
        least = min((item for item in fresh if item["pricing"] == pricing), key=lambda item: item["usd_per_accelerator_hour"])
        assert f"{words} from ${least['usd_per_accelerator_hour']:.2f} ({least['provider']} " in body["summary"]["text"]
    several = ask(client, "list price of h100 at aws and gcp", answer=True)["summary"]["text"]
    assert several.count("on demand") == 2
    assert "spot" not in several


def test_a_fleet_for_a_time_is_answered_with_what_it_costs(client: FlaskClient) -> None:
    body = ask(client, "512 h100 for 90 days at $1.99", answer=True)
    assert body["understood"]["request"] == {"accelerator": "H100", "count": 512, "hours": 2160, "usd_per_accelerator_hour": 1.99}
    assert "512 of them for 90 days: $2.20M at your price, " in body["summary"]["text"]
    listed = client.get("/v1/offers", query_string=body["understood"]["request"]).get_json()
    assert body["answer"]["fleet"] == listed["fleet"]
    assert listed["fleet"]["accelerator_hours"] == 512 * 2160
    assert listed["fleet"]["stated_usd"] == pytest.approx(512 * 2160 * 1.99)
    assert client.get("/v1/offers?accelerator=H100").get_json()["fleet"] is None
    compared = ask(client, "aws vs lambda price of 64 h100 for a month", answer=True)
    assert re.search(r"64 of them for 30.4 days: aws \$.*\), \$[\d,]+, read .*; lambda \$", compared["summary"]["text"])


def test_a_program_is_found_by_a_part_of_its_name(tracking_app: Flask) -> None:
    client = tracking_app.test_client()
    made = client.post("/v1/track/programs", json={"name": "support-assistant 7B", "budget_usd": 100_000, "start": "2026-01-05"}).get_json()
    body = ask(client, "status 7B", answer=True)
    assert body["understood"]["request"] == {"id": made["id"]}
    assert body["answer"]["spend"]["usd"] == 0
    assert body["understood"]["echo"] == "I read: the status of support-assistant 7B."
    other = client.post("/v1/track/programs", json={"name": "vision 7B", "budget_usd": 100_000}).get_json()
    asked = ask(client, "status 7B", answer=True)
    assert asked["answer"] is None
    assert asked["unclear"][0]["candidates"] == ["vision 7B", "support-assistant 7B"]
    assert ask(client, "chance of vision 7B", answer=True)["understood"]["request"] == {"id": other["id"]}


def test_what_is_in_doubt_is_asked_back_and_not_answered(client: FlaskClient) -> None:
    body = ask(client, "llama 70b on 1T tokens, 64 h100", answer=True)
    assert body["answer"] is None
    (entry,) = body["unclear"]
    assert entry["text"] == "llama 70b"
    assert {"llama-2-70b", "llama-3-70b", "llama-3.1-70b"} <= {*entry["candidates"]}
    assert entry["blocking"] is True


def test_a_name_that_means_several_parts_is_said(client: FlaskClient) -> None:
    notes = {entry["field"]: entry["source"] for entry in ask(client, "7B on 1T tokens, 64 h100")["assumptions"]}
    assert "NVIDIA-H100-80GB-PCIe" in notes["hardware.accelerator"]


def test_a_word_without_meaning_is_named_and_the_rest_is_answered(client: FlaskClient) -> None:
    body = ask(client, "7B on 1T tokens, 64 h100 for bob", answer=True)
    assert [(entry["text"], entry["blocking"]) for entry in body["unclear"]] == [("bob", False)]
    assert body["summary"]["text"]


def test_a_refusal_of_the_endpoint_stands_beside_what_was_read(client: FlaskClient) -> None:
    body = ask(client, "llama 3.1 405b full fine-tune on 1B tokens on 1 h100", answer=True)
    assert body["answer"] is None
    assert body["problem"]["status"] == 422
    assert body["problem"]["detail"]


def test_a_figure_beyond_the_endpoint_is_its_problem(client: FlaskClient) -> None:
    body = ask(client, "7B on 1T tokens on 90,000,000 h100", answer=True)
    assert body["problem"]["errors"][0]["pointer"] == "/hardware/count"


@pytest.mark.parametrize("text", ["hello there", "?", "  ", "…"])
def test_nothing_understood_is_refused_with_examples(client: FlaskClient, text: str) -> None:
    response = client.post("/v1/ask", json={"text": text})
    assert response.status_code == 422
    problem = response.get_json()
    assert ProblemSchema().validate(problem) == {}
    assert problem["errors"][0]["pointer"] == "/text"
    assert EXAMPLES[0] in problem["detail"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [({}, "/text"), ({"text": 7}, "/text"), ({"text": "x" * (LONGEST_QUESTION + 1)}, "/text"), ({"text": "7B", "ask": 1}, "/ask")],
)
def test_a_body_that_is_no_question_is_refused(client: FlaskClient, body: object, pointer: str) -> None:
    response = client.post("/v1/ask", json=body)
    assert response.status_code == 422
    assert pointer in [entry["pointer"] for entry in response.get_json()["errors"]]


def test_help_shows_what_can_be_asked(client: FlaskClient) -> None:
    assert ask(client, "help", answer=True)["answer"]["examples"] == list(EXAMPLES)


@pytest.mark.parametrize("text", EXAMPLES[:-1])
def test_every_example_is_read_without_a_question(client: FlaskClient, text: str) -> None:
    assert ask(client, text)["unclear"] == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(min_size=1, max_size=300))
def test_no_text_makes_an_error_of_the_service(client: FlaskClient, text: str) -> None:
    assert client.post("/v1/ask", json={"text": text, "answer": False}).status_code in (200, 400, 422)
