"""What serving a model takes and costs: the choice, its figures, its ranges, and what is told of all of it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import DoesNotFit, DomainError, InvalidRequest, NoOffer, UnknownName
from service.domain.serving.requirements import MeanRequest
from service.domain.training.model import Transformer
from service.engine.serving.fleet import RentalUnit, ServingDemand
from service.engine.training.inference.model import describe_served_model
from service.engine.training.parameters import count_parameters
from service.presets.hardware.accelerators import load_accelerators
from service.presets.serving import find_format, load_achieved, load_compression_methods
from service.presets.training.models import find_model
from service.usecases.serving.offers import PricedAccelerator
from service.usecases.serving.options import ServingOption
from service.usecases.serving.search import ReplicaCache, ServingRequirements, search_configurations
from service.usecases.serving.serve import ServingAnswer, serve
from service.usecases.training.estimate import estimate
from tests.unit.usecases import market
from tests.unit.usecases.comparison.comparing import A100, H100, H200, MARKET, offer, selling
from tests.unit.usecases.requests import pointer_of

LLAMA_70B = {"preset": "llama-3.1-70b"}
TRAFFIC = {"prompt_tokens": 1500, "output_tokens": 400}
RUN = {"model": {"preset": "llama-2-7b"}, "data": {"tokens": 10**12}, "hardware": {"accelerator": "H100", "count": 64}}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context that sells the market."""
    return selling(build_context(settings))


def served(context: AppContext, model: dict[str, Any] | None = None, traffic: dict[str, Any] | None = None, **rest: Any) -> ServingAnswer:
    return serve(context, {"model": model or LLAMA_70B, "traffic": TRAFFIC | (traffic or {})} | rest)


def options(answer: ServingAnswer) -> list[ServingOption]:
    return [answer.best, *answer.alternatives]


def usd(answer: ServingAnswer) -> float:
    return answer.best.cost.usd_per_million_tokens.p50


def assumed(answer: ServingAnswer) -> dict[str, Any]:
    assert all(each.source for each in answer.assumptions)
    return {each.field: each.value for each in answer.assumptions}


def refused(context: AppContext, kind: type[DomainError], **request: Any) -> DomainError:
    with pytest.raises(kind) as caught:
        served(context, **request)
    return caught.value


# The choice


def test_a_lone_sequence_takes_the_bytes_over_what_is_reached_of_the_bandwidth(settings: Settings) -> None:
    """Hand-computed: batch 1 on one H100 reads 15 GB of weights for each token at 78 % of 3,352 GB/s, beside the fixed times."""
    context = selling(build_context(settings), [offer("2.00", accelerator_count=1)])
    best = served(context, {"preset": "llama-3.1-8b"}, {"prompt_tokens": 1, "output_tokens": 1000, "requests_per_s": 1e-3}).best
    hopper, model = load_achieved()["hopper"], find_model("llama-3.1-8b").model
    weights = 2 * (8.03e9 - 128_256 * 4096)  # the embedding is looked up
    cache = 131_072 * 501
    expected_s = (weights + cache) / 3352e9 / hopper.bandwidth_share + hopper.host_s + 32 * hopper.layer_s
    assert count_parameters(model).total == pytest.approx(8.03e9, rel=1e-3)
    assert (best.configuration.accelerators, best.configuration.batch) == (1, 1)
    assert best.latency.time_per_output_token_ms.p50 == pytest.approx(1000 * expected_s, rel=2e-3)
    assert best.throughput.output_tokens_per_s.p50 == pytest.approx(1 / expected_s, rel=2e-3)
    assert best.throughput.bound_by == "memory"


def test_options_stand_by_what_a_token_costs(context: AppContext) -> None:
    """One of each provider, accelerator and format, the best first, ranks without gaps."""
    answer = served(context, formats=["bf16", "fp8"], limit=100)
    costs = [option.cost.usd_per_million_tokens.p50 for option in options(answer)]
    kinds = [(option.price.provider, option.configuration.accelerator, option.configuration.format) for option in options(answer)]
    assert costs == sorted(costs)
    assert len(set(kinds)) == len(kinds) == answer.considered
    assert [option.rank for option in options(answer)] == list(range(1, len(kinds) + 1))
    assert {accelerator for _, accelerator, _ in kinds} == {H100, H200, A100}
    assert len(options(served(context, formats=["bf16", "fp8"], limit=2))) == 3


