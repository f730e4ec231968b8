"""What each accelerator family achieves of its data sheet, fitted to published measurements by `python -m service.calibration.fit`.

The data, with the rows behind every figure, are in `data/utilisation.toml`.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from service.domain.hardware import Accelerator
from service.domain.quantity import Range
from service.domain.utilisation import Utilisation

_FILE = Path(__file__).parent / "data" / "utilisation.toml"
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Share:
    """Share of the dense peak that a family reaches at a precision class, and measured over predicted throughput (p10, p90)."""

    share: float
    p10: float
    p90: float
    source: str


@dataclass(frozen=True, slots=True)
class Parameters:
    """All of the throughput model's parameters. `shared` holds for every accelerator, `matmul` and `other` by (family, class).

    `relatives` names, nearest first, the families a family without data borrows from; `neighbours` likewise the classes.
    A borrowed spread is raised to the power `borrowed_power`.
    """

    shared: Mapping[str, float]
    matmul: Mapping[Key, Share]
    other: Mapping[Key, Share]
    classes: Mapping[str, str]
    neighbours: Mapping[str, tuple[str, ...]]
    relatives: Mapping[str, tuple[str, ...]]
    domains: Mapping[str, int]
    borrowed_power: float


def find_utilisation(accelerator: Accelerator, precision: str) -> Utilisation:
    """What the accelerator achieves at a precision; borrowed from the nearest relative where nothing was measured."""
    return utilisation(load_parameters(), accelerator, precision)


def planning_spread() -> Range:
    """Published runs' actual over planned hours, beyond the spread of the speed itself; p50 is the plan.

    The median run took longer than its plan, but for reasons that are its time's (older software, slower networks; runs on
    Hopper took less): it is not laid on every plan, it makes the range reach further up than down.
    """
    row = _document()["planning"]
    return Range(row["p10"], 1.0, row["p90"])


def utilisation(parameters: Parameters, accelerator: Accelerator, precision: str) -> Utilisation:
    """The engine's parameters for one accelerator and precision."""
    shared = parameters.shared
    kind = parameters.classes[precision]
    key = nearest(parameters, parameters.matmul, (accelerator.family, kind))
    found = parameters.matmul[key]
    borrowed = key != (accelerator.family, kind)
    power = parameters.borrowed_power if borrowed else 1.0
    source = found.source if not borrowed else f"borrowed from {key[0]} at {key[1]}: {found.source}"
    ridge = accelerator.peak_tflops[precision] * 1e3 / accelerator.memory_bandwidth_gb_per_s
    return Utilisation(
        matmul_share=found.share,
        half_width=shared["half_width_per_ridge"] * ridge,
        link_share=shared["link_share"],
        overlap_share=shared["overlap_share"],
        layer_overhead_s=shared["layer_overhead_s"],
        spread=Range(found.p10**power, 1.0, found.p90**power),
        source=source,
        borrowed=borrowed,
        attention_share=shared["attention_share"],
        activation_passes=shared["activation_passes"],
        collective_latency_s=shared["collective_latency_s"],
        straggler_share=shared["straggler_share"],
        other_share=parameters.other[nearest(parameters, parameters.other, (accelerator.family, kind))].share,
        link_domain=parameters.domains.get(accelerator.name, 1),
    )


def nearest(parameters: Parameters, known: Mapping[Key, Share], key: Key) -> Key:
    """The key itself where it is known, else the family's other classes, else its relatives', nearest first."""
    family, kind = key
    kinds = (kind, *parameters.neighbours[kind])
    for candidate in (family, *parameters.relatives.get(family, ()), *parameters.relatives["*"]):
        for other in kinds:
            if (candidate, other) in known:
                return candidate, other
    raise KeyError(key)


@functools.cache
def load_parameters() -> Parameters:
    """The fitted parameters, as the data file holds them."""
    document = _document()
    return Parameters(
        shared=MappingProxyType({name: row["value"] for name, row in document["shared"].items()}),
        matmul=_shares(document["matmul"]),
        other=_shares(document["other"]),
        classes=MappingProxyType({name: kind for kind, names in document["classes"].items() for name in names}),
        neighbours=_orders(document["neighbours"]),
        relatives=_orders(document["relatives"]),
        domains=MappingProxyType({name: row["accelerators"] for name, row in document["link_domain"].items()}),
        borrowed_power=document["borrowed"]["spread_power"],
    )


def _shares(rows: list[dict[str, Any]]) -> Mapping[Key, Share]:
    return MappingProxyType({(row["family"], row["precision"]): Share(row["share"], row["p10"], row["p90"], row["source"]) for row in rows})


def _orders(table: dict[str, list[str]]) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({name: tuple(order) for name, order in table.items()})


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
