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
from providers.offer import Fetched, Pricing
from providers.row_parsing import OfferCollector, get_count, get_decimal, get_memory_gb, get_text, get_usd, list_at

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
        return parse(self.get_json("/misc/server_meta"), self.collector())


def parse(answer: object, collector: OfferCollector) -> Fetched:
    """The offers of an answer: one for each accelerator, region, size and kind of price."""
    seen: set[tuple[str, str]] = set()
    for entry in list_at(answer, "server_meta"):
        with collector.row(_place(entry)):
            devices = get_text(entry, "gpu_type"), get_text(entry, "region")
            price = get_usd(entry, "price_per_hour")
            if devices in seen:
                continue
            seen.add(devices)
            _add(entry, "on_demand", price, collector)
            if entry.get("spot_price") is not None:
                _add(entry, "spot", get_usd(entry, "spot_price", price), collector)
    return collector.fetched()


def _place(entry: object) -> str:
    return f"{entry.get('gpu_type')} in {entry.get('region')}" if isinstance(entry, dict) else "a row"


def _add(entry: Mapping[str, Any], pricing: Pricing, usd_each: Decimal, collector: OfferCollector) -> None:
    """One offer for each size that an instance can have."""
    gpu, region = get_text(entry, "gpu_type"), get_text(entry, "region")
    accelerator = collector.accelerator(gpu, get_memory_gb(entry, "vram"))
    most = get_count(entry, "num_gpus") if entry.get("num_gpus") is not None else 1
    free = _free(entry, FREE[pricing])
    for size in (size for size in SIZES if size <= most):
        availability = "live" if free >= size else "listed"
        collector.add(region, f"{size}x {gpu}", accelerator, size, pricing, usd_each * size, availability=availability)


def _free(entry: Mapping[str, Any], names: tuple[str, ...]) -> Decimal:
    """Free devices by the first field that states them; 0 where none does."""
    return next((get_decimal(entry, name) for name in names if entry.get(name) is not None), Decimal(0))
