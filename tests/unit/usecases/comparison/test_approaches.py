"""Use cases of approaches: what makes one cheaper than another, and what is assumed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from service.config import load_settings
from service.container import build_context
from service.context import AppContext
from service.domain.comparison.approaches import APPROACHES, CostedApproach
from service.domain.training.run import METHODS
from service.engine.scaling.laws import optimal_params
from service.presets.comparison.approaches import load_approaches
from service.presets.scaling.laws import default_law
from service.usecases.comparison.approaches import ApproachesAnswer, approaches

REQUEST: dict[str, Any] = {
    "model": {"params": 8_000_000_000, "kv_heads": 8},
    "task_tokens": 50_000_000,
    "lifetime_inference_tokens": 10**12,
    "hardware": {"accelerator": "H100", "count": 512},
    "price": {"usd_per_accelerator_hour": 2.5},
}


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppContext]:
    """A context with the shipped prices."""
    made = build_context(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("approaches")), "OUTLAY_OFFLINE": "1"}))
    with closing(made.store):
        made.store.migrate()
        yield made


def asked(context: AppContext, **changes: Any) -> ApproachesAnswer:
    return approaches(context, REQUEST | changes)


def named(answer: ApproachesAnswer) -> dict[str, CostedApproach]:
    return {each.approach: each for each in answer.approaches}


def total(each: CostedApproach) -> float:
    assert each.total_usd is not None
    return each.total_usd.p50


def test_the_data_file_holds_every_approach_with_a_method_of_estimates() -> None:
    """In words with a source."""
    found = load_approaches()
    assert tuple(found) == APPROACHES
    assert {each.method for each in found.values()} - {""} <= set(METHODS)
    assert all(each.source and each.gives and each.data for each in found.values())


def test_few_tokens_are_best_prompted_and_many_are_not(context: AppContext) -> None:
    """Demonstrations are paid for in every request, training once."""
    assert asked(context, lifetime_inference_tokens=10**8).approaches[0].approach == "prompting"
    assert asked(context, lifetime_inference_tokens=10**14).approaches[0].approach != "prompting"


def test_a_run_is_paid_back_where_it_says(context: AppContext) -> None:
    """At that many tokens both cost the same."""
    tokens = named(asked(context))["lora"].pays_back_at_tokens
    assert tokens is not None
    there = named(asked(context, lifetime_inference_tokens=round(tokens)))
    assert total(there["lora"]) == pytest.approx(total(there["prompting"]), rel=1e-3)


def test_a_student_is_cheaper_to_serve_than_its_teacher(context: AppContext) -> None:
    """By about its size."""
    found = named(asked(context))
    student, teacher = found["distillation"].serving, found["lora"].serving
    assert student is not None
    assert teacher is not None
    assert student.params == pytest.approx(0.533 * 8e9)
    assert 0.3 < student.usd.p50 / teacher.usd.p50 < 0.8


def test_the_student_of_a_mixture_is_a_mixture(context: AppContext) -> None:
    """Else it would be dearer to serve than its teacher."""
    found = named(asked(context, model={"preset": "mixtral-8x7b"}))["distillation"]
    assert found.training is not None
    student = found.training.request["model"]
    assert student["active_params"] < student["params"]


def test_each_takes_the_fewest_accelerators_that_hold_it_in_time(context: AppContext) -> None:
    """Adapters one, pre-training many; more where less time is given."""
    found = {name: each.needs.accelerator_count for name, each in named(asked(context)).items()}
    assert found["prompting"] == 0
    assert found["lora"] == 1
    assert found["lora"] <= found["full_finetune"] <= found["pretraining"]
    hurried = named(asked(context, max_days=5.0))["continued_pretrain"].needs
    assert hurried.accelerator_count >= found["continued_pretrain"]
    assert found["pretraining"] <= 512


def test_peoples_hours_are_in_every_total(context: AppContext) -> None:
    """Dearer people, dearer totals, by their hours."""
    cheap, dear = named(asked(context, people_usd_per_hour=0.0)), named(asked(context, people_usd_per_hour=100.0))
    for name, each in cheap.items():
        assert total(dear[name]) - total(each) == pytest.approx(100 * each.needs.people_hours, abs=0.05)


def test_pretraining_without_stated_tokens_is_compute_optimal_and_said_to_be(context: AppContext) -> None:
    """The default law would choose that size for its FLOPs; stated tokens are taken as they are."""
    answer = asked(context)
    tokens = named(answer)["pretraining"].needs.trained_tokens
    assert float(optimal_params(default_law().law, 6 * 8e9 * tokens)) == pytest.approx(8e9, rel=1e-6)
    assert any("compute-optimal" in warning for warning in answer.warnings)
    stated = asked(context, pretraining_tokens=10**12)
    assert named(stated)["pretraining"].needs.trained_tokens == 1e12
    assert not any("compute-optimal" in warning for warning in stated.warnings)


def test_a_larger_prompted_model_is_dearer(context: AppContext) -> None:
    """What is prompted need not be what is fine-tuned."""
    own = named(asked(context))["prompting"]
    larger = named(asked(context, prompting={"model": {"preset": "llama-3.1-70b"}}))["prompting"]
    assert total(larger) > 3 * total(own)


def test_runs_that_never_get_on_are_reasons_not_errors(context: AppContext) -> None:
    """Of ten million accelerators one always fails."""
    answer = asked(context, hardware={"accelerator": "H100", "count": 10_000_000}, max_days=0.01, pretraining_tokens=10**15)
    assert not named(answer)["pretraining"].feasible