def test_parts_of_an_instance_hold_whole_replicas(context: AppContext) -> None:
    """An instance of one accelerator has no links that are known: 70 billion weights of 16 bits are served on none."""
    answer = served(context, limit=100, price={"provider": "runpod"}, formats=["int4"])
    assert answer.best.configuration.accelerators == 1
    problem = refused(context, DoesNotFit, price={"provider": "runpod"})
    assert "do not fit on NVIDIA-H100-80GB-SXM in bf16" in problem.message


def test_memory_adds_up_and_fits(context: AppContext) -> None:
    """Parts of the fullest accelerator, within what a program may allocate; the split makes up the replica."""
    for option in options(served(context, formats=["bf16", "fp8", "int4"], limit=100)):
        memory, split = option.memory, option.configuration.parallelism
        assert memory.fits
        assert sum(memory.breakdown_gb.values()) == pytest.approx(memory.per_accelerator_gb)
        assert memory.per_accelerator_gb <= memory.capacity_gb
        assert split["tensor"] * split["pipeline"] * split["data"] == option.configuration.accelerators


def test_experts_lie_over_all_accelerators_and_have_a_range_of_their_own(context: AppContext) -> None:
    """A mixture's groups share experts; the middle of one of many experts is where such mixtures are measured."""
    answer = served(context, {"preset": "mixtral-8x7b"})
    split, hopper = answer.best.configuration.parallelism, load_achieved()["hopper"]
    assert split["expert"] == answer.best.configuration.accelerators
    assert split["pipeline"] == 1
    rate = answer.best.throughput.output_tokens_per_s
    assert rate.p10 / rate.p50 == pytest.approx(hopper.routed_spread.p10 / hopper.routed_spread.p50)
    many = served(context, {"preset": "qwen3-30b-a3b"}).best.throughput.output_tokens_per_s
    assert many.p10 / many.p50 == pytest.approx(hopper.many_experts_spread.p10 / hopper.many_experts_spread.p50)


def test_ranges_are_those_measured(context: AppContext) -> None:
    """Throughput by the published spread, latency and costs the other way round."""
    answer = served(context, hardware={"accelerators": ["H100"]})
    spread, best = load_achieved()["hopper"].spread, answer.best
    rate, token, cost = best.throughput.output_tokens_per_s, best.latency.time_per_output_token_ms, best.cost.usd_per_million_tokens
    assert rate.p10 / rate.p50 == pytest.approx(spread.p10 / spread.p50)
    assert token.p90 / token.p50 == pytest.approx(spread.p50 / spread.p10)
    assert cost.p90 / cost.p50 == pytest.approx(spread.p50 / spread.p10)


# Money


@given(rate=st.floats(0.01, 500), prompt=st.integers(1, 8000), output=st.integers(1, 2000))
def test_tokens_pay_for_all_that_is_rented(context: AppContext, rate: float, prompt: int, output: int) -> None:
    """Input and output tokens at their prices add up to the month, which is accelerators, hours and the price."""
    best = served(context, traffic={"prompt_tokens": prompt, "output_tokens": output, "requests_per_s": rate}).best
    assert best.fleet is not None
    assert best.cost.usd_per_month is not None
    month, requests = best.cost.usd_per_month.p50, rate * 730 * 3600
    paid_in = best.cost.usd_per_million_input_tokens.p50 * prompt * requests / 1e6
    paid_out = best.cost.usd_per_million_output_tokens.p50 * output * requests / 1e6
    assert paid_in + paid_out == pytest.approx(month)
    assert best.cost.usd_per_million_tokens.p50 * (prompt + output) * requests / 1e6 == pytest.approx(month)
    assert month == pytest.approx(best.fleet.accelerators.p50 * best.price.usd_per_accelerator_hour * 730)
    assert best.fleet.accelerators.p50 % best.price.accelerators_per_instance == 0
    assert best.fleet.utilisation <= 0.6 * (1 + 1e-9)


