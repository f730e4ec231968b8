"""Defaults of owned clusters and the uncertainty of their inputs.

The data are in `data/ownership.toml`; rated power, its load and electricity come from `presets.hardware.energy`, PUE from
`presets.hardware.regions`.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.procurement.ownership import OwnedCluster
from service.domain.quantities import Assumption, Range
from service.domain.training.hardware import Accelerator
from service.presets.documents import build, dated_source, load_document
from service.presets.hardware.energy import electricity_price, find_power
from service.presets.hardware.regions import load_regions

# Inputs of 0 that forget no cost: a machine may be there already.
LATER = ("lead_time_months",)


@dataclass(frozen=True, slots=True)
class ClusterDefault:
    """A value with its source. `typical`: what published figures suggest where the default is a value that costs nothing."""

    value: float
    source: str
    date: str
    typical: float | None = None


@dataclass(frozen=True, slots=True)
class InputRange:
    """Uncertainty of an input: percentiles as factors of the cluster's value."""

    factor: Range
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class PurchasePrice:
    """A published price of an accelerator with its share of the node, which is no quote [USD]."""

    accelerator: str
    usd: float
    source: str
    date: str


@functools.cache
def published_purchases() -> Mapping[str, PurchasePrice]:
    """Published purchase prices by canonical name of the accelerator."""
    rows = (build(PurchasePrice, row, source=dated_source(row)) for row in load_document("ownership")["purchase"])
    return MappingProxyType({row.accelerator: row for row in rows})


def complete_cluster(accelerator: Accelerator, stated: Mapping[str, Any]) -> tuple[OwnedCluster, tuple[Assumption, ...]]:
    """The cluster with defaults for the inputs not stated, and an assumption for each default.

    `stated` holds fields of OwnedCluster, `count` among them; None counts as not stated. Raises InvalidRequest where no price of the
    machine is stated; 0 is one, of a machine that is paid for.
    """
    stated_inputs = {name: value for name, value in stated.items() if value is not None}
    if "capex_usd_per_accelerator" not in stated_inputs and not stated_inputs.get("lease_usd_per_month"):
        published = published_purchases().get(accelerator.name)
        known = f"; published: {published.usd:,.0f} USD, {published.source}" if published else ""
        raise InvalidRequest(
            f"state what the hardware costs: capex_usd_per_accelerator (0 where it is paid for), lease_usd_per_month or both{known}",
            "/capex_usd_per_accelerator",
        )
    defaults = cluster_defaults(accelerator, stated_inputs)
    usual = {"name": "on_prem", "accelerators_per_node": accelerator.accelerators_per_node}
    values = {name: default.value for name, default in defaults.items()}
    cluster = OwnedCluster(**{**usual, **values, **stated_inputs, "accelerator": accelerator.name})
    return cluster, tuple(Assumption(name, default.value, default.source) for name, default in defaults.items())


def cluster_defaults(accelerator: Accelerator, stated: Collection[str]) -> Mapping[str, ClusterDefault]:
    """Defaults of the inputs that are not `stated`. Resale follows a share or a market decline: stating one removes the other."""
    defaults = dict(_defaults()) | _site_defaults(accelerator, stated)
    excluded = set(stated) | ({"price_decline_per_year"} if "residual_share" in stated else set())
    return MappingProxyType({name: default for name, default in defaults.items() if name not in excluded})


def input_ranges(cluster: OwnedCluster, stated: Mapping[str, Range] = MappingProxyType({})) -> dict[str, Range]:
    """Ranges of the cluster's uncertain inputs in their own units; `stated` ones replace the published ones.

    An input that is 0 or not set is certain.
    """
    published = {
        name: input_range.factor.scaled(getattr(cluster, name))
        for name, input_range in load_input_ranges().items()
        if getattr(cluster, name)
    }
    return published | dict(stated)


def forgotten_costs(cluster: OwnedCluster) -> tuple[str, ...]:
    """Inputs that cost nothing here and something in published figures, with what is published."""
    return tuple(
        f"{name} (published: {default.typical:g})"
        for name, default in _defaults().items()
        if default.typical and not default.value and not getattr(cluster, name) and name not in LATER
    )


@functools.cache
def load_input_ranges() -> Mapping[str, InputRange]:
    """Published uncertainty of each input."""
    return MappingProxyType({name: _input_range(row) for name, row in load_document("ownership")["range"].items()})


@functools.cache
def _defaults() -> Mapping[str, ClusterDefault]:
    return MappingProxyType({name: _default(row) for name, row in load_document("ownership")["default"].items()})


def _default(row: Mapping[str, Any]) -> ClusterDefault:
    return build(ClusterDefault, row, source=dated_source(row))


def _site_defaults(accelerator: Accelerator, stated: Collection[str]) -> dict[str, ClusterDefault]:
    """Power and building: rated power with its load or, where power is stated or was measured, power as drawn."""
    power, price, site = find_power(accelerator), electricity_price(), load_regions()["on_prem"]
    full_load = _default(load_document("ownership")["load_factor_as_drawn"])
    kw, load = ClusterDefault(power.watts.p50 / 1000, power.source, ""), full_load
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
    return InputRange(Range(row["p10"], 1.0, row["p90"]), row["source"], row["date"])
