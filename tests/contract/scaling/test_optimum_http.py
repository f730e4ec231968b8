"""POST /v1/optimal: published optima, dollars as an estimate has them, and what bad input is told."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from service.api.resources.scaling import OPTIMUM as EXAMPLE
from service.schemas.base import ProblemSchema
from service.schemas.compound_fields import Part
from service.schemas.scaling.optimum_answer import OptimalAnswerSchema
from service.schemas.scaling.optimum_request import OptimalRequestSchema
from tests.contract.http.test_fuzz import RUBBISH, numbers, values

CONTRACT = {"params", "tokens", "loss", "flops", "law", "curve", "assumptions", "warnings", "price_snapshot", "engine_version"}
MACHINE: dict[str, Any] = {"hardware": {"accelerator": "H100", "count": 256}, "price": {"usd_per_accelerator_hour": 2.5}}
OWN = {"E": 1.8, "A": 480.0, "B": 2085.0, "alpha": 0.35, "beta": 0.37}
CHINCHILLA = 5.76e23


def answered(client: FlaskClient, request: dict[str, Any]) -> dict[str, Any]:
    """The answer, which is as described and holds no figure that is none."""
    answer = client.post("/v1/optimal", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = json.loads(answer.get_data(), parse_constant=lambda name: pytest.fail(f"{name} in an answer"))
    assert OptimalAnswerSchema().validate(body) == {}
    assert all(math.isfinite(number) for _, number in numbers(body))
    return body


def test_the_contract_s_names_are_there(client: FlaskClient) -> None:
    """With ranges of size and tokens, and points of a curve."""
    body = answered(client, {"budget": {"flops": CHINCHILLA}})
    assert set(body) >= CONTRACT
    assert set(body["params"]) == set(body["tokens"]) == {"p10", "p50", "p90"}
    assert set(body["curve"][0]) >= {"params", "tokens", "loss"}


@pytest.mark.parametrize(
    ("law", "params", "tokens"),
    [
        ("besiroglu", 72.2e9, 1.33e12),  # docs/explanation/scaling-laws.md: Chinchilla's 70B on 1.4e12 tokens
        ("hoffmann-1", 67.0e9, 1.5e12),  # Hoffmann et al. 2022, table 3
        ("hoffmann-2", 63.0e9, 1.5e12),
        ("hoffmann-3", 40.0e9, 2.4e12),  # table A3: 40B
    ],
)
def test_published_optima_of_chinchillas_budget_come_out(client: FlaskClient, law: str, params: float, tokens: float) -> None:
    """Within 5 %, of a budget of 5.76e23 FLOPs; tokens are C / 6 N of a size the tables round."""
    body = answered(client, {"budget": {"flops": CHINCHILLA}, "law": law})
    assert body["params"]["p50"] == pytest.approx(params, rel=0.05)
    assert body["tokens"]["p50"] == pytest.approx(tokens, rel=0.07)
    assert body["flops"] == pytest.approx(CHINCHILLA)


def test_llama_3s_own_prediction_stands_beside(client: FlaskClient) -> None:
    """402B on 16.55e12 tokens at 3.8e25 FLOPs, and its law gives that within 5 %."""
    body = answered(client, {"budget": {"flops": 3.8e25}})
    assert [(plan["params"], plan["tokens"]) for plan in body["published"] if "Llama 3" in plan["name"]] == [(402e9, 16.55e12)]
    beside = next(each for each in body["other_laws"] if each["law"] == "llama-3")
    assert (beside["params"], beside["tokens"]) == (pytest.approx(402e9, rel=0.05), pytest.approx(16.55e12, rel=0.05))
    assert any("extrapolated" in warning for warning in body["warnings"])


@pytest.mark.parametrize("budget", [{"usd": 1e6}, {"accelerator_hours": 4e5}, {"days": 60}, {"deadline": "2027-06-30"}])
def test_a_budget_is_spent_by_the_estimate_of_the_suggestion(client: FlaskClient, budget: dict[str, Any]) -> None:
    """Dollars, hours and days are those of POST /v1/estimate for the suggested layout, whose median stays within the budget."""
    body = answered(client, {**MACHINE, "budget": budget, "schedule": {"start": "2027-01-04"}})
    run = {**MACHINE, "model": body["suggestion"]["model"], "data": body["suggestion"]["data"]}
    alone = client.post("/v1/estimate", json=run).get_json()
    for block in ("cost", "memory", "throughput"):
        assert body["estimate"][block] == alone[block]
    spent = {
        "usd": alone["cost"]["total_usd"]["p50"],
        "accelerator_hours": alone["time"]["accelerator_hours"]["p50"],
        "wall_clock_hours": alone["time"]["wall_clock_hours"]["p50"],
    }
    assert 0.9 < spent[body["budget"]["kind"]] / body["budget"]["amount"] <= 1
    assert body["training"]["usd"]["p50"] == pytest.approx(alone["cost"]["total_usd"]["p50"], rel=1e-4)
    assert body["params"]["p50"] == body["suggestion"]["params"]
    assert body["tokens"]["p50"] == pytest.approx(body["suggestion"]["data"]["tokens"])


@pytest.mark.parametrize("budget", [{"usd": 1e6}, {"accelerator_hours": 4e5}, {"days": 60}])
def test_a_stated_model_spends_the_budget_on_tokens(client: FlaskClient, budget: dict[str, Any]) -> None:
    """The estimate of the model with these tokens, asked for by itself, costs the budget at its p50."""
    body = answered(client, {**MACHINE, "budget": budget, "model": {"preset": "llama-3-8b"}})
    assert body["suggestion"]["model"] == {"preset": "llama-3-8b"}
    run = {**MACHINE, "model": {"preset": "llama-3-8b"}, "data": {"tokens": int(body["tokens"]["p50"])}}
    alone = client.post("/v1/estimate", json=run).get_json()
    spent = {
        "usd": alone["cost"]["total_usd"]["p50"],
        "accelerator_hours": alone["time"]["accelerator_hours"]["p50"],
        "wall_clock_hours": alone["time"]["wall_clock_hours"]["p50"],
    }
    assert spent[body["budget"]["kind"]] == pytest.approx(body["budget"]["amount"], rel=1e-4)
    assert body["estimate"]["cost"] == alone["cost"]
    assert body["given_model"]["tokens_over_optimal"] == pytest.approx(body["tokens"]["p50"] / body["given_model"]["optimal_tokens"])


def test_a_deadline_shows_how_likely_it_is(client: FlaskClient) -> None:
    """The budget is the median, so about half of the runs are in time."""
    body = answered(client, {**MACHINE, "budget": {"deadline": "2027-06-30"}, "schedule": {"start": "2027-01-04", "queue_hours": 48}})
    assert body["budget"] == {"kind": "wall_clock_hours", "amount": 178 * 24 - 48}
    assert body["estimate"]["time"]["deadline_probability"] == pytest.approx(0.5, abs=0.02)


def test_the_lifetimes_model_is_smaller_longer_trained_and_within_the_budget(client: FlaskClient) -> None:
    """The plan as good as the best for training alone stands beside it, beyond the budget, with what it saves."""
    alone = answered(client, {**MACHINE, "budget": {"usd": 1e6}})
    body = answered(client, {**MACHINE, "budget": {"usd": 1e6}, "lifetime_inference_tokens": "10T"})
    lifetime = body["lifetime"]
    assert body["params"]["p50"] < alone["params"]["p50"]
    assert body["tokens"]["p50"] > alone["tokens"]["p50"]
    assert body["estimate"]["cost"]["total_usd"]["p50"] <= 1e6 < lifetime["joint"]["training_usd"]
    assert lifetime["within_budget"]["training_usd"] == pytest.approx(body["training"]["usd"]["p50"])
    assert lifetime["joint"]["loss"] == pytest.approx(lifetime["training_only"]["loss"], rel=1e-6)
    assert lifetime["joint"]["loss"] < body["loss"] < 1.02 * lifetime["joint"]["loss"]
    before, after = (lifetime[name]["training_usd"] + lifetime[name]["serving_usd"] for name in ("training_only", "joint"))
    assert lifetime["saves_usd"] == pytest.approx(before - after)
    assert before - after > 0


@pytest.mark.parametrize("budget", [{"usd": 10}, {"usd": 1e6}, {"days": 30}])
def test_training_is_the_estimate_of_the_suggestion(client: FlaskClient, budget: dict[str, float]) -> None:
    """With its ranges; the suggestion sent to POST /v1/estimate gives the same."""
    body = answered(client, {**MACHINE, "budget": budget})
    suggested = {name: body["suggestion"][name] for name in ("model", "data")}
    alone = client.post("/v1/estimate", json={**MACHINE, **suggested}).get_json()
    for found in (body["estimate"], alone):
        assert body["training"]["usd"] == found["cost"]["total_usd"]
        assert body["training"]["wall_clock_hours"] == pytest.approx(found["time"]["wall_clock_hours"])
    assert f"{body['summary']['p50_usd']:.6g}" == f"{body['training']['usd']['p50']:.6g}"


def test_a_plan_of_seconds_is_warned_of(client: FlaskClient) -> None:
    """Its start takes longer than its training."""
    words = "training takes 0."
    assert any(text.startswith(words) for text in answered(client, {**MACHINE, "budget": {"usd": 10}})["warnings"])


def test_sardanas_lifetime_without_a_machine_is_in_flops(client: FlaskClient) -> None:
    """Sardana et al. 2023: of a 13B Chinchilla model's quality with 2e12 tokens served, 7B and 17 % saved."""
    body = answered(client, {"budget": {"flops": 4.5e22}, "law": "hoffmann-3", "lifetime_inference_tokens": "2T"})
    assert body["lifetime"]["saves_usd"] is None
    assert body["lifetime"]["training_only"]["params"] == pytest.approx(13e9, rel=0.05)
    assert body["lifetime"]["saves_share"] == pytest.approx(0.17, abs=0.01)
    assert body["lifetime"]["joint"]["params"] == pytest.approx(7e9, rel=0.05)
    assert body["lifetime"]["within_budget"]["flops"] == pytest.approx(4.5e22)


