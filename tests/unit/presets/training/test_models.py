"""The model presets: every row sourced, physically possible and in agreement with its published size."""

import json
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from service.domain.errors import UnknownName
from service.domain.training.model import STATE_SPACE_FIELDS, Experts, GenericNetwork, Transformer
from service.engine.training.parameters import ParameterCounts, count_parameters
from service.presets.documents import load_document
from service.presets.training.models import TRANSFORMERS, ModelPreset, find_model, load_models
from tests.support.rows import for_each

COMMON = {
    "name", "aliases", "architecture", "params", "seq_len", "context_tokens", "context_source", "training_tokens", "training_tokens_source",
    "year", "developer", "source",
}  # fmt: skip
SHAPE = {
    "layers", "hidden_size", "attention_heads", "kv_heads", "head_dim", "ffn_hidden_size", "gated_ffn", "vocab_size",
    "tied_embeddings", "sliding_window", "global_attention_every", "experts", "experts_per_token", "shared_experts",
    "expert_ffn_hidden_size", "dense_layers", "moe_every", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
    "v_head_dim", "decoder_layers", "biases", "max_positions", "masked_share", "shared_ffn_hidden_size", "active_params",
    *STATE_SPACE_FIELDS, "ffn_layers",
}  # fmt: skip
BY_COST = {"flops_per_sample", "sample_unit", "frozen_flops_per_sample", "frozen_params", "activation_bytes_per_sample"}

PRESETS = tuple(load_models().values())
CONFIGS: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "formats" / "huggingface" / "hf_configs.json").read_text())


