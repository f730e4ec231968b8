"""POST /v1/approaches: the same task in six ways, and what bad input is told."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from service.api.resources.comparison import APPROACHES as EXAMPLE
from service.domain.comparison.approaches import APPROACHES
from service.schemas.comparison.approaches import ApproachesAnswerSchema


def answered(client: FlaskClient, **changes: Any) -> dict[str, Any]:
    answer = client.post("/v1/approaches", json=EXAMPLE | changes)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    assert ApproachesAnswerSchema().validate(body) == {}
    return body


def named(body: dict[str, Any]) -> dict[str, Any]:
    return {each["approach"]: each for each in body["approaches"]}


def test_all_ways_stand_side_by_side_in_order_of_cost(client: FlaskClient) -> None:
    """Each with what it needs, gives and risks, and where that is from."""
    body = answered(client)
    found = body["approaches"]
    assert {each["approach"] for each in found} == set(APPROACHES)
    assert [each["rank"] for each in found] == [1, 2, 3, 4, 5, 6]
    totals = [each["total_usd"]["p50"] for each in found]
    assert totals == sorted(totals)
    assert all(each[name] for each in found for name in ("gives", "risk", "source"))
    assert (body["price"]["source"], bool(body["price_snapshot"]), bool(body["engine_version"])) == ("caller", True, True)


def test_each_run_is_an_estimate_that_can_be_sent(client: FlaskClient) -> None:
    """Its dollars, with the people's hours, are those of POST /v1/estimate."""
    for each in answered(client)["approaches"]:
        if each["training"] is None:
            assert each["approach"] == "prompting"
            continue
        alone = client.post("/v1/estimate", json=each["training"]["request"])
        assert alone.status_code == 200
        assert alone.get_json()["cost"]["total_usd"] == each["training"]["usd"]
        total = each["training"]["usd"]["p50"] + each["serving"]["usd"]["p50"]
        assert each["total_usd"]["p50"] == pytest.approx(total)


def test_a_hosted_model_is_paid_by_its_tokens(client: FlaskClient) -> None:
    """Demonstrations are paid for in every request."""
    hosted = {"usd_per_million_input_tokens": 0.5, "usd_per_million_output_tokens": 1.5, "demonstration_tokens": 500}
    body = answered(client, prompting=hosted)
    prompting = named(body)["prompting"]
    a_request = (2000 * 0.5 + 400 * 1.5) / 1e6
    assert prompting["serving"]["hosted"] is True
    assert prompting["serving"]["usd"]["p50"] == pytest.approx(a_request * 1e12 / 1900)


def test_what_cannot_be_done_is_last_and_says_why(client: FlaskClient) -> None:
    """One accelerator serves a model that it cannot train."""
    body = answered(client, model={"params": "70B"}, hardware={"accelerator": "H100", "count": 1})
    assert body["approaches"][0]["approach"] == "prompting"
    last = body["approaches"][-1]
    assert (last["feasible"], last["total_usd"]) == (False, None)
    assert "no layout fits" in last["reasons"][0]


def test_what_takes_too_long_says_how_long(client: FlaskClient) -> None:
    """With the run that would be done first."""
    found = named(answered(client, max_days=0.5))["pretraining"]
    assert not found["feasible"]
    assert "above max_days" in found["reasons"][0]
    assert found["training"]["wall_clock_hours"]["p50"] > 12


def test_only_those_asked_for_are_compared(client: FlaskClient) -> None:
    """Without prompting nothing is paid back against it."""
    found = named(answered(client, approaches=["lora", "pretraining"]))
    assert set(found) == {"lora", "pretraining"}
    assert found["lora"]["pays_back_at_tokens"] is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model": None}, ["/model"]),
        ({"model": {"preset": "gpt-9"}}, ["/model/preset"]),
        ({"model": {"preset": "resnet-50"}}, ["/model"]),
        ({"student": {"experts": 3}}, ["/student/hidden_size"]),
        ({"prompting": {"model": {"preset": "gpt-9"}}}, ["/prompting/model/preset"]),
        ({"prompting": {"usd_per_million_input_tokens": 1}}, ["/prompting/usd_per_million_output_tokens"]),
        ({"task_tokens": -1}, ["/task_tokens"]),
        ({"approaches": ["magic"]}, ["/approaches/0"]),
        ({"hardware": {"accelerator": "H10", "count": 8}}, ["/hardware/accelerator"]),
        ({"serving": {"format": "fp9"}}, ["/serving/format"]),
        ({"until": 1}, ["/until"]),
    ],
)
def test_mistakes_are_told_where_they_are(client: FlaskClient, changes: dict[str, Any], expected: list[str]) -> None:
    """A 422 with pointers into the request."""
    answer = client.post("/v1/approaches", json=EXAMPLE | changes)
    assert answer.status_code == 422
    assert sorted(entry["pointer"] for entry in answer.get_json()["errors"]) == expected