def test_the_callers_plan_stands_beside_with_what_it_wastes(client: FlaskClient) -> None:
    """A 7B on 2e12 tokens takes far more FLOPs than its loss needs; the optimum itself wastes nothing."""
    plan = answered(client, {**MACHINE, "budget": {"usd": 1e6}, "plan": {"params": "7B", "tokens": "2T"}})["plan"]
    assert plan["plan"]["flops"] == pytest.approx(6 * 7e9 * 2e12)
    assert plan["wasted_flops"] == pytest.approx(plan["plan"]["flops"] - plan["same_loss"]["flops"])
    assert 0.3 < plan["wasted_share"] < 0.6
    assert 0 < plan["wasted_usd"] < plan["plan"]["training_usd"]
    best = answered(client, {"budget": {"flops": 1e22}})
    again = {"params": round(best["params"]["p50"]), "tokens": round(best["tokens"]["p50"])}
    assert answered(client, {"budget": {"flops": 1e22}, "plan": again})["plan"]["wasted_share"] == pytest.approx(0, abs=1e-6)


def test_limited_data_are_repeated_and_estimated_in_epochs(client: FlaskClient) -> None:
    """Muennighoff et al. 2023: with few unique tokens a smaller model sees them several times."""
    body = answered(client, {**MACHINE, "budget": {"usd": 1e6}, "max_unique_tokens": "100B"})
    free = answered(client, {**MACHINE, "budget": {"usd": 1e6}})
    assert body["suggestion"]["data"]["tokens"] == 10**11
    assert body["suggestion"]["data"]["epochs"] > 1
    assert body["loss"] > free["loss"]
    assert any("repeated" in warning for warning in body["warnings"])


