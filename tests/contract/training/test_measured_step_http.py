"""An efficiency measured on another count or layout: what it changes in the plan, and what is refused."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

REQUEST: dict[str, Any] = {
    "model": {"preset": "llama-3-70b"},
    "data": {"tokens": "15T"},
    "training": {"seq_len": 8192, "global_batch_tokens": 2**24},
    "hardware": {"accelerator": "H100", "count": 1024},
    "price": {"usd_per_accelerator_hour": 2.0},
}
THERE: dict[str, Any] = {"count": 64, "parallelism": {"tensor": 4, "pipeline": 4, "data": 4, "context": 1}, "micro_batch": 1}
FIGURE = "tokens_per_s_per_accelerator"


def planned(client: FlaskClient, efficiency: dict[str, Any] | None, **sections: Any) -> dict[str, Any]:
    request = copy.deepcopy(REQUEST) | sections | ({"efficiency": efficiency} if efficiency else {})
    answer = client.post("/v1/estimate", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


def modelled_there(client: FlaskClient) -> float:
    """What the model says of the measured step."""
    found = planned(client, {FIGURE: 500, "measured_on": THERE})
    return float(assumed(found)["value"]["modelled_tokens_per_s_per_accelerator"])


def assumed(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(item for item in answer["assumptions"] if item["field"] == "efficiency.measured_on")
    return found


def speed(answer: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = answer["throughput"][FIGURE]
    return found


@pytest.mark.parametrize("ratio", [0.8, 1.0, 1.1])
def test_the_plan_is_as_much_faster_than_modelled_as_the_measured_step(client: FlaskClient, ratio: float) -> None:
    """Steps, alternatives and hours alike; a measured step says itself how near its team is to the fastest layout."""
    carried = planned(client, {FIGURE: ratio * modelled_there(client), "measured_on": THERE})
    plain = planned(client, None)
    assert carried["throughput"]["source"] == "carried"
    best = plain["throughput"][f"best_{FIGURE}"]
    assert speed(carried)["p50"] == pytest.approx(ratio * best)
    assert carried["throughput"][f"best_{FIGURE}"] is None
    assert carried["throughput"]["parallelism"] == plain["throughput"]["parallelism"]
    rates = [[other[FIGURE] for other in answer["throughput"]["alternatives"]] for answer in (carried, plain)]
    faster = ratio * best / speed(plain)["p50"]
    assert rates[0] == pytest.approx([faster * rate for rate in rates[1]])
    assert carried["time"]["wall_clock_hours"]["p50"] == pytest.approx(plain["time"]["wall_clock_hours"]["p50"] / faster)


def test_both_speeds_of_the_measured_step_are_named(client: FlaskClient) -> None:
    found = assumed(planned(client, {"mfu": 0.4, "measured_on": THERE}))
    assert set(found["value"]) == {f"measured_{FIGURE}", f"modelled_{FIGURE}"}
    assert "on 64 accelerators, in tensor 4, pipeline 4, data 4" in found["source"]


def test_the_range_is_narrower_than_without_the_measurement(client: FlaskClient) -> None:
    """Wider for many more accelerators, and narrowest for the plan's own job."""
    layout = {"tensor": 4, "pipeline": 4, "context": 1}
    given = {"training": REQUEST["training"] | {"parallelism": layout, "micro_batch": 1}}

    def width(count: int | None) -> float:
        efficiency = None if count is None else {"mfu": 0.4, "measured_on": {"count": count}}
        found = speed(planned(client, efficiency, **given))
        return found["p90"] / found["p10"]

    assert width(1024) < width(256) < width(64)
    assert width(256) < width(None)


def test_a_plan_of_the_measured_layout_has_the_measured_speed(client: FlaskClient) -> None:
    """What is left out of `measured_on` is as planned; the range is that of repeated runs."""
    found = planned(client, {"mfu": 0.37, "measured_on": {"count": 1024}})["throughput"]["mfu"]
    assert found["p50"] == pytest.approx(0.37)
    assert 0.35 < found["p10"] < 0.37 < found["p90"] < 0.39


def test_a_stated_layout_carries_to_another_count_with_its_data_ranks(client: FlaskClient) -> None:
    layout = {"tensor": 4, "pipeline": 4, "data": 64, "context": 1}
    found = planned(client, {"mfu": 0.4, "measured_on": {"count": 64}}, training=REQUEST["training"] | {"parallelism": layout})
    assert "in tensor 4, pipeline 4, data 4" in assumed(found)["source"]


def test_no_plan_is_above_the_peak(client: FlaskClient) -> None:
    found = planned(client, {"mfu": 0.99, "measured_on": THERE})
    assert found["throughput"]["mfu"]["p90"] <= 1


def test_a_step_less_than_half_as_fast_as_modelled_is_questioned(client: FlaskClient) -> None:
    found = planned(client, {FIGURE: 0.45 * modelled_there(client), "measured_on": THERE})
    assert any("times as fast as modelled" in warning for warning in found["warnings"])


