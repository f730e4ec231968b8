"""Weights of a shape: what is stored, what a token is multiplied with, and how stated counts win."""

from dataclasses import replace
from typing import Any

import pytest

from service.domain.training.model import Experts, LatentAttention, Transformer
from service.engine.training.adapters import adapter_parameters, expert_adapter_parameters, linear_layers, shared_adapter_parameters
from service.engine.training.parameters import count_parameters, expert_layer_count, total_parameters
from tests.unit.engine.builders import (
    BLOOM,
    DEEPSEEK_V3,
    GPT_3,
    LLAMA_3_405B,
    LLAMA_7B,
    LLAMA_65B,
    MIXTRAL,
    PALM,
    RESNET_50,
    T5_11B,
    TINY,
    VIT_L_16,
    training,
)

ADAPTERS = training(method="lora", lora_rank=6, adapter_targets=("experts",))


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


def shape(**changes: Any) -> Transformer:
    """Three layers of 20 elements: five heads of 7 elements, one of keys and values, a gated feed-forward of 11, 13 tokens."""
    sizes: dict[str, Any] = {
        "layers": 3, "hidden_size": 20, "attention_heads": 5, "kv_heads": 1, "head_dim": 7, "ffn_hidden_size": 11, "vocab_size": 13
    }  # fmt: skip
    return Transformer(**{**sizes, **changes})


def test_a_shape_counted_by_hand() -> None:
    """Queries and output 20 x 35, keys and values 20 x 7, three matrices of 20 x 11, two norms a layer and one at the end, two tables."""
    attention, ffn, table = 2 * 20 * 35 + 2 * 20 * 7, 3 * 20 * 11, 13 * 20
    counts = count_parameters(shape())
    assert (counts.attention, counts.feed_forward, counts.embedding, counts.head) == (3 * attention, 3 * ffn, table, table)
    assert counts.total == counts.active == 3 * (attention + ffn) + 2 * table + 7 * 20
    assert counts.multiplied == counts.encoder_multiplied == 3 * (attention + ffn) + table
    assert (counts.head_multiplied, counts.decoder_multiplied, counts.expert_stored) == (table, 0, 0)


@pytest.mark.parametrize("gated", [False, True])
def test_biases_and_positions_counted_by_hand(gated: bool) -> None:
    """A bias for each output: 35 + 2 x 7 + 20 of attention, one or two times 11 and 20 of the feed-forward, and offsets of norms."""
    matrices = 3 if gated else 2
    attention = 2 * 20 * 35 + 2 * 20 * 7 + 35 + 14 + 20
    ffn = matrices * 20 * 11 + (matrices - 1) * 11 + 20
    counts = count_parameters(shape(biases=True, gated_ffn=gated, max_positions=17, tied_embeddings=True))
    assert (counts.attention, counts.feed_forward, counts.embedding, counts.head) == (3 * attention, 3 * ffn, (13 + 17) * 20, 0)
    assert counts.total == 3 * (attention + ffn) + (13 + 17) * 20 + 7 * 40
    assert counts.multiplied == 3 * (attention + ffn) + 13 * 20


def test_an_encoder_and_decoder_counted_by_hand() -> None:
    """Two decoder layers with attention twice and three norms, a norm at either end; the encoder meets the crossing keys and values."""
    attention, ffn, table, crossing = 2 * 20 * 35 + 2 * 20 * 7, 3 * 20 * 11, 13 * 20, 2 * 20 * 7
    counts = count_parameters(shape(kind="encoder_decoder", decoder_layers=2))
    assert counts.attention == (3 + 2 * 2) * attention
    assert counts.feed_forward == (3 + 2) * ffn
    assert counts.total == 7 * attention + 5 * ffn + 2 * table + (2 * 3 + 3 * 2 + 2) * 20
    assert counts.encoder_multiplied == 3 * (attention + ffn) + 2 * crossing
    assert counts.decoder_multiplied == 2 * (2 * attention + ffn) - 2 * crossing + table
    assert counts.multiplied == counts.encoder_multiplied + counts.decoder_multiplied


@pytest.mark.parametrize(("shared", "width"), [(0, 0), (2, 9), (2, 0)])
def test_a_mixture_counted_by_hand(shared: int, width: int) -> None:
    """Of three layers one is dense; the others keep six experts of 5 elements, a router and shared experts, and a token meets two."""
    experts = Experts(6, 2, 5, shared_experts=shared, shared_ffn_hidden_size=width, dense_layers=1)
    attention, dense, one, table = 2 * 20 * 35 + 2 * 20 * 7, 3 * 20 * 11, 3 * 20 * 5, 13 * 20
    always = 20 * 6 + shared * 3 * 20 * (width or 5)
    counts = count_parameters(shape(experts=experts))
    assert counts.expert_stored == 2 * 6 * one
    assert counts.feed_forward == dense + 2 * (always + 6 * one)
    assert counts.multiplied == 3 * attention + dense + 2 * (always + 2 * one) + table
    assert counts.active == counts.multiplied + table + 7 * 20
    assert counts.total == counts.active + 2 * 4 * one


