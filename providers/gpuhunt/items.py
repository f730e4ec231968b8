"""The library's items as offers: canonical accelerators, zones, hosts and sizes of one thing merged to one price."""

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
from providers.catalog_files.model import Log, Unusable
from providers.catalog_files.naming import Machine, accelerator_of
from providers.offer import Market, Pricing, Rejected
from providers.row_parsing import BadRow, NotForUs, Reading, text, usd, whole

ZONE = re.compile(r"([a-z]+-[a-z]+\d+)-[a-z]")
COMMUNITY = re.compile(r"[A-Z]{2}")
"""Where RunPod's machines are: a country for its community's hosts, a data center for its own."""
OTHER_PRODUCTS: Mapping[str, str] = {
    "gcp-dws-calendar-mode": "calendar mode: a price for days that are booked ahead",
    "gcp-g4-preview": "the same machine under the name of its preview",
    "runpod-cluster": "sold as a cluster of several machines only",
}


@dataclass(frozen=True, slots=True)
class Cloud:
    """One cloud of the library: its name there and here, and whether the library asks it itself when queried."""

    key: str
    provider: str
    live: bool


@dataclass(frozen=True, slots=True)
class Sold:
    """What has one price."""

    region: str
    instance_type: str
    accelerator: str
    count: int
    pricing: Pricing
    market: Market


def read(cloud: Cloud, items: Iterable[object], at: datetime, reading: Reading) -> None:
    """Adds one cloud's offers as of `at`: zones, hosts and sizes of one thing become one price; spot above on-demand is rejected."""
    prices: dict[Sold, list[Decimal]] = defaultdict(list)
    for item in items:
        row = vars(item)
        with reading.row(f"{cloud.key} {row.get('location')} {row.get('instance_name')}"):
            price = usd(row.get("price"))
            prices[_sold(cloud, row, reading)].append(price)
    if not prices:
        reading.rejected.append(Rejected(cloud.provider, "the library has no GPU offers of it"))
    merged = {sold: _price(sold, found) for sold, found in prices.items()}
    for sold, price in merged.items():
        with reading.row(f"{cloud.key} {sold.region} {sold.instance_type} {sold.pricing}"):
            _check(sold, price, merged)
            reading.add(**_offer(cloud, sold), usd_per_hour=price, observed_at=at)


def _price(sold: Sold, found: list[Decimal]) -> Decimal:
    """A list price by its cheapest zone or size, spot and marketplaces by the median."""
    return min(found) if sold.market == "list" and sold.pricing == "on_demand" else median(found)


def _sold(cloud: Cloud, row: Mapping[str, Any], reading: Reading) -> Sold:
    for flag in row.get("flags") or ():
        if flag in OTHER_PRODUCTS:
            raise NotForUs(f"{cloud.key}: {OTHER_PRODUCTS[flag]}")
    accelerator, count = _accelerator(cloud, row, reading)
    market = _market(cloud, text(row, "location"))
    pricing: Pricing = "spot" if row.get("spot") is True else "on_demand"
    return Sold(_region(cloud, text(row, "location")), _instance_type(row), accelerator, count, pricing, market)


def _accelerator(cloud: Cloud, row: Mapping[str, Any], reading: Reading) -> tuple[str, int]:
    """Canonical name and number: by the slice for TPUs, by the instance type where it tells more than the label."""
    label, count = text(row, "gpu_name"), whole(row, "gpu_count")
    tpu = slice_of(f"tpu-{label}")
    if tpu:
        return reading.accelerator(tpu[0]), tpu[1] * count
    name, memory = text(row, "instance_name"), row.get("gpu_memory")
    log = Log()
    try:
        found = accelerator_of(Machine(cloud.provider, name, label, str(count), memory), log)
    except Unusable as error:
        raise BadRow(str(error)) from error
    if found is None:
        raise NotForUs("; ".join(log.left_out))
    if found[0] != label:
        return reading.accelerator(found[0]), found[1]
    return reading.canonical(name, memory) or reading.accelerator(label, memory), count


def _market(cloud: Cloud, location: str) -> Market:
    return "marketplace" if cloud.provider == "runpod" and COMMUNITY.fullmatch(location) else "list"


def _region(cloud: Cloud, location: str) -> str:
    zone = ZONE.fullmatch(location) if cloud.provider == "gcp" else None
    return zone[1] if zone else location


def _instance_type(row: Mapping[str, Any]) -> str:
    name = text(row, "instance_name")
    return f"tpu-{name}" if slice_of(f"tpu-{name}") else name


def _check(sold: Sold, price: Decimal, prices: Mapping[Sold, Decimal]) -> None:
    """Raises BadRow for a spot price above that of the same thing on demand."""
    ceiling = prices.get(replace(sold, pricing="on_demand"), price)
    if price > ceiling:
        raise BadRow(f"the spot price {price} is above on-demand ({ceiling})")


def _offer(cloud: Cloud, sold: Sold) -> dict[str, Any]:
    return {
        "provider": cloud.provider,
        "region": sold.region,
        "instance_type": sold.instance_type,
        "accelerator": sold.accelerator,
        "accelerator_count": sold.count,
        "pricing": sold.pricing,
        "market": sold.market,
        "source": f"gpuhunt {cloud.key}",
    }
