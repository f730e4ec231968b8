"""POST /v1/loss-curves/extrapolate: what it answers, and what bad input is told."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from service.api.resources.scaling import LOSS_CURVE as EXAMPLE
from service.schemas.base import ProblemSchema
from service.schemas.scaling.loss_curves import CurveAnswerSchema, LearningRateSchema
from tests.contract.http.test_fuzz import RUBBISH, numbers, values

ALONE = {name: EXAMPLE[name] for name in ("points", "schedule", "plan")}


def ask(client: FlaskClient, request: object) -> dict[str, Any]:
    answer = client.post("/v1/loss-curves/extrapolate", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


def told(client: FlaskClient, request: object) -> dict[str, str]:
    """What is wrong where."""
    answer = client.post("/v1/loss-curves/extrapolate", json=request)
    assert answer.status_code == 422
    assert answer.content_type == "application/problem+json"
    return {entry["pointer"]: entry["message"] for entry in answer.get_json()["errors"]}


def changed(**sections: Any) -> dict[str, Any]:
    """The example without a machine, with fields of its sections set."""
    request = copy.deepcopy(ALONE)
    for name, value in sections.items():
        request[name] = request[name] | value if isinstance(value, dict) and name in request else value
    return request


def test_the_answer_is_what_the_specification_describes(client: FlaskClient) -> None:
    """The final loss, its distance from the plan, advice that is one of the options, and every option priced."""
    body = ask(client, EXAMPLE)
    assert CurveAnswerSchema().validate(body) == {}
    assert (body["advice"]["action"], body["advice"]["tokens"]) in {(each["action"], each["tokens"]) for each in body["options"]}
    assert {each["action"] for each in body["options"]} == {"stop", "shrink", "continue", "extend"}
    assert all(each["usd"]["p50"] > 0 for each in body["options"] if each["action"] != "stop")
    assert body["against_plan"]["planned_loss"] == EXAMPLE["plan"]["loss"]
    assert body["price"]["source"] == "caller"


def test_the_same_request_has_the_same_answer(client: FlaskClient) -> None:
    """To the byte, the curve's resamples included."""
    first, second = (client.post("/v1/loss-curves/extrapolate", json=EXAMPLE).get_data() for _ in range(2))
    assert first == second


def test_without_a_machine_there_are_no_dollars(client: FlaskClient) -> None:
    """Null, never 0, and a warning; without a planned loss there is nothing to hold the end against."""
    body = ask(client, changed(plan={"tokens": "20B"}) | {"plan": {"tokens": "20B"}})
    assert CurveAnswerSchema().validate(body) == {}
    assert (body["price"], body["price_snapshot"], body["against_plan"]) == (None, None, None)
    assert all(each["usd"] is None for each in body["options"])
    assert any("not priced" in warning for warning in body["warnings"])


def test_a_constant_loss_gets_no_confident_promise(client: FlaskClient) -> None:
    """The flat curve is named, and the interval is not a point."""
    flat = [{"tokens": point["tokens"], "loss": 3.0} for point in EXAMPLE["points"]]
    body = ask(client, changed(points=flat))
    assert body["state"] == "flat"
    assert body["final_loss"]["p90"] - body["final_loss"]["p10"] > 0.003
    assert any("not fallen measurably" in warning for warning in body["warnings"])


def test_a_rising_loss_is_a_diverging_run(client: FlaskClient) -> None:
    """It is told to stop, and its interval holds where it is."""
    losses = [point["loss"] for point in EXAMPLE["points"]]
    rising = [{"tokens": point["tokens"], "loss": loss} for point, loss in zip(EXAMPLE["points"], reversed(losses), strict=True)]
    body = ask(client, changed(points=rising))
    assert (body["state"], body["advice"]["action"]) == ("diverging", "stop")
    assert body["final_loss"]["p90"] >= body["loss_now"]


