"""A Hugging Face config.json becomes the shape it describes, or an error that points at what is wrong with it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from service.domain.errors import InvalidRequest
from service.domain.training.model import Experts, Transformer
from service.engine.training.parameters import count_parameters
from service.formats.huggingface.config import read_hf_config
from tests.support.rows import for_each

PUBLISHED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("hf_configs.json").read_text(encoding="utf-8"))
CONFIGS: dict[str, dict[str, Any]] = {row["name"]: row["config"] for row in PUBLISHED}
ROUTED = [row for row in PUBLISHED if "active_params" in row]

SMALL: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "vocab_size": 1000,
}


def small(**changes: object) -> dict[str, object]:
    return {**SMALL, **changes}


def without(key: str) -> dict[str, object]:
    return {name: value for name, value in SMALL.items() if name != key}


def shape(config: Mapping[str, object]) -> Transformer:
    return read_hf_config(config).model


def experts(**changes: object) -> Experts | None:
    return shape(small(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=256, **changes)).experts


def window(model_type: str, **changes: object) -> tuple[int | None, int]:
    model = shape(small(model_type=model_type, **changes))
    return model.sliding_window, model.global_attention_every


def problem(config: Mapping[str, object]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        read_hf_config(config)
    return caught.value


class TestPublishedModels:
    @for_each("row", PUBLISHED, ids=lambda row: row["name"])
    def test_shape_adds_up_to_the_published_size(self, row: dict[str, Any]) -> None:
        """The weights of the shape are the published count within 1 %."""
        assert count_parameters(shape(row["config"])).total == pytest.approx(row["params"], rel=0.01)

    @for_each("row", ROUTED, ids=lambda row: row["name"])
    def test_visited_experts_add_up_to_the_published_active_size(self, row: dict[str, Any]) -> None:
        """The weights a token meets are the published active count within 3 %."""
        assert count_parameters(shape(row["config"])).active == pytest.approx(row["active_params"], rel=0.03)

    @for_each("row", PUBLISHED, ids=lambda row: row["name"])
    def test_no_published_count_is_made_up(self, row: dict[str, Any]) -> None:
        """A config states a shape, so the counts that would win over it stay open."""
        assert shape(row["config"]).params is None
        assert shape(row["config"]).active_params is None

    @pytest.mark.parametrize(
        ("name", "tokens", "every"),
        [
            ("Llama-2-7B", None, 0),
            ("Mistral-7B-v0.1", 4096, 0),
            ("Qwen2.5-7B", None, 0),
            ("Gemma-2-9B", 4096, 2),
            ("Gemma-3-27B", 1024, 6),
            ("gpt-oss-120b", 128, 2),
            ("GPT-Neo-2.7B", 256, 2),
            ("Llama-4-Scout", 8192, 4),
            ("SmolLM3-3B", None, 0),
        ],
    )
    def test_windows_and_global_layers_are_the_published_ones(self, name: str, tokens: int | None, every: int) -> None:
        """A window is read with how often a layer looks past it, and left alone where the model switches it off."""
        model = shape(CONFIGS[name])
        assert (model.sliding_window, model.global_attention_every) == (tokens, every)

    @pytest.mark.parametrize(
        ("name", "kv_heads", "head_dim"),
        [
            ("Falcon-7B", 1, 64),
            ("Falcon-40B", 8, 64),
            ("StarCoder", 1, 128),
            ("DBRX", 8, 128),
            ("Qwen3-30B-A3B", 4, 128),
            ("Phi-2", 32, 80),
        ],
    )
    def test_heads_are_the_published_ones(self, name: str, kv_heads: int, head_dim: int) -> None:
        """Multi-query and grouped heads count fewer keys; a head's width is stated or the hidden size's share."""
        model = shape(CONFIGS[name])
        assert (model.kv_heads, model.head_dim) == (kv_heads, head_dim)

    @pytest.mark.parametrize(
        ("name", "context_tokens"),
        [
            ("Llama-3.1-70B", 131_072),
            ("GPT-2", 1024),
            ("RoBERTa-large", 512),
            ("BLOOM-176B", 2048),
            ("ViT-L/16", 197),
            ("Falcon-40B", None),
        ],
    )
    def test_context_is_what_the_config_states(self, name: str, context_tokens: int | None) -> None:
        """The context is the stated number of tokens, without padding rows; none is made up."""
        assert read_hf_config(CONFIGS[name]).context_tokens == context_tokens

    @pytest.mark.parametrize(
        ("scaling", "context_tokens"),
        [
            ({"type": "linear", "factor": 8.0}, 32_768),
            ({"rope_type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}, 163_840),
            ({"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 512}, 4096),
            ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 4096),
            ({"type": "mrope", "mrope_section": [16, 24, 24]}, 4096),
            (None, 4096),
        ],
    )
    def test_interpolated_positions_reach_further(self, scaling: object, context_tokens: int) -> None:
        """As often the trained context as the factor says (LongChat 7B 32k, DeepSeek-V3), unless the config states the longer one."""
        for key in ("rope_scaling", "rope_parameters"):
            assert read_hf_config(small(max_position_embeddings=4096, **{key: scaling})).context_tokens == context_tokens
        stated = small(model_type="gemma3_text", head_dim=64, max_position_embeddings=4096, rope_scaling=scaling)
        assert read_hf_config(stated).context_tokens == 4096

    def test_encoder_decoder_has_both_halves(self) -> None:
        """T5-11B has 24 layers in each half and heads wider together than the model."""
        model = shape(CONFIGS["T5-11B"])
        assert (model.kind, model.layers, model.decoder_layers, model.head_dim) == ("encoder_decoder", 24, 24, 128)

    def test_latent_attention_keeps_both_parts_of_a_head(self) -> None:
        """DeepSeek-V3's heads are 128 plus 64 rotated elements wide, its first three layers dense."""
        model = shape(CONFIGS["DeepSeek-V3"])
        assert model.latent is not None
        assert (model.head_dim, model.latent.q_lora_rank, model.latent.v_head_dim) == (192, 1536, 128)
        assert model.experts is not None
        assert (model.experts.dense_layers, model.experts.shared_experts) == (3, 1)

    def test_multi_token_prediction_is_said_to_be_left_out(self) -> None:
        """DeepSeek-V3's extra prediction layer is in no published size, so it is a warning."""
        assert read_hf_config(CONFIGS["DeepSeek-V3"]).warnings == ("layers for multi-token prediction are not counted",)


