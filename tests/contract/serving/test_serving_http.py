"""POST /v1/serving: what it answers, and what bad input is told."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from service.api.resources.serving import EXAMPLE
from service.schemas.base import ProblemSchema
from service.schemas.serving import FORMATS, ServingAnswerSchema, ServingRequestSchema
from tests.contract.http.test_fuzz import RUBBISH, numbers, values

BLOCKS = {"rank", "configuration", "memory", "throughput", "latency", "fleet", "cost", "price"}
PRICE = {"provider", "region", "pricing", "observed_at", "source", "stale"}


def changed(**sections: Any) -> dict[str, Any]:
    """The example with fields of its sections set."""
    request = copy.deepcopy(EXAMPLE)
    for name, value in sections.items():
        request[name] = request[name] | value if isinstance(value, dict) and name in request else value
    return request


def ask(client: FlaskClient, request: object) -> dict[str, Any]:
    answer = client.post("/v1/serving", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    assert ServingAnswerSchema().validate(body) == {}
    return body


def told(client: FlaskClient, request: object) -> dict[str, str]:
    """What is wrong where."""
    answer = client.post("/v1/serving", json=request)
    assert answer.status_code == 422
    assert answer.content_type == "application/problem+json"
    return {entry["pointer"]: entry["message"] for entry in answer.get_json()["errors"]}


def test_the_answer_has_every_block(client: FlaskClient) -> None:
    """Of the best and of every alternative, each with its price's provenance; limits are kept at the median."""
    body = ask(client, EXAMPLE)
    assert {"price_snapshot", "engine_version", "assumptions", "warnings", "lifetime", "levers", "considered"} <= set(body)
    for option in (body["best"], *body["alternatives"]):
        assert set(option) == BLOCKS
        assert all(option["price"][name] is not None for name in PRICE)
        assert option["latency"]["time_to_first_token_s"]["p50"] <= EXAMPLE["latency"]["time_to_first_token_s"]
        assert option["latency"]["time_per_output_token_ms"]["p50"] <= EXAMPLE["latency"]["time_per_output_token_ms"]
        assert option["configuration"]["format"] in EXAMPLE["formats"]
        assert option["memory"]["fits"]
    assert body["lifetime"]["total_usd"]["p50"] == pytest.approx(body["lifetime"]["serving_usd"]["p50"] + 2e6)


def test_a_model_and_a_request_are_enough(client: FlaskClient) -> None:
    """All accelerators that have a price; what the rest is taken to be stands in the assumptions."""
    body = ask(client, {"model": {"params": "8B"}, "traffic": {"prompt_tokens": 1000, "output_tokens": 200}})
    assert len(body["alternatives"]) == 10
    assert (body["lifetime"], body["levers"], body["best"]["fleet"]) == (None, None, None)
    assert {"formats", "hardware.accelerators", "price", "utilisation", "limit"} <= {each["field"] for each in body["assumptions"]}


def test_an_answer_is_repeated_by_its_snapshot(client: FlaskClient) -> None:
    """The answer names it, and is the same."""
    body = ask(client, EXAMPLE)
    assert ask(client, EXAMPLE | {"price": {"snapshot": body["price_snapshot"]}}) == body


def test_what_does_not_fit_is_a_problem_that_says_what_would(client: FlaskClient) -> None:
    """422, as is a latency that nothing keeps."""
    assert (
        "these can serve it: " in told(client, changed(hardware={"accelerators": ["H100"], "counts": [1]}, formats=["bf16"]))["/hardware"]
    )
    assert "the fastest first token takes" in told(client, changed(latency={"time_per_output_token_ms": 1}))["/latency"]


@pytest.mark.parametrize(
    ("request_part", "pointer"),
    [
        ({"models": {}}, "/models"),
        ({"model": {"preset": "llama-3.1-700b"}}, "/model/preset"),
        ({"traffic": {"prompt_tokens": 0}}, "/traffic/prompt_tokens"),
        ({"traffic": {"prompt_tokens": 1.5}}, "/traffic/prompt_tokens"),
        ({"traffic": {"output_tokens": "400"}}, "/traffic/output_tokens"),
        ({"traffic": {"cached_share": 1.1}}, "/traffic/cached_share"),
        ({"traffic": {"requests_per_s": 0}}, "/traffic/requests_per_s"),
        ({"traffic": {"tokens_per_month": "1B"}}, "/traffic/tokens_per_month"),
        ({"traffic": {"rate": 1}}, "/traffic/rate"),
        ({"latency": {"time_to_first_token_s": -1}}, "/latency/time_to_first_token_s"),
        ({"latency": {"time_per_output_token_s": 1}}, "/latency/time_per_output_token_s"),
        ({"formats": []}, "/formats"),
        ({"formats": ["fp12"]}, "/formats/0"),
        ({"hardware": {"accelerators": ["H1000"]}}, "/hardware/accelerators/0"),
        ({"hardware": {"accelerator": "H100"}}, "/hardware/accelerator"),
        ({"hardware": {"counts": [0]}}, "/hardware/counts/0"),
        ({"price": {"snapshot": "never"}}, "/price/snapshot"),
        ({"price": {"usd_per_accelerator_hour": 0}}, "/price/usd_per_accelerator_hour"),
        ({"utilisation": 0}, "/utilisation"),
        ({"utilisation": 1.2}, "/utilisation"),
        ({"training": {"usd": -1}}, "/training/usd"),
        ({"training": {"estimate": {}}}, "/training/estimate/model"),
        ({"training": {"estimate": {"levers": True}}}, "/training/estimate/levers"),
        ({"levers": "yes"}, "/levers"),
        ({"limit": 101}, "/limit"),
    ],
)
def test_bad_input_is_told_where_it_is(client: FlaskClient, request_part: dict[str, Any], pointer: str) -> None:
    """By its pointer; unknown fields are an error at every depth."""
    assert pointer in told(client, changed(**request_part))


