"""Networks between the instances that clouds sell, by cloud and instance type. The data are in `data/networks.toml`.

The same accelerator comes with networks of very different speed: an Azure size without InfiniBand has a fortieth of its sibling's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from numpy import float64
from numpy.typing import NDArray

from service.presets.documents import load_document

Rate = TypeVar("Rate", float, NDArray[float64])
_ETHERNET = "Ethernet"
_REMEMBERED = 4096  # instance types: more than all clouds sell together


@dataclass(frozen=True, slots=True)
class InstanceNetwork:
    """Network of one instance in one direction [Gbit/s]. `verified`: read in the source, not quoted from memory."""

    gbit_per_s_per_instance: float
    source: str
    fabric: str
    verified: bool

    @property
    def is_fast_fabric(self) -> bool:
        """Whether it is made for exchanges between instances, not an ordinary card through the host."""
        return self.fabric != _ETHERNET


@dataclass(frozen=True, slots=True)
class InstancePattern:
    """Instance types of a provider with one network, and with these `accelerators` only where any are named.

    `newer`: types that the shipped prices do not have.
    """

    provider: str
    types: re.Pattern[str]
    network: InstanceNetwork
    accelerators: tuple[str, ...]
    newer: bool

    def covers(self, instance_type: str, accelerator: str) -> bool:
        """Whether an instance type with an accelerator (its canonical name) matches."""
        return self.types.fullmatch(instance_type) is not None and (not self.accelerators or accelerator in self.accelerators)


@functools.lru_cache(maxsize=_REMEMBERED)
def find_network(provider: str, instance_type: str, accelerator: str) -> InstanceNetwork | None:
    """Network of an instance type with an accelerator (its canonical name); case does not matter in the first two.

    None where it is not known: the accelerator's data sheet is assumed then, and `network_note` says so.
    """
    rows = load_networks().get(provider.casefold(), ())
    return next((row.network for row in rows if row.covers(instance_type, accelerator)), None)


def node_gbit_per_s(instance_gbit_per_s: Rate, accelerators_per_instance: Rate, per_node: int) -> Rate:
    """Network of a node of `per_node` accelerators [Gbit/s]: as many shares of the instance's as the node has accelerators."""
    return instance_gbit_per_s / accelerators_per_instance * per_node


def network_note(provider: str, instance_type: str, network: InstanceNetwork | None) -> str:
    """Text of the assumption on an instance type's network: its kind and source, or why it is not known."""
    sold = f"{provider} {instance_type}"
    if network is None:
        why = _why_unknown(provider, instance_type)
        return f"the network of {sold} is not known ({why}): that of the accelerator's data sheet is assumed"
    kind = network.fabric if network.is_fast_fabric else f"{network.fabric}, no fast fabric between instances"
    memory = "" if network.verified else "; quoted from memory"
    return f"{sold}: {network.gbit_per_s_per_instance:g} Gbit/s an instance, {kind} ({network.source}{memory})"


@functools.cache
def load_networks() -> Mapping[str, tuple[InstancePattern, ...]]:
    """Every row by provider, in the order of precedence."""
    found: dict[str, tuple[InstancePattern, ...]] = {}
    for table in load_document("networks")["network"]:
        found[table["provider"]] = (*found.get(table["provider"], ()), *_rows(table))
    return MappingProxyType(found)


def _rows(table: Mapping[str, Any]) -> Iterator[InstancePattern]:
    for pattern, gbit_per_s in table.get("gbit_per_s", {}).items():
        yield _row(table, pattern, _published(table, gbit_per_s), newer=False)
    for pattern, gbit_per_s in table.get("newer", {}).items():
        yield _row(table, pattern, _published(table, gbit_per_s), newer=True)
    for pattern in table.get("unpublished", ()):
        yield _row(table, pattern, _unpublished(table), newer=False)
    for pattern in table.get("unpublished_newer", ()):
        yield _row(table, pattern, _unpublished(table), newer=True)


def _row(table: Mapping[str, Any], pattern: str, network: InstanceNetwork, *, newer: bool) -> InstancePattern:
    return InstancePattern(table["provider"], _compiled(pattern), network, tuple(table.get("accelerators", ())), newer)


def _published(table: Mapping[str, Any], gbit_per_s: float) -> InstanceNetwork:
    return InstanceNetwork(float(gbit_per_s), f"{table['source']}, {table['date']}", table["fabric"], table["verified"])


def _unpublished(table: Mapping[str, Any]) -> InstanceNetwork:
    usual = load_document("networks")["unpublished"]
    source = f"{table['source']}, {table['date']}; {usual['source']}"
    return InstanceNetwork(float(usual["gbit_per_s"]), source, table["fabric"], verified=False)


def _why_unknown(provider: str, instance_type: str) -> str:
    rows = (row for row in load_document("networks")["unknown"] if row["provider"] == provider.casefold())
    return next((row["why"] for row in rows if _compiled(row["types"]).fullmatch(instance_type)), "no figure for this instance type")


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
