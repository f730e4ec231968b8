"""A transformer's shape from what is known of it: plausible where inferred, refused where it contradicts itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.training.model import Experts, LatentAttention, Transformer
from service.engine.training.flops import transformer_forward_flops
from service.engine.training.parameters import count_parameters
from service.engine.training.shape import COMPLETE_FIELDS, StatedRanks, infer_shape

LLAMA_2_7B: Mapping[str, Any] = {
    "layers": 32,
    "hidden_size": 4096,
    "attention_heads": 32,
    "kv_heads": 32,
    "ffn_hidden_size": 11_008,
    "vocab_size": 32_000,
}
LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}


def shape_total(model: Transformer) -> float:
    """Parameters that the shape itself has, whatever count is stated beside it."""
    return count_parameters(replace(model, params=None, active_params=None)).total


def refused(shape: Mapping[str, Any]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        infer_shape(shape)
    return caught.value


@pytest.mark.parametrize(
    ("params", "layers", "hidden", "published"),
    [
        (1e9, (12, 24), (1536, 2560), "GPT-3 1.3B: 24 x 2048"),
        (7e9, (28, 36), (4096, 4096), "LLaMA 7B: 32 x 4096"),
        (13e9, (36, 44), (5120, 5120), "LLaMA 13B: 40 x 5120"),
        (70e9, (64, 88), (8192, 9216), "Llama 2 70B: 80 x 8192"),
        (175e9, (96, 96), (12_288, 12_288), "GPT-3: 96 x 12288"),
        (405e9, (110, 130), (15_360, 17_408), "Llama 3.1 405B: 126 x 16384"),
    ],
)
def test_a_count_alone_gives_the_usual_shape(params: float, layers: tuple[int, int], hidden: tuple[int, int], published: str) -> None:
    """Near the published model of that size, with heads of 128 that tensor parallelism can share out."""
    model = infer_shape({"params": params}).model
    assert layers[0] <= model.layers <= layers[1], published
    assert hidden[0] <= model.hidden_size <= hidden[1], published
    assert (model.head_dim, model.kv_heads, model.experts) == (128, model.attention_heads, None)
    assert model.attention_heads % (8 if params >= 7e9 else 4) == 0


@pytest.mark.parametrize("params", [1e8, 1e9, 7e9, 13e9, 70e9, 175e9, 405e9, 1e12])
def test_an_inferred_shape_has_about_the_stated_parameters(params: float) -> None:
    """Within 3 %, and the stated count itself is what the engine goes on with."""
    inferred = infer_shape({"params": params})
    assert shape_total(inferred.model) == pytest.approx(params, rel=0.03)
    assert count_parameters(inferred.model).total == params
    assert inferred.warnings == ()


@pytest.mark.parametrize("params", [1e9, 7e9, 70e9, 175e9])
def test_training_costs_about_six_flops_a_parameter(params: float) -> None:
    """6 N a token without attention's scores; the embedding look-up, which costs none, is the small difference."""
    weights = transformer_forward_flops(infer_shape({"params": params}).model, 4096).weights
    assert 3 * weights == pytest.approx(6 * params, rel=0.08)


def test_everything_inferred_is_named() -> None:
    """So that the answer's assumptions can list it; what was given is not."""
    assert set(infer_shape({"params": 7e9}).assumed) == {
        "layers", "hidden_size", "attention_heads", "kv_heads", "ffn_hidden_size", "vocab_size",
    }  # fmt: skip
    assert infer_shape(LLAMA_2_7B).assumed == {}
    assert infer_shape({"params": 7e9, "layers": 30}).assumed.keys().isdisjoint({"layers"})


@given(st.integers(1, 10**15), st.sampled_from(["transformer", "encoder_decoder", "vit"]))
def test_any_count_gives_a_shape(params: int, kind: str) -> None:
    """Of whole positive sizes whose heads divide."""
    model = infer_shape({"params": params, "architecture": kind}).model
    assert min(model.layers, model.hidden_size, model.attention_heads, model.head_dim, model.ffn_hidden_size) >= 1
    assert model.attention_heads % model.kv_heads == 0


@pytest.mark.parametrize(
    ("shape", "layers", "hidden"),
    [
        ({"params": 7e9, "layers": 32}, 32, 4096),
        ({"params": 7e9, "hidden_size": 4096}, 33, 4096),
        ({"params": 7e9, "attention_heads": 32}, 33, 4096),
        ({"params": 13e9, "attention_heads": 40}, 40, 5160),
        ({"params": 7e9, "kv_heads": 8}, 33, 4096),
    ],
)
def test_a_partial_shape_is_completed_around_what_is_given(shape: dict[str, Any], layers: int, hidden: int) -> None:
    """The rest follows, and its heads divide."""
    inferred = infer_shape(shape)
    model = inferred.model
    assert model.layers == pytest.approx(layers, abs=1)
    assert model.hidden_size == pytest.approx(hidden, rel=0.02)
    assert model.attention_heads * model.head_dim == model.hidden_size
    assert shape_total(model) == pytest.approx(shape["params"], rel=0.2)
    assert inferred.warnings == ()