def test_a_model_and_traffic_are_needed(client: FlaskClient) -> None:
    """Nothing else is."""
    assert set(told(client, {})) == {"/model", "/traffic"}
    assert set(told(client, {"model": {"params": "8B"}, "traffic": {}})) == {"/traffic/prompt_tokens", "/traffic/output_tokens"}


def test_figures_stay_finite_at_the_edges(client: FlaskClient) -> None:
    """The smallest model under the greatest rate, and one request in years of the smallest price."""
    tiny = {"model": {"params": 1}, "latency": {}, "levers": True, "formats": list(FORMATS)}
    busy = {"prompt_tokens": 1, "output_tokens": 1, "requests_per_s": 1e9, "lifetime_tokens": 10**18, "cached_share": 1.0}
    idle = {"prompt_tokens": 1, "output_tokens": 1, "requests_per_s": 1e-6, "lifetime_tokens": 1}
    ask(client, EXAMPLE | tiny | {"traffic": busy, "utilisation": 0.001})
    cheap = {"price": {"usd_per_accelerator_hour": 1e-6}, "hardware": {"accelerators": ["H100"]}}
    ask(client, EXAMPLE | tiny | cheap | {"traffic": idle})


SECTIONS = ServingRequestSchema().fields
CHANGES: dict[str, Any] = {
    **{
        f"{section}/{name}": field
        for section in ("traffic", "latency", "price")
        for name, field in SECTIONS[section].schema.fields.items()  # type: ignore[attr-defined]
    },
    **{name: SECTIONS[name] for name in ("utilisation", "limit", "levers")},
    "training/usd": SECTIONS["training"].schema.fields["usd"],  # type: ignore[attr-defined]
}
MODELS = st.sampled_from([{"preset": "llama-3.1-70b"}, {"preset": "deepseek-v3"}, {"params": 1}, {"params": "100T"}, {"preset": "t5-11b"}])


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """The example with another model and a few fields set to something else that they take, or to rubbish."""
    request = changed(model=draw(MODELS), formats=draw(st.lists(st.sampled_from(FORMATS), min_size=1, max_size=2)))
    for path in draw(st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=4, unique=True)):
        *above, last = path.split("/")
        node: Any = request
        for name in above:
            node = node.setdefault(name, {})
        node[last] = draw(values(CHANGES[path]) | values(CHANGES[path]) | RUBBISH)
    return request


@given(request=requests())
def test_no_request_gets_an_error_of_ours_or_a_figure_that_is_none(client: FlaskClient, request: dict[str, Any]) -> None:
    """An answer of the described shape with finite figures in order, or a problem."""
    answer = client.post("/v1/serving", json=request)
    body = json.loads(answer.get_data(), parse_constant=lambda name: pytest.fail(f"{name} in an answer"))
    if answer.status_code != 200:
        assert (answer.status_code, ProblemSchema().validate(body)) == (422, {})
        return
    assert ServingAnswerSchema().validate(body) == {}
    assert [path for path, number in numbers(body) if not math.isfinite(number)] == []


@pytest.mark.parametrize(("rate", "fleet"), [(0.01, " on 1 replica of "), (100, " replicas of ")])
def test_the_summary_has_the_speed_that_a_user_sees(client: FlaskClient, rate: float, fleet: str) -> None:
    """Tokens a second, the first token and the whole request of the cheapest option, and one replica in the singular."""
    traffic = {"prompt_tokens": 1500, "output_tokens": 400, "requests_per_s": rate}
    body = client.post("/v1/serving", json={"model": {"preset": "llama-2-7b"}, "traffic": traffic}).get_json()
    latency, text = body["best"]["latency"], body["summary"]["text"]
    assert fleet in text
    assert f"a user gets {1000 / latency['time_per_output_token_ms']['p50']:.3g} tokens/s, the first after" in text
    assert f"a request in {latency['request_s']['p50']:.3g} s." in text
