"""Offers from the library's items: canonical accelerators; zones, hosts and sizes of one thing merged to one price."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from statistics import median
from typing import Any

from providers.catalog_files.gcp import slice_of
from providers.catalog_files.model import ParseLog
from providers.catalog_files.naming import MachineRow, accelerator_of
from providers.offer import Market, Pricing, Rejected
from providers.row_parsing import BadRow, OfferCollector, SkippedRow, get_count, get_text, parse_usd

ZONE = re.compile(r"([a-z]+-[a-z]+\d+)-[a-z]")
COMMUNITY = re.compile(r"[A-Z]{2}")
"""Where RunPod's machines are: a country for its community's hosts, a data center for its own."""
OTHER_PRODUCTS: Mapping[str, str] = {
    "gcp-dws-calendar-mode": "calendar mode: a price for days that are booked ahead",
    "gcp-g4-preview": "the same machine under the name of its preview",
    "runpod-cluster": "sold as a cluster of several machines only",
}


@dataclass(frozen=True, slots=True)
class CatalogCloud:
    """A cloud of the library: its name there and here, and whether the library queries it live."""

    key: str
    provider: str
    live: bool


@dataclass(frozen=True, slots=True)
class SoldItem:
    """Key of a price."""

    region: str
    instance_type: str
    accelerator: str
    count: int
    pricing: Pricing
    market: Market


def read(cloud: CatalogCloud, items: Iterable[object], at: datetime, collector: OfferCollector) -> None:
    """Add one cloud's offers as of `at`: one price for zones, hosts and sizes of one thing. Spot above on-demand is rejected."""
    prices: dict[SoldItem, list[Decimal]] = defaultdict(list)
    for item in items:
        row = vars(item)
        with collector.row(f"{cloud.key} {row.get('location')} {row.get('instance_name')}"):
            price = parse_usd(row.get("price"))
            prices[_sold(cloud, row, collector)].append(price)
    if not prices:
        collector.rejected.append(Rejected(cloud.provider, "the library has no GPU offers of it"))
    merged = {sold: _price(sold, found) for sold, found in prices.items()}
    for sold, price in merged.items():
        with collector.row(f"{cloud.key} {sold.region} {sold.instance_type} {sold.pricing}"):
            _check(sold, price, merged)
            thing = (sold.region, sold.instance_type, sold.accelerator, sold.count, sold.pricing, price)
            collector.add(*thing, provider=cloud.provider, market=sold.market, source=f"gpuhunt {cloud.key}", observed_at=at)


def _price(sold: SoldItem, found: list[Decimal]) -> Decimal:
    """List price of the cheapest zone or size; median of spot and marketplace prices [USD per hour]."""
    return min(found) if sold.market == "list" and sold.pricing == "on_demand" else median(found)


def _sold(cloud: CatalogCloud, row: Mapping[str, Any], collector: OfferCollector) -> SoldItem:
    for flag in row.get("flags") or ():
        if flag in OTHER_PRODUCTS:
            raise SkippedRow(f"{cloud.key}: {OTHER_PRODUCTS[flag]}")
    accelerator, count = _accelerator(cloud, row, collector)
    market = _market(cloud, get_text(row, "location"))
    pricing: Pricing = "spot" if row.get("spot") is True else "on_demand"
    return SoldItem(_region(cloud, get_text(row, "location")), _instance_type(row), accelerator, count, pricing, market)


def _accelerator(cloud: CatalogCloud, row: Mapping[str, Any], collector: OfferCollector) -> tuple[str, int]:
    """Canonical name and number: of the slice for TPUs, of the instance type where it is more precise than the label."""
    label, count = get_text(row, "gpu_name"), get_count(row, "gpu_count")
    tpu = slice_of(f"tpu-{label}")
    if tpu:
        return collector.accelerator(tpu[0]), tpu[1] * count
    name, memory = get_text(row, "instance_name"), row.get("gpu_memory")
    log = ParseLog()
    found = accelerator_of(MachineRow(cloud.provider, name, label, str(count), memory), log)
    if found is None:
        raise SkippedRow("; ".join(log.skipped))
    if found[0] != label:
        return collector.accelerator(found[0]), found[1]
    return collector.canonical(name, memory) or collector.accelerator(label, memory), count


def _market(cloud: CatalogCloud, location: str) -> Market:
    return "marketplace" if cloud.provider == "runpod" and COMMUNITY.fullmatch(location) else "list"


def _region(cloud: CatalogCloud, location: str) -> str:
    zone = ZONE.fullmatch(location) if cloud.provider == "gcp" else None
    return zone[1] if zone else location


def _instance_type(row: Mapping[str, Any]) -> str:
    name = get_text(row, "instance_name")
    return f"tpu-{name}" if slice_of(f"tpu-{name}") else name


def _check(sold: SoldItem, price: Decimal, prices: Mapping[SoldItem, Decimal]) -> None:
    """Raises BadRow for a spot price above on-demand of the same thing."""
    ceiling = prices.get(replace(sold, pricing="on_demand"), price)
    if price > ceiling:
        raise BadRow(f"the spot price {price} is above on-demand ({ceiling})")