class TestModelTypes:
    def test_null_is_the_same_as_left_out(self) -> None:
        """null key-value heads and a null head width mean the usual ones."""
        model = shape(small(num_key_value_heads=None, head_dim=None, sliding_window=None))
        assert (model.kv_heads, model.head_dim, model.sliding_window) == (8, 64, None)

    def test_whole_floats_are_whole_numbers(self) -> None:
        """JSON has one kind of number: 512.0 is 512."""
        assert shape(small(hidden_size=512.0)) == shape(SMALL)

    @pytest.mark.parametrize(("model_type", "tied"), [("llama", False), ("gemma", True), ("cohere", True), ("olmo2", False)])
    def test_tied_embeddings_default_by_model_type(self, model_type: str, tied: bool) -> None:
        """Whether the head is the embedding follows the model type, unless the config says."""
        assert shape(small(model_type=model_type)).tied_embeddings is tied
        assert shape(small(model_type=model_type, tie_word_embeddings=not tied)).tied_embeddings is not tied

    @pytest.mark.parametrize(("model_type", "gated"), [("llama", True), ("gemma", True), ("nemotron", False), ("starcoder2", False)])
    def test_gating_follows_the_model_type_not_the_activation(self, model_type: str, gated: bool) -> None:
        """Gemma gates a GELU, StarCoder2 does not: the activation's name alone does not tell."""
        assert shape(small(model_type=model_type, hidden_act="gelu")).gated_ffn is gated

    def test_model_type_is_read_in_any_spelling(self) -> None:
        """`xlm-roberta` and `XLM_RoBERTa` are one model type."""
        config = small(model_type="xlm-roberta", max_position_embeddings=514)
        assert read_hf_config(config) == read_hf_config({**config, "model_type": "XLM_RoBERTa"})

    def test_learned_positions_are_weights_only_where_the_type_has_them(self) -> None:
        """OPT stores two more rows than its context, ALiBi and rotary models none."""
        assert shape(small(model_type="opt", ffn_dim=1024, max_position_embeddings=2048)).max_positions == 2050
        assert shape(small(max_position_embeddings=2048)).max_positions == 0
        assert shape(CONFIGS["MPT-7B"]).max_positions == 0

    def test_feed_forward_of_four_hidden_sizes_where_gpt_leaves_it_out(self) -> None:
        """GPT-2's null `n_inner` means four times the hidden size."""
        assert shape(CONFIGS["GPT-2"]).ffn_hidden_size == 4 * 768

    def test_unknown_type_is_read_by_its_usual_keys_with_a_warning(self) -> None:
        """A type that is not in the table is read as a plain decoder, and says what that assumes."""
        answer = read_hf_config(small(model_type="brand_new", hidden_act="silu"))
        assert answer.model == shape(SMALL)
        assert "brand_new" in answer.warnings[0]
        assert "no biases" in answer.warnings[0]

    @pytest.mark.parametrize(("activation", "gated"), [("silu", True), ("swiglu", True), ("gelu", False), ("relu", False)])
    def test_unknown_type_is_gated_by_its_activation(self, activation: str, gated: bool) -> None:
        """Without a known type the activation's name is all there is to go by."""
        assert shape(small(model_type="brand_new", hidden_act=activation)).gated_ffn is gated

    def test_missing_model_type_is_said(self) -> None:
        """A config without a type is read like one of an unknown type."""
        assert "names no `model_type`" in read_hf_config(without("model_type")).warnings[0]