@pytest.mark.parametrize("rank", [0, 9])
def test_latent_attention_counted_by_hand(rank: int) -> None:
    """Five heads: queries of 3 + 2 from a latent of 9 with its norm or none; keys of 3 and values of 4 from one of 8, and its norm."""
    latent = LatentAttention(kv_lora_rank=8, qk_nope_head_dim=3, qk_rope_head_dim=2, v_head_dim=4, q_lora_rank=rank)
    queries = 20 * 9 + 9 + 9 * 5 * 5 if rank else 20 * 5 * 5
    attention = queries + 20 * (8 + 2) + 8 + 8 * 5 * (3 + 4) + 5 * 4 * 20
    assert count_parameters(shape(latent=latent)).attention == 3 * attention
    ends = (20 + 9 + 9 + 25 if rank else 20 + 25) + (20 + 8 + 2) + (8 + 5 * 7) + (5 * 4 + 20)
    assert shared_adapter_parameters(shape(latent=latent), ADAPTERS) == 6 * 3 * (ends + 3 * (20 + 11))


def test_adapters_counted_by_hand() -> None:
    """A rank times inputs and outputs of every matrix: queries and output 20 + 35, keys and values 20 + 7, the feed-forward's 20 + 11."""
    attention = 2 * (20 + 35) + 2 * (20 + 7)
    assert shared_adapter_parameters(shape(), ADAPTERS) == 6 * 3 * (attention + 3 * 31)
    assert shared_adapter_parameters(shape(gated_ffn=False), ADAPTERS) == 6 * 3 * (attention + 2 * 31)
    decoding = shape(kind="encoder_decoder", decoder_layers=2)
    assert shared_adapter_parameters(decoding, ADAPTERS) == 6 * (7 * attention + 5 * 3 * 31)
    mixture = shape(experts=Experts(6, 2, 5, shared_experts=2, shared_ffn_hidden_size=9, dense_layers=1))
    assert shared_adapter_parameters(mixture, ADAPTERS) == 6 * (3 * attention + 3 * 31 + 2 * 2 * 3 * (20 + 9))
    assert expert_adapter_parameters(mixture, ADAPTERS) == 6 * 2 * 3 * (20 + 5)
    narrow = shape(gated_ffn=False, experts=Experts(6, 2, 5, shared_experts=2, dense_layers=1))
    assert shared_adapter_parameters(narrow, ADAPTERS) == 6 * (3 * attention + 2 * 31 + 2 * 2 * 2 * (20 + 5))
    assert expert_adapter_parameters(narrow, ADAPTERS) == 6 * 2 * 2 * (20 + 5)
    shared, one = shared_adapter_parameters(mixture, ADAPTERS), expert_adapter_parameters(mixture, ADAPTERS)
    assert adapter_parameters(mixture, ADAPTERS) == shared + 6 * one
    assert adapter_parameters(mixture, ADAPTERS, visited=True) == shared + 2 * one


def test_adapters_are_on_their_targets_alone() -> None:
    """Attention, with what every token meets, with routed experts too, or layers by name: counted by hand in a mixture of three layers."""
    mixture = shape(experts=Experts(6, 2, 5, shared_experts=2, shared_ffn_hidden_size=9, dense_layers=1))
    query, key, dense, shared, routed = 20 + 35, 20 + 7, 20 + 11, 20 + 9, 20 + 5
    attention = 3 * 2 * (query + key)
    beside = 3 * dense + 2 * 2 * 3 * shared
    for targets, ends in (
        (("attention",), attention),
        (("all_linear",), attention + beside),
        (("experts",), attention + beside + 2 * 6 * 3 * routed),
        (("q_proj", "v_proj"), 3 * (query + key)),
        (("up_proj",), dense + 2 * 2 * shared),
        (("attention", "up_proj"), attention + dense + 2 * 2 * shared),
    ):
        assert adapter_parameters(mixture, training(method="lora", lora_rank=6, adapter_targets=targets)) == 6 * ends, targets


def test_layers_that_adapters_can_be_on_have_their_usual_names() -> None:
    """Those of the model's own attention, and a gate where there is one."""
    assert set(linear_layers(LLAMA_7B)) == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert "gate_proj" not in linear_layers(GPT_3)
    latent = LatentAttention(kv_lora_rank=8, qk_nope_head_dim=3, qk_rope_head_dim=2, v_head_dim=4, q_lora_rank=9)
    assert {"q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"} < set(linear_layers(shape(latent=latent)))


def test_other_networks_have_their_stated_weights() -> None:
    """None where only their FLOPs are stated."""
    assert total_parameters(RESNET_50) == 25_557_032
    assert total_parameters(replace(RESNET_50, params=None)) == 0
    assert total_parameters(LLAMA_7B) == count_parameters(LLAMA_7B).total
