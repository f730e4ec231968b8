"""Power an accelerator draws in training with its share of the node, and what electricity costs.

The data are in `data/energy.toml`. Left out: cooling and conversion losses of the building, which are its PUE.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from service.domain.quantities import Range
from service.domain.training.hardware import Accelerator
from service.presets.documents import build, load_document


@dataclass(frozen=True, slots=True)
class PowerModel:
    """Mean power of one accelerator with its share of the node, before PUE.

    Attributes
    ----------
    watts : Range
        [W].
    tdp_w : Range, optional
        Thermal design power [W]; None where whole-system power is measured, as the next two.
    node_overhead_w : float, optional
        Rated node power beyond the TDPs, for each accelerator [W].
    load_factor : Range, optional
        Mean over rated power [1].
    estimated : bool
        Whether the vendor publishes no TDP.
    source : str
        Publication, or the figures that it is computed from.
    """

    watts: Range
    tdp_w: Range | None
    node_overhead_w: float | None
    load_factor: Range | None
    estimated: bool
    source: str


@dataclass(frozen=True, slots=True)
class ElectricityPrice:
    """Mean electricity price of US industry in the newest known year."""

    usd_per_kwh: float
    year: int
    source: str


@functools.lru_cache(maxsize=256)
def find_power(accelerator: Accelerator) -> PowerModel:
    """Measured whole-system power where published, else TDP x rated node power per TDP x load factor.

    Raises LookupError for an accelerator with neither a TDP nor an estimate of one: the data are incomplete.
    """
    for row in load_document("energy")["measured"]:
        if accelerator.name in row["accelerators"]:
            return PowerModel(Range(**row["watts"]), None, None, None, estimated=False, source=f"{row['basis']}; {row['source']}")
    return _rated(accelerator)


@functools.cache
def electricity_price() -> ElectricityPrice:
    """Electricity price where neither the caller nor the region states one."""
    table = load_document("energy")["electricity"]
    year = max(table["usd_per_kwh"], key=int)
    return ElectricityPrice(table["usd_per_kwh"][year], int(year), f"{table['source']}, {year}")


def _rated(accelerator: Accelerator) -> PowerModel:
    system = _system(accelerator)
    load, load_source = _load(system)
    tdp_w, tdp_source = _tdp(accelerator)
    ratio = system["system_w_per_tdp_w"]
    watts = Range(tdp_w.p10 * ratio * load.p10, tdp_w.p50 * ratio * load.p50, tdp_w.p90 * ratio * load.p90)
    source = f"{tdp_source}; node: {system['system']} ({system['source']}); load: {load_source}"
    return PowerModel(watts, tdp_w, tdp_w.p50 * (ratio - 1), load, accelerator.tdp_w is None, source)


def _tdp(accelerator: Accelerator) -> tuple[Range, str]:
    if accelerator.tdp_w is not None:
        return Range.exactly(accelerator.tdp_w), f"TDP {accelerator.tdp_w:g} W ({accelerator.source})"
    row = _first(row for row in load_document("energy")["estimated_tdp"] if row["accelerator"] == accelerator.name)
    if row is None:
        raise LookupError(f"{accelerator.name} has no tdp_w and no estimate in energy.toml")
    return Range(**row["tdp_w"]), f"TDP not published: {row['basis']} ({row['source']})"


def _system(accelerator: Accelerator) -> Mapping[str, Any]:
    systems: list[dict[str, Any]] = load_document("energy")["system"]
    by_name = (row for row in systems if accelerator.name in row.get("accelerators", ()))
    by_family = (row for row in systems if accelerator.family in row.get("families", ()))
    return _first(by_name) or _first(by_family) or load_document("energy")["default_system"]


def _first(rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return next(iter(rows), None)


def usual_load_factor() -> Range:
    """Mean over rated power of a system in training [1]."""
    return build(Range, load_document("energy")["load_factor"])


def _load(system: Mapping[str, Any]) -> tuple[Range, str]:
    """Mean over rated power of a system, and its source; the usual ones where the system states none."""
    usual = load_document("energy")["load_factor"]
    source = (system if "load_factor" in system else usual)["source"]
    return build(Range, system.get("load_factor", usual)), source