class TestWrappers:
    @pytest.mark.parametrize("key", ["text_config", "llm_config", "language_config"])
    def test_language_part_is_read_with_a_warning(self, key: str) -> None:
        """A multimodal wrapper is its language model; the encoder is said not to be counted."""
        answer = read_hf_config({"model_type": "some_vl", key: SMALL, "vision_config": {"hidden_size": 64}})
        assert answer.model == shape(SMALL)
        assert "not the encoder" in answer.warnings[-1]

    def test_flat_wrapper_is_read_with_a_warning(self) -> None:
        """Qwen2-VL keeps its language model's keys at the top, beside the encoder's."""
        answer = read_hf_config(small(model_type="qwen2_vl", vision_config={"depth": 32}))
        assert "not the encoder" in answer.warnings[0]

    def test_defaults_of_the_inner_class_are_used_and_said(self) -> None:
        """LLaVA leaves out what its Llama has by default."""
        config = {"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32_064}, "vision_config": {}}
        answer = read_hf_config(config)
        assert count_parameters(answer.model).total == pytest.approx(6.74e9, rel=0.01)
        assert answer.warnings[0].startswith("hidden_size, intermediate_size")

    def test_tying_of_the_wrapper_holds_for_its_language_part(self) -> None:
        """What the wrapper says of the embeddings holds where its part says nothing."""
        assert shape({"model_type": "some_vl", "text_config": SMALL, "tie_word_embeddings": True}).tied_embeddings

    def test_errors_point_into_the_part(self) -> None:
        """A pointer leads to the key at the depth where it stands."""
        config = {"model_type": "some_vl", "text_config": small(hidden_size="512")}
        assert problem(config).pointer == "/model/hf_config/text_config/hidden_size"


class TestWindows:
    def test_window_of_qwen_needs_its_switch(self) -> None:
        """Qwen states a window it does not use, unless `use_sliding_window` is true."""
        assert window("qwen2", sliding_window=256) == (None, 0)
        assert window("qwen2", sliding_window=256, use_sliding_window=True, max_window_layers=0) == (256, 0)

    def test_qwen_s_first_layers_have_no_window(self) -> None:
        """Six of twelve layers before `max_window_layers` are as many as every second."""
        assert window("qwen2", sliding_window=256, use_sliding_window=True, max_window_layers=6) == (256, 2)
        assert window("qwen2", sliding_window=256, use_sliding_window=True, max_window_layers=99) == (None, 0)

    def test_list_of_layers_wins_over_the_usual_pattern(self) -> None:
        """Four full layers of twelve are every third, whatever the model type's usual pattern is."""
        types = ["sliding_attention", "sliding_attention", "full_attention"] * 4
        assert window("gemma2", sliding_window=256, layer_types=types) == (256, 3)

    def test_pattern_is_read_where_stated(self) -> None:
        """`sliding_window_pattern` 4: every fourth layer is global."""
        assert window("gemma3", sliding_window=256, sliding_window_pattern=4) == (256, 4)

    def test_all_layers_listed_as_windowed_or_full(self) -> None:
        """No global layer leaves the window in all; no windowed layer leaves none."""
        assert window("gpt_oss", sliding_window=256, layer_types=["sliding_attention"] * 12) == (256, 0)
        assert window("gpt_oss", sliding_window=256, layer_types=["full_attention"] * 12) == (None, 0)

    def test_mix_without_a_pattern_says_what_is_counted(self) -> None:
        """Five of twelve global layers are no every n-th: the nearest that counts no less is used, with a warning."""
        types = ["full_attention"] * 5 + ["sliding_attention"] * 7
        answer = read_hf_config(small(sliding_window=256, layer_types=types))
        assert (answer.model.sliding_window, answer.model.global_attention_every) == (256, 2)
        assert answer.warnings == ("5 of 12 layers attend to all tokens; counted as 6",)

    def test_mostly_global_layers_count_as_global(self) -> None:
        """Eight of twelve cannot be said as every n-th; the window is left out rather than too much of it counted."""
        types = ["full_attention"] * 8 + ["sliding_attention"] * 4
        answer = read_hf_config(small(sliding_window=256, layer_types=types))
        assert answer.model.sliding_window is None
        assert answer.warnings == ("8 of 12 layers attend to all tokens; counted as 12",)

    def test_llama_4_s_unrotated_layers_are_global(self) -> None:
        """A 0 in `no_rope_layers` is a layer that looks at all chunks."""
        assert window("llama4", attention_chunk_size=256, no_rope_layers=[1, 1, 0] * 4) == (256, 3)


class TestExperts:
    def test_all_layers_route_by_default(self) -> None:
        """Without a word on dense layers every layer routes."""
        assert experts() == Experts(experts=8, experts_per_token=2, ffn_hidden_size=256)

    @pytest.mark.parametrize(
        ("keys", "dense_layers", "moe_every"),
        [
            ({"first_k_dense_replace": 3}, 3, 1),
            ({"decoder_sparse_step": 2}, 0, 2),
            ({"interleave_moe_layer_step": 4}, 0, 4),
            ({"mlp_only_layers": [0, 1]}, 2, 1),
            ({"mlp_only_layers": [3, 7]}, 2, 1),
            ({"moe_layer_freq": [0] + [1] * 11}, 1, 1),
            ({"moe_layer_freq": 2}, 6, 1),
            ({"moe_layers": [2, 5, 8, 11]}, 0, 3),
        ],
    )
    def test_number_of_routed_layers_is_the_config_s(self, keys: dict[str, object], dense_layers: int, moe_every: int) -> None:
        """However a config says which layers route, as many of them do."""
        read = experts(**keys)
        assert read is not None
        assert (read.dense_layers, read.moe_every) == (dense_layers, moe_every)

    def test_shared_expert_of_its_own_width(self) -> None:
        """Qwen's one shared expert has a width of its own; DeepSeek's have that of the routed ones."""
        qwen, deepseek = experts(shared_expert_intermediate_size=999), experts(n_shared_experts=2)
        assert qwen is not None
        assert (qwen.shared_experts, qwen.shared_ffn_hidden_size) == (1, 999)
        assert deepseek is not None
        assert (deepseek.shared_experts, deepseek.shared_ffn_hidden_size) == (2, 0)

    @pytest.mark.parametrize(
        "keys", [{"num_experts": 0}, {"n_routed_experts": None}, {"mlp_only_layers": list(range(12)), "num_experts": 8}]
    )
    def test_dense_where_nothing_routes(self, keys: dict[str, object]) -> None:
        """No experts, or no layer that has any, is a dense model."""
        assert shape(small(**keys)).experts is None


class TestRefusals:
    @pytest.mark.parametrize("key", sorted(set(SMALL) - {"model_type"}))
    def test_missing_key_is_named(self, key: str) -> None:
        """A shape that is not complete is refused at the key that is missing."""
        refused = problem(without(key))
        assert refused.pointer == f"/model/hf_config/{key}"
        assert f"`{key}`" in refused.message

    @pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "num_key_value_heads", "head_dim", "vocab_size", "sliding_window"])
    @for_each("value", ["32", "70B", -1, 0, True, 1.5, float("nan"), float("inf"), 10**10, 10**400, 1e308, [32], {"n": 1}])
    def test_value_that_is_no_size_is_refused_where_it_stands(self, key: str, value: object) -> None:
        """Strings, booleans, fractions, zero, negative and absurd sizes are refused, with a pointer."""
        assert problem(small(**{key: value})).pointer == f"/model/hf_config/{key}"

    @pytest.mark.parametrize(
        ("changes", "key"),
        [
            ({"model_type": 7}, "model_type"),
            ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
            ({"num_hidden_layers": 10**6}, "num_hidden_layers"),
            ({"num_attention_heads": 7}, "num_attention_heads"),
            ({"num_key_value_heads": 3}, "num_key_value_heads"),
            ({"num_experts": 4, "num_experts_per_tok": 5}, "num_experts_per_tok"),
            ({"num_experts": 4}, "num_experts_per_tok"),
            ({"num_experts": 4, "num_experts_per_tok": 2, "mlp_only_layers": [12]}, "mlp_only_layers"),
            ({"num_experts": 4, "num_experts_per_tok": 2, "mlp_only_layers": "all"}, "mlp_only_layers"),
            ({"num_experts": 4, "num_experts_per_tok": 2, "moe_layer_freq": [1]}, "moe_layer_freq"),
            ({"kv_lora_rank": 64}, "qk_nope_head_dim"),
            ({"layer_types": ["full_attention"]}, "layer_types"),
            ({"layer_types": ["linear_attention"] * 12}, "layer_types"),
            ({"layer_types": [["full_attention"]] * 12}, "layer_types"),
            ({"embedding_size": 128}, "embedding_size"),
            ({"model_type": "vit", "image_size": 8, "patch_size": 16}, "patch_size"),
            ({"model_type": "vit", "image_size": 32, "patch_size": 16, "id2label": [1]}, "id2label"),
            ({"model_type": "dinov2", "mlp_ratio": "4"}, "image_size"),
            ({"model_type": "mpt", "expansion_ratio": -4}, "expansion_ratio"),
            ({"model_type": "bart", "encoder_ffn_dim": 8, "decoder_ffn_dim": 16}, "decoder_ffn_dim"),
        ],
    )
    def test_contradiction_is_refused_where_it_stands(self, changes: dict[str, object], key: str) -> None:
        """Values that cannot be together are refused at the one to change."""
        assert problem(small(**changes)).pointer == f"/model/hf_config/{key}"

    @pytest.mark.parametrize("model_type", ["mamba", "mamba2", "jamba", "falcon_h1", "bamba", "qwen3_5", "rwkv", "recurrent_gemma"])
    def test_state_space_and_hybrid_models_are_sent_elsewhere(self, model_type: str) -> None:
        """Layers that are no transformer's are not counted as if they were; the message says what to give."""
        refused = problem(small(model_type=model_type))
        assert refused.pointer == "/model/hf_config/model_type"
        assert "give `params` or `flops_per_sample`" in refused.message

    def test_unknown_hybrid_is_known_by_its_keys(self) -> None:
        """A type nobody has heard of is still refused where its keys are those of a state-space model."""
        assert problem(small(model_type="brand_new", mamba_d_state=128)).pointer == "/model/hf_config/mamba_d_state"

    def test_inner_hybrid_is_refused_too(self) -> None:
        """A wrapper around a hybrid is one."""
        config = {"model_type": "some_vl", "text_config": small(model_type="zamba2")}
        assert problem(config).pointer == "/model/hf_config/text_config/model_type"

    @pytest.mark.parametrize("model_type", ["albert", "gemma3n", "qwen", "clip"])
    def test_types_whose_keys_mean_something_else_are_refused(self, model_type: str) -> None:
        """Shared weights, doubled widths and two towers would be counted wrong from their usual keys."""
        assert "cannot be read" in problem(small(model_type=model_type)).message
