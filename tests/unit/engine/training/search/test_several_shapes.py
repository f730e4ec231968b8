"""One pass of the layout search over several shapes, against the search of each alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.training.model import Experts, LatentAttention, StateSpace, Transformer
from service.domain.training.run import AuxiliaryModels, Axes, Training
from service.engine.training.search import layout_search
from service.engine.training.search.layout_search import LayoutChoice, Question, choose_layout, is_remembered, search_layout
from service.engine.training.search.several_shapes import choose_together, search_ahead
from service.engine.training.step.step_time import StepTime
from tests.unit.engine.builders import A100, H100, LLAMA_3_405B, LLAMA_7B, RESNET_50, accelerator, cluster, llama, training, utilisation

SHARES = utilisation()
STRUCTURES: Mapping[str, Mapping[str, object]] = {
    "dense": {},
    "tied": {"tied_embeddings": True},
    "windowed": {"sliding_window": 1024, "global_attention_every": 4},
    "with biases": {"biases": True, "gated_ffn": False, "max_positions": 8192},
    "mixture": {"experts": Experts(16, 2, 1408, shared_experts=1, dense_layers=1)},
    "mixture in some layers": {"experts": Experts(8, 2, 4096, moe_every=2)},
    "latent": {"latent": LatentAttention(512, 128, 64, 128)},
    "hybrid": {"state_space": StateSpace(layers=4, heads=32, head_dim=64, state_size=128)},
    "encoder_decoder": {"kind": "encoder_decoder", "decoder_layers": 6},
}
TRAININGS: tuple[Training, ...] = (
    training(),
    training(flash_attention=False, sequence_parallel=False),
    training(precision="fp8"),
    training(method="distill", auxiliary_models=AuxiliaryModels(teacher=LLAMA_7B)),
    training(method="dpo", auxiliary_models=AuxiliaryModels(reference=True)),
    training(axes=Axes(zero_stage=1, recompute="selective")),
    training(input_tokens_per_s_per_node=5e4),
)


@st.composite
def shapes(draw: st.DrawFn) -> list[Question]:
    """Transformers of one structure with sizes, machines and batches of their own."""
    structure = STRUCTURES[draw(st.sampled_from(sorted(STRUCTURES)))]
    asked = draw(st.sampled_from(TRAININGS))
    if "decoder_layers" in structure:
        asked = replace(asked, decoder_seq_len=512)
    device = draw(st.sampled_from([part for part in (A100, H100) if asked.precision in part.peak_tflops]))
    questions: list[Question] = []
    for _ in range(draw(st.integers(2, 5))):
        heads, count = draw(st.sampled_from((8, 16, 20, 32))), draw(st.sampled_from((8, 16, 24, 32, 64, 128)))
        size = llama(
            draw(st.integers(5, 48)),
            128 * heads,
            heads,
            draw(st.sampled_from((4, heads))),
            draw(st.sampled_from((5632, 11008))),
            draw(st.sampled_from((32_000, 128_256))),
        )
        model = replace(size, params=draw(st.sampled_from((None, 3e9))), **structure)  # type: ignore[arg-type]
        questions.append((model, replace(asked, global_batch=draw(st.integers(count, 8 * count))), cluster(count, device), SHARES))
    return questions


@given(shapes())
def test_shapes_searched_together_get_what_each_gets_alone(questions: list[Question]) -> None:
    for question, choice in choose_together(questions).items():
        assert_alike(choice, search_layout(*question))


def assert_alike(together: LayoutChoice, alone: LayoutChoice) -> None:
    """The same layouts; seconds and bytes the same but for the last digit."""
    assert together.layouts.row(0) == alone.layouts.row(0)
    assert (together.fits, together.fused) == (alone.fits, alone.fused)
    assert together.memory_bytes == pytest.approx(alone.memory_bytes, rel=1e-12)
    for name in StepTime.__slots__:
        assert getattr(together.steps, name) == pytest.approx(getattr(alone.steps, name), rel=1e-12, abs=1e-15)
    assert [other.parallelism for other in together.alternatives] == [other.parallelism for other in alone.alternatives]
    for ours, theirs in zip(together.alternatives, alone.alternatives, strict=True):
        assert (ours.why, ours.fits) == (theirs.why, theirs.fits)
        assert (ours.step_time_s, ours.memory_gb) == pytest.approx((theirs.step_time_s, theirs.memory_gb), rel=1e-12)


def test_shapes_of_one_structure_on_machines_of_one_kind_are_searched_together() -> None:
    questions: list[Question] = [
        (llama(layers, 4096, 32, 32, 11008), training(global_batch=count), cluster(count), SHARES)
        for layers, count in ((24, 32), (32, 64), (40, 128))
    ]
    assert choose_together(questions).keys() == set(questions)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((RESNET_50, training(seq_len=1, global_batch=2048), cluster(8), SHARES), id="no transformer"),
        pytest.param((LLAMA_7B, training(method="lora", lora_rank=16), cluster(8), SHARES), id="fine-tuning"),
        pytest.param((LLAMA_7B, training(axes=Axes(tensor=7)), cluster(8), SHARES), id="a layout that does not divide"),
        pytest.param((LLAMA_7B, training(axes=Axes(tensor=8, pipeline=1)), cluster(8), SHARES), id="a stated mesh"),
        pytest.param((LLAMA_3_405B, training(), cluster(8), SHARES), id="nothing fits"),
        pytest.param((LLAMA_7B, training(), cluster(8, accelerator(usable_memory_bytes=1e12)), SHARES), id="another machine"),
    ],
)
def test_what_is_not_alike_is_left_to_the_search_alone(other: Question) -> None:
    alike: list[Question] = [(llama(layers, 4096, 32, 32, 11008), training(), cluster(8), SHARES) for layers in (24, 28)]
    assert choose_together([alike[0], other, alike[1]]).keys() == set(alike)


def test_a_layout_searched_ahead_is_the_one_that_is_chosen() -> None:
    questions: list[Question] = [(llama(layers, 4096, 32, 32, 11008, 31_999), training(), cluster(8), SHARES) for layers in (24, 28)]
    assert not any(map(is_remembered, questions))
    search_ahead(questions)
    assert all(map(is_remembered, questions))
    for question in questions:
        assert isinstance(question[0], Transformer)
        assert_alike(choose_layout(*question), search_layout(*question))


def test_the_oldest_choices_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    questions: list[Question] = [(llama(layers, 4096, 32, 32, 11008, 31_998), training(), cluster(8), SHARES) for layers in (24, 26, 28)]
    choice = search_layout(*questions[0])
    monkeypatch.setattr(layout_search, "MOST_REMEMBERED", 2)
    for question in questions:
        layout_search.remember({question: choice})
    assert [is_remembered(question) for question in questions] == [False, True, True]