@given(rate=st.floats(0.01, 100), more=st.floats(1, 20))
def test_more_requests_never_cost_less_a_month(context: AppContext, rate: float, more: float) -> None:
    """The bill rises with the rate."""
    few, many = (served(context, traffic={"requests_per_s": each}).best.cost for each in (rate, rate * more))
    assert few.usd_per_month is not None
    assert many.usd_per_month is not None
    assert few.usd_per_month.p50 <= many.usd_per_month.p50 * (1 + 1e-9)


@given(limit=st.floats(15, 200), tighter=st.floats(0.3, 1))
def test_tighter_latency_is_kept_and_never_cheaper(context: AppContext, limit: float, tighter: float) -> None:
    """At the median; what cannot be kept is refused."""

    def cost(milliseconds: float) -> float:
        try:
            answer = served(context, formats=["fp8"], latency={"time_per_output_token_ms": milliseconds})
        except InvalidRequest:
            return float("inf")
        assert answer.best.latency.time_per_output_token_ms.p50 <= milliseconds * (1 + 1e-9)
        return usd(answer)

    assert cost(limit) <= cost(limit * tighter)


@given(
    formats=st.lists(st.sampled_from(["bf16", "fp8", "int8", "int4"]), min_size=1, unique=True),
    names=st.lists(st.sampled_from([A100, H100, H200]), min_size=1, unique=True),
)
def test_a_wider_choice_is_never_dearer(context: AppContext, formats: list[str], names: list[str]) -> None:
    """Of formats and of accelerators."""
    narrow = usd(served(context, formats=formats, hardware={"accelerators": names}))
    assert usd(served(context, formats=["bf16", "fp8", "int8", "int4"])) <= narrow * (1 + 1e-12)


def test_half_the_price_is_half_the_cost(context: AppContext) -> None:
    """A stated price is the caller's, and its configuration the same at any."""
    hardware = {"accelerators": ["H100"]}
    dear, cheap = (served(context, hardware=hardware, price={"usd_per_accelerator_hour": each}) for each in (4.0, 2.0))
    assert usd(dear) == pytest.approx(2 * usd(cheap))
    assert dear.best.configuration == cheap.best.configuration
    assert (cheap.best.price.source, cheap.best.price.provider, cheap.best.price.stale) == ("caller", None, False)


def test_a_life_is_its_tokens_and_its_training(context: AppContext) -> None:
    """Serving by the token, months by the rate, training as stated or as estimated at the same prices; distances add in squares."""
    traffic = {"tokens_per_month": 10**10, "lifetime_tokens": 10**12}
    stated = served(context, traffic=traffic, training={"usd": 5e5}).lifetime
    estimated = served(context, traffic=traffic, training={"estimate": RUN})
    assert stated is not None
    assert estimated.lifetime is not None
    assert stated.months == pytest.approx(100)
    assert stated.serving_usd.p50 == pytest.approx(usd(estimated) * 1e6)
    assert stated.total_usd.p50 == pytest.approx(stated.serving_usd.p50 + 5e5)
    assert stated.total_usd.p90 - stated.total_usd.p50 == pytest.approx(stated.serving_usd.p90 - stated.serving_usd.p50)
    assert estimated.lifetime.training_usd == estimate(context, RUN).estimate.cost.total_usd
    assert served(context, traffic={"lifetime_tokens": 10**12}).lifetime.months is None  # type: ignore[union-attr]
    assert served(context).lifetime is None


def test_a_rate_is_stated_either_way(context: AppContext) -> None:
    """Tokens a month are requests a second of so many tokens, in months of 730 hours."""
    by_rate = served(context, traffic={"requests_per_s": 2.0}).best
    by_month = served(context, traffic={"tokens_per_month": 2 * 1900 * 730 * 3600}).best
    assert by_rate.fleet == by_month.fleet
    assert served(context).best.fleet is None


# Levers


