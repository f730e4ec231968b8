"""What serving engines reach, weight formats, compression methods and defaults, from `data/serving.toml`.

`docs/reference/serving.md` says how the shares were measured and how well they predict.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service.domain.errors import UnknownName
from service.domain.quantities import Assumption, Range
from service.domain.serving.requirements import CompressionMethod, EngineLimits, ServingMachine, ServingRates, WeightFormat
from service.domain.training.hardware import SIXTEEN_BIT, Accelerator
from service.presets.defaults import Default
from service.presets.documents import build, dated_source, load_document
from service.presets.hardware.formats import load_format_support

BORROWED = "any"


def serving_machine(accelerator: Accelerator) -> ServingMachine:
    """The accelerator with what engines reach on its family or, where nothing is published, with the middle of all families."""
    families = load_achieved()
    return ServingMachine(accelerator, families.get(accelerator.family, families[BORROWED]), serving_limits())


@functools.cache
def load_achieved() -> Mapping[str, ServingRates]:
    """What engines reach, by accelerator family; `any` for families that were not measured."""
    return MappingProxyType({row["family"]: _achieved(row) for row in load_document("serving")["achieved"]})


@functools.cache
def load_formats() -> Mapping[str, WeightFormat]:
    """Weight formats by name, from the widest on."""
    rows = load_document("serving")["format"]
    return MappingProxyType({name: build(WeightFormat, row, name=name) for name, row in rows.items()})


def can_serve(accelerator: Accelerator, weight_format: WeightFormat) -> bool:
    """Whether the accelerator multiplies in the format, or its family may store it and the accelerator multiplies in 16 bit."""
    peaks = accelerator.peak_tflops
    stored = weight_format.name in load_format_support()[accelerator.family].stored
    return any(name in peaks for name in weight_format.arithmetic) or (stored and any(name in peaks for name in SIXTEEN_BIT))


def servable_formats(accelerator: Accelerator) -> tuple[str, ...]:
    """Names of the formats that the accelerator can serve, from the widest on."""
    return tuple(name for name, weight_format in load_formats().items() if can_serve(accelerator, weight_format))


def find_format(name: str) -> WeightFormat:
    """The format of that name. Raises UnknownName with the known names."""
    known = load_formats()
    if name not in known:
        raise UnknownName(f"no serving format is called {name[:40]!r}; there are {', '.join(known)}", "/serving/format", tuple(known))
    return known[name]


@functools.cache
def load_compression_methods() -> Mapping[str, CompressionMethod]:
    """Quantisation and distillation methods by name."""
    return MappingProxyType(
        {
            name: build(CompressionMethod, row, name=name, quality_loss=Range(*row["quality_loss"]))
            for name, row in load_document("serving")["lever"].items()
        }
    )


@functools.cache
def serving_limits() -> EngineLimits:
    """Settings of serving engines."""
    values = {name: default.value for name, default in serving_defaults().items()}
    return build(EngineLimits, values, max_accelerators=int(values["max_accelerators"]))


@functools.cache
def serving_defaults() -> Mapping[str, Default]:
    """Defaults of limits, load and proportions."""
    return MappingProxyType({name: Default(row["value"], dated_source(row)) for name, row in load_document("serving")["default"].items()})


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
    spreads = {name: Range(*row[name]) for name in ("spread", "routed_spread", "many_experts_spread")}
    return build(ServingRates, row, **times, **spreads)
