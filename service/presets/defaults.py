"""What is assumed where the caller does not say, with its source. The data are in `data/defaults.toml`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from service.presets.documents import load_document


@dataclass(frozen=True, slots=True)
class Default:
    """A value and why it is that."""

    value: Any
    source: str


@functools.cache
def default(path: str) -> Default:
    """The default of a request field by its path, such as `failures.restart_minutes`. KeyError names the file for an unknown one."""
    section, _, field = path.partition(".")
    try:
        entry = load_document("defaults")[section][field]
    except KeyError:
        raise KeyError(f"{path} has no default in defaults.toml") from None
    return Default(entry["value"], entry["source"])


def batch_tokens(params: float) -> Default:
    """Tokens a step for pre-training a model of `params` parameters."""
    row = next(row for row in load_document("defaults")["training"]["batch"] if params <= row["up_to_params"])
    return Default(row["tokens"], row["source"])


def flash_attention(precision: str, family: str) -> Default:
    """Whether attention's scores are kept on the chip: in current frameworks, but not where its kernels or the recipes came later."""
    before = default("training.without_flash_attention")
    if precision in before.value["precisions"] or family in before.value["families"]:
        return Default(value=False, source=before.source)
    old = default("training.fp16_without_flash_attention")
    if precision == "fp16" and family in old.value:
        return Default(value=False, source=old.source)
    return default("training.flash_attention")