def test_levers_are_weighed_on_the_same_offer(context: AppContext) -> None:
    """Each with its published loss, its training's FLOPs at the offer's price, and the tokens that pay for it."""
    answer = served(context, traffic={"requests_per_s": 50.0, "lifetime_tokens": 10**12}, levers=True, hardware={"accelerators": ["H100"]})
    assert answer.levers is not None
    found = {(lever.lever, str(lever.change)): lever for lever in answer.levers}
    assert {name for name, _ in found} == set(load_compression_methods())
    for lever in answer.levers:
        known, saved = load_compression_methods()[lever.lever], lever.saves_usd_per_million_tokens
        assert (lever.quality_loss_percent, lever.source) == (known.quality_loss, known.source)
        assert saved == pytest.approx(usd(answer) - lever.usd_per_million_tokens)
        assert (lever.payback_tokens is None) == (saved <= 0)
        if lever.payback_tokens is not None:
            assert lever.payback_tokens * saved / 1e6 == pytest.approx(lever.training_usd)
            assert lever.payback_months == pytest.approx(lever.payback_tokens / (50 * 1900 * 730 * 3600))
        assert lever.lifetime_saves_usd == pytest.approx(saved * 1e6 - lever.training_usd)
    calibrated = found["ptq_fp8", "{'formats': ['fp8']}"]
    flops = calibrated.training_tokens * 2 * (70.55e9 - 128_256 * 8192)
    price = answer.best.price.usd_per_accelerator_hour
    assert calibrated.training_usd == pytest.approx(flops / (0.4 * 989.4e12) / 3600 * price, rel=0.01)
    assert found["distillation", "{'model.layers': 40}"].saves_usd_per_million_tokens > 0


def test_a_lever_is_the_request_with_its_change(context: AppContext) -> None:
    """Sent on the same offer, the change costs what the lever said."""
    base = {"hardware": {"accelerators": ["H200"]}, "traffic": {"requests_per_s": 20.0}}
    answer = served(context, levers=True, **base)  # type: ignore[arg-type]
    assert answer.levers is not None
    by_format = {lever.change["formats"][0]: lever for lever in answer.levers if "formats" in lever.change}
    for name in ("fp8", "int8", "int4"):
        assert usd(served(context, formats=[name], **base)) == pytest.approx(by_format[name].usd_per_million_tokens)  # type: ignore[arg-type]


def test_only_fewer_bits_are_levers(context: AppContext) -> None:
    """From fp8 on 4 bits are left; a model of one layer, and a hybrid, are distilled into nothing; unasked there are none."""
    levers = served(context, formats=["fp8"], levers=True).levers
    assert levers is not None
    assert {name for lever in levers for name in lever.change.get("formats", ())} == {"int4", "nvfp4"}
    for model in ({"layers": 1, "hidden_size": 128, "attention_heads": 8, "vocab_size": 1000}, {"preset": "nemotron-h-8b"}):
        found = served(context, model, levers=True).levers
        assert found is not None
        assert "distillation" not in {lever.lever for lever in found}
    assert served(context).levers is None


def test_formats_say_what_they_lose(context: AppContext) -> None:
    """Nothing as trained; else what quantising is published to lose."""
    assert served(context).best.configuration.quality_loss_percent is None
    assert served(context, formats=["int8"]).best.configuration.quality_loss_percent == load_compression_methods()["ptq_int8"].quality_loss


# What is told


def test_what_was_not_chosen_is_assumed(context: AppContext) -> None:
    """With its source; a value that is stated is not."""
    found = assumed(served(context, {"params": 8 * 10**9}))
    assert found["formats"] == ["bf16"]
    assert found["utilisation"] == 0.6
    assert found["model.kv_heads"] == 8
    assert {"hardware.accelerators", "traffic.cached_share", "price", "limit", "serving.cache_share", "serving.achieved.hopper"} <= set(
        found
    )
    assert "serving.training_share" in assumed(served(context, levers=True))
    stated = assumed(served(context, utilisation=0.5, formats=["fp8"], traffic={"cached_share": 0.5}, hardware={"accelerators": [H100]}))
    assert not {"utilisation", "formats", "traffic.cached_share", "hardware.accelerators", "model.kv_heads"} & set(stated)


