"""Evaluations of several models at once, against each alone, and the time of their samples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.serving.requirements import MeanRequest
from service.domain.training.model import Experts, Transformer
from service.engine.programs.evaluation import MODELS_AT_ONCE, SampleEvaluation, evaluation_seconds
from service.engine.training.inference.model import ServingSetup, describe_served_model
from service.presets.hardware.accelerators import find_accelerator
from service.presets.serving import load_formats
from service.usecases.serving.search import resolve_serving_machine
from tests.unit.engine.builders import LLAMA_2_70B, LLAMA_3_405B, LLAMA_7B, MISTRAL_7B, MIXTRAL, llama

BF16 = load_formats()["bf16"]
MACHINES = tuple(resolve_serving_machine(find_accelerator(name).accelerator) for name in ("H100", "A100-80GB"))
MODELS: tuple[Transformer, ...] = (
    LLAMA_7B,
    LLAMA_2_70B,
    LLAMA_3_405B,
    MISTRAL_7B,
    MIXTRAL,
    llama(28, 3072, 24, 8, 8192, 128_256, tied_embeddings=True),
    llama(24, 2048, 16, 16, 5632, experts=Experts(64, 4, 1408, shared_experts=4)),
    llama(20, 4096, 32, 8, 14_336, experts=Experts(8, 2, 14_336)),
)


def evaluation(model: Transformer, machine: int = 0, prompt: float = 500, output: float = 200, **of: float) -> SampleEvaluation:
    setup = ServingSetup(describe_served_model(model), BF16, MACHINES[machine], MeanRequest(prompt, output))
    return SampleEvaluation(setup, of.get("samples", 1000), int(of.get("accelerators", 8)))


EVALUATIONS = st.builds(
    evaluation,
    st.sampled_from(MODELS),
    st.integers(0, 1),
    st.sampled_from((100.0, 8000.0)),
    st.sampled_from((1.0, 256.0)),
    samples=st.integers(1, 100_000),
    accelerators=st.sampled_from((1, 8, 64)),
)


@given(st.lists(EVALUATIONS, min_size=1, max_size=12))
def test_evaluations_timed_together_take_what_each_takes_alone(several: list[SampleEvaluation]) -> None:
    assert_alike(several)


def assert_alike(several: list[SampleEvaluation]) -> None:
    for one, together in zip(several, evaluation_seconds(several), strict=True):
        (alone,) = evaluation_seconds([one])
        assert (together is None) == (alone is None)
        if together is not None and alone is not None:
            assert (together.p10, together.p50, together.p90) == pytest.approx((alone.p10, alone.p50, alone.p90), rel=1e-12)


def test_more_models_than_are_timed_at_once_are_all_timed_in_order() -> None:
    several = [evaluation(llama(layers, 4096, 32, 8, 14_336)) for layers in range(8, 8 + 2 * MODELS_AT_ONCE + 1)]
    assert_alike(several)


def test_a_model_that_no_replica_holds_is_not_timed_and_leaves_the_others_as_they_are() -> None:
    held, unheld = evaluation(LLAMA_7B, accelerators=1), evaluation(LLAMA_3_405B, accelerators=1)
    assert evaluation_seconds([held, unheld]) == [evaluation_seconds([held])[0], None]


def test_twice_the_samples_of_a_full_machine_take_twice_as_long() -> None:
    once, twice = evaluation_seconds([evaluation(LLAMA_7B, samples=64_000), evaluation(LLAMA_7B, samples=128_000)])
    assert once is not None
    assert twice is not None
    assert twice.p50 == pytest.approx(2 * once.p50, rel=1e-3)