def test_inferred_heads_always_divide() -> None:
    """A width that heads of 128 do not divide, or stated key-value heads, never make an error of a head count nobody stated."""
    odd = infer_shape({"layers": 24, "hidden_size": 2000}).model
    assert odd.attention_heads * odd.head_dim == 2000
    grouped = infer_shape({"layers": 24, "hidden_size": 3000, "kv_heads": 7}).model
    assert grouped.attention_heads % 7 == 0
    tiny = infer_shape({"layers": 2, "hidden_size": 64, "kv_heads": 4}).model
    assert (tiny.attention_heads, tiny.head_dim) == (4, 16)


@pytest.mark.parametrize(("hidden", "tensor", "heads"), [(13_824, 8, 96), (6144, 6, 48), (4096, 1, 32), (4096, 3, 33)])
def test_inferred_heads_divide_over_the_stated_tensor_ranks(hidden: int, tensor: int, heads: int) -> None:
    """BLOOM's trials with a hidden size of 13,824 on 8 tensor ranks: not 108 heads of 128 but 96 of 144; where none divide, the nearest."""
    model = infer_shape({"layers": 80, "hidden_size": hidden}, StatedRanks(tensor=tensor)).model
    assert model.attention_heads == heads


@pytest.mark.parametrize(
    ("sizes", "params", "gated", "tied"),
    [
        ((48, 7168, 56, 28_672, 50_368), 30e9, False, False),
        ((12, 768, 12, 3072, 50_257), 124e6, False, True),
        ((32, 4096, 32, 11_008, 32_000), 7e9, True, False),
    ],
    ids=["MPT-30B", "GPT-2", "Llama 2 7B"],
)
def test_a_stated_count_tells_the_matrices_of_a_complete_shape(sizes: tuple[int, ...], params: float, gated: bool, tied: bool) -> None:
    """A gate and a head of its own are usual; what misses the count by more than a name's rounding is changed, and is an assumption."""
    inferred = infer_shape(dict(zip(COMPLETE_FIELDS, sizes, strict=True)) | {"params": params})
    assert (inferred.model.gated_ffn, inferred.model.tied_embeddings) == (gated, tied)
    assert (inferred.assumed.get("gated_ffn", True), inferred.assumed.get("tied_embeddings", False)) == (gated, tied)


def test_a_shape_without_counts_is_taken_as_it_is() -> None:
    """Llama 2 7B by its fields, with its published 6.74 billion parameters."""
    inferred = infer_shape(LLAMA_2_7B)
    assert inferred.model == Transformer(32, 4096, 32, 32, 128, 11_008, 32_000)
    assert shape_total(inferred.model) == pytest.approx(6.738e9, rel=1e-3)


def test_an_encoder_decoder_divides_its_count_between_both() -> None:
    """Layers on each side, the decoder's with cross-attention, together the stated parameters."""
    model = infer_shape({"params": 11e9, "architecture": "encoder_decoder"}).model
    assert model.decoder_layers == model.layers
    assert shape_total(model) == pytest.approx(11e9, rel=0.03)
    assert not model.gated_ffn
    assert infer_shape({"params": 11e9, "architecture": "encoder_decoder", "decoder_layers": 12}).model.decoder_layers == 12
    assert refused({**LLAMA_2_7B, "decoder_layers": 4}).pointer == "/model/decoder_layers"


def test_a_vision_transformer_has_plain_feed_forwards_and_a_thousand_classes() -> None:
    """ViT-H/14 has 632 million parameters in 32 layers of 1280; usual language proportions are wider and shallower, as many in all."""
    model = infer_shape({"params": 632e6, "architecture": "vit"}).model
    assert (model.vocab_size, model.gated_ffn, model.ffn_hidden_size) == (1000, False, 4 * model.hidden_size)
    assert shape_total(model) == pytest.approx(632e6, rel=0.05)