def test_an_own_law_is_taken_with_its_draws(client: FlaskClient) -> None:
    """A law in its own figures is as the published one; drawn rows make ranges."""
    published = {"E": 1.8172, "A": 482.01, "B": 2085.43, "alpha": 0.3478, "beta": 0.3658}
    by_name = answered(client, {"budget": {"flops": 1e22}})
    own = answered(client, {"budget": {"flops": 1e22}, "law": published})
    assert own["law"] == "own"
    assert own["params"]["p10"] == own["params"]["p50"] == own["params"]["p90"] == pytest.approx(by_name["params"]["p50"])
    rows = [[1.8, 480.0, 2085.0, 0.33 + 0.001 * step, 0.37] for step in range(40)]
    drawn = answered(client, {"budget": {"flops": 1e22}, "law": OWN | {"draws": rows}})
    assert drawn["params"]["p10"] < drawn["params"]["p50"] < drawn["params"]["p90"]


def test_a_fitted_law_carries_its_uncertainty_to_the_size(client: FlaskClient) -> None:
    """`law` of POST /v1/scaling-laws/fit goes in as it came: resamples move size, tokens and loss; nearly agreeing runs hardly."""
    spreads = []
    for share in (0.0, 0.02):
        fit = client.post("/v1/scaling-laws/fit", json={"points": scattered(share), "bootstraps": 40}).get_json()
        body = answered(client, {**MACHINE, "budget": {"usd": 1e6}, "law": fit["law"], "lifetime_inference_tokens": "1T"})
        for each in (body["params"], body["tokens"], body["loss_range"], body["training"]["usd"], body["training"]["wall_clock_hours"]):
            assert each["p10"] <= each["p50"] <= each["p90"]
        size = body["params"]
        spreads.append((size["p90"] - size["p10"]) / size["p50"])
    assert spreads[0] < 0.01 < spreads[1]


