"""POST /v1/estimate and its batch: what the contract promises, and what bad input is told."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from service.schemas.training.answer import EstimateAnswerSchema

REQUEST: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "2T"},
    "training": {"method": "pretrain", "seq_len": 4096, "global_batch_tokens": 4194304, "precision": "bf16"},
    "hardware": {"accelerator": "A100-80GB", "count": 1024},
    "price": {"usd_per_accelerator_hour": 2.0},
}
SHAPE = {"layers": 32, "hidden_size": 4096, "attention_heads": 32, "ffn_hidden_size": 11008, "vocab_size": 32000}
BLOCKS = {
    "flops": {"per_token", "total", "petaflop_s_days", "forward", "backward", "recompute", "attention_share"},
    "tokens": {"raw", "effective", "trained"},
    "throughput": {
        *("tokens_per_s", "tokens_per_s_per_accelerator", "tflops_per_accelerator", "mfu", "hfu"),
        *("step_time_s", "bound_by", "parallelism", "alternatives", "source"),
    },
    "memory": {"per_accelerator_gb", "capacity_gb", "fits", "breakdown_gb"},
    "reliability": {"mttf_hours", "expected_interruptions", "checkpoint_interval_minutes", "goodput"},
    "time": {"accelerator_hours", "wall_clock_hours"},
    "cost": {"currency", "total_usd", "lines"},
    "energy": {"mwh", "tco2e", "pue", "grid_gco2_per_kwh"},
    "price": {"provider", "region", "pricing", "observed_at", "source", "stale"},
}


def changed(path: str, value: object) -> dict[str, Any]:
    """The contract's request with one field set, by its dotted path; None takes it out."""
    request = copy.deepcopy(REQUEST)
    *above, last = path.split(".")
    node = request
    for name in above:
        node = node.setdefault(name, {})
    if value is None:
        del node[last]
    else:
        node[last] = value
    return request