@pytest.mark.parametrize(
    ("params", "active", "visited", "published"),
    [
        (46.7e9, 12.9e9, 2, "Mixtral 8x7B"),
        (141e9, 39e9, 2, "Mixtral 8x22B"),
        (671e9, 37e9, 8, "DeepSeek-V3"),
        (235e9, 22e9, 8, "Qwen3-235B-A22B"),
        (1e12, 32e9, 8, "Kimi K2"),
    ],
)
def test_a_total_and_an_active_count_give_a_mixture(params: float, active: float, visited: int, published: str) -> None:
    """Few large experts or many small ones, by the ratio of the counts; both counts of the shape within 10 %."""
    inferred = infer_shape({"params": params, "active_params": active})
    model = inferred.model
    assert model.experts is not None, published
    assert model.experts.experts_per_token == visited
    assert model.experts.experts % visited == 0
    counts = count_parameters(replace(model, params=None, active_params=None))
    assert counts.total == pytest.approx(params, rel=0.1)
    assert counts.active == pytest.approx(active, rel=0.1)
    assert count_parameters(model).active == active
    assert {"experts", "experts_per_token", "expert_ffn_hidden_size"} <= set(inferred.assumed)


def test_an_inferred_number_of_experts_has_many_divisors() -> None:
    """120B with 12B active is 128 experts, as published mixtures have, and not 120."""
    for params, active, experts in ((120e9, 12e9, 128), (235e9, 22e9, 128), (1e12, 32e9, 384)):
        model = infer_shape({"params": params, "active_params": active}).model
        assert model.experts is not None
        assert model.experts.experts == experts


@pytest.mark.parametrize("ranks", [1, 2, 6, 48, 64, 72, 128, 256, 1000])
def test_an_inferred_number_of_experts_divides_over_the_stated_ranks(ranks: int) -> None:
    """Each rank holds as many experts, and the counts stay the stated ones."""
    model = infer_shape({"params": 120e9, "active_params": 12e9}, StatedRanks(expert=ranks)).model
    assert model.experts is not None
    assert model.experts.experts % ranks == 0
    assert model.experts.experts_per_token <= model.experts.experts
    counts = count_parameters(model)
    assert (counts.total, counts.active) == (120e9, 12e9)
    of_shape = count_parameters(replace(model, params=None, active_params=None))
    assert of_shape.total / of_shape.active == pytest.approx(10, rel=0.25)


def test_more_ranks_than_usual_experts_make_narrower_experts() -> None:
    """A token visits more of them, so that what it meets stays what is stated."""
    usual, many = (infer_shape({"params": 120e9, "active_params": 12e9}, StatedRanks(expert=ranks)).model.experts for ranks in (1, 256))
    assert usual is not None
    assert many is not None
    assert (many.experts, many.experts_per_token) == (2 * usual.experts, 2 * usual.experts_per_token)
    assert many.ffn_hidden_size == pytest.approx(usual.ffn_hidden_size / 2, abs=128)


def test_as_many_active_as_total_parameters_is_a_dense_model() -> None:
    """There is nothing to route."""
    assert infer_shape({"params": 7e9, "active_params": 7e9}).model.experts is None


@pytest.mark.parametrize(
    ("shape", "pointer"),
    [({"active_params": 1e9}, "/model/params"), ({"params": 1e9, "active_params": 2e9}, "/model/active_params")],
)
def test_active_parameters_need_a_larger_total(shape: dict[str, Any], pointer: str) -> None:
    """One pointer for the missing, one for the contradicting."""
    assert refused(shape).pointer == pointer


def test_a_complete_dense_shape_that_contradicts_its_count_is_refused() -> None:
    """More than 20 % off: one of the two is a slip, and the message has both."""
    error = refused({**LLAMA_2_7B, "params": 70e9})
    assert error.pointer == "/model/params"
    assert "6.74B" in error.message
    assert "70B" in error.message


@pytest.mark.parametrize("params", [6.738e9, 5.7e9, 8.4e9])
def test_a_count_within_a_fifth_of_the_shape_stands(params: float) -> None:
    """The stated count wins; published counts differ in what they count."""
    inferred = infer_shape({**LLAMA_2_7B, "params": params})
    assert count_parameters(inferred.model).total == params
    assert inferred.warnings == ()


@pytest.mark.parametrize(
    "shape",
    [
        {"params": 70e9, "layers": 32, "hidden_size": 4096},
        {**LLAMA_2_7B, "params": 70e9, "experts": 8},
        {"params": 1e9, "layers": 10_000},
    ],
)
def test_a_partial_or_routed_shape_that_contradicts_its_count_is_a_warning(shape: dict[str, Any]) -> None:
    """Too much is inferred there to call it a mistake; the stated count wins."""
    inferred = infer_shape(shape)
    assert len(inferred.warnings) == 1
    assert f"the stated {shape['params'] / 1e9:.3g}B count" in inferred.warnings[0]
    assert f"has {shape_total(inferred.model) / 1e9:.3g}B parameters" in inferred.warnings[0]
    assert count_parameters(inferred.model).total == shape["params"]


