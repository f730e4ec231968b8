"""What a Hugging Face model type implies beyond its `config.json`. The data and their sources are in `data/model_types.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from service.domain.training.model import TransformerKind


@dataclass(frozen=True, slots=True)
class Traits:
    """How the layers of a model type are built.

    `gated`: gated feed-forward block, None where the activation's name tells.
    `tied`, `biases`: defaults; `bias_key` is the flag of the config that says otherwise (`no_bias` inverts it).
    `learned_positions`: position embeddings are weights; `extra_positions` rows of that table are no positions and are not
    in the config's figure, `padding_positions` are in it.
    `ffn_ratio`: feed-forward width over hidden size where the config leaves it out (0: it may not).
    `multi_query`: one key-value head unless `multi_query` is false (or `new_decoder_architecture` is true).
    `window_key` is the window's name; with `window_switch` it counts only if `use_sliding_window`, from layer `max_window_layers` on.
    `global_every`: every so many layers attend to everything where the config does not say (0: none).
    `shared_experts`: experts every token visits that the config does not mention.
    `masked_share`: of the tokens, which an encoder of its own predicts.
    """

    kind: TransformerKind = "transformer"
    gated: bool | None = True
    tied: bool = False
    biases: bool = False
    bias_key: str = "mlp_bias"
    learned_positions: bool = False
    extra_positions: int = 0
    padding_positions: int = 0
    ffn_ratio: int = 0
    multi_query: bool = False
    window_key: str = "sliding_window"
    window_switch: bool = False
    global_every: int = 0
    shared_experts: int = 0
    masked_share: float = 0.0


GENERIC = Traits(gated=None)


@dataclass(frozen=True, slots=True)
class ModelTypes:
    """Model types by name: traits, defaults of nested language parts, and reasons to refuse.

    Configs with one of `state_space_keys` are refused for the reason `state_space`.
    """

    traits: Mapping[str, Traits]
    nested_defaults: Mapping[str, Mapping[str, object]]
    refused: Mapping[str, str]
    state_space_keys: tuple[str, ...]
    state_space: str


@cache
def load_model_types() -> ModelTypes:
    """The content of `data/model_types.toml`."""
    data = tomllib.loads((Path(__file__).parent / "data" / "model_types.toml").read_text(encoding="utf-8"))
    return ModelTypes(
        traits={name: Traits(**family) for family in data["family"] for name in family.pop("types").split()},
        nested_defaults=data["nested_defaults"],
        refused={name: row["reason"] for row in data["refused"] for name in row["types"].split()},
        state_space_keys=tuple(data["state_space"]["keys"]),
        state_space=data["state_space"]["reason"],
    )


def canonical(model_type: str) -> str:
    """The model type as the table spells it: `xlm-roberta` is `xlm_roberta`, `gemma3_text` is `gemma3`."""
    name = model_type.strip().lower().replace("-", "_")
    shorter = name.removesuffix("_text_model").removesuffix("_text")
    known = load_model_types()
    return shorter if name not in known.traits and (shorter in known.traits or shorter in known.refused) else name