def rows() -> list[dict[str, Any]]:
    text = resources.files("service.presets").joinpath("data", "models.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["model"])


def shaped() -> list[Any]:
    return [(p, p.model) for p in PRESETS if isinstance(p.model, Transformer)]


def routed() -> list[Any]:
    models = ((p, p.model) for p in PRESETS if isinstance(p.model, Transformer))
    return [(p, m, m.experts) for p, m in models if m.experts]


def by_cost() -> list[Any]:
    return [(p, p.model) for p in PRESETS if isinstance(p.model, GenericNetwork)]


def preset_name(case: tuple[Any, ...]) -> str:
    return str(case[0].name)


def counts_of_shape(model: Transformer) -> ParameterCounts:
    """What the shape alone adds up to: the stated counts, which would win, taken out."""
    return count_parameters(replace(model, params=None, active_params=None))


class TestCatalogue:
    def test_has_at_least_eighty_presets(self) -> None:
        """The usual models of every family are there by name."""
        assert len(PRESETS) >= 80

    def test_names_and_aliases_are_unique(self) -> None:
        """A label means one model, however it is spelt: each leads to the preset it stands at."""
        labels = Counter(label.lower() for preset in PRESETS for label in (preset.name, *preset.aliases))
        assert [label for label, times in labels.items() if times > 1] == []
        wrong = {label: p.name for p in PRESETS for label in (p.name, *p.aliases) if find_model(label) is not p}
        assert wrong == {}

    @for_each("row", rows(), ids=lambda row: row["name"])
    def test_row_keeps_to_the_schema(self, row: dict[str, Any]) -> None:
        """A row holds the fields of its kind and no other, so that a misspelt field cannot be dropped in silence."""
        assert set(row) - COMMON - (SHAPE if row["architecture"] in TRANSFORMERS else BY_COST) == set()

    @for_each("row", [r for r in rows() if r["architecture"] in TRANSFORMERS], ids=lambda row: row["name"])
    def test_feed_forward_kind_is_never_guessed(self, row: dict[str, Any]) -> None:
        """Whether the feed-forward block is gated stands in every transformer's row."""
        assert isinstance(row.get("gated_ffn"), bool)

    @for_each("preset", PRESETS, ids=lambda preset: preset.name)
    def test_row_says_where_it_comes_from(self, preset: ModelPreset) -> None:
        """Each preset names its source, developer and year, and is written in lower case."""
        assert len(preset.source) > 15
        assert preset.developer
        assert 2012 <= preset.year <= 2030
        assert preset.name == preset.name.lower().replace(" ", "-")
        assert preset.params > 0
        assert preset.seq_len is None or preset.seq_len > 0

    @for_each("preset", PRESETS, ids=lambda preset: preset.name)
    def test_a_context_beyond_that_of_training_says_where_it_comes_from(self, preset: ModelPreset) -> None:
        """The longest request is no shorter than a training sequence, and its source stands beside it."""
        assert (preset.context_tokens is None) == (preset.context_source is None)
        assert (preset.training_tokens is None) == (preset.training_tokens_source is None)
        assert (preset.serving_context or 0) >= (preset.seq_len or 0)
        assert preset.context_tokens is None or preset.context_tokens > (preset.seq_len or 0)

    def test_contexts_are_those_of_the_published_configs(self) -> None:
        """`max_position_embeddings` of a released config.json is what the preset serves, where that is not training's context."""
        configs = {entry["name"].lower(): entry["config"] for entry in CONFIGS}
        checked = [preset for preset in PRESETS if preset.context_tokens and "max_position_embeddings" in configs.get(preset.name, {})]
        assert len(checked) >= 12
        for preset in checked:
            assert preset.context_tokens == configs[preset.name]["max_position_embeddings"], preset.name

    def test_is_read_once_and_not_at_import(self) -> None:
        """Importing the module opens no file; the catalogue is read on first use and kept."""
        code = "from service.presets.training.models import load_models as f; print(f.cache_info().currsize)"
        fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert fresh.stdout.strip() == "0"
        assert load_models() is load_models()


class TestShapes:
    @for_each(("preset", "model"), shaped(), ids=preset_name)
    def test_shape_is_possible(self, preset: ModelPreset, model: Transformer) -> None:
        """Sizes are positive and the key-value heads divide the query heads."""
        sizes = (model.layers, model.hidden_size, model.attention_heads, model.kv_heads, model.head_dim, model.ffn_hidden_size)
        assert min(sizes) > 0
        assert model.vocab_size > 0
        assert model.attention_heads % model.kv_heads == 0
        assert (model.decoder_layers > 0) == (model.kind == "encoder_decoder")
        assert model.sliding_window is None or model.sliding_window > 0
        assert 0 <= model.global_attention_every <= model.layers

    def test_heads_divide_the_width_they_share(self) -> None:
        """Where no head size is stated, the width falls to the heads in equal, whole parts."""
        sharing = [row for row in rows() if "attention_heads" in row and not {"head_dim", "kv_lora_rank"} & set(row)]
        assert [row["name"] for row in sharing if row["hidden_size"] % row["attention_heads"]] == []

    @for_each(("preset", "model", "experts"), routed(), ids=preset_name)
    def test_experts_are_possible(self, preset: ModelPreset, model: Transformer, experts: Experts) -> None:
        """A token visits no more experts than there are, some layers route, and less is active than stored."""
        assert 0 < experts.experts_per_token <= experts.experts
        assert experts.ffn_hidden_size > 0
        assert 0 <= experts.dense_layers < model.layers
        assert 1 <= experts.moe_every <= model.layers
        assert preset.active_params is None or preset.active_params < preset.params

    @for_each(("preset", "model"), shaped(), ids=preset_name)
    def test_adds_up_to_the_published_count(self, preset: ModelPreset, model: Transformer) -> None:
        """The weights summed over the shape are within 1 % of what was published."""
        assert counts_of_shape(model).total == pytest.approx(preset.params, rel=0.01)

    @for_each(("preset", "model", "experts"), [case for case in routed() if case[0].active_params], ids=preset_name)
    def test_adds_up_to_the_published_active_count(self, preset: ModelPreset, model: Transformer, experts: Experts) -> None:
        """The weights a token meets are within 3 % of the published active count, which is often given in two digits."""
        assert counts_of_shape(model).active == pytest.approx(preset.active_params, rel=0.03)

    def test_absent_fields_take_their_usual_values(self) -> None:
        """LLaMA 7B states no key-value heads and no head size: as many as query heads, each an equal share of the width."""
        model = find_model("llama-7b").model
        assert isinstance(model, Transformer)
        assert (model.kv_heads, model.head_dim) == (32, 128)
        assert (model.experts, model.latent, model.biases, model.max_positions) == (None, None, False, 0)

    def test_latent_heads_are_as_wide_as_their_query(self) -> None:
        """DeepSeek-V3 multiplies queries of 128 + 64 with keys (arXiv 2412.19437, section 4.2), not 7168 / 128."""
        model = find_model("deepseek-v3").model
        assert isinstance(model, Transformer)
        assert model.head_dim == 192


class TestNetworksByCost:
    @for_each(("preset", "model"), by_cost(), ids=preset_name)
    def test_cost_is_possible(self, preset: ModelPreset, model: GenericNetwork) -> None:
        """FLOPs are positive, per a named unit, and no less than two a weight that every sample meets at least once."""
        assert model.flops_per_sample > 0
        assert model.sample_unit
        assert model.frozen_flops_per_sample >= 0
        assert (model.frozen_flops_per_sample > 0) == (model.frozen_params > 0)
        assert model.activation_bytes_per_sample is None or model.activation_bytes_per_sample > 0
        if preset.architecture == "cnn":
            assert model.flops_per_sample > 2 * preset.params

    def test_resnet_50_counts_two_flops_a_multiply_add(self) -> None:
        """The "4.1 G" that vision papers print are multiply-adds: 8.2 GFLOPs."""
        model = find_model("resnet-50").model
        assert isinstance(model, GenericNetwork)
        assert model.flops_per_sample == pytest.approx(8.2e9, rel=0.01)

    def test_dit_counts_two_flops_a_multiply_add(self) -> None:
        """DiT-XL/2's published 118.6 Gflops at 256 x 256 are 28 layers of 12 * 1152^2 multiply-adds for 256 tokens, and attention."""
        multiply_adds = 28 * (256 * 12 * 1152**2 + 2 * 256**2 * 1152 + 6 * 1152**2)
        model = find_model("dit-xl-2").model
        assert isinstance(model, GenericNetwork)
        assert model.flops_per_sample == pytest.approx(2 * multiply_adds, rel=0.001)


class TestFinding:
    @pytest.mark.parametrize(
        "spelling",
        [
            "llama-2-7b",
            "LLAMA-2-7B",
            " llama_2_7b ",
            "Llama 2 7B",
            "llama2-7b",
            "meta-llama/Llama-2-7b-hf",
            "meta-llama/Llama-2-7b-chat-hf",
        ],
    )
    def test_is_blind_to_spelling(self, spelling: str) -> None:
        """Case, separators, the organisation and the suffix of a release don't matter."""
        assert find_model(spelling).name == "llama-2-7b"

    @pytest.mark.parametrize(
        ("alias", "name"),
        [
            ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
            ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
            ("deepseek-ai/DeepSeek-R1", "deepseek-v3"),
            ("DiT-XL/2", "dit-xl-2"),
            ("microsoft/phi-1_5", "phi-1.5"),
            ("resnet50", "resnet-50"),
        ],
    )
    def test_knows_release_names(self, alias: str, name: str) -> None:
        """The names that models are published under lead to their preset."""
        assert find_model(alias).name == name

    def test_unknown_name_suggests_near_ones(self) -> None:
        """A misspelt name is refused at its field, with the three known names most like it."""
        with pytest.raises(UnknownName, match="llama-2-7b") as caught:
            find_model("lama-2-7b")
        assert caught.value.pointer == "/model/preset"
        assert caught.value.near[0] == "llama-2-7b"
        assert len(caught.value.near) == 3

    @pytest.mark.parametrize("name", ["", "/", "-", "\x00", "\ud800", "x" * 100_000, "-1234" * 20_000])
    def test_nonsense_is_refused_like_any_unknown_name(self, name: str) -> None:
        """Empty, unprintable and endless names are unknown, and the answer quotes at most a line of them."""
        with pytest.raises(UnknownName) as caught:
            find_model(name)
        assert len(caught.value.message) < 1000


def test_families_that_are_not_modelled_name_presets() -> None:
    """With a source, and near presets that exist; no preset is refused by them."""
    for family in load_document("models")["unmodelled"]:
        assert set(family["near"]) <= set(load_models())
        assert "arXiv" in family["source"]
        assert not any(name.startswith(tuple(family["prefixes"])) for name in load_models())
