"""Published model shapes by name, read from `data/models.toml` on first use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal

from service.domain.answer_fields import HIDDEN, Doc
from service.domain.errors import UnknownName
from service.domain.training.model import Experts, GenericNetwork, LatentAttention, Model, Transformer, read_state_space
from service.presets.documents import build, load_document

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
    `seq_len` is the context of the main training phase in tokens, None where not published; `context_tokens` the longest request that the
    released model is made for, None where that is not another; `training_tokens` what its publication says it was pre-trained on.
    """

    name: Annotated[str, Doc("Canonical name")]
    architecture: Annotated[Architecture, Doc("Kind of network")]
    model: Annotated[Model, HIDDEN]
    params: Annotated[float, Doc("Parameters of the model", "parameters")]
    year: Annotated[int, Doc("Year of publication", minimum=1)]
    developer: Annotated[str, Doc("Who published the model")]
    source: Annotated[str, Doc("Where this comes from", max_length=1000)]
    aliases: Annotated[tuple[str, ...], Doc("Other names that requests may use", max_items=100)] = ()
    active_params: Annotated[float | None, Doc("Parameters that work on a token; null where all do", "parameters")] = None
    seq_len: Annotated[int | None, Doc("Tokens of a training sequence; null where not published", minimum=1)] = None
    context_tokens: Annotated[
        int | None, Doc("Tokens of the longest request the released model is made for; null: as seq_len", minimum=1)
    ] = None
    context_source: Annotated[str | None, Doc("Where context_tokens comes from; null without it", max_length=1000)] = None
    training_tokens: Annotated[int | None, Doc("Tokens of the published pre-training; null where not known", "tokens", minimum=1)] = None
    training_tokens_source: Annotated[str | None, Doc("Where training_tokens comes from; null without it", max_length=1000)] = None

    @property
    def serving_context(self) -> int | None:
        """Tokens of the longest request that the model is made for, None where not published."""
        return self.context_tokens or self.seq_len


@cache
def load_models() -> Mapping[str, ModelPreset]:
    """All presets by canonical name, in the order of the data file."""
    presets = (_preset(row) for row in load_document("models")["model"])
    return MappingProxyType({preset.name: preset for preset in presets})


def find_model(name: str) -> ModelPreset:
    """The preset of a name or alias: case-insensitive, `_` and blanks as `-`, without organisation and release suffix.

    `meta-llama/Llama-2-7b-hf`, `LLAMA_2_7B` and `llama2-7b` are the same. Raises `UnknownName` with near names.
    """
    index = _index()
    known = next((index[key] for key in _spellings(name[:NAME_LIMIT]) if key in index), None)
    if known is not None:
        return known
    _check_modelled(name[:NAME_LIMIT])
    near = _near(name[:NAME_LIMIT])
    hint = f"; near names: {', '.join(near)}" if near else ""
    raise UnknownName(f"no model preset is called {name[:NAME_LIMIT]!r}{hint}; GET /v1/models lists them", POINTER, near)


def unmodelled_families() -> Mapping[str, tuple[str, ...]]:
    """Models of the nearest kind of layers, by the beginning of the names of families whose layers are not modelled."""
    return {prefix: tuple(family["near"]) for family in load_document("models")["unmodelled"] for prefix in family["prefixes"]}


def _check_modelled(name: str) -> None:
    """Raise UnknownName for a model of a published family whose layers are not modelled, with models of the nearest kind of layers."""
    key = _key(name.rstrip("/").rpartition("/")[2])
    for family in load_document("models")["unmodelled"]:
        if key.startswith(tuple(family["prefixes"])):
            near = tuple(family["near"])
            raise UnknownName(
                f"{name!r} has {family['layers']}, which are not modelled ({family['source']}); near models: {', '.join(near)}, or state"
                " model.params for a transformer of its size",
                POINTER,
                near,
            )


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
    model = _transformer(row) if row["architecture"] in TRANSFORMERS else build(GenericNetwork, row)
    return build(ModelPreset, row, model=model)


def _transformer(row: Row) -> Transformer:
    return build(
        Transformer,
        row,
        kind=row["architecture"],
        kv_heads=row.get("kv_heads", row["attention_heads"]),
        head_dim=row.get("head_dim") or _default_head_dim(row),
        gated_ffn=row["gated_ffn"],
        experts=build(Experts, row, ffn_hidden_size=row["expert_ffn_hidden_size"]) if "experts" in row else None,
        latent=build(LatentAttention, row) if "kv_lora_rank" in row else None,
        state_space=read_state_space(row),
    )


def _default_head_dim(row: Row) -> int:
    """Width of one head; latent attention multiplies queries with keys of both parts, rotated and not."""
    if "kv_lora_rank" in row:
        return int(row["qk_nope_head_dim"] + row["qk_rope_head_dim"])
    return int(row["hidden_size"] // row["attention_heads"])
