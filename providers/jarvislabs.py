"""JarvisLabs: prices of one accelerator in dollars, on demand and spot, and how many devices are free in each region.

GET /misc/server_meta, a Bearer key; one answer, no pages. The same devices are listed once for containers and once for virtual machines.
`num_gpus` (a text) is the most one instance can have; of the sizes up to it we list the powers of two.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from providers.base import RemoteProvider
from providers.offer import Availability, Fetched, Pricing
from providers.row_parsing import BadRow, OfferCollector, expect_list, expect_object, get_count, get_text, parse_decimal, parse_usd

SIZES = (1, 2, 4, 8, 16)
FREE: dict[Pricing, tuple[str, ...]] = {"on_demand": ("effective_num_free_devices", "num_free_devices"), "spot": ("spot_num_free_devices",)}


class JarvisLabs(RemoteProvider):
    """JarvisLabs' cloud in India and Europe."""

    name = "jarvislabs"
    home = "https://backendn.jarvislabs.net"
    fresh_for = timedelta(minutes=30)
    credentials = ("JL_API_KEY",)

    def fetch(self) -> Fetched:
        """All accelerators of all regions. Raises ProviderError."""
        headers = {"Authorization": f"Bearer {self.credential('JL_API_KEY')}"}
        return parse(self.http.get_json(f"{self.url}/misc/server_meta", headers=headers), self.collector())


def parse(answer: object, collector: OfferCollector) -> Fetched:
    """The offers of an answer: one for each accelerator, region, size and kind of price."""
    seen: set[tuple[str, str]] = set()
    for entry in expect_list(expect_object(answer, "the answer").get("server_meta"), "server_meta"):
        with collector.row(_place(entry)):
            devices = get_text(entry, "gpu_type"), get_text(entry, "region")
            price = parse_usd(entry.get("price_per_hour"), "price_per_hour")
            if devices in seen:
                continue
            seen.add(devices)
            _add(entry, "on_demand", price, collector)
            if entry.get("spot_price") is not None:
                _add(entry, "spot", _spot_usd(entry, price), collector)
    return collector.fetched()


def _place(entry: object) -> str:
    return f"{entry.get('gpu_type')} in {entry.get('region')}" if isinstance(entry, dict) else "a row"


def _spot_usd(entry: Mapping[str, Any], on_demand: Decimal) -> Decimal:
    price = parse_usd(entry["spot_price"], "spot_price")
    if price > on_demand:
        raise BadRow(f"spot_price {price} is above the price on demand, {on_demand}")
    return price


def _add(entry: Mapping[str, Any], pricing: Pricing, usd_each: Decimal, collector: OfferCollector) -> None:
    """One offer for each size that an instance can have."""
    memory_gb = float(parse_decimal(entry["vram"], "vram")) if entry.get("vram") is not None else None
    accelerator = collector.accelerator(get_text(entry, "gpu_type"), memory_gb)
    most = get_count(entry, "num_gpus") if entry.get("num_gpus") is not None else 1
    free = _free(entry, FREE[pricing])
    for size in (size for size in SIZES if size <= most):
        availability: Availability = "live" if free >= size else "listed"
        collector.add(
            region=get_text(entry, "region"),
            instance_type=f"{size}x {get_text(entry, 'gpu_type')}",
            accelerator=accelerator,
            accelerator_count=size,
            pricing=pricing,
            usd_per_hour=usd_each * size,
            availability=availability,
        )


def _free(entry: Mapping[str, Any], names: tuple[str, ...]) -> Decimal:
    """Free devices by the first field that states them; None where none does."""
    return next((parse_decimal(entry[name], name) for name in names if entry.get(name) is not None), Decimal(0))
