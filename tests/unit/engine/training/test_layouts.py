"""Layouts: every one makes up the machine, what the caller fixed stays fixed, and batches are whole."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.training.run import RECOMPUTES, Axes
from service.engine.training.layouts import (
    MANY_LAYOUTS,
    Layouts,
    base_layouts,
    candidate_layouts,
    layer_count,
    micro_batches,
    rounded_batch,
)
from tests.unit.engine.builders import DEEPSEEK_V3, GPT_3, LLAMA_3_405B, LLAMA_7B, MIXTRAL, RESNET_50, T5_11B, cluster, gpt, llama, training


@given(st.integers(1, 600), st.integers(0, 2048))
def test_every_layout_is_the_machine(count: int, more: int) -> None:
    """tensor x pipeline x data x context is the count on any machine, with no more data ranks than sequences."""
    batch = count + more
    layouts = candidate_layouts(LLAMA_7B, training(global_batch=batch), cluster(count))
    product = layouts.tensor * layouts.pipeline * layouts.data * layouts.context
    assert (product == count).all()
    assert (layouts.data <= batch).all()
    assert (LLAMA_7B.attention_heads % layouts.tensor == 0).all()
    # Embedding and head may be chunks of their own.
    most_chunks = LLAMA_7B.layers + 2 * (layouts.virtual_pipeline > 1)
    assert (layouts.pipeline * layouts.virtual_pipeline <= most_chunks).all()


@pytest.mark.parametrize(
    "axes",
    [
        Axes(tensor=4),
        Axes(pipeline=4),
        Axes(data=16),
        Axes(context=2),
        Axes(micro_batch=2, zero_stage=2, recompute="selective"),
        Axes(pipeline=4, virtual_pipeline=4),
        Axes(virtual_pipeline=8),
        Axes(tensor=2, pipeline=4, data=4, context=2, micro_batch=1),
    ],
)
def test_fixed_axes_stay_fixed(axes: Axes) -> None:
    """Whatever the caller set holds in every candidate; the rest is searched."""
    layouts = candidate_layouts(LLAMA_7B, training(axes=axes, seq_len=8192), cluster(64))
    for name in ("tensor", "pipeline", "data", "context", "virtual_pipeline", "micro_batch", "zero_stage"):
        if (fixed := getattr(axes, name)) is not None:
            assert (getattr(layouts, name) == fixed).all()
    if axes.recompute:
        assert (layouts.recompute == RECOMPUTES.index(axes.recompute)).all()


def test_experts_divide_a_stages_ranks() -> None:
    """Expert ranks divide both the experts and the ranks of one pipeline stage, and only a mixture has any."""
    layouts = candidate_layouts(DEEPSEEK_V3, training(axes=Axes(pipeline=16), global_batch=4096), cluster(2048))
    ranks = layouts.tensor * layouts.data * layouts.context
    assert (ranks % (layouts.expert * layouts.expert_tensor) == 0).all()
    assert (256 % layouts.expert == 0).all()
    assert 64 in layouts.expert
    assert (candidate_layouts(LLAMA_7B, training(), cluster(8)).expert == 1).all()


def test_experts_are_whole_or_cut_as_the_dense_layers_are() -> None:
    """Slices are tried where there are too few experts for as many ranks, and where the caller fixes the ranks of the experts."""
    searched = candidate_layouts(MIXTRAL, training(global_batch=64), cluster(64))
    assert set(np.unique(searched.expert_tensor)) == set(np.unique(searched.tensor))
    sliced = searched.take(searched.expert_tensor > 1)
    assert (sliced.expert_tensor == sliced.tensor).all()
    assert (8 % (sliced.expert * sliced.expert_tensor) > 0).all()
    fixed = candidate_layouts(MIXTRAL, training(axes=Axes(tensor=4, expert=2)), cluster(8))
    assert set(fixed.expert_tensor.tolist()) == {1, 4}
    stated = candidate_layouts(MIXTRAL, training(axes=Axes(tensor=4, expert=2, expert_tensor=2)), cluster(8))
    assert (stated.expert_tensor == 2).all()
    assert (candidate_layouts(LLAMA_7B, training(), cluster(8)).expert_tensor == 1).all()


@pytest.mark.parametrize(
    ("seq_len", "contexts"), [(2048, {1}), (4096, {1, 2}), (6000, {1, 2}), (6001, {1}), (131_072, {1, 2, 4, 8, 16, 32, 64})]
)
def test_only_long_sequences_are_cut(seq_len: int, contexts: set[int]) -> None:
    """Context ranks are tried where each keeps the same number of tokens, 2,048 at least."""
    layouts = candidate_layouts(LLAMA_7B, training(seq_len=seq_len, global_batch=1024), cluster(64))
    assert set(layouts.context) == contexts


def test_uneven_stages_are_searched() -> None:
    """32 layers on 96 accelerators: 3 stages are 11 on the fullest, 24 leave a fourth of them idle; the step model says what that costs."""
    layouts = candidate_layouts(LLAMA_7B, training(global_batch=960), cluster(96))
    assert set(layouts.pipeline) == {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}


def test_heads_may_divide_by_any_number() -> None:
    """20 heads on 20 accelerators are split over 5 ranks too, and beyond a node of 8."""
    twenty = llama(8, 2560, 20, 20, 6912)
    assert set(candidate_layouts(twenty, training(), cluster(20)).tensor) == {1, 2, 4, 5, 10, 20}


@pytest.mark.parametrize(
    ("batch", "sizes"), [(24, {1, 2, 3, 4, 6, 8, 12, 16, 24}), (7, {1, 2, 4, 7}), (37, {1, 2, 4, 8, 16, 32, 37}), (1, {1})]
)
def test_micro_batches_divide_the_share_of_a_rank(batch: int, sizes: set[int]) -> None:
    """Divisors of the share, and powers of two for shares that hardly divide; none that would change the batch by more than a tenth."""
    asked = training(global_batch=batch)
    found = set(candidate_layouts(LLAMA_7B, asked, cluster(1)).micro_batch)
    assert found == {size for size in sizes if abs(round(batch / size) * size / batch - 1) <= 0.1}


@pytest.mark.parametrize(("count", "batch"), [(64, 512), (96, 960), (8, 12)])
def test_interleaving_takes_whole_rounds(count: int, batch: int) -> None:
    """With several chunks a stage, micro-batches are a multiple of the stages; fixed, as far as the batch lets them."""
    for axes in (Axes(), Axes(virtual_pipeline=2)):
        asked = training(global_batch=batch, axes=axes)
        layouts = candidate_layouts(LLAMA_7B, asked, cluster(count))
        assert (layouts.virtual_pipeline > 1).any()
        assert ((layouts.virtual_pipeline == 1) | (micro_batches(asked, layouts) % layouts.pipeline == 0)).all()


def test_chunks_have_a_number_of_layers_each() -> None:
    """96 layers in 4 stages: 5 chunks of 5 layers, 12 of 2 and 24 of 1 are tried; 13 to 23 would be of 2 layers too, and idle more."""
    layouts = candidate_layouts(GPT_3, training(axes=Axes(tensor=8, pipeline=4), global_batch=1024), cluster(1024))
    assert set(layouts.virtual_pipeline) == {1, 2, 3, 4, 5, 6, 8, 12, 24}


@pytest.mark.parametrize(("layers", "pipeline", "chunks"), [(10, 4, {1}), (126, 16, {1, 2, 4, 8})])
def test_chunks_leave_no_stage_more_than_a_tenth_above_an_even_cut(layers: int, pipeline: int, chunks: set[int]) -> None:
    """10 layers in 4 stages of 2 chunks are up to 4 a stage, against 2.5; 126 in 16 stages of 8 chunks are 8, against 7.9."""
    model = gpt(layers, 1024, 16)
    layouts = candidate_layouts(model, training(axes=Axes(tensor=1, pipeline=pipeline), global_batch=1024), cluster(16))
    assert set(layouts.virtual_pipeline) == chunks


def test_zero_0_is_searched_only_where_it_is_asked_for() -> None:
    """It is never better than ZeRO 1."""
    assert set(candidate_layouts(LLAMA_7B, training(), cluster(8)).zero_stage) == {1, 2, 3}
    assert set(candidate_layouts(LLAMA_7B, training(axes=Axes(zero_stage=0)), cluster(8)).zero_stage) == {0}


def test_a_batch_is_kept_where_it_can_be() -> None:
    """Micro-batches that would change the asked batch by more than a tenth are left out, unless nothing else is left."""
    kept = training(global_batch=40)
    assert (np.abs(rounded_batch(kept, candidate_layouts(LLAMA_7B, kept, cluster(8))) / 40 - 1) <= 0.1).all()
    forced = training(global_batch=12, axes=Axes(data=8, micro_batch=1))
    assert set(rounded_batch(forced, candidate_layouts(LLAMA_7B, forced, cluster(8)))) == {16}


def test_a_stage_of_several_chunks_is_one_of_a_pipeline() -> None:
    """Where the caller fixes chunks and leaves the pipeline open, a pipeline of one stage is not searched."""
    layouts = candidate_layouts(LLAMA_7B, training(axes=Axes(virtual_pipeline=4)), cluster(16))
    assert (layouts.pipeline > 1).all()


def test_hundreds_of_divisors_are_tried_at_powers_of_two() -> None:
    """A machine, depth and batch with hundreds of divisors keep their meshes, and try fewer micro-batches and chunks on each."""
    deep = replace(llama(720, 1440, 1440, 1440, 5760), experts=replace(DEEPSEEK_V3.experts, experts=1680, experts_per_token=64))
    layouts = base_layouts(deep, training(global_batch=3_628_800), 5040)
    assert len(layouts) < 3 * MANY_LAYOUTS
    assert len(np.unique(layouts.pipeline)) > 20
    assert np.isin(layouts.micro_batch, 2 ** np.arange(9)).all()


def test_expert_ranks_may_be_fixed_beside_the_product() -> None:
    """expert is no factor of the machine: pipeline 16 x data 128 with 64 expert ranks are 2,048 accelerators."""
    axes = Axes(tensor=1, pipeline=16, data=128, context=1, expert=64)
    layouts = candidate_layouts(DEEPSEEK_V3, training(axes=axes, global_batch=15_360), cluster(2048))
    assert (layouts.expert == 64).all()


def test_uneven_stages_are_legal_where_asked_for() -> None:
    """126 layers on 16 stages, as Llama 3.1 405B was trained, are 8 on the fullest."""
    layouts = candidate_layouts(LLAMA_3_405B, training(axes=Axes(tensor=8, pipeline=16), global_batch=2048), cluster(16_384))
    assert (layouts.data * layouts.context == 128).all()


def test_networks_counted_by_samples_are_not_cut_unless_asked() -> None:
    """A CNN is replicated: data ranks only."""
    layouts = candidate_layouts(RESNET_50, training(seq_len=1, global_batch=256), cluster(8))
    assert (layouts.data == 8).all()


@pytest.mark.parametrize("axes", [Axes(tensor=3), Axes(data=5), Axes(tensor=8, pipeline=8), Axes(data=8, pipeline=2), Axes(expert=7)])
def test_axes_that_cannot_make_up_the_machine_are_refused(axes: Axes) -> None:
    """A product that is not the count is the caller's mistake, told with the axes and the count."""
    with pytest.raises(InvalidRequest, match="8 accelerators") as refused:
        candidate_layouts(LLAMA_7B, training(axes=axes), cluster(8))
    assert refused.value.pointer == "/training/parallelism"