def scattered(share: float) -> list[dict[str, float]]:
    """Runs of a known law, each off it by up to that share."""
    sizes = [(params, tokens) for params in (1e8, 3e8, 1e9, 3e9) for tokens in (1e9, 1e10, 1e11, 1e12)]
    return [
        {"params": params, "tokens": tokens, "loss": (1.8 + 480 / params**0.35 + 2085 / tokens**0.37) * (1 + share * math.sin(7 * at))}
        for at, (params, tokens) in enumerate(sizes)
    ]


def test_mixtures_are_suggested_with_their_experts(client: FlaskClient) -> None:
    """The law of mixtures counts active parameters; the layout has experts, and is priced."""
    body = answered(client, {**MACHINE, "budget": {"accelerator_hours": 5e4}, "law": "krajewski-moe", "lifetime_inference_tokens": "1T"})
    assert body["suggestion"]["model"]["experts"] > body["suggestion"]["model"]["experts_per_token"]
    assert body["suggestion"]["params"] > 10 * body["params"]["p50"]
    assert body["estimate"]["cost"]["total_usd"]["p50"] > 0


def test_a_law_of_optima_alone_has_no_loss_and_says_so(client: FlaskClient) -> None:
    """No curves, loss null, a warning each."""
    body = answered(client, {"budget": {"flops": 1e22}, "law": "llama-3"})
    assert (body["loss"], body["loss_range"], body["curve"], body["iso_loss_curve"], body["smaller"]) == (None, None, [], [], [])
    assert [word for word in ("no loss", "uncertainty") if not any(word in warning for warning in body["warnings"])] == []


def test_what_does_not_fit_is_told_beside_the_optimum(client: FlaskClient) -> None:
    """A budget of FLOPs does not ask whether the machine holds the model; its dollars are not known."""
    body = answered(client, {"budget": {"flops": 1e27}, "hardware": {"accelerator": "H100", "count": 8}})
    assert (body["training"], body["estimate"]) == (None, None)
    assert any("cannot be trained on this hardware" in warning for warning in body["warnings"])


def test_memory_may_limit_the_size(client: FlaskClient) -> None:
    """Eight accelerators hold no larger model, however long they run."""
    body = answered(client, {"budget": {"accelerator_hours": 2e6}, "hardware": {"accelerator": "H100", "count": 8}})
    assert any("memory" in warning for warning in body["warnings"])
    assert body["estimate"]["memory"]["fits"]