@pytest.mark.parametrize(
    ("request_", "pointer", "message"),
    [
        (changed(points=EXAMPLE["points"][:7]), "/points", "at least 8 are needed"),
        (changed(points=[]), "/points", "must have 1 to 20,000 entries"),
        (changed(plan={"tokens": "10B"}), "/points", "its plan ends at 1e+10"),
        (changed(plan={"tokens": 0}), "/plan/tokens", "must lie between 1"),
        (changed(plan={"loss": 0}), "/plan/loss", "must be a number from"),
        (changed(schedule={"decay": "cosin"}), "/schedule/decay", "did you mean 'cosine'"),
        (changed(schedule={"final_share": 1.5}), "/schedule/final_share", "from 0 to 1"),
        (changed(schedule={"warmup_tokens": "30B"}), "/schedule", "do not fit a plan"),
        (changed(schedule={"relaxation_tokens": 0}), "/schedule/relaxation_tokens", "must be a number from 1"),
        (changed(schedule={"rates": [{"tokens": 0, "rate": 1}, {"tokens": 2, "rate": 1}]}), "/schedule", "exactly one of decay and rates"),
        (changed(alternatives=["1B"]), "/alternatives/0", "an alternative cannot end earlier"),
        (changed(alternatives=["30B"] * 9), "/alternatives", "must have 0 to 8 entries"),
        (changed(model={"params": "7B"}), "/hardware", "state model and hardware"),
        (changed(data={"tokens": "1B"}), "/data", "unknown field"),
        ({name: ALONE[name] for name in ("points", "plan")}, "/schedule", "required"),
    ],
)
def test_bad_input_is_told_where_it_stands(client: FlaskClient, request_: dict[str, Any], pointer: str, message: str) -> None:
    """A pointer, and what would be right."""
    assert message in told(client, request_)[pointer]


END = 10**11
SCHEDULE_FIELDS = ("decay", "warmup_tokens", "decay_tokens", "final_share", "relaxation_tokens")
SCHEDULES: list[dict[str, Any]] = [
    {"decay": "cosine"},
    {"decay": "constant", "warmup_tokens": END // 3},
    {"decay": "linear", "warmup_tokens": 1, "decay_tokens": 1},
    {"decay": "linear", "decay_tokens": 0, "relaxation_tokens": 1},
    {"decay": "exponential", "final_share": 1e-300, "relaxation_tokens": 1e18},
    {"rates": [{"tokens": 0, "rate": 0}, {"tokens": END - 1, "rate": 0}, {"tokens": END, "rate": 1}]},
    {"rates": [{"tokens": 0, "rate": 1e18}, {"tokens": 1, "rate": 1e-300}, {"tokens": END, "rate": 0}]},
    {"rates": [{"tokens": 0, "rate": 0}, {"tokens": END, "rate": 1}]},
]


@st.composite
def anything(draw: st.DrawFn) -> dict[str, Any]:
    """Curves of any losses, falling or not, schedules at the ends of what is taken, and now and then rubbish."""
    unit = draw(st.sampled_from([1e-6, 1.0, 2.5e5]))
    losses: list[float | None] = sorted(
        (unit * loss for loss in draw(st.lists(st.floats(1.0, 4.0), min_size=15, max_size=40))), reverse=True
    )
    for index in draw(st.lists(st.integers(0, 14), max_size=3)):
        losses[index] = draw(st.sampled_from([None, 0.0, 1e-300, 1e6]) | st.floats(1e-6, 1e6))
    now = draw(st.sampled_from([12.0, 1e9, 0.5 * END, END]))
    request: dict[str, Any] = {
        "points": [{"tokens": now * (index + 1) / len(losses), "loss": loss} for index, loss in enumerate(losses)],
        "schedule": draw(st.sampled_from(SCHEDULES)),
        "plan": {"tokens": END} | draw(st.sampled_from([{}, {"loss": 1e-6}, {"loss": 3.0}, {"loss": 1e6}])),
    }
    if draw(st.booleans()):
        request["alternatives"] = [10**18, END]
    if not draw(st.integers(0, 4)):
        request["schedule"] = draw(
            st.fixed_dictionaries({}, optional={name: values(LearningRateSchema().fields[name]) for name in SCHEDULE_FIELDS})
        )
    if not draw(st.integers(0, 5)):
        request[draw(st.sampled_from(sorted(request)))] = draw(RUBBISH)
    return request


@given(request=anything())
def test_no_request_gets_an_error_of_ours_or_a_figure_that_is_none(client: FlaskClient, request: dict[str, Any]) -> None:
    """Whatever the curve is: finite figures in the described shape, or a problem with pointers."""
    answer = client.post("/v1/loss-curves/extrapolate", json=request)
    body = json.loads(answer.get_data(), parse_constant=lambda name: pytest.fail(f"{name} in an answer"))
    if answer.status_code == 200:
        assert CurveAnswerSchema().validate(body) == {}
        assert all(math.isfinite(number) for _, number in numbers(body))
    else:
        assert answer.status_code == 422
        assert ProblemSchema().validate(body) == {}
