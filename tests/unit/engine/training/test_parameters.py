"""Weights of a shape: what is stored, what a token is multiplied with, and how stated counts win."""

from dataclasses import replace

import pytest

from service.domain.training.model import Experts
from service.engine.training.parameters import count_parameters, expert_layer_count
from tests.unit.engine.builders import (
    BLOOM,
    DEEPSEEK_V3,
    GPT_3,
    LLAMA_3_405B,
    LLAMA_7B,
    LLAMA_65B,
    MIXTRAL,
    PALM,
    T5_11B,
    TINY,
    VIT_L_16,
)


@pytest.mark.parametrize(
    ("model", "published"),
    [
        (GPT_3, 174.6e9),  # Brown et al. 2020, table D.1
        (BLOOM, 176_247_271_424),  # the released weights
        (LLAMA_7B, 6_738_415_616),  # the released weights
        (LLAMA_65B, 65_285_660_672),  # the released weights
        (LLAMA_3_405B, 405_853_388_800),  # the released weights
        (PALM, 540.35e9),  # Chowdhery et al. 2022, table 1
        (MIXTRAL, 46_702_792_704),  # the released weights
        (DEEPSEEK_V3, 671e9),  # arXiv 2412.19437, section 4.2
        (T5_11B, 11_307_321_344),  # the released weights
        (VIT_L_16, 304_326_632),  # the released weights, patch embedding included
    ],
)
def test_shapes_add_up_to_the_published_counts(model, published: float) -> None:
    """Dense, grouped-query, latent, routed, encoder-decoder and vision shapes have the parameters their authors counted, within 0.3 %."""
    assert count_parameters(model).total == pytest.approx(published, rel=0.003)


@pytest.mark.parametrize(("model", "published"), [(MIXTRAL, 12.9e9), (DEEPSEEK_V3, 37e9), (LLAMA_7B, 6.738e9)])
def test_a_token_meets_the_active_ones(model, published: float) -> None:
    """Active parameters are those of the visited and shared experts and of everything dense."""
    assert count_parameters(model).active == pytest.approx(published, rel=0.02)


def test_parts_add_up_to_the_whole() -> None:
    """Attention, feed-forward, tables and norms are the whole model, but for norms under one in a thousand."""
    counts = count_parameters(LLAMA_7B)
    parts = counts.attention + counts.feed_forward + counts.embedding + counts.head
    assert 0 < counts.total - parts < 1e-3 * counts.total


def test_a_tied_head_is_stored_once_and_still_multiplied() -> None:
    """Tying the head to the embedding saves its storage and none of its arithmetic."""
    tied, untied = count_parameters(replace(TINY, tied_embeddings=True)), count_parameters(TINY)
    assert untied.total - tied.total == TINY.vocab_size * TINY.hidden_size
    assert untied.multiplied == tied.multiplied


def test_looking_up_an_embedding_multiplies_nothing() -> None:
    """Multiplied weights are fewer than active ones by the input table and the norms."""
    counts = count_parameters(TINY)
    norms = (2 * TINY.layers + 1) * TINY.hidden_size
    assert counts.active - counts.multiplied == TINY.vocab_size * TINY.hidden_size + norms


def test_grouped_heads_save_key_and_value_weights() -> None:
    """Dividing the KV heads by eight divides the key and value projections by eight and touches nothing else."""
    grouped = replace(TINY, kv_heads=1)
    saved = TINY.layers * 2 * TINY.hidden_size * TINY.head_dim * 7
    assert count_parameters(TINY).total - count_parameters(grouped).total == saved


def test_classes_of_a_vit_cost_no_patch_anything() -> None:
    """A ViT's head meets one vector an image: 21,843 classes store more and multiply no more a patch than 1,000."""
    many = replace(VIT_L_16, vocab_size=21_843)
    assert count_parameters(many).multiplied == count_parameters(VIT_L_16).multiplied
    assert count_parameters(many).total > count_parameters(VIT_L_16).total


@pytest.mark.parametrize(
    ("dense_layers", "moe_every", "routed"),
    [(0, 1, 4), (1, 1, 3), (0, 2, 2), (4, 1, 0)],
)
def test_which_layers_route(dense_layers: int, moe_every: int, routed: int) -> None:
    """The first layers stay dense, and of the others every n-th routes."""
    model = replace(TINY, experts=Experts(8, 2, 128, dense_layers=dense_layers, moe_every=moe_every))
    assert expert_layer_count(model) == routed


def test_stated_counts_win_and_take_every_part_along() -> None:
    """A stated count replaces the sum, and arithmetic and parts keep their proportions: half the count is half of everything."""
    counts = count_parameters(MIXTRAL)
    halved = count_parameters(replace(MIXTRAL, params=counts.total / 2, active_params=counts.active / 2))
    assert halved.total == counts.total / 2
    for part in ("attention", "feed_forward", "embedding", "head", "multiplied", "expert_stored"):
        assert getattr(halved, part) == pytest.approx(getattr(counts, part) / 2)


def test_stated_counts_under_the_experts_own_leave_nothing_negative() -> None:
    """Experts whose shape overshoots the stated count are scaled down: no part of the model becomes a negative size."""
    counts = count_parameters(replace(MIXTRAL, params=10e9, active_params=3e9))
    dense = counts.total - counts.embedding - counts.head - counts.expert_stored
    assert min(dense, counts.expert_stored, counts.embedding) > 0