def test_what_to_be_careful_about_is_said(context: AppContext, settings: Settings) -> None:
    """Longer than published, borrowed rates, a limit that the slow end misses, and an old price."""
    assert any("longer than the 4,096" in each for each in served(context, {"preset": "llama-2-7b"}, {"prompt_tokens": 5000}).warnings)
    whole = served(context, hardware={"accelerators": ["H100"]})
    limit = whole.best.latency.time_per_output_token_ms.p50 * 1.01
    late = served(context, hardware={"accelerators": ["H100"]}, latency={"time_per_output_token_ms": limit})
    assert any("not at p90" in warning for warning in late.warnings)
    old = selling(build_context(settings), [offer("0.50", accelerator="NVIDIA-T4", accelerator_count=4, days=400)])
    told = served(old, {"params": 10**9}).warnings
    assert any("no serving throughput of NVIDIA-T4 is published" in warning for warning in told)
    assert any("check it before you rely on it" in warning for warning in told)


@pytest.mark.parametrize(
    ("preset", "context_tokens"),
    [("deepseek-v3", 163_840), ("kimi-k2", 131_072), ("glm-4.5", 131_072), ("gpt-oss-120b", 131_072), ("qwen3-30b-a3b", 40_960)],
)
def test_a_request_is_measured_by_the_context_that_the_model_is_served_with(context: AppContext, preset: str, context_tokens: int) -> None:
    """Not by the 4,096 tokens of its pre-training: a warning comes beyond the published context alone."""
    for prompt_tokens, warned in ((30_000, False), (context_tokens + 1, True)):
        answer = served(context, {"preset": preset}, {"prompt_tokens": prompt_tokens})
        assert any(f"longer than the {context_tokens:,}" in warning for warning in answer.warnings) == warned
        assert not any("longer than the 4,096" in warning for warning in answer.warnings)


def test_the_context_of_a_config_is_its_own(context: AppContext) -> None:
    """A config states its longest sequence."""
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14_336,
        "vocab_size": 128_256,
        "max_position_embeddings": 8192,
    }
    for prompt_tokens, warned in ((7000, False), (8000, True)):
        answer = served(context, {"hf_config": config}, {"prompt_tokens": prompt_tokens})
        assert any("a request of 8,400 tokens is longer than the 8,192" in warning for warning in answer.warnings) == warned


def test_prices_are_the_newest_and_cheapest_that_answer_the_filter(context: AppContext) -> None:
    """On demand where not said; each with who sells it, where, and when that was read."""
    assert {option.price.pricing for option in options(served(context, limit=100))} == {"on_demand"}
    spot = served(context, price={"pricing": "spot"}, limit=100)
    assert {(option.price.provider, option.price.usd_per_accelerator_hour) for option in options(spot)} == {("aws", 1.6), ("gcp", 0.9)}
    best = served(context).best.price
    assert best.usd_per_accelerator_hour in {float(each.usd_per_accelerator_hour) for each in MARKET}
    assert best.observed_at is not None
    assert best.source


def test_an_answer_is_repeated_by_its_snapshot(settings: Settings) -> None:
    """After prices have moved the earlier book gives the earlier answer; the training's estimate too."""
    context = market.open_context(settings)
    market.sell(context, "first", market.offer(2.0))
    asked = {"traffic": {"lifetime_tokens": 10**12}, "training": {"estimate": RUN}}
    before = served(context, **asked)  # type: ignore[arg-type]
    market.sell(context, "second", market.offer(3.0), at=market.later(1))
    assert usd(served(context, **asked)) == pytest.approx(1.5 * usd(before))  # type: ignore[arg-type]
    again = served(context, price={"snapshot": before.price_snapshot}, **asked)  # type: ignore[arg-type]
    assert (again.best.cost, again.lifetime, again.price_snapshot) == (before.best.cost, before.lifetime, before.price_snapshot)


