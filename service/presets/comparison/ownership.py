"""What is assumed of owned accelerators where their owner does not say, and how uncertain each input is.

The data are in `data/ownership.toml`; rated power, its load and electricity come from `presets.energy`, PUE from `presets.regions`.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from service.domain.comparison.ownership import OwnedCluster
from service.domain.errors import InvalidRequest
from service.domain.quantities import Assumption, Range
from service.domain.training.hardware import Accelerator
from service.presets.hardware.energy import electricity_price, find_power
from service.presets.hardware.regions import load_regions

_FILE = Path(__file__).parents[1] / "data" / "ownership.toml"


@dataclass(frozen=True, slots=True)
class ClusterDefault:
    """A value and why it is that. `typical`: what published figures suggest where the value is one that costs nothing."""

    value: float
    source: str
    date: str
    typical: float | None = None


@dataclass(frozen=True, slots=True)
class InputRange:
    """How uncertain an input is: its percentiles as factors on the plant's value, or as they are."""

    quantity: Range
    factors: bool
    source: str
    date: str


def complete_cluster(accelerator: Accelerator, stated: Mapping[str, Any]) -> tuple[OwnedCluster, tuple[Assumption, ...]]:
    """The plant with every default chosen, and the defaults by the names of their fields.

    `stated` holds fields of a Plant, `count` among them; None is not stated. Raises InvalidRequest where nothing is paid for the machine.
    """
    given = {name: value for name, value in stated.items() if value is not None}
    if not given.get("capex_usd_per_accelerator") and not given.get("lease_usd_per_month"):
        raise InvalidRequest(
            "state what the hardware costs: capex_usd_per_accelerator, lease_usd_per_month or both", "/capex_usd_per_accelerator"
        )
    chosen = cluster_defaults(accelerator, given)
    values = (
        {"accelerators_per_node": accelerator.accelerators_per_node} | {name: default.value for name, default in chosen.items()} | given
    )
    plant = OwnedCluster(**{"name": "on_prem", **values, "accelerator": accelerator.name})
    return plant, tuple(Assumption(name, default.value, default.source) for name, default in chosen.items())


def cluster_defaults(accelerator: Accelerator, stated: Collection[str]) -> Mapping[str, ClusterDefault]:
    """Defaults of the inputs that are not `stated`. Resale is by share or by market decline: who states one is not given the other."""
    defaults = dict(_defaults()) | _surroundings(accelerator, stated)
    without = set(stated) | ({"price_decline_per_year"} if "residual_share" in stated else set())
    return MappingProxyType({name: default for name, default in defaults.items() if name not in without})


def input_ranges(plant: OwnedCluster, stated: Mapping[str, Range] = MappingProxyType({})) -> dict[str, Range]:
    """Ranges of the plant's uncertain inputs, in their own units; `stated` ones stand in place of those published.

    An input that is 0 or not set stays certain, but for cloud prices: nobody knows that they will stay.
    """
    published = {name: _range(plant, name, known) for name, known in load_input_ranges().items() if _uncertain(plant, name, known)}
    return published | dict(stated)


@functools.cache
def load_input_ranges() -> Mapping[str, InputRange]:
    """How uncertain each input is."""
    return MappingProxyType({name: _input_range(row) for name, row in _document()["range"].items()})


@functools.cache
def _defaults() -> Mapping[str, ClusterDefault]:
    return MappingProxyType({name: _default(row) for name, row in _document()["default"].items()})


def _default(row: Mapping[str, Any]) -> ClusterDefault:
    return ClusterDefault(row["value"], f"{row['source']}, {row['date']}", row["date"], row.get("typical"))


def _surroundings(accelerator: Accelerator, stated: Collection[str]) -> dict[str, ClusterDefault]:
    """Power and building: rated power with its load, or, where power is stated or was measured, that as it is drawn."""
    power, price, site = find_power(accelerator), electricity_price(), load_regions()["on_prem"]
    as_drawn = _default(_document()["load_factor_as_drawn"])
    kw, load = ClusterDefault(power.watts.p50 / 1000, power.source, ""), as_drawn
    if power.load_factor is not None and "kw_per_accelerator" not in stated:
        kw = ClusterDefault(power.watts.p50 / power.load_factor.p50 / 1000, power.source, "")
        load = ClusterDefault(power.load_factor.p50, power.source, "")
    return {
        "kw_per_accelerator": kw,
        "load_factor": load,
        "pue": ClusterDefault(site.pue, site.pue_source, ""),
        "usd_per_kwh": ClusterDefault(price.usd_per_kwh, price.source, str(price.year)),
    }


def _input_range(row: Mapping[str, Any]) -> InputRange:
    return InputRange(Range(row["p10"], row.get("p50", 1.0), row["p90"]), row["of"] == "value", row["source"], row["date"])


def _uncertain(plant: OwnedCluster, name: str, known: InputRange) -> bool:
    """Whether the published range applies: a decline of cloud prices that the owner states is theirs."""
    value = getattr(plant, name)
    return bool(value) if known.factors else value == 0


def _range(plant: OwnedCluster, name: str, known: InputRange) -> Range:
    return known.quantity.scaled(getattr(plant, name)) if known.factors else known.quantity


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
