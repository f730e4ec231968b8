"""Machines composed of parts: GPU machines of cores, memory, GPUs and bundled disks, TPU slices of chips.

`gcp_hosts.csv` of the snapshot states which machine carries how many GPUs and whether it is sold on demand, `gcp_machines.csv` its
cores, memory and disks. A machine is offered where every part has a price.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from providers.catalog_files.gcp import Host, hosts, slice_of
from providers.gcp.skus import NANO_USD, PartPrices
from providers.offer import PRICINGS, Pricing
from providers.row_parsing import BadRow, OfferCollector
from providers.tables import read_table


@dataclass(frozen=True, slots=True)
class MachineParts:
    """A machine or slice: its parts with the number of units of each, the accelerators first."""

    name: str
    accelerator: str
    accelerators: int
    parts: tuple[tuple[str, Decimal], ...]
    on_demand: bool = True


def add_machines(prices: PartPrices, collector: OfferCollector) -> None:
    """Add the offers of all GPU machines; a machine whose GPUs have no price anywhere is counted as skipped."""
    for machine in machines():
        if not any((machine.parts[0][0], pricing) in prices for pricing in PRICINGS):
            collector.skipped[f"{machine.name}: the list has no price of its {machine.parts[0][0]}"] += 1
        _add(machine, prices, collector)


def add_slices(prices: PartPrices, collector: OfferCollector) -> None:
    """Add the offers of all TPU slices."""
    for machine in slices():
        _add(machine, prices, collector)


@cache
def machines() -> tuple[MachineParts, ...]:
    """All GPU machines."""
    return tuple(_machine(label, count, host) for (label, count), found in hosts().items() for host in found)


def _machine(label: str, count: int, host: Host) -> MachineParts:
    gpus = (f"gpu {label}", Decimal(count))
    rest = () if host.host_included else _host_parts(host.name)
    return MachineParts(host.name, host.accelerator, host.accelerator_count, (gpus, *rest), host.on_demand)


@cache
def _shapes() -> Mapping[str, Mapping[str, str]]:
    return {row["machine"]: row for row in read_table("gcp_machines.csv")}


def _host_parts(name: str) -> tuple[tuple[str, Decimal], ...]:
    shape = _shapes()[name]
    core_and_ram = ((f"core {shape['family']}", shape["vcpus"]), (f"ram {shape['family']}", shape["memory_gib"]))
    found = (*core_and_ram, ("local ssd", shape["local_ssd_gib"]))
    return tuple((part, Decimal(amount)) for part, amount in found if amount != "0")


@cache
def slices() -> tuple[MachineParts, ...]:
    """All TPU slices. A part's price may be that of several chips."""
    return tuple(_slices())


def _slices() -> Iterator[MachineParts]:
    for row in read_table("gcp_tpus.csv"):
        for size in row["sizes"].split():
            name = f"{row['slice']}-{size}"
            found = slice_of(name)
            if found is None:
                raise LookupError(f"gcp_tpus.csv names {name}, whose generation is not in gcp_slices.csv")
            yield MachineParts(name, *found, ((row["part"], Decimal(found[1]) / int(row["chips_per_unit"])),))


def _add(machine: MachineParts, prices: PartPrices, collector: OfferCollector) -> None:
    """Add one offer for each pricing and region in which the accelerators have a price."""
    accelerator_part = machine.parts[0][0]
    for pricing in PRICINGS:
        for region in prices.get((accelerator_part, pricing), {}):
            with collector.row(f"{region} {machine.name} {pricing}"):
                _offer(machine, pricing, region, prices, collector)


def _offer(machine: MachineParts, pricing: Pricing, region: str, prices: PartPrices, collector: OfferCollector) -> None:
    if pricing == "on_demand" and not machine.on_demand:
        collector.skipped[f"{machine.name}: listed, but cannot be bought on demand"] += 1
        return
    accelerator = collector.accelerator(machine.accelerator)
    missing = [part for part, _ in machine.parts if region not in prices.get((part, pricing), {})]
    if missing:
        collector.skipped[f"{machine.name}: its {pricing} price lacks {' and '.join(missing)} in some regions"] += 1
        return
    price = _total(machine, pricing, region, prices)
    _check(machine, price, pricing, region, prices)
    collector.add(region, machine.name, accelerator, machine.accelerators, pricing, price)


def _total(machine: MachineParts, pricing: Pricing, region: str, prices: PartPrices) -> Decimal:
    """Price of all parts [USD per hour]; a monthly disk price is divided by the hours of a month."""
    total = sum((amount * prices[part, pricing][region] for part, amount in machine.parts), Decimal(0))
    return total.quantize(NANO_USD)


def _check(machine: MachineParts, price: Decimal, pricing: Pricing, region: str, prices: PartPrices) -> None:
    """Raises BadRow for a price that contradicts another price of the same machine."""
    other: Pricing = "reserved_1y" if pricing == "on_demand" else "on_demand"
    if any(region not in prices.get((part, other), {}) for part, _ in machine.parts):
        return
    against = _total(machine, other, region, prices)
    if pricing == "on_demand" and price <= against:
        raise BadRow(f"on demand costs {price}, no more than a commitment of one year: that price under another name")
    if pricing != "on_demand" and price > against:
        raise BadRow(f"{pricing} costs {price}, more than on demand ({against})")