def test_more_accelerators_than_a_batch_can_use_are_refused() -> None:
    """599 accelerators divide by nothing, and a batch of 64 sequences keeps 64 data ranks busy at most."""
    with pytest.raises(InvalidRequest, match="global_batch_tokens") as refused:
        candidate_layouts(LLAMA_7B, training(global_batch=64), cluster(599))
    assert refused.value.pointer == "/training/parallelism"


@given(st.integers(1, 10_000), st.integers(1, 64), st.integers(1, 64))
def test_a_batch_is_rounded_to_whole_micro_batches(batch: int, data: int, micro_batch: int) -> None:
    """Each data rank runs at least one whole micro-batch, and the batch is off by at most half of one a rank where it is larger."""
    layouts = Layouts.single(data=data, micro_batch=micro_batch)
    chosen = training(global_batch=batch)
    unit = data * micro_batch
    assert micro_batches(chosen, layouts)[0] >= 1
    assert rounded_batch(chosen, layouts)[0] % unit == 0
    if batch >= unit:
        assert abs(rounded_batch(chosen, layouts)[0] - batch) <= unit / 2


def test_the_depth_of_a_stack_counts_both_halves() -> None:
    """A pipeline cuts between all layers of an encoder-decoder, and nowhere in other networks."""
    assert (layer_count(LLAMA_7B), layer_count(T5_11B), layer_count(RESNET_50)) == (32, 48, 1)


def test_a_row_reads_back_what_was_written() -> None:
    """One layout from plain numbers and back; axes left out are 1, stage and recompute 0."""
    row = Layouts.single(tensor=8, recompute=2).row(0)
    assert row == {
        **dict.fromkeys(("pipeline", "data", "context", "expert", "expert_tensor", "virtual_pipeline", "micro_batch"), 1),
        "tensor": 8,
        "zero_stage": 0,
        "recompute": 2,
    }
    assert len(Layouts.single().take(np.array([0, 0]))) == 2