def test_networks_share_the_times_of_a_model_that_sends_nothing_over_them(context: AppContext) -> None:
    """Equal prices in two networks are timed once without experts, and apart with them."""
    machine = load_accelerators()[H100]
    rent = RentalUnit(machine.accelerators_per_node, math.inf)
    priced = [PricedAccelerator(replace(machine, internode_gbit_per_s=rate), rent, 2.0) for rate in (3.0, 400.0)]
    for preset, timings in (("llama-3.1-70b", 1), ("deepseek-v3", 2)):
        model = find_model(preset).model
        assert isinstance(model, Transformer)
        requirements = ServingRequirements(
            describe_served_model(model), MeanRequest(1500, 400), ServingDemand(None, 0.5), (find_format("fp8"),)
        )
        cache: ReplicaCache = {}
        slow, fast = sorted(
            search_configurations(requirements, priced, cache), key=lambda result: result.priced.accelerator.internode_gbit_per_s or 0.0
        )
        assert len(cache) == timings
        assert (slow.usd_per_request == fast.usd_per_request) == (timings == 1)


# What cannot be


def advice(problem: DomainError) -> list[tuple[int, str]]:
    """Accelerators of a replica and format of each that would do."""
    alternatives = problem.message.partition("these can serve it: ")[2]
    return [(int(count), stored) for count, stored in re.findall(r"(\d+) x \S+ in (\w+)", alternatives)]


def test_what_does_not_fit_is_told_what_would(context: AppContext) -> None:
    """Of the same accelerators in fewer bits or larger replicas; where the request narrows it."""
    narrow = {"accelerators": [H100], "counts": [1]}
    problem = refused(context, DoesNotFit, hardware=narrow)
    assert problem.pointer == "/hardware"
    assert (
        "70.6 billion parameters and one request of 1,900 tokens do not fit on NVIDIA-H100-80GB-SXM in bf16 in replicas of 1"
        in problem.message
    )
    (accelerators, fewer_bits), (larger, same_bits) = advice(problem)[:2]
    assert (accelerators, same_bits) == (1, "bf16")
    assert served(context, hardware=narrow, formats=[fewer_bits]).best.configuration.accelerators == 1
    assert served(context, hardware=narrow | {"counts": [larger]}).best.configuration.format == "bf16"
    huge = refused(context, DoesNotFit, model={"params": 10**15})
    assert huge.pointer == "/model"
    assert "no accelerator with a known price can serve it" in huge.message


def test_another_accelerator_may_do_what_those_asked_for_cannot(settings: Settings) -> None:
    """Where no format helps, those that have a price are looked at."""
    small = offer("0.30", accelerator="NVIDIA-T4", accelerator_count=1)
    context = selling(build_context(settings), [small, offer("3.00")])
    problem = refused(context, DoesNotFit, hardware={"accelerators": ["T4"]})
    assert "x NVIDIA-H100-80GB-SXM in" in problem.message


def test_old_accelerators_serve_only_where_they_are_named(settings: Settings) -> None:
    """More than six years behind the newest that has a price; named, in the 16-bit format that they have."""
    v100, b200 = "NVIDIA-V100-16GB-SXM2", "NVIDIA-B200-SXM"
    context = selling(build_context(settings), [offer("0.01", accelerator=v100), offer("3.00", accelerator=b200)])
    small = {"preset": "llama-3.1-8b"}
    assert {option.configuration.accelerator for option in options(served(context, small, formats=["fp16"]))} == {b200}
    best = served(context, small, hardware={"accelerators": [v100]}).best
    assert (best.configuration.accelerator, best.configuration.format) == (v100, "fp16")


def test_a_format_that_no_accelerator_serves_is_told_with_those_it_does(settings: Settings) -> None:
    """At the format, with a format and an accelerator that would do; beside others it is left out with a warning."""
    context = selling(build_context(settings), [offer("0.30", accelerator="NVIDIA-T4"), offer("3.00")])
    asked = {"model": {"preset": "llama-3.1-8b"}, "formats": ["bf16"]}
    problem = refused(context, InvalidRequest, hardware={"accelerators": ["T4"]}, **asked)
    assert problem.pointer == "/formats"
    assert "none of the accelerators serves bf16: NVIDIA-T4 serves fp16, fp8, int8, int4" in problem.message
    assert "1 x NVIDIA-H100-80GB-SXM in bf16" in problem.message
    answer = served(context, hardware={"accelerators": ["T4", H100]}, **asked)
    assert "NVIDIA-T4 cannot serve bf16: left out" in answer.warnings