def test_stated_heads_must_divide() -> None:
    """The hidden size unless a head's size is stated, and into groups for the key-value heads."""
    base = {"layers": 32, "hidden_size": 4096}
    assert refused({**base, "attention_heads": 33}).pointer == "/model/attention_heads"
    assert refused({**base, "attention_heads": 32, "kv_heads": 5}).pointer == "/model/kv_heads"
    assert refused({**base, "attention_heads": 32, "kv_heads": 64}).pointer == "/model/kv_heads"
    assert infer_shape({**base, "attention_heads": 33, "head_dim": 128}).model.head_dim == 128


@pytest.mark.parametrize(
    ("shape", "pointer"),
    [({"layers": 4}, "/model/hidden_size"), ({"hidden_size": 512}, "/model/layers"), ({"vocab_size": 1000}, "/model/hidden_size")],
)
def test_a_shape_without_size_names_what_is_missing(shape: dict[str, Any], pointer: str) -> None:
    """Layers and hidden size, or a count to infer them from."""
    assert refused(shape).pointer == pointer


@pytest.mark.parametrize("missing", LATENT)
def test_latent_attention_needs_all_its_sizes(missing: str) -> None:
    """The pointer is that of the one that is not there."""
    fields = {name: size for name, size in LATENT.items() if name != missing}
    assert refused({**LLAMA_2_7B, **fields}).pointer == f"/model/{missing}"


def test_latent_attention_is_read() -> None:
    """Queries may be compressed or not; a head is as wide as its two parts."""
    model = infer_shape({**LLAMA_2_7B, **LATENT, "q_lora_rank": 1536}).model
    assert model.latent == LatentAttention(512, 128, 64, 128, 1536)
    assert model.head_dim == 192
    assert infer_shape({**LLAMA_2_7B, **LATENT}).model.latent == LatentAttention(512, 128, 64, 128)


def test_experts_are_read_with_their_defaults() -> None:
    """A token visits two unless stated, and an expert is as wide as the dense feed-forward."""
    given_all = {"experts": 256, "experts_per_token": 8, "shared_experts": 1, "expert_ffn_hidden_size": 2048, "dense_layers": 3}
    assert infer_shape({**LLAMA_2_7B, **given_all}).model.experts == Experts(256, 8, 2048, shared_experts=1, dense_layers=3)
    inferred = infer_shape({**LLAMA_2_7B, "experts": 8, "moe_every": 2})
    assert inferred.model.experts == Experts(8, 2, 11_008, moe_every=2)
    assert inferred.assumed == {"experts_per_token": 2, "expert_ffn_hidden_size": 11_008}


@pytest.mark.parametrize("field", ["experts_per_token", "shared_experts", "expert_ffn_hidden_size", "dense_layers", "moe_every"])
def test_a_field_of_experts_without_experts_is_refused(field: str) -> None:
    """It is not silently left out."""
    error = refused({**LLAMA_2_7B, field: 1})
    assert error.pointer == "/model/experts"
    assert field in error.message


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"experts": 8, "experts_per_token": 9}, "/model/experts_per_token"),
        ({"experts": 8, "dense_layers": 32}, "/model/dense_layers"),
    ],
)
def test_impossible_experts_are_refused(fields: dict[str, Any], pointer: str) -> None:
    """More visited than there are; more dense layers than layers."""
    assert refused({**LLAMA_2_7B, **fields}).pointer == pointer


@pytest.mark.parametrize(
    ("hidden", "kv_heads", "heads"), [(4096, 1, 32), (4096, 8, 32), (1280, 4, 8), (256, 1, 2), (200, 1, 1), (64, 1, 1)]
)
def test_usual_heads_have_128_elements(hidden: int, kv_heads: int, heads: int) -> None:
    """In full groups of the key-value heads; a hidden size of less than two heads is one head."""
    model = infer_shape({"layers": 2, "hidden_size": hidden, "kv_heads": kv_heads}).model
    assert (model.attention_heads, model.head_dim) == (heads, hidden // heads)


@pytest.mark.parametrize(("architecture", "squares", "tables"), [("transformer", 12, 2), ("encoder_decoder", 28, 2), ("vit", 12, 1)])
def test_layers_of_a_stated_width_by_hand(architecture: str, squares: int, tables: int) -> None:
    """(count - tables x words x width) / (12 or 28 x width^2), rounded; a ViT and a tied model have one table."""
    asked: dict[str, Any] = {"params": 3e9, "hidden_size": 2048, "vocab_size": 50_000, "architecture": architecture}
    assert infer_shape(asked).model.layers == round((3e9 - tables * 50_000 * 2048) / (squares * 2048**2))
    tied = infer_shape({**asked, "tied_embeddings": True}).model
    assert tied.layers == round((3e9 - 50_000 * 2048) / (squares * 2048**2))
