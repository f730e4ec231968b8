"""Warnings about a run's model and data: what is far from compute-optimal, and data repeated too often."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from service.config import load_settings
from service.container import build_context
from service.context import AppContext
from service.presets.scaling.laws import default_law
from service.usecases.comparison.compare import compare
from service.usecases.programs.plan import plan_program
from service.usecases.scaling.optimum import optimal
from service.usecases.training.estimate import estimate

MACHINE: dict[str, Any] = {"hardware": {"accelerator": "H100", "count": 512}, "price": {"usd_per_accelerator_hour": 2.0}}


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppContext]:
    """A context with the shipped prices."""
    folder = tmp_path_factory.mktemp("data-warnings")
    made = build_context(load_settings({"OUTLAY_DATA_DIR": str(folder), "OUTLAY_OFFLINE": "1"}))
    with closing(made.store):
        made.store.migrate()
        yield made


SHORT: dict[str, Any] = {"model": {"params": 70_000_000_000}, "data": {"tokens": 100_000_000_000}}
REPEATED: dict[str, Any] = {"model": {"params": 7_000_000_000}, "data": {"tokens": 50_000_000_000, "epochs": 5}}


def warnings_of(context: AppContext, words: str, model: dict[str, Any], data: dict[str, Any], **training: Any) -> list[str]:
    """The warnings of an estimate that hold those words."""
    answer = estimate(context, {**MACHINE, "model": model, "data": data, "training": training})
    return [warning for warning in answer.warnings if words in warning]


def test_70b_on_100_billion_tokens_is_far_from_compute_optimal(context: AppContext) -> None:
    """With its loss, the distance, and the cheaper plan of the same loss that POST /v1/optimal compares a plan with."""
    plan = {"params": 70_000_000_000, "tokens": 100_000_000_000}
    (warning,) = warnings_of(context, "far from compute-optimal", {"params": plan["params"]}, {"tokens": plan["tokens"]})
    compared = optimal(context, {"budget": {"flops": 6.0 * plan["params"] * plan["tokens"]}, "law": default_law().name, "plan": plan}).plan
    assert compared is not None
    assert f"{compared.plan.loss:.3f}" in warning
    assert f"{compared.loss_excess:.3f} above" in warning
    assert f"about {1 - compared.wasted_share:.0%} of the cost" in warning
    assert "1.43 tokens per parameter; 19.6 give the lowest loss" in warning
    assert "13.9B parameters on 277B tokens" in warning


@pytest.mark.parametrize(
    ("params", "tokens"),
    [
        (70_000_000_000, 1_400_000_000_000),  # Chinchilla
        (70_000_000_000, 15_000_000_000_000),  # Llama 3 70B
        (405_000_000_000, 15_600_000_000_000),  # Llama 3.1 405B
        (7_000_000_000, 2_000_000_000_000),  # Llama 2 7B: 15 times as long as optimal
    ],
)
def test_usual_plans_are_not_warned_of(context: AppContext, params: int, tokens: int) -> None:
    """Long training is normal where a model is served, up to twice the cost that its loss needs."""
    assert not warnings_of(context, "compute-optimal", {"params": params}, {"tokens": tokens})


def test_training_far_beyond_the_optimum_is_said_to_need_serving(context: AppContext) -> None:
    """8B on 15T tokens: the loss would cost a fifth."""
    (warning,) = warnings_of(context, "far from compute-optimal", {"params": 8_000_000_000}, {"tokens": 15_000_000_000_000})
    assert "about 18% of the cost" in warning
    assert "lifetime_inference_tokens" in warning


@pytest.mark.parametrize("epochs", [1, 4, 5, 40])
def test_data_repeated_beyond_four_epochs_are_warned_of(context: AppContext, epochs: int) -> None:
    """Muennighoff et al. 2023: up to four are nearly as good as new data; the warning says what more are worth."""
    warnings = warnings_of(context, "repeated", {"params": 7_000_000_000}, {"tokens": 50_000_000_000, "epochs": epochs})
    assert bool(warnings) == (epochs > 4)
    if epochs == 40:
        assert "2T tokens are worth about 758B new ones" in warnings[0]


@pytest.mark.parametrize("method", ["full_finetune", "lora"])
def test_fine_tuning_has_its_own_amounts_of_data(context: AppContext, method: str) -> None:
    """A base model is trained already, and a few epochs of little data are what it takes."""
    data = {"tokens": 10_000_000, "epochs": 5}
    assert not warnings_of(context, "compute-optimal", {"params": 7_000_000_000}, data, method=method)
    assert not warnings_of(context, "repeated", {"params": 7_000_000_000}, data, method=method)


@pytest.mark.parametrize(("words", "plan"), [("far from compute-optimal", SHORT), ("the data are repeated", REPEATED)])
def test_a_comparison_warns_once_of_its_best_options_plan(context: AppContext, words: str, plan: dict[str, Any]) -> None:
    """As the estimate of that option does, whatever the number of options."""
    candidates = {"accelerators": ["H100"], "counts": [256, 512], "pricing": ["on_demand"]}
    found = compare(context, {"workload": plan, "candidates": candidates, "limit": 1000})
    best = found.options[0]
    hardware, price = {"accelerator": "H100", "count": best.count}, {"provider": best.offer.provider, "region": best.offer.region}
    alone = estimate(context, {**plan, "hardware": hardware, "price": price})
    assert len(found.options) > 2
    assert [warning for warning in found.warnings if words in warning] == [warning for warning in alone.warnings if words in warning]
    assert sum(words in warning for warning in found.warnings) == 1


def test_a_comparison_of_sizes_warns_of_the_best_one_alone(context: AppContext) -> None:
    """By its name: the others may be near."""
    variants = [{"name": "large", "workload": SHORT}, {"name": "small", "workload": {"model": {"params": 14_000_000_000}}}]
    candidates = {"accelerators": ["H100"], "counts": [256], "pricing": ["on_demand"]}
    asked = {"workload": {"data": {"tokens": 280_000_000_000}, "model": SHORT["model"]}, "candidates": candidates}
    found = {
        name: compare(context, {**asked, "variants": listed}).warnings
        for name, listed in (("both", variants), ("large", [variants[0], {"name": "larger", "workload": SHORT}]))
    }
    assert not any("far from" in warning for warning in found["both"])
    assert sum(warning.startswith("large: far from compute-optimal") for warning in found["large"]) == 1


@pytest.mark.parametrize(("words", "plan"), [("far from compute-optimal", SHORT), ("the data are repeated", REPEATED)])
def test_a_program_warns_once_of_its_costliest_run(context: AppContext, words: str, plan: dict[str, Any]) -> None:
    """Not once a run, and not of trial runs that are short on purpose."""
    longer = {**plan, "data": {**plan["data"], "tokens": plan["data"]["tokens"] * 3 // 2}}
    runs = [{"name": name, "estimate": {**MACHINE, **each}} for name, each in (("first", plan), ("second", longer))]
    program = {"name": "p", "tiers": [{"tier": "production", "runs": runs}]}
    (warning,) = [warning for warning in plan_program(context, program).warnings if words in warning]
    assert warning.startswith("second: ")
    alone = estimate(context, runs[1]["estimate"])
    assert warning.removeprefix("second: ") in alone.warnings