def ask(client: FlaskClient, request: object) -> dict[str, Any]:
    """The estimate of a request that has one."""
    answer = client.post("/v1/estimate", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


def test_the_answer_has_every_field_the_contract_names(client: FlaskClient) -> None:
    """Every block and field of the contract is there, and the whole answer is what the specification describes."""
    body = ask(client, REQUEST)
    assert set(BLOCKS) | {"price_snapshot", "engine_version", "assumptions", "warnings"} <= set(body)
    assert {name: fields - set(body[name]) for name, fields in BLOCKS.items()} == {name: set() for name in BLOCKS}
    assert EstimateAnswerSchema().validate(body) == {}


def test_cost_lines_add_up_to_the_total_to_the_cent(client: FlaskClient) -> None:
    """The total's p50 is the sum of the lines."""
    request = changed("personnel", {"evaluation_hours": 80.3, "usd_per_hour": 91.17}) | {"overhead": {"evaluation": 0.05, "reruns": 0.033}}
    cost = ask(client, request)["cost"]
    assert round(100 * cost["total_usd"]["p50"]) == sum(round(100 * line["usd"]) for line in cost["lines"])


def test_what_the_caller_did_not_choose_is_named_with_its_source(client: FlaskClient) -> None:
    """Defaults stand in assumptions; what was stated does not."""
    body = ask(client, REQUEST)
    assumed = {item["field"]: item for item in body["assumptions"]}
    assert {"training.optimizer", "training.parallelism", "failures.mttf_hours_per_accelerator", "energy.pue"} <= set(assumed)
    assert not {"training.seq_len", "training.precision", "hardware.count", "price"} & set(assumed)
    assert all(item["source"] for item in body["assumptions"])


def test_the_callers_price_is_named_as_such(client: FlaskClient) -> None:
    """A stated price has the source "caller" and is never stale."""
    price = ask(client, REQUEST)["price"]
    assert (price["source"], price["stale"], price["usd_per_accelerator_hour"]) == ("caller", False, 2.0)


def test_without_a_price_the_cheapest_on_demand_list_price_is_taken_and_named(client: FlaskClient) -> None:
    """The offer is a real, dated one, and no newer list price of another provider is lower."""
    body = ask(client, changed("price", None))
    price = body["price"]
    assert price["provider"]
    assert price["observed_at"]
    assert price["pricing"] == "on_demand"
    assert price["market"] == "list"
    assert any(item["field"] == "price" for item in body["assumptions"])
    query = {"accelerator": price["accelerator"], "pricing": "on_demand", "provider": price["provider"], "limit": 1000}
    own = client.get("/v1/offers", query_string=query).get_json()["items"]
    newest = max(offer["observed_at"] for offer in own)
    assert price["usd_per_accelerator_hour"] == min(o["usd_per_accelerator_hour"] for o in own if o["observed_at"] == newest)


def test_an_estimate_can_be_repeated_against_its_snapshot(client: FlaskClient) -> None:
    """Naming the price snapshot of an answer gives the same answer again."""
    first = ask(client, changed("price", None))
    again = ask(client, changed("price", {"snapshot": first["price_snapshot"]}))
    assert again == first


def test_counts_may_be_texts_with_suffixes_or_whole_numbers(client: FlaskClient) -> None:
    """ "2T", 2e12 and 2000000000000 are the same."""
    answers = [ask(client, changed("data.tokens", value)) for value in ("2T", 2e12, 2 * 10**12)]
    assert answers[0] == answers[1] == answers[2]


def test_a_layout_of_the_callers_that_does_not_fit_is_answered_and_said(client: FlaskClient) -> None:
    """Unsharded data parallelism of 70B does not fit; the answer says so and what would."""
    request = changed("model.preset", "llama-2-70b")
    request["training"] |= {"parallelism": {"tensor": 1, "pipeline": 1, "data": 1024, "context": 1}, "zero_stage": 0}
    body = ask(client, request)
    assert body["memory"]["fits"] is False
    assert body["memory"]["would_fit"]
    assert any("does not fit" in warning for warning in body["warnings"])


def test_the_best_other_layouts_are_told_with_what_they_lose(client: FlaskClient) -> None:
    """Three to five of other meshes than the one taken, the fastest first; where one is faster and does not fit, what it would need."""
    request = changed("model.preset", "llama-2-70b")
    body = ask(client, request)
    assert EstimateAnswerSchema().validate(body) == {}
    throughput, others = body["throughput"], body["throughput"]["alternatives"]
    assert 3 <= len(others) <= 5
    assert [other["slower_by"] for other in others] == sorted(other["slower_by"] for other in others)
    assert all(set(other["parallelism"]) == set(throughput["parallelism"]) for other in others)
    assert all(other["fits"] == (other["memory_gb"] <= body["memory"]["capacity_gb"]) == (other["slower_by"] >= 0) for other in others)
    assert all(other["why"].startswith("more time in" if other["fits"] else "needs") for other in others if other["slower_by"])


def test_the_layout_taken_is_no_slower_than_any_told_beside_it(client: FlaskClient) -> None:
    """An alternative that fits, asked for by its axes, is answered at the rate that was told, without what teams lose by other layouts."""
    taken = ask(client, REQUEST)
    throughput = taken["throughput"]
    typical_share = throughput["tokens_per_s_per_accelerator"]["p50"] / throughput["best_tokens_per_s_per_accelerator"]
    other = next(other for other in throughput["alternatives"] if other["fits"])
    layout = dict(other["parallelism"])
    request = copy.deepcopy(REQUEST)
    request["training"] |= {name: layout.pop(name) for name in ("micro_batch", "zero_stage", "activation_recompute")}
    request["training"]["parallelism"] = layout
    beside = ask(client, request)
    found = beside["throughput"]
    assert typical_share < 1
    assert typical_share * taken["time"]["wall_clock_hours"]["p50"] <= beside["time"]["wall_clock_hours"]["p50"]
    assert found["parallelism"] == other["parallelism"]
    assert typical_share * found["tokens_per_s_per_accelerator"]["p50"] == pytest.approx(other["tokens_per_s_per_accelerator"])
    assert found["tokens_per_s_per_accelerator"]["p50"] <= throughput["best_tokens_per_s_per_accelerator"]
    assert found["alternatives"] == []


def test_a_measured_speed_has_no_modelled_alternatives(client: FlaskClient) -> None:
    """The model's rates are not put beside the caller's own."""
    assert ask(client, changed("efficiency", {"mfu": 0.4}))["throughput"]["alternatives"] == []


def test_the_rest_of_a_layout_given_in_part_is_searched(client: FlaskClient) -> None:
    """With tensor 4 fixed, what is taken and what is told beside it all have it."""
    throughput = ask(client, changed("training.parallelism", {"tensor": 4}))["throughput"]
    assert throughput["parallelism"]["tensor"] == 4
    assert throughput["alternatives"]
    assert {other["parallelism"]["tensor"] for other in throughput["alternatives"]} == {4}


def test_a_batch_that_does_not_divide_is_rounded_and_said(client: FlaskClient) -> None:
    """Batch tokens are rounded to whole sequences and data ranks, and the value taken is reported."""
    body = ask(client, changed("training.global_batch_tokens", 4_000_000))
    taken = next(item["value"] for item in body["assumptions"] if item["field"] == "training.global_batch_tokens")
    assert taken % 4096 == 0
    data_ranks = body["throughput"]["parallelism"]["data"]
    assert taken // 4096 % data_ranks == 0


@pytest.mark.parametrize("method", ["pretrain", "continued_pretrain", "full_finetune", "lora", "qlora", "distill", "dpo", "rl"])
def test_every_method_answers_with_defaults_alone(client: FlaskClient, method: str) -> None:
    """Only the method is named; the rest is assumed."""
    request = {"model": {"preset": "llama-2-7b"}, "data": {"tokens": "1B"}, "hardware": {"accelerator": "H100", "count": 64}}
    body = ask(client, {**request, "training": {"method": method}})
    assert body["cost"]["total_usd"]["p50"] > 0


@pytest.mark.parametrize(
    ("model", "data"),
    [
        ({"params": "7B"}, {"tokens": "1T"}),
        ({"params": "46.7B", "active_params": "12.9B"}, {"tokens": "1T"}),
        (SHAPE, {"tokens": "1T"}),
        ({"preset": "deepseek-v3"}, {"tokens": "14.8T"}),
        ({"preset": "resnet-50"}, {"samples": 1281167, "epochs": 90}),
        ({"preset": "vit-l-16"}, {"samples": "300M"}),
        ({"flops_per_sample": 8.2e9, "sample_unit": "image", "params": "25.6M"}, {"samples": "100M"}),
        (
            {"hf_config": {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                           "intermediate_size": 11008, "vocab_size": 32000}},
            {"tokens": "1T"},
        ),
    ],
    ids=["params", "experts", "shape", "mla", "cnn", "vit", "flops", "hf_config"],
)  # fmt: skip
def test_every_way_to_name_a_model_answers(client: FlaskClient, model: dict[str, Any], data: dict[str, Any]) -> None:
    """A preset, a count, a shape, a config or FLOPs a sample are all enough."""
    body = ask(client, {"model": model, "data": data, "hardware": {"accelerator": "H100", "count": 512}})
    assert body["flops"]["total"] > 0


@pytest.mark.parametrize("ranks", [48, 64, 256])
def test_experts_that_are_not_counted_follow_the_stated_layout(client: FlaskClient, ranks: int) -> None:
    """A total and an active count leave the number of experts open: what is assumed divides over the ranks that are stated."""
    hardware = {"accelerator": "H100", "count": 3072}
    training = {"parallelism": {"expert": ranks}}
    body = ask(client, {"model": {"params": "120B", "active_params": "12B"}, "data": {"tokens": "2T"}, "hardware": hardware,
                        "training": training, "price": {"usd_per_accelerator_hour": 2}})  # fmt: skip
    assert body["throughput"]["parallelism"]["expert"] == ranks
    assumed = {entry["field"]: entry["value"] for entry in body["assumptions"]}
    assert assumed["model.experts"] % ranks == 0


# Least memory [GB] that Unsloth publishes for QLoRA with its usual settings: unsloth.ai/docs, "Unsloth Requirements" (70B) and "gpt-oss";
# for Qwen3-30B-A3B its announcement of Qwen3 (2025-04).
QLORA_GB = [("gpt-oss-20b", "T4", 14), ("qwen3-30b-a3b", "L4", 17.5), ("llama-3.1-70b", "L40S", 41), ("gpt-oss-120b", "H100", 65)]


@pytest.mark.parametrize(("preset", "accelerator", "published_gb"), QLORA_GB)
def test_qlora_fits_the_cards_that_people_use(client: FlaskClient, preset: str, accelerator: str, published_gb: float) -> None:
    """gpt-oss-20b on 16 GB, Qwen3-30B-A3B on 24, 70B on 48, gpt-oss-120b on 80, with nothing stated but the method; one sequence at a time,
    with a loss that never holds the logits as Unsloth has it, takes what is published within a tenth.
    """
    request = {"model": {"preset": preset}, "data": {"tokens": "10M"}, "training": {"method": "qlora"},
               "hardware": {"accelerator": accelerator, "count": 1}, "price": {"usd_per_accelerator_hour": 1}}  # fmt: skip
    assert ask(client, request)["memory"]["fits"]
    training = {"method": "qlora", "micro_batch": 1, "activation_recompute": "full", "kernel_fusion": "fused_linear_cross_entropy"}
    lean = request | {"training": training}
    assert ask(client, lean)["memory"]["per_accelerator_gb"] == pytest.approx(published_gb, rel=0.1)


def test_adapters_on_every_expert_take_what_their_number_says(client: FlaskClient) -> None:
    """128 experts of 48 layers have each their own: 8 bytes a weight beside the paged moments, and what a word or a list names is taken."""
    held = {}
    for targets in ("attention", "all_linear", "experts", ["q_proj", "v_proj"]):
        training = {"method": "qlora", "adapter_targets": targets, "micro_batch": 1, "activation_recompute": "full"}
        held[str(targets)] = ask(client, {
            "model": {"preset": "qwen3-30b-a3b"}, "data": {"tokens": "10M"}, "training": training,
            "hardware": {"accelerator": "A100-80GB", "count": 1}, "price": {"usd_per_accelerator_hour": 1},
        })["memory"]["per_accelerator_gb"]  # fmt: skip
    assert held["['q_proj', 'v_proj']"] < held["attention"] <= held["all_linear"]
    weights = 16 * 48 * 128 * 3 * (2048 + 768)
    assert held["experts"] - held["all_linear"] == pytest.approx(1.005 * 8 * weights / 1e9, rel=0.05)


def warnings_of(client: FlaskClient, preset: str, count: int, **training: Any) -> list[str]:
    """Warnings of a run of a trillion tokens on H100."""
    request = {"model": {"preset": preset}, "data": {"tokens": "1T"}, "hardware": {"accelerator": "H100", "count": count},
               "training": training, "price": {"usd_per_accelerator_hour": 2}}  # fmt: skip
    return list(ask(client, request)["warnings"])


def speed_of(client: FlaskClient, preset: str, count: int) -> float:
    """Speed of a run of a trillion tokens on H100 [tokens/s]."""
    request = {"model": {"preset": preset}, "data": {"tokens": "1T"}, "hardware": {"accelerator": "H100", "count": count},
               "price": {"usd_per_accelerator_hour": 2}}  # fmt: skip
    return float(ask(client, request)["throughput"]["tokens_per_s"])


def test_a_layout_that_fills_the_memory_is_warned_of(client: FlaskClient) -> None:
    """Beyond 95 % of what is usable, whoever chose the layout; not below, which a search takes where it can."""
    assert any("fills 95" in warning for warning in warnings_of(client, "llama-2-13b", 4))
    assert not any("fills" in warning for warning in warnings_of(client, "llama-3-70b", 128))


@pytest.mark.parametrize("preset", ["mixtral-8x22b", "llama-3.1-405b"])
def test_one_node_more_that_loses_throughput_is_better_left_idle(client: FlaskClient, preset: str) -> None:
    """257 nodes divide into few layouts: 256 of them train faster, and the warning says how many to use; 256 have none."""
    warned = [warning for warning in warnings_of(client, preset, 2056) if "idle" in warning]
    assert len(warned) == 1
    assert re.match(r"2,048 of the 2,056 accelerators train \d+% faster", warned[0])
    assert warned[0].endswith("use 2,048 and leave 8 idle")
    assert not any("idle" in warning for warning in warnings_of(client, preset, 2048))
    assert not any("idle" in warning for warning in warnings_of(client, preset, 2056, parallelism={"pipeline": 1}))


@pytest.mark.parametrize("count", [320, 384])
def test_more_accelerators_than_the_batch_has_sequences_are_better_left_idle(client: FlaskClient, count: int) -> None:
    """Each step of 1B has 128 sequences, which 40 and 48 nodes divide badly: fewer train faster, and how many is said."""
    (warned,) = [warning for warning in warnings_of(client, "llama-3.2-1b", count) if "idle" in warning]
    fewer = int(warned.partition(" ")[0].replace(",", ""))
    speeds = [speed_of(client, "llama-3.2-1b", each) for each in (fewer, count)]
    assert speeds[0] > 1.02 * speeds[1]


@pytest.mark.parametrize("preset", ["llama-3-8b", "llama-3-70b", "mixtral-8x7b"])
@pytest.mark.parametrize("count", [64, 128, 256, 384, 512, 2048])
def test_one_node_more_never_trains_slower_without_a_warning(client: FlaskClient, preset: str, count: int) -> None:
    """By more than three per cent."""
    if speed_of(client, preset, count + 8) < 0.97 * speed_of(client, preset, count):
        assert any("idle" in warning for warning in warnings_of(client, preset, count + 8))


BAD = [
    ("hardware.accelerator", "H1000", 422, "/hardware/accelerator", "H100"),
    ("model", {"params": "70B", **SHAPE}, 422, "/model/params", "parameters"),
    ("hardware.count", -1, 422, "/hardware/count", ""),
    ("hardware.count", 0, 422, "/hardware/count", ""),
    ("data.tokens", 0, 422, "/data/tokens", ""),
    ("data.tokens", -5, 422, "/data/tokens", ""),
    ("data.tokens", 10**29, 422, "/data/tokens", ""),
    ("data.tokens", "12Q", 422, "/data/tokens", "suffix"),
    ("data.tokens", 1.9, 422, "/data/tokens", "whole"),
    ("data.tokens", True, 422, "/data/tokens", ""),
    ("data.tokens", "1_0", 422, "/data/tokens", ""),
    ("training.seq_len", "8k", 422, "/training/seq_len", ""),
    ("training.adapter_targets", ["q_proj", 5], 422, "/training/adapter_targets/1", ""),
    ("training.adapter_targets", "wq", 422, "/training/adapter_targets", "attention"),
    ("efficiency", {"mfu": 1.2}, 422, "/efficiency/mfu", ""),
    ("efficiency", {"tflops_per_accelerator": 1e5}, 422, "/efficiency/tflops_per_accelerator", "peak"),
    ("efficiency", {"tokens_per_s_per_accelerator": 1e9}, 422, "/efficiency/tokens_per_s_per_accelerator", "peak"),
    ("efficiency", {"mfu": 0.4, "tflops_per_accelerator": 100}, 422, "/efficiency", "one"),
    ("model", {"layers": 32, "hidden_size": 4096, "attention_heads": 33}, 422, "/model/attention_heads", "divide"),
    ("model", {"layers": 32, "hidden_size": 4096, "attention_heads": 32, "kv_heads": 5}, 422, "/model/kv_heads", "divide"),
    ("model", {"layers": 32, "hidden_size": 4096, "experts": 4, "experts_per_token": 8}, 422, "/model/experts_per_token", "visit"),
    ("training.parallelism", {"tensor": 3, "pipeline": 1, "data": 5, "context": 1}, 422, "/training/parallelism/tensor", "divide"),
    ("training.parallelism", {"tensor": 8, "pipeline": 1, "data": 5, "context": 1}, 422, "/training/parallelism", "1024"),
    ("training.parallelism", "best", 422, "/training/parallelism", '"auto"'),
    ("training.parallelism", "best", 422, "/training/parallelism", "object with any of tensor, pipeline"),
    ("training.parallelism", 8, 422, "/training/parallelism", '"auto"'),
    ("training.parallelism", {"pipeline": 1, "virtual_pipeline": 4}, 422, "/training/parallelism/virtual_pipeline", "above 1"),
    ("failures.checkpoint_interval_minutes", "often", 422, "/failures/checkpoint_interval_minutes", '"auto"'),
    ("training.precision", "fp8", 422, "/training/precision", "bf16"),
    ("training.precision", "fp64", 422, "/training/precision", "one of"),
    ("model.preset", "llama-2-8b", 422, "/model/preset", "llama-2-7b"),
    ("model", {"preset": "llama-2-7b", "layers": 3}, 422, "/model/layers", "leave out"),
    ("model", {}, 422, "/model", "preset"),
    ("data", {"tokens": "1T", "samples": 5}, 422, "/data", "one of"),
    ("price", {"usd_per_accelerator_hour": 2, "provider": "aws"}, 422, "/price/provider", "leave out"),
    ("price", {"provider": "nobody"}, 422, "/price", "known"),
    ("price", {"snapshot": "snapshot-1999"}, 422, "/price/snapshot", "current"),
    ("price", {"usd_per_accelerator_hour": 0}, 422, "/price/usd_per_accelerator_hour", "must be"),
    ("energy", {"region": "gcp:us-centrol1"}, 422, "/energy/region", "us-central1"),
    ("schedule", {"start": "2027-06-30", "deadline": "2027-01-04"}, 422, "/schedule/deadline", "before"),
    ("schedule", {"start": "2027-02-30"}, 422, "/schedule/start", ""),
    ("trainin", {}, 422, "/trainin", "training"),
    ("training.sequence", 5, 422, "/training/sequence", "unknown field"),
    ("failures", {"preemptions_per_node_hour": 500}, 422, "/failures", "practically no progress"),
]


@pytest.mark.parametrize(("path", "value", "status", "pointer", "says"), BAD, ids=[f"{row[0]}={str(row[1])[:40]}" for row in BAD])
def test_bad_input_is_told_where_and_what(client: FlaskClient, path: str, value: object, status: int, pointer: str, says: str) -> None:
    """Bad input gets a problem with a pointer to the field and a word on what would be right; never a number."""
    answer = client.post("/v1/estimate", json=changed(path, value))
    body = answer.get_json()
    assert answer.status_code == status, body
    assert answer.content_type == "application/problem+json"
    assert [error for error in body["errors"] if error["pointer"] == pointer and says in error["message"]], body


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400", "-Infinity", "9" * 5000, "1E-999999999"])
def test_numbers_outside_json_or_reason_are_refused(client: FlaskClient, number: str) -> None:
    """NaN, infinities, overflows and endless integers are a problem, never a 500."""
    text = json.dumps(changed("data.tokens", "@")).replace('"@"', number)
    answer = client.post("/v1/estimate", data=text, content_type="application/json")
    assert answer.status_code in (400, 422)
    assert answer.content_type == "application/problem+json"


def test_a_model_that_fits_nowhere_is_told_what_would(client: FlaskClient) -> None:
    """Under automatic layouts a model too large is a 422 whose advice holds when followed."""
    request = changed("model.preset", "llama-3.1-405b")
    request["hardware"] = {"accelerator": "A100-80GB", "count": 8}
    answer = client.post("/v1/estimate", json=request)
    assert answer.status_code == 422
    message = answer.get_json()["detail"]
    assert "What would fit" in message
    words = message.split()
    count = int(words[words.index("of", words.index("fit:")) - 1])
    request["hardware"]["count"] = count
    assert ask(client, request)["memory"]["fits"] is True
    request["hardware"]["count"] = count - 8
    assert client.post("/v1/estimate", json=request).status_code == 422


def test_a_batch_answers_in_order_and_leaves_good_requests_alone(client: FlaskClient) -> None:
    """Each entry is an estimate or a problem whose pointers lead into the batch."""
    entries = [REQUEST, changed("model.preset", "nothing-like-it"), changed("data.tokens", "12Q"), changed("data.tokens", "1T")]
    body = client.post("/v1/estimate/batch", json={"requests": entries}).get_json()
    answers = body["answers"]
    assert answers[0] == ask(client, REQUEST)
    assert [entry.get("status") for entry in answers] == [None, 422, 422, None]
    assert answers[1]["errors"][0]["pointer"] == "/requests/1/model/preset"
    assert answers[2]["errors"][0]["pointer"] == "/requests/2/data/tokens"
    assert answers[3]["tokens"]["trained"] == 1e12
    assert body["price_snapshot"]
    assert body["engine_version"]


@pytest.mark.parametrize("count", [0, 1001])
def test_a_batch_takes_1_to_1000_requests(client: FlaskClient, count: int) -> None:
    """An empty batch and one of 1,001 are refused whole."""
    answer = client.post("/v1/estimate/batch", json={"requests": [REQUEST] * count})
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"] == "/requests"


def test_a_more_expensive_accelerator_hour_never_makes_the_run_cheaper(client: FlaskClient) -> None:
    """Cost grows with the price, and nothing else moves."""
    cheap, dear = (ask(client, changed("price.usd_per_accelerator_hour", usd)) for usd in (1.0, 3.0))
    assert cheap["cost"]["total_usd"]["p50"] < dear["cost"]["total_usd"]["p50"]
    assert cheap["time"] == dear["time"]


def test_every_accelerator_answers_or_says_what_is_wrong(client: FlaskClient) -> None:
    """A 1B model on each known accelerator is an estimate, or a problem about its memory; never an error of ours."""
    names = [item["name"] for item in client.get("/v1/accelerators?limit=1000").get_json()["items"]]
    request = {"model": {"params": "1B"}, "data": {"tokens": "20B"}, "price": {"usd_per_accelerator_hour": 1}}
    answers = {name: client.post("/v1/estimate", json={**request, "hardware": {"accelerator": name, "count": 16}}) for name in names}
    assert {name: a.status_code for name, a in answers.items() if a.status_code not in (200, 422)} == {}
    assert sum(a.status_code == 200 for a in answers.values()) >= 45


def test_lists_can_be_paged_through_without_loss(client: FlaskClient) -> None:
    """Following next_cursor meets every offer once, and filters narrow the list."""
    seen, cursor = [], None
    while True:
        query = {"accelerator": "H100", "limit": 100} | ({"cursor": cursor} if cursor else {})
        page = client.get("/v1/offers", query_string=query).get_json()
        seen += [json.dumps(item, sort_keys=True) for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) > 100
    cheap = client.get("/v1/offers?accelerator=H100&max_usd_per_accelerator_hour=2.5&pricing=on_demand").get_json()["items"]
    assert cheap
    assert all(item["usd_per_accelerator_hour"] <= 2.5 for item in cheap)


def test_models_and_accelerators_are_listed_with_their_sources(client: FlaskClient) -> None:
    """Every entry names where its figures come from."""
    models = client.get("/v1/models?limit=1000").get_json()["items"]
    accelerators = client.get("/v1/accelerators?limit=1000").get_json()["items"]
    assert len(models) >= 80
    assert len(accelerators) >= 45
    assert all(item["source"] for item in models + accelerators)


def test_fine_tuning_says_how_it_is_taken_to_run(client: FlaskClient) -> None:
    """States and fused kernels that are not stated stand in the assumptions where they are taken; fields of other methods are refused."""
    request = {"model": {"preset": "llama-3-8b"}, "data": {"tokens": "10M"}, "hardware": {"accelerator": "H100", "count": 8},
               "price": {"usd_per_accelerator_hour": 2}}  # fmt: skip
    full = ask(client, request | {"training": {"method": "full_finetune", "precision": "fp8"}})
    assumed = {entry["field"]: entry["value"] for entry in full["assumptions"]}
    assert (assumed["training.states_dtype"], assumed["training.kernel_fusion"]) == ("fp32", "fused")
    narrow = {"method": "full_finetune", "states_dtype": "bf16", "zero_stage": 3, "activation_recompute": "full", "micro_batch": 1}
    wide = narrow | {"states_dtype": "fp32"}
    held = [ask(client, request | {"training": training})["memory"]["per_accelerator_gb"] for training in (narrow, wide)]
    assert held[0] < 0.75 * held[1]
    refused = client.post("/v1/estimate", json=request | {"training": {"method": "pretrain", "kernel_fusion": "fused"}})
    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, "/training/kernel_fusion")


