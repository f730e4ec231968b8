"""What serving engines reach, weight formats, compression methods and defaults, from `data/serving.toml`.

`docs/serving.md` says how the shares were measured and how well they predict.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from service.domain.errors import UnknownName
from service.domain.quantities import Assumption, Range
from service.domain.serving.requirements import CompressionMethod, EngineLimits, ServingMachine, ServingRates, WeightFormat
from service.domain.training.hardware import Accelerator
from service.presets.defaults import Default

_FILE = Path(__file__).parent / "data" / "serving.toml"
BORROWED = "any"


def serving_machine(accelerator: Accelerator) -> ServingMachine:
    """The accelerator with what engines reach on its family or, where nothing is published, with the middle of all families."""
    families = load_achieved()
    return ServingMachine(accelerator, families.get(accelerator.family, families[BORROWED]), serving_limits())


@functools.cache
def load_achieved() -> Mapping[str, ServingRates]:
    """What engines reach, by accelerator family; `any` for families that were not measured."""
    return MappingProxyType({row["family"]: _achieved(row) for row in _document()["achieved"]})


@functools.cache
def load_formats() -> Mapping[str, WeightFormat]:
    """Weight formats by name, from the widest on."""
    rows = _document()["format"]
    return MappingProxyType(
        {name: WeightFormat(name=name, **{**row, "arithmetic": tuple(row["arithmetic"])}) for name, row in rows.items()}
    )


def find_format(name: str) -> WeightFormat:
    """The format of that name. Raises UnknownName with the known names."""
    known = load_formats()
    if name not in known:
        raise UnknownName(f"no serving format is called {name[:40]!r}; there are {', '.join(known)}", "/serving/format", tuple(known))
    return known[name]


@functools.cache
def load_compression_methods() -> Mapping[str, CompressionMethod]:
    """Quantisation and distillation methods by name."""
    return MappingProxyType({name: _lever(name, row) for name, row in _document()["lever"].items()})


@functools.cache
def serving_limits() -> EngineLimits:
    """Settings of serving engines."""
    value = {name: default.value for name, default in serving_defaults().items()}
    return EngineLimits(
        cache_share=value["cache_share"],
        reserve_bytes=value["reserve_bytes"],
        max_batch=value["max_batch"],
        chunk_tokens=value["chunk_tokens"],
        max_accelerators=int(value["max_accelerators"]),
    )


@functools.cache
def serving_defaults() -> Mapping[str, Default]:
    """Defaults of limits, load and proportions."""
    return MappingProxyType(
        {name: Default(row["value"], f"{row['source']}, {row['date']}") for name, row in _document()["default"].items()}
    )


def default_shape() -> Mapping[str, Any]:
    """Shape fields of models stated by their size alone, as `infer_shape` takes them."""
    return MappingProxyType({"kv_heads": int(serving_defaults()["kv_heads"].value)})


def serving_assumptions(machine: ServingMachine) -> tuple[Assumption, ...]:
    """Assumptions about the machine: what engines reach on it and how they are run."""
    achieved = machine.achieved
    shares = {name: getattr(achieved, name) for name in ("bandwidth_share", "compute_share", "routed_share", "link_share")}
    limits = (Assumption(f"serving.{name}", default.value, default.source) for name, default in serving_defaults().items())
    return (Assumption("serving.achieved", {"family": achieved.family, **shares}, achieved.source), *limits)


def _achieved(row: Mapping[str, Any]) -> ServingRates:
    times = {f"{name}_s": row[f"{name}_us"] * 1e-6 for name in ("layer", "hop", "host")}
    shares = {name: row[name] for name in ("family", "bandwidth_share", "compute_share", "routed_share", "link_share", "source")}
    return ServingRates(**shares, **times, spread=Range(*row["spread"]), routed_spread=Range(*row["routed_spread"]))


def _lever(name: str, row: Mapping[str, Any]) -> CompressionMethod:
    return CompressionMethod(name=name, **{**row, "formats": tuple(row["formats"]), "quality_loss": Range(*row["quality_loss"])})


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
