"""POST /v1/scaling-laws/fit: what the contract promises, and what bad input is told."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from service.api.resources.scaling import LAW_FIT as EXAMPLE
from service.schemas.base import ProblemSchema
from service.schemas.scaling.law_fit import LawFitAnswerSchema
from tests.contract.http.test_fuzz import RUBBISH, numbers

PARAMETERS = {"E", "A", "B", "alpha", "beta"}
FEW = EXAMPLE | {"starts": 20, "bootstraps": 20}


def ask(client: FlaskClient, request: object) -> dict[str, Any]:
    answer = client.post("/v1/scaling-laws/fit", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


def told(client: FlaskClient, request: object) -> dict[str, str]:
    """What is wrong where."""
    answer = client.post("/v1/scaling-laws/fit", json=request)
    assert answer.status_code == 422
    assert answer.content_type == "application/problem+json"
    return {entry["pointer"]: entry["message"] for entry in answer.get_json()["errors"]}


def changed(index: int, **fields: Any) -> dict[str, Any]:
    """The example with fields of one point set."""
    request = copy.deepcopy(FEW)
    request["points"][index] |= fields
    return request


def test_the_answer_has_every_field_the_contract_names(client: FlaskClient) -> None:
    """Parameters, an interval [low, high] of each around it, a residual, a range for each prediction, warnings."""
    body = ask(client, EXAMPLE)
    assert LawFitAnswerSchema().validate(body) == {}
    assert set(body["parameters"]) == set(body["intervals"]) == PARAMETERS
    for name, (low, high) in body["intervals"].items():
        assert low <= body["parameters"][name] <= high
    assert body["residual"] > 0
    assert len(body["predictions"]) == len(EXAMPLE["predict"])
    assert {"p10", "p50", "p90"} <= set(body["predictions"][0])
    assert any("extrapolated" in warning for warning in body["warnings"])
    assert body["design"]["runs"]


def test_the_same_request_has_the_same_answer(client: FlaskClient) -> None:
    """To the byte."""
    first, second = (client.post("/v1/scaling-laws/fit", json=FEW).get_data() for _ in range(2))
    assert first == second


def test_points_alone_are_enough(client: FlaskClient) -> None:
    """No predictions and no design are answered; the rest is assumed."""
    body = ask(client, {"points": EXAMPLE["points"]})
    assert (body["predictions"], body["design"]) == ([], None)
    assert {"form", "starts", "bootstraps", "seed"} <= {each["field"] for each in body["assumptions"]}


def test_fewer_than_six_distinct_points_are_refused(client: FlaskClient) -> None:
    """Five points, and five that are repeated: the message says how many are needed."""
    five = EXAMPLE["points"][:5]
    assert "must have 6 to 1,000 entries" in told(client, {"points": five})["/points"]
    assert "5 distinct runs" in told(client, {"points": five * 3})["/points"]


def test_duplicates_are_counted_once_and_said(client: FlaskClient) -> None:
    """Twice the same points give the same law, with a warning."""
    once, twice = ask(client, FEW), ask(client, FEW | {"points": EXAMPLE["points"] * 2})
    assert twice["parameters"] == once["parameters"]
    assert any("9 exact copies" in warning for warning in twice["warnings"])


def test_two_scales_only_give_a_wide_interval_with_a_warning(client: FlaskClient) -> None:
    """With two sizes the exponent alpha is anything from a slow to a steep one."""
    points = [
        {"params": params, "tokens": tokens, "loss": 1.8 + 482 / params**0.35 + 2085 / tokens**0.37 + 0.001 * (index % 3)}
        for params in (1e8, 1e9)
        for index, tokens in enumerate((2e9, 5e9, 1e10, 2e10, 4e10, 8e10, 1.6e11, 3.2e11))
    ]
    body = ask(client, {"points": points})
    low, high = body["intervals"]["alpha"]
    assert high - low > 0.15
    assert any("only two scales of parameters" in warning for warning in body["warnings"])


@pytest.mark.parametrize(
    ("request_", "pointer", "message"),
    [
        ({"points": [{**point, "loss": 2.0} for point in EXAMPLE["points"]]}, "/points", "do not show how loss falls"),
        (changed(2, loss=0), "/points/2/loss", "must be a number from"),
        (changed(2, loss=None), "/points/2/loss", "null is not taken"),
        (changed(2, params=-1e9), "/points/2/params", "must be a number from"),
        (changed(2, tokens="12Q"), "/points/2/tokens", "not a count"),
        (changed(2, los=2.0), "/points/2/los", "did you mean 'loss'"),
        (FEW | {"form": "kaplan"}, "/form", "must be one of chinchilla"),
        (FEW | {"bootstraps": 1}, "/bootstraps", "between 20 and 1,000"),
        (FEW | {"starts": 10**6}, "/starts", "between 1 and 1,000"),
        (FEW | {"seed": -1}, "/seed", "cannot be negative"),
        (FEW | {"design": {"flops": 1e21}}, "/design/target", "required"),
        (FEW | {"design": {"flops": 1e9, "target": {"params": 1e10, "tokens": 1e11}}}, "/design", "the cheapest candidate costs"),
        ({"points": EXAMPLE["points"] * 112}, "/points", "must have 6 to 1,000 entries, not 1,008"),
        ({"points": EXAMPLE["points"] * 111, "bootstraps": 201}, "/bootstraps", "take at most 200 resamples"),
        ({}, "/points", "required"),
    ],
)
def test_bad_input_is_told_where_it_stands(client: FlaskClient, request_: dict[str, Any], pointer: str, message: str) -> None:
    """A pointer, and what would be right."""
    assert message in told(client, request_)[pointer]


def spread(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers evenly over all powers of ten between two, and these."""
    return st.sampled_from([low, high]) | st.floats(math.log(low), math.log(high)).map(lambda log: min(max(math.exp(log), low), high))


