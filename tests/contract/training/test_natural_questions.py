"""Sixty natural questions without a price: the first number is the one a comparison finds."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from service.config import load_settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import DoesNotFit
from service.presets.hardware.networks import find_network
from service.usecases.comparison.compare import compare
from service.usecases.training.estimate import EstimateAnswer, estimate

MODELS = {
    "llama-2-7b": 2 * 10**12,
    "llama-3-8b": 15 * 10**12,
    "llama-2-13b": 2 * 10**12,
    "llama-2-70b": 2 * 10**12,
    "llama-3-70b": 15 * 10**12,
    "llama-3.1-405b": 15 * 10**12,
    "gpt-3-175b": 3 * 10**11,
    "mixtral-8x7b": 2 * 10**12,
    "deepseek-v3": 14 * 10**12,
    "bloom-176b": 366 * 10**9,
}
MACHINES = [("H100", 2048), ("H100", 512), ("H200", 1024), ("A100-80GB", 1024), ("B200", 512), ("H100", 64)]
WITHIN = 1.2


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> AppContext:
    """The shipped prices, on an empty data directory."""
    return build_context(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("data")), "OUTLAY_OFFLINE": "1"}))


def asked(model: str, accelerator: str, count: int) -> dict[str, Any]:
    return {
        "model": {"preset": model},
        "data": {"tokens": MODELS[model]},
        "hardware": {"accelerator": accelerator, "count": count},
    }


def least_usd(context: AppContext, request: dict[str, Any]) -> float:
    """Cost of the best fresh on-demand option of a comparison, or of the best where all are stale."""
    answer = compare(
        context,
        {
            "workload": {name: request[name] for name in ("model", "data")},
            "candidates": {
                "accelerators": [request["hardware"]["accelerator"]],
                "counts": [request["hardware"]["count"]],
                "pricing": ["on_demand"],
            },
            "constraints": {"max_wall_clock_days": 100_000},
            "limit": 1000,
        },
    )
    feasible = [option for option in answer.options if option.feasible and option.cost_usd]
    fresh = [option for option in feasible if not option.offer.stale] or feasible
    return min(option.cost_usd.p50 for option in fresh if option.cost_usd)


def answer(context: AppContext, request: dict[str, Any]) -> EstimateAnswer | None:
    """The estimate; None where the model does not fit on so few."""
    try:
        return estimate(context, request)
    except DoesNotFit:
        return None


@pytest.mark.parametrize(("model", "accelerator", "count"), [(model, *machine) for model, machine in itertools.product(MODELS, MACHINES)])
def test_the_first_number_is_what_a_comparison_finds(context: AppContext, model: str, accelerator: str, count: int) -> None:
    """Within a fifth of the best option, on a machine whose nodes have a network between them."""
    request = asked(model, accelerator, count)
    found = answer(context, request)
    if found is None:
        assert count == 64, "only the smallest machine is too small"
        return
    price, total = found.price, found.estimate.cost.total_usd
    assert price is not None
    assert price.provider
    assert price.instance_type
    assert price.accelerator
    assert total is not None
    network = find_network(price.provider, price.instance_type, price.accelerator)
    assert network is None or network.is_fast_fabric
    assert total.p50 <= WITHIN * least_usd(context, request)
