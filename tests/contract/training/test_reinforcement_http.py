"""POST /v1/estimate for reinforcement learning: fields of a step, its phases in the answer, what bad input is told."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

STEP: dict[str, Any] = {
    "prompts_per_step": 64,
    "responses_per_prompt": 32,
    "prompt_tokens": 127,
    "response_tokens": {"p50": 850, "p90": 1900, "max": 3969},
    "mini_batch_responses": 512,
    "generation": {"tensor": 1, "precision": "bf16"},
}


def request(count: int = 16, **changes: Any) -> dict[str, Any]:
    return {
        "model": {"preset": "llama-3.1-8b"},
        "data": {"tokens": "1B"},
        "training": {"method": "rl", "rl": {**STEP, **changes}},
        "hardware": {"accelerator": "H100", "count": count},
        "price": {"usd_per_accelerator_hour": 2.0},
    }


def estimated(client: FlaskClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/v1/estimate", json=body)
    assert answer.status_code == 200, answer.json
    found: dict[str, Any] = answer.json
    return found


def test_an_answer_has_seconds_and_tokens_by_phase(client: FlaskClient) -> None:
    """They add up to the step, whose length decides hours and cost."""
    found = estimated(client, request())
    phases = {row["phase"]: row for row in found["throughput"]["phases"]}
    assert sum(row["seconds"] for row in phases.values()) == pytest.approx(found["throughput"]["step_time_s"])
    assert phases["generation"]["seconds"] > phases["update_actor"]["seconds"]
    assert phases["prefill"]["tokens"] == 64 * 127
    assert {"old_log_prob", "reference", "weight_transfer"} <= set(phases)
    assert {"critic", "kv_cache"} <= set(found["memory"]["breakdown_gb"])


def test_other_methods_have_no_phases(client: FlaskClient) -> None:
    """The member is left out."""
    body = request() | {"training": {"method": "full_finetune"}}
    assert "phases" not in estimated(client, body)["throughput"]


def test_a_critic_and_an_environment_take_their_time(client: FlaskClient) -> None:
    """PPO costs more than GRPO."""
    plain, critic, waiting = (
        estimated(client, request(**changes)) for changes in ({}, {"critic_params": "8B"}, {"environment_seconds": 100})
    )
    assert critic["cost"]["total_usd"]["p50"] > plain["cost"]["total_usd"]["p50"]
    assert waiting["throughput"]["step_time_s"] == pytest.approx(plain["throughput"]["step_time_s"] + 100)


def test_asynchronous_pools_overlap(client: FlaskClient) -> None:
    """The step is shorter than its phases together; the layout is that of the accelerators that train."""
    found = estimated(client, request(asynchronous_steps=1, generation={"count": 8}))
    assert found["throughput"]["step_time_s"] < sum(row["seconds"] for row in found["throughput"]["phases"])
    layout = found["throughput"]["parallelism"]
    assert layout["tensor"] * layout["pipeline"] * layout["data"] * layout["context"] == 8


def test_little_is_enough(client: FlaskClient) -> None:
    """The method alone is answered, with a warning that the length of answers decides the cost."""
    found = estimated(client, request() | {"training": {"method": "rl"}})
    assert any("training.rl.response_tokens" in warning for warning in found["warnings"])


def test_levers_are_looked_for(client: FlaskClient) -> None:
    """Single changes of the run, whether or not its batch is stated in tokens."""
    assert estimated(client, request() | {"levers": True})["levers"]


def test_a_sampler_too_small_for_the_model_does_not_fit(client: FlaskClient) -> None:
    """With what would; a layout that the caller states is answered, and said not to fit."""
    body = request(8, generation={}) | {"model": {"preset": "llama-3.1-405b"}}
    answer = client.post("/v1/estimate", json=body)
    assert answer.status_code == 422
    assert answer.json is not None
    assert "of these accelerators, as far as sampling goes" in answer.json["detail"]
    body["training"]["parallelism"] = {"tensor": 8}
    found = estimated(client, body)
    assert not found["memory"]["fits"]
    assert any("holds the sampled model's weights" in warning for warning in found["warnings"])


def test_a_comparison_times_steps_on_every_machine(client: FlaskClient) -> None:
    """On each count the sampler has the accelerators of that count."""
    body = {
        "workload": {name: part for name, part in request().items() if name in ("model", "data", "training")},
        "candidates": {"accelerators": ["H100"], "counts": [8, 32]},
    }
    answer = client.post("/v1/compare", json=body)
    assert answer.status_code == 200, answer.json
    body["workload"]["training"] = {"method": "rl", "rl": {**STEP, "asynchronous_steps": 1}}
    apart = client.post("/v1/compare", json=body)
    assert apart.status_code == 200, apart.json


def test_a_comparison_leaves_out_accelerators_that_cannot_sample(client: FlaskClient) -> None:
    """A K80 has no 16-bit arithmetic: in a comparison that is a reason, in an estimate a refusal."""
    body = {"workload": {name: part for name, part in request().items() if name in ("model", "data", "training")}, "candidates": {}}
    assert client.post("/v1/compare", json=body).status_code == 200
    answer = client.post("/v1/estimate", json=request(generation={}) | {"hardware": {"accelerator": "K80", "count": 16}})
    assert answer.status_code == 422
    assert answer.json is not None
    assert answer.json["errors"][0]["pointer"] == "/training/rl/generation/precision"


@pytest.mark.parametrize("count", [1, 8])
def test_a_comparison_gives_the_hours_of_an_estimate(client: FlaskClient, count: int) -> None:
    """Also where the stated sampling accelerators are all there are, and where they were one of several."""
    training = {"method": "rl", "rl": {**STEP, "generation": {"count": count}}}
    workload = {"model": {"preset": "llama-3.2-1b"}, "data": {"tokens": "100M"}, "training": training}
    answer = client.post("/v1/compare", json={"workload": workload, "candidates": {"accelerators": ["H100"], "counts": [8]}})
    assert answer.status_code == 200, answer.json
    asked = {**workload, "hardware": {"accelerator": "H100", "count": 8}, "price": {"usd_per_accelerator_hour": 2.0}}
    hours = estimated(client, asked)["time"]["wall_clock_hours"]["p50"]
    on_demand = [
        option["time"]["wall_clock_hours"]["p50"] for option in answer.json["options"] if option["offer"]["pricing"] == "on_demand"
    ]
    assert on_demand
    assert on_demand == [pytest.approx(hours)] * len(on_demand)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"responses_per_prompt": 0}, "/training/rl/responses_per_prompt"),
        ({"response_tokens": 0}, "/training/rl/response_tokens"),
        ({"response_tokens": "many"}, "/training/rl/response_tokens"),
        ({"response_tokens": {"p50": 1000, "max": 500}}, "/training/rl/response_tokens/max"),
        ({"response_tokens": {"p90": 1000}}, "/training/rl/response_tokens/p50"),
        ({"response_tokens": {"p50": 1000, "p99": 2000}}, "/training/rl/response_tokens/p99"),
        ({"generation": {"tensor": 3}}, "/training/rl/generation/tensor"),
        ({"generation": {"count": 17}}, "/training/rl/generation/count"),
        ({"asynchronous_steps": -1}, "/training/rl/asynchronous_steps"),
        ({"lag": 1}, "/training/rl/lag"),
    ],
)
def test_bad_steps_are_refused(client: FlaskClient, changes: dict[str, Any], pointer: str) -> None:
    """Each with a pointer to what is wrong."""
    answer = client.post("/v1/estimate", json=request(**changes))
    assert answer.status_code == 422
    assert answer.json is not None
    assert pointer in {problem["pointer"] for problem in answer.json["errors"]}