def test_a_layout_of_the_callers_own_bounds_the_size(client: FlaskClient) -> None:
    """Sizes that it does not hold cannot be had."""
    own = {"parallelism": {"tensor": 1, "pipeline": 1, "context": 1}, "zero_stage": 0}
    body = answered(client, {**MACHINE, "budget": {"usd": 1e6}, "training": own})
    assert body["estimate"]["memory"]["fits"]
    assert body["params"]["p50"] < 6e9


def test_a_lifetime_may_need_a_smaller_model_than_the_machine_holds(client: FlaskClient) -> None:
    """Then nothing can be said of what is saved."""
    request = {"budget": {"flops": 3e24}, "hardware": {"accelerator": "H100", "count": 8}, "lifetime_inference_tokens": "10T"}
    lifetime = answered(client, request)["lifetime"]
    assert lifetime["training_only"]["training_usd"] is None
    assert lifetime["joint"]["training_usd"] > 0
    assert (lifetime["saves_usd"], lifetime["saves_share"], lifetime["extra_training_share"]) == (None, None, None)


def test_who_serves_is_shown_with_the_price(client: FlaskClient) -> None:
    """Other accelerators than those of training, as the caller states them."""
    terms = {"accelerator": "L40S", "price": {"usd_per_accelerator_hour": 0.8}, "format": "fp8", "prompt_tokens": 800, "output_tokens": 200}
    body = answered(client, {**MACHINE, "budget": {"usd": 1e5}, "lifetime_inference_tokens": "1T", "serving": terms})
    assert (body["serving"]["format"], body["serving"]["prompt_tokens"]) == ("fp8", 800)
    assert (body["serving"]["price"]["source"], body["serving"]["price"]["usd_per_accelerator_hour"]) == ("caller", 0.8)
    per_million = body["serving"]["usd_per_million_tokens"]
    assert body["lifetime"]["joint"]["serving_usd"] == pytest.approx(per_million * 1e6, rel=0.1)