def test_a_measured_step_that_does_not_fit_the_memory_model_is_warned_of(client: FlaskClient) -> None:
    there = {"count": 8, "parallelism": {"tensor": 1, "pipeline": 1, "data": 8}, "zero_stage": 0}
    found = planned(client, {"mfu": 0.3, "measured_on": there})
    assert any("measured step does not fit" in warning for warning in found["warnings"])


@pytest.mark.parametrize(
    ("efficiency", "pointer", "text"),
    [
        ({"mfu": 0.4, "measured_on": {}}, "/efficiency/measured_on/count", "required"),
        ({"measured_on": {"count": 64}}, "/efficiency/measured_on", "mfu"),
        ({"mfu": 0.4, "tflops_per_accelerator": 400, "measured_on": {"count": 64}}, "/efficiency", "one efficiency"),
        ({"mfu": 0.4, "measured_on": THERE | {"count": 65}}, "/efficiency/measured_on/parallelism", "where it was measured"),
        ({"mfu": 0.4, "measured_on": {"count": 64, "parallelism": {"tensor": 7}}}, "/efficiency/measured_on/parallelism/tensor", "divide"),
        (
            {"mfu": 0.4, "measured_on": {"count": 64, "parallelism": {"pipeline": 1, "virtual_pipeline": 2}}},
            "/efficiency/measured_on/parallelism/virtual_pipeline",
            "pipeline",
        ),
        ({"tokens_per_s_per_accelerator": 1e9, "measured_on": {"count": 64}}, "/efficiency/tokens_per_s_per_accelerator", "peak"),
        ({"mfu": 0.4, "measured_on": {"count": 64, "accelerator": "A100"}}, "/efficiency/measured_on/accelerator", "unknown"),
    ],
)
def test_what_is_wrong_of_a_measured_step_is_named(client: FlaskClient, efficiency: dict[str, Any], pointer: str, text: str) -> None:
    answer = client.post("/v1/estimate", json=REQUEST | {"efficiency": efficiency})
    assert answer.status_code == 422
    (error,) = answer.get_json()["errors"]
    assert error["pointer"] == pointer
    assert text in error["message"]


def test_a_comparison_of_the_measured_accelerator_carries_to_every_count(client: FlaskClient) -> None:
    """In the data sheet's network each count has the speed of its own estimate; other accelerators are refused."""
    workload = {name: REQUEST[name] for name in ("model", "data", "training")} | {"efficiency": {"mfu": 0.45, "measured_on": THERE}}
    asked = {"workload": workload, "candidates": {"accelerators": ["H100"], "counts": [256, 1024], "pricing": ["on_demand"]}}
    asked["constraints"] = {"max_wall_clock_days": 5000}
    options = client.post("/v1/compare", json=asked).get_json()["options"]
    assert {option["count"] for option in options} == {256, 1024}
    fastest = max(option["throughput"]["mfu"]["p50"] for option in options if option["count"] == 1024)
    assert fastest == pytest.approx(planned(client, workload["efficiency"])["throughput"]["mfu"]["p50"], rel=0.02)
    refused = client.post("/v1/compare", json=asked | {"candidates": {"accelerators": ["H100", "H200"], "counts": [256]}})
    assert refused.status_code == 422
    assert refused.get_json()["errors"][0]["pointer"] == "/workload/efficiency/measured_on"
    impossible = workload | {"efficiency": {"mfu": 0.45, "measured_on": THERE | {"count": 65}}}
    pointer = client.post("/v1/compare", json=asked | {"workload": impossible}).get_json()["errors"][0]["pointer"]
    assert pointer == "/workload/efficiency/measured_on/parallelism"


def test_an_optimum_takes_no_step_of_one_model(client: FlaskClient) -> None:
    answer = client.post("/v1/optimal", json={"budget": {"flops": 1e22}, "efficiency": {"mfu": 0.4, "measured_on": {"count": 8}}})
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"] == "/efficiency/measured_on"


def test_the_page_shows_what_is_answered(client: FlaskClient) -> None:
    """docs/explanation/calibration.md: its request is answered about as it says; each fit of the model moves the figures a little."""
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "calibration.md").read_text(encoding="utf-8")
    request, throughput, assumption = map(json.loads, re.findall(r"```json\n(.*?)```", page, re.DOTALL)[:3])
    answer = client.post("/v1/estimate", json=request).get_json()
    assert answer["throughput"]["source"] == throughput["source"]
    assert speed(answer) == pytest.approx(throughput[FIGURE], rel=0.2)
    assert assumed(answer)["value"] == pytest.approx(assumption, rel=0.2)
    del request["efficiency"]
    plain = speed(client.post("/v1/estimate", json=request).get_json())
    shown = re.search(r"alone says ([\d,]+) \(([\d,]+) to ([\d,]+)\)", page)
    assert shown is not None
    assert [plain["p50"], plain["p10"], plain["p90"]] == pytest.approx([float(one.replace(",", "")) for one in shown.groups()], rel=0.2)