def test_the_ways_out_are_the_smallest_that_serve(context: AppContext) -> None:
    """gpt-oss-120b in fp8 needs two H100, not the sixteen that are cheapest a token."""
    narrow = {"accelerators": [H100], "counts": [1]}
    problem = refused(context, DoesNotFit, model={"preset": "gpt-oss-120b"}, hardware=narrow, formats=["fp8"])
    assert f"2 x {H100} in fp8" in problem.message


def test_what_is_too_slow_is_told_how_near_it_comes(context: AppContext) -> None:
    """The soonest of both latencies, and which format would keep the limits; that format does."""
    hardware, latency = {"accelerators": [A100]}, {"time_per_output_token_ms": 13.0}
    problem = refused(context, InvalidRequest, hardware=hardware, latency=latency)
    assert problem.pointer == "/latency"
    assert "the fastest first token takes" in problem.message
    stored = advice(problem)[0][1]
    assert served(context, hardware=hardware, latency=latency, formats=[stored]).best.latency.time_per_output_token_ms.p50 <= 13.0
    hopeless = refused(context, InvalidRequest, latency={"time_to_first_token_s": 1e-6})
    assert "no accelerator with a known price can serve it" in hopeless.message


@pytest.mark.parametrize(
    ("request_part", "kind", "pointer"),
    [
        ({"model": {"preset": "t5-11b"}}, InvalidRequest, "/model"),
        ({"model": {"preset": "resnet-50"}}, InvalidRequest, "/model"),
        ({"traffic": {"requests_per_s": 1.0, "tokens_per_month": 5}}, InvalidRequest, "/traffic/tokens_per_month"),
        (
            {"traffic": {"requests_per_s": 1e9}, "utilisation": 1e-3, "model": {"params": 10**13}, "formats": ["int4"]},
            DomainError,
            "/traffic",
        ),
        ({"training": {"usd": 1.0}}, InvalidRequest, "/traffic/lifetime_tokens"),
        ({"traffic": {"lifetime_tokens": 5}, "training": {}}, InvalidRequest, "/training"),
        ({"traffic": {"lifetime_tokens": 5}, "training": {"usd": 1.0, "estimate": RUN}}, InvalidRequest, "/training"),
        (
            {"traffic": {"lifetime_tokens": 5}, "training": {"estimate": RUN | {"model": {"preset": "nobody"}}}},
            UnknownName,
            "/training/estimate/model/preset",
        ),
        ({"hardware": {"accelerators": ["H100", "H1000"]}}, UnknownName, "/hardware/accelerators/1"),
        ({"hardware": {"accelerators": [H100], "counts": [3, 5]}}, InvalidRequest, "/hardware/counts"),
        ({"hardware": {"accelerators": ["MI300X"]}, "price": {"pricing": "spot"}}, NoOffer, "/price"),
        ({"price": {"provider": "nobody"}}, NoOffer, "/price"),
        ({"price": {"usd_per_accelerator_hour": 2.0}}, InvalidRequest, "/hardware/accelerators"),
        (
            {"price": {"usd_per_accelerator_hour": 2.0, "region": "x"}, "hardware": {"accelerators": [H100]}},
            InvalidRequest,
            "/price/region",
        ),
    ],
)
def test_mistakes_point_at_themselves(context: AppContext, request_part: dict[str, Any], kind: type[DomainError], pointer: str) -> None:
    """Where the request contradicts itself or names what is not known."""
    assert pointer_of(lambda: served(context, **request_part), kind) == pointer


def test_accelerators_without_a_price_are_left_out_with_a_warning(context: AppContext) -> None:
    """As long as there is another."""
    answer = served(context, hardware={"accelerators": ["H100", "MI300X"]})
    assert {option.configuration.accelerator for option in options(answer)} == {H100}
    assert any("no price of AMD-MI300X" in warning for warning in answer.warnings)