VALID: dict[str, Any] = {
    **MACHINE,
    "budget": {"usd": 1e5},
    "lifetime_inference_tokens": "1T",
    "serving": {},
    "plan": {"params": "1B", "tokens": "1T"},
}
FIELDS = {
    f"{section}.{name}": field
    for section, part in OptimalRequestSchema().fields.items()
    if isinstance(part, Part)
    for name, field in part.schema.fields.items()
}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A valid request with a few of its fields set to something else, taken or not."""
    request = copy.deepcopy(VALID)
    for path in draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=3, unique=True)):
        section, _, name = path.partition(".")
        kept = {} if section == "budget" else request.get(section, {})
        request[section] = {**kept, name: draw(values(FIELDS[path]) | values(FIELDS[path]) | RUBBISH)}
    if draw(st.booleans()):
        request["model"] = {"params": "1B", **request.get("model", {})}
        request.pop("lifetime_inference_tokens")
        request.pop("serving", None)
    for section in draw(st.lists(st.sampled_from(["hardware", "serving", "lifetime_inference_tokens", "price"]), max_size=2)):
        request.pop(section, None)
    return request


@pytest.mark.parametrize("load_factor", [0.0, 5e-324])
def test_a_service_that_is_never_used_has_no_cost_to_state(client: FlaskClient, load_factor: float) -> None:
    """An infinite cost of a request is a problem, not an error of ours."""
    answer = client.post("/v1/optimal", json={**VALID, "serving": {"load_factor": load_factor}})
    assert (answer.status_code, ProblemSchema().validate(answer.json)) == (422, {})


@given(request_=requests())
def test_no_request_gets_an_error_of_ours_or_a_figure_that_is_none(client: FlaskClient, request_: dict[str, Any]) -> None:
    """An answer as described, or a problem with pointers."""
    answer = client.post("/v1/optimal", json=request_)
    body = json.loads(answer.get_data(), parse_constant=lambda name: pytest.fail(f"{name} in an answer"))
    assert answer.status_code in (200, 422)
    assert (OptimalAnswerSchema if answer.status_code == 200 else ProblemSchema)().validate(body) == {}


@pytest.mark.parametrize(
    "limits", [{"usd": 5e5, "days": 91}, {"usd": 5e6, "days": 20}, {"flops": 1e21, "usd": 1e6, "accelerator_hours": 1e5}]
)
def test_the_tightest_of_several_limits_counts_and_is_named(client: FlaskClient, limits: dict[str, float]) -> None:
    alone = {name: answered(client, {"budget": {name: limit}, **MACHINE}) for name, limit in limits.items()}
    tightest = min(alone, key=lambda name: alone[name]["flops"])
    both = answered(client, {"budget": limits, **MACHINE})
    assert (both["flops"], both["params"], both["tokens"]) == tuple(alone[tightest][name] for name in ("flops", "params", "tokens"))
    said = next(entry for entry in both["assumptions"] if entry["field"] == "budget")
    assert said["value"] == tightest
    assert all(name in said["source"] for name in limits)


MISTAKES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["/budget"]),
    ({"budget": {}}, ["/budget"]),
    ({"budget": {"flops": 1e22, "usd": 1e6}}, ["/hardware"]),
    ({"budget": {"flops": -1}}, ["/budget/flops"]),
    ({"budget": {"flops": 1e40}}, ["/budget/flops"]),
    ({"budget": {"flops": True}}, ["/budget/flops"]),
    ({"budget": {"flop": 1e22}}, ["/budget/flop"]),
    ({"budget": {"usd": 1e6}}, ["/hardware"]),
    ({"budget": {"days": 30}}, ["/hardware"]),
    ({"budget": {"usd": 1e20}, **MACHINE}, ["/budget/usd"]),
    ({"budget": {"usd": 1e6}, "hardware": {"accelerator": "H10", "count": 8}}, ["/hardware/accelerator"]),
    ({"budget": {"usd": 1e6}, "hardware": {"accelerator": "H100", "count": 8}, "price": {"provider": "nobody"}}, ["/price"]),
    ({"budget": {"usd": 1e6}, "hardware": MACHINE["hardware"], "price": {"pricing": "reserved_1y"}}, ["/price/pricing"]),
    ({"budget": {"usd": 1e6}, **MACHINE, "training": {"precision": "fp4"}}, ["/training/precision"]),
    ({"budget": {"deadline": "2020-01-01"}, **MACHINE}, ["/budget/deadline"]),
    ({"budget": {"flops": 1e22}, "law": "chinchila"}, ["/law"]),
    ({"budget": {"flops": 1e22}, "law": 3}, ["/law"]),
    ({"budget": {"flops": 1e22}, "law": OWN | {"alpha": 0}}, ["/law/alpha"]),
    ({"budget": {"flops": 1e22}, "law": OWN | {"beta": -0.3, "gamma": 1}}, ["/law/beta", "/law/gamma"]),
    ({"budget": {"flops": 1e22}, "law": OWN | {"draws": [[1.8, 480.0, 2085.0, 0.0, 0.37]] * 20}}, ["/law"]),
    ({"budget": {"flops": 1e22}, "law": {"E": 1.8}}, ["/law/A", "/law/B", "/law/alpha", "/law/beta"]),
    ({"budget": {"flops": 1e29}, "law": "kaplan"}, ["/budget"]),
    ({"budget": {"flops": 1e22}, "law": "llama-3", "lifetime_inference_tokens": "1T"}, ["/law"]),
    ({"budget": {"flops": 1e22}, "law": "llama-3", "plan": {"params": "7B", "tokens": "1T"}}, ["/law"]),
    ({"budget": {"flops": 1e22}, "serving": {"format": "fp8"}}, ["/lifetime_inference_tokens"]),
    ({"budget": {"flops": 1e22}, "serving": {"format": "fp8"}, "lifetime_inference_tokens": "1T"}, ["/hardware"]),
    ({"budget": {"flops": 1e22}, **MACHINE, "lifetime_inference_tokens": "1T", "serving": {"format": "fp9"}}, ["/serving/format"]),
    ({"budget": {"flops": 1e22}, **MACHINE, "lifetime_inference_tokens": "1T", "serving": {"accelerator": "?"}}, ["/serving/accelerator"]),
    ({"budget": {"flops": 1e22}, "plan": {"params": -1}}, ["/plan/params", "/plan/tokens"]),
    ({"budget": {"flops": 1e22}, "max_unique_tokens": 0}, ["/max_unique_tokens"]),
    ({"budget": {"flops": 1e22}, "price": {"snapshot": "nope"}}, ["/price/snapshot"]),
    ({"budget": {"flops": 1e22}, "model": {"preset": "lama-9"}}, ["/model/preset"]),
    ({"budget": {"flops": 1e22}, "model": {"params": -1}}, ["/model/params"]),
    ({"budget": {"flops": 1e22}, "model": {"params": "7B"}, "law": "krajewski-moe"}, ["/law"]),
    ({"budget": {"flops": 1e22}, "model": {"params": "7B"}, "lifetime_inference_tokens": "1T"}, ["/lifetime_inference_tokens"]),
    ({"budget": {"flops": 1e22}, "model": {"params": "7B"}, "data": {"tokens": "1T"}}, ["/data"]),
    ({"budget": {"days": 30}, "model": {"params": "7B"}}, ["/hardware"]),
    ({"budget": {"usd": 1e6}, "model": {"preset": "resnet-50"}, **MACHINE}, ["/model"]),
]


@pytest.mark.parametrize(("request_", "expected"), MISTAKES)
def test_mistakes_are_told_where_they_are(client: FlaskClient, request_: dict[str, Any], expected: list[str]) -> None:
    """A 422 with pointers into the request."""
    answer = client.post("/v1/optimal", json=request_)
    assert answer.status_code == 422
    assert ProblemSchema().validate(answer.get_json()) == {}
    assert sorted(entry["pointer"] for entry in answer.get_json()["errors"]) == expected


@pytest.mark.parametrize(
    "request_",
    [
        {"budget": {"flops": 1e12}},
        {"budget": {"flops": 1e30}, **MACHINE},
        {"budget": {"usd": 1.0}, **MACHINE},
        {"budget": {"flops": 1e22}, "max_unique_tokens": 1000},
        {"budget": {"flops": 1e22}, "lifetime_inference_tokens": 10**18},
        {"budget": {"flops": 1e22}, "plan": {"params": 1000, "tokens": 10**18}},
        {"budget": {"flops": 1e22}, "plan": {"params": 10**15, "tokens": 1000}},
        {"budget": {"flops": 1e22}, "law": {"E": 0, "A": 1e18, "B": 1e-6, "alpha": 5, "beta": 0.01}},
        {"budget": {"flops": 1e22}, "law": {"E": 0, "A": 1e-6, "B": 1e18, "alpha": 0.01, "beta": 5}},
        {"budget": {"flops": 1e22}, "law": {"E": 0, "A": 1e-6, "B": 1e18, "alpha": 0.01, "beta": 5}, "model": {"params": "7B"}},
        {"budget": {"flops": 1e30}, "model": {"params": 1}},
        {"budget": {"flops": 1e12}, "model": {"params": 10**15}},
        {"budget": {"usd": 1.0}, **MACHINE, "model": {"params": "7B"}},
        {"budget": {"usd": 1e13}, **MACHINE, "model": {"params": "7B"}},
        {"budget": {"days": 36500}, **MACHINE, "model": {"params": 1000}},
    ],
)
def test_figures_at_the_ends_of_what_is_taken_are_answered(client: FlaskClient, request_: dict[str, Any]) -> None:
    """With figures that are some, or a problem."""
    answer = client.post("/v1/optimal", json=request_)
    body = json.loads(answer.get_data(), parse_constant=lambda name: pytest.fail(f"{name} in an answer"))
    schema = OptimalAnswerSchema if answer.status_code == 200 else ProblemSchema
    assert answer.status_code in (200, 422)
    assert schema().validate(body) == {}


def test_the_same_request_has_the_same_answer(client: FlaskClient) -> None:
    """Laws are drawn with a seed."""
    assert answered(client, EXAMPLE) == answered(client, EXAMPLE)
