"""Over the shipped prices, an option is what POST /v1/estimate says of the same offer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.comparison.options import Option
from service.domain.errors import InvalidRequest
from service.usecases.comparison.compare import compare
from service.usecases.resolution.price import find_eligible_offers, require_priced
from service.usecases.training.estimate import estimate

ACCELERATORS = ["H100", "A100-80GB", "tpu-v5p"]
CENTS_OF_ROUNDED_LINES = 0.05
WORKLOADS: dict[str, dict[str, Any]] = {
    "plain": {"model": {"params": 7_000_000_000}, "data": {"tokens": 10**12}},
    "everything": {
        "model": {"preset": "mixtral-8x7b"},
        "data": {"raw_tokens": 3 * 10**11, "filter_yield": 0.6, "epochs": 1.5},
        "training": {"seq_len": 8192, "precision": "bf16", "global_batch_tokens": 2**22},
        "failures": {"restart_minutes": 25.0, "spare_share": 0.05},
        "storage": {"dataset_tb": 40.0, "retention_months": 3.0},
        "network": {"egress_tb": 12.5, "usd_per_tb": 90.0},
        "personnel": {"evaluation_hours": 80.3, "usd_per_hour": 91.17},
        "overhead": {"evaluation": 0.05, "debugging": 0.04, "reruns": 0.033},
        "energy": {"usd_per_kwh": 0.11},
        "schedule": {"start": date(2027, 1, 4), "deadline": date(2027, 9, 30), "queue_hours": 36.0},
    },
    "adapters": {
        "model": {"preset": "llama-2-70b"},
        "data": {"samples": 200_000},
        "training": {"method": "lora", "lora_rank": 16, "seq_len": 2048},
        "energy": {"region": "country:FRA", "embodied_gco2e_per_accelerator_hour": 30.0},
    },
}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    return build_context(settings)


def pinned(option: Option, context: AppContext) -> dict[str, Any] | None:
    """The filter that only this option's offer answers, if there is one."""
    book = context.catalog.current
    filters = {"provider": option.offer.provider, "region": option.offer.region, "pricing": option.offer.pricing}
    return filters | {"snapshot": book.name} if len(find_eligible_offers(filters, option.offer.accelerator, book)) == 1 else None


def estimable(found: list[Option], context: AppContext, pricing: str) -> Iterator[tuple[Option, dict[str, Any]]]:
    """Options of a kind of pricing that a filter pins: of each accelerator and count the first."""
    seen = set()
    for option in found:
        kind = (option.offer.accelerator, option.count)
        if option.offer.pricing == pricing and option.time and kind not in seen and (price := pinned(option, context)):
            seen.add(kind)
            yield option, price


@pytest.mark.parametrize("pricing", ["on_demand", "spot", "reserved_1y"])
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_an_option_is_what_an_estimate_of_its_offer_says(context: AppContext, workload: dict[str, Any], pricing: str) -> None:
    """Cost to the cent, hours, throughput, energy and carbon, whole instances and spares included."""
    candidates = {"accelerators": ACCELERATORS, "counts": [64, 100], "pricing": [pricing]}
    found = compare(context, {"workload": workload, "candidates": candidates, "limit": 1000})
    pairs = list(estimable(list(found.options), context, pricing))
    assert len(pairs) >= 2
    for option, price in pairs:
        hardware = {"accelerator": option.offer.accelerator, "count": option.count}
        answer = estimate(context, {**workload, "hardware": hardware, "price": price})
        alone = answer.estimate
        assert answer.price.usd_per_accelerator_hour == option.offer.usd_per_accelerator_hour
        assert option.cost_usd is not None
        assert option.time is not None
        assert option.energy is not None
        assert option.throughput is not None
        for part in ("p10", "p50", "p90"):
            assert getattr(option.cost_usd, part) == pytest.approx(getattr(alone.cost.total_usd, part), abs=CENTS_OF_ROUNDED_LINES)
        assert option.time.wall_clock_hours == alone.time.wall_clock_hours
        assert option.time.accelerator_hours == alone.time.accelerator_hours
        assert option.time.deadline_probability == alone.time.deadline_probability
        assert option.time.goodput == alone.reliability.goodput
        assert (option.energy.mwh, option.energy.tco2e) == pytest.approx((alone.energy.mwh, alone.energy.tco2e))
        assert option.throughput.parallelism == alone.throughput.parallelism
        assert option.throughput.mfu == alone.throughput.mfu