@pytest.mark.parametrize(("samples", "warned"), [(10_000, True), (10_000_000, False)])
def test_a_run_shorter_than_an_hour_says_that_its_start_is_not_in_it(client: FlaskClient, samples: int, warned: bool) -> None:
    """An adapter on 10,000 samples trains for two minutes, and its job takes minutes more to start."""
    run = {"model": {"preset": "llama-3.1-8b"}, "data": {"samples": samples}, "hardware": {"accelerator": "H100", "count": 8}}
    warnings = client.post("/v1/estimate", json={**run, "training": {"method": "lora"}}).get_json()["warnings"]
    assert any("starting the job and loading model and data take minutes more" in text for text in warnings) == warned


def test_an_evaluation_is_in_the_answer(client: FlaskClient) -> None:
    """Of a run that states one, as the schema describes it, and in the documents of the kept answer."""
    evaluation = {"suites": [{"name": "mmlu", "samples": 14_042, "sign_off": {"name": "Ada", "days": 1}}]}
    answer = ask(client, {**REQUEST, "evaluation": evaluation})
    assert EstimateAnswerSchema().validate(answer) == {}
    (suite,) = answer["evaluation"]["suites"]
    assert suite["usd"] == next(line["usd"] for line in answer["cost"]["lines"] if line["line"] == "evaluation: mmlu")
    assert "evaluation" not in ask(client, REQUEST)
    wrong = client.post("/v1/estimate", json={**REQUEST, "evaluation": {"suites": [{"name": "mmlu"}]}})
    assert (wrong.status_code, wrong.get_json()["errors"][0]["pointer"]) == (422, "/evaluation/suites/0")