SIZES, LOSSES = spread(1e-6, 1e18), spread(1e-6, 1e6) | spread(1.0, 5.0)


@st.composite
def anything(draw: st.DrawFn) -> dict[str, Any]:
    """Points of any size, mostly with a loss that falls with compute, and now and then rubbish."""
    sizes = draw(st.lists(st.tuples(SIZES, SIZES), min_size=6, max_size=14, unique=True))
    losses = draw(st.lists(LOSSES, min_size=len(sizes), max_size=len(sizes)))
    if draw(st.integers(0, 9)):
        sizes, losses = sorted(sizes, key=math.prod), sorted(losses, reverse=True)
    points = [{"params": params, "tokens": tokens, "loss": loss} for (params, tokens), loss in zip(sizes, losses, strict=True)]
    target = {"params": draw(SIZES), "tokens": draw(SIZES)}
    request = {"points": points, "starts": 10, "bootstraps": 20, "predict": [target]}
    if draw(st.booleans()):
        request["design"] = {"flops": draw(spread(1.0, 1e32)), "target": target}
    if not draw(st.integers(0, 5)):
        request[draw(st.sampled_from(sorted(request)))] = draw(RUBBISH)
    return request


@given(request=anything())
def test_no_request_gets_an_error_of_ours_or_a_figure_that_is_none(client: FlaskClient, request: dict[str, Any]) -> None:
    """Whatever the points are: finite figures in the described shape, or a problem with pointers."""
    answer = client.post("/v1/scaling-laws/fit", json=request)
    body = json.loads(answer.get_data(), parse_constant=lambda name: pytest.fail(f"{name} in an answer"))
    if answer.status_code == 200:
        assert LawFitAnswerSchema().validate(body) == {}
        assert all(math.isfinite(number) for _, number in numbers(body))
    else:
        assert answer.status_code == 422
        assert ProblemSchema().validate(body) == {}