def test_a_count_that_does_not_fit_changes_no_other(context: AppContext) -> None:
    """On spot capacity that is to be had half of the time: with one accelerator, which is too few, eight end as late as without."""
    workload = WORKLOADS["plain"] | {"failures": {"capacity_share": 0.5}, "schedule": {"start": date(2027, 1, 4)}}
    eights = []
    for counts in ([8], [1, 8]):
        candidates = {"accelerators": ["H100"], "counts": counts, "pricing": ["spot"]}
        found = compare(context, {"workload": workload, "candidates": candidates, "limit": 1000})
        eights.append({option.id: (option.time, option.cost_usd) for option in found.options if option.count == 8})
    assert eights[0] == eights[1]
    assert all(time for time, _ in eights[0].values())


POOLS: list[dict[str, Any]] = [
    {name: value for name, value in (("count", count), ("tensor", tensor)) if value}
    for count in (None, 1, 7, 32, 63)
    for tensor in (None, 1, 2)
    if count is None or count % (tensor or 1) == 0
]


def sampling(pool: dict[str, Any], lag: int, responses: int) -> dict[str, Any]:
    """A run of RL with accelerators that sample."""
    lengths = {"prompt_tokens": 300.0, "response_tokens": {"p50": 700.0, "max": 2048.0}}
    rl = {"prompts_per_step": 64, "responses_per_prompt": responses, "asynchronous_steps": lag, "generation": pool, **lengths}
    return {
        "model": {"preset": "llama-3.2-1b"},
        "data": {"samples": 100_000},
        "training": {"method": "rl", "seq_len": 4096, "rl": rl},
    }


@hypothesis.settings(max_examples=hypothesis.settings().max_examples // 2)
@given(pool=st.sampled_from(POOLS), lag=st.integers(0, 2), responses=st.sampled_from((4, 16)))
def test_a_step_of_rl_is_the_same_in_both(context: AppContext, pool: dict[str, Any], lag: int, responses: int) -> None:
    """Seconds of a step and dollars, whether the sampler has no accelerators of its own, one, some, or all but one."""
    workload = sampling(pool, lag, responses)
    candidates = {"accelerators": ["H100"], "counts": [64], "pricing": ["on_demand"]}
    found = compare(context, {"workload": workload, "candidates": candidates, "limit": 1000})
    option, price = next(estimable(list(found.options), context, "on_demand"))
    alone = estimate(context, {**workload, "hardware": {"accelerator": "H100", "count": 64}, "price": price}).estimate
    assert option.throughput is not None
    assert option.cost_usd is not None
    assert option.throughput.step_time_s == alone.throughput.step_time_s
    assert option.throughput.parallelism == alone.throughput.parallelism
    assert option.cost_usd.p50 == pytest.approx(require_priced(alone.cost.total_usd).p50, abs=CENTS_OF_ROUNDED_LINES)


def test_a_sampler_that_cannot_be_divided_is_refused_by_both(context: AppContext) -> None:
    """In the same words: 7 accelerators are no replicas of 2."""
    workload = sampling({"count": 7, "tensor": 2}, 0, 4)
    with pytest.raises(InvalidRequest) as refused:
        estimate(context, {**workload, "hardware": {"accelerator": "H100", "count": 64}})
    found = compare(context, {"workload": workload, "candidates": {"accelerators": ["H100"], "counts": [64]}, "limit": 1000})
    assert set(found.infeasible) == {"cannot_run"}
    assert any(str(refused.value) in warning for warning in found.warnings)


def test_a_comparison_can_be_repeated_against_its_snapshot(context: AppContext) -> None:
    """With the same answer."""
    request = {"workload": WORKLOADS["plain"], "candidates": {"accelerators": ["H100"], "counts": [64]}}
    found = compare(context, request)
    assert compare(context, request | {"snapshot": found.price_snapshot}) == found
