"""Published model shapes by name, read from `data/models.toml` on first use."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal

from service.domain.errors import UnknownName
from service.domain.training.model import Experts, GenericNetwork, LatentAttention, Model, Transformer

Architecture = Literal["transformer", "encoder_decoder", "vit", "cnn", "diffusion", "rnn", "other"]
Row = Mapping[str, Any]

TRANSFORMERS = frozenset({"transformer", "encoder_decoder", "vit"})
POINTER = "/model/preset"
NAME_LIMIT = 100
# A tuned or re-issued release has the shape of the model it comes from.
RELEASE_SUFFIX = re.compile(r"-(hf|base|instruct|chat|it|pt|v-\d+(\.\d+)*|\d{4})$")


@dataclass(frozen=True, slots=True)
class ModelPreset:
    """A published model: its shape, and where its figures come from.

    `params` and `active_params` are the published counts (`active_params` None: dense, or published in a way that cannot be compared);
    `seq_len` is the context of the main training phase in tokens, None where not published.
    """

    name: str
    aliases: tuple[str, ...]
    architecture: Architecture
    model: Model
    params: float
    active_params: float | None
    seq_len: int | None
    year: int
    developer: str
    source: str


@cache
def load_models() -> Mapping[str, ModelPreset]:
    """All presets by canonical name, in the order of the data file."""
    text = resources.files("service.presets").joinpath("data", "models.toml").read_text(encoding="utf-8")
    presets = (_preset(row) for row in tomllib.loads(text)["model"])
    return MappingProxyType({preset.name: preset for preset in presets})


def find_model(name: str) -> ModelPreset:
    """The preset of a name or alias: case-insensitive, `_` and blanks as `-`, without organisation and release suffix.

    `meta-llama/Llama-2-7b-hf`, `LLAMA_2_7B` and `llama2-7b` are the same. Raises `UnknownName` with near names.
    """
    index = _index()
    known = next((index[key] for key in _spellings(name[:NAME_LIMIT]) if key in index), None)
    if known is not None:
        return known
    near = _near(name[:NAME_LIMIT])
    hint = f"; near names: {', '.join(near)}" if near else ""
    raise UnknownName(f"no model preset is called {name[:NAME_LIMIT]!r}{hint}; GET /v1/models lists them", POINTER, near)


@cache
def _index() -> Mapping[str, ModelPreset]:
    return {_key(label): preset for preset in load_models().values() for label in (preset.name, *preset.aliases)}


def _key(name: str) -> str:
    """One spelling of many: `LLaMA_2 7B`, `llama2-7b` and `llama-2-7b` all become the last."""
    words = re.sub(r"[\s_/-]+", "-", name.strip().lower()).strip("-")
    return re.sub(r"(?<=[a-z])(?=\d)", "-", words)


def _spellings(name: str) -> Iterator[str]:
    """The full name, the name without its organisation, then without one release suffix after the other."""
    yield _key(name)
    key = _key(name.rstrip("/").rpartition("/")[2])
    yield key
    while (shorter := RELEASE_SUFFIX.sub("", key)) != key:
        key = shorter
        yield key


def _near(name: str, count: int = 3) -> tuple[str, ...]:
    key = _key(name.rpartition("/")[2])
    index = _index()
    labels = get_close_matches(key, index, n=4 * count, cutoff=0.4)
    return tuple(dict.fromkeys(index[label].name for label in labels))[:count]


def _preset(row: Row) -> ModelPreset:
    return ModelPreset(
        name=row["name"],
        aliases=tuple(row.get("aliases", ())),
        architecture=row["architecture"],
        model=_transformer(row) if row["architecture"] in TRANSFORMERS else _other(row),
        params=row["params"],
        active_params=row.get("active_params"),
        seq_len=row.get("seq_len"),
        year=row["year"],
        developer=row["developer"],
        source=row["source"],
    )


def _transformer(row: Row) -> Transformer:
    heads = row["attention_heads"]
    return Transformer(
        layers=row["layers"],
        hidden_size=row["hidden_size"],
        attention_heads=heads,
        kv_heads=row.get("kv_heads", heads),
        head_dim=row.get("head_dim") or _default_head_dim(row),
        ffn_hidden_size=row["ffn_hidden_size"],
        vocab_size=row["vocab_size"],
        kind=row["architecture"],
        gated_ffn=row["gated_ffn"],
        tied_embeddings=row.get("tied_embeddings", False),
        biases=row.get("biases", False),
        max_positions=row.get("max_positions", 0),
        sliding_window=row.get("sliding_window"),
        global_attention_every=row.get("global_attention_every", 0),
        experts=_experts(row),
        latent=_latent(row),
        decoder_layers=row.get("decoder_layers", 0),
        params=row["params"],
        active_params=row.get("active_params"),
    )


def _default_head_dim(row: Row) -> int:
    """Width of one head; latent attention multiplies queries with keys of both parts, rotated and not."""
    if "kv_lora_rank" in row:
        return int(row["qk_nope_head_dim"] + row["qk_rope_head_dim"])
    return int(row["hidden_size"] // row["attention_heads"])


def _experts(row: Row) -> Experts | None:
    if "experts" not in row:
        return None
    return Experts(
        experts=row["experts"],
        experts_per_token=row["experts_per_token"],
        ffn_hidden_size=row["expert_ffn_hidden_size"],
        shared_experts=row.get("shared_experts", 0),
        shared_ffn_hidden_size=row.get("shared_ffn_hidden_size", 0),
        dense_layers=row.get("dense_layers", 0),
        moe_every=row.get("moe_every", 1),
    )


def _latent(row: Row) -> LatentAttention | None:
    if "kv_lora_rank" not in row:
        return None
    return LatentAttention(
        kv_lora_rank=row["kv_lora_rank"],
        qk_nope_head_dim=row["qk_nope_head_dim"],
        qk_rope_head_dim=row["qk_rope_head_dim"],
        v_head_dim=row["v_head_dim"],
        q_lora_rank=row.get("q_lora_rank", 0),
    )


def _other(row: Row) -> GenericNetwork:
    return GenericNetwork(
        flops_per_sample=row["flops_per_sample"],
        sample_unit=row["sample_unit"],
        params=row["params"],
        frozen_flops_per_sample=row.get("frozen_flops_per_sample", 0.0),
        frozen_params=row.get("frozen_params", 0.0),
        activation_bytes_per_sample=row.get("activation_bytes_per_sample"),
    )
