"""TensorDock: prices of hosts by location, separate for GPU, processors, memory and disk.

GET /api/v2/locations (https://dashboard.tensordock.com/api/docs/fetch-hostnodes), a Bearer token, 100 requests a minute; one answer.
The price of an offer includes the smallest processors, memory and disk that can be ordered with the GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from providers.base import RemoteProvider
from providers.common import accelerator_in_form
from providers.offer import Availability, Fetched
from providers.row_parsing import BadRow, OfferCollector, SkippedRow, get_decimal, get_list, get_object, get_text, get_usd, list_at

COUNTS = (1, 2, 4, 8)
LABEL = re.compile(r"(.+)-(pcie|sxm\d?|nvl)-(\d+)gb")
DISK_GB = 100
"""The least disk of an instance (https://dashboard.tensordock.com/api/docs/instance-creation, "Minimum storage: 100GB")."""
VCPUS_A_GPU, RAM_GB_A_GPU = 2, 4
"""Of the request that the same page shows: 4 processors and 8 GB for 2 GPUs. No minimum is stated for them."""


class TensorDock(RemoteProvider):
    """TensorDock's marketplace of hosts."""

    name = "tensordock"
    home = "https://dashboard.tensordock.com"
    fresh_for = timedelta(minutes=30)
    credentials = ("TENSORDOCK_API_TOKEN",)

    def fetch(self) -> Fetched:
        """All locations. Raises ProviderError."""
        return parse(self.get_json("/api/v2/locations"), self.collector())


def parse(answer: object, collector: OfferCollector) -> Fetched:
    """The offers of an answer: one for each location, GPU and usual count."""
    for location in list_at(answer, "data", "locations"):
        with collector.row(location):
            region = ", ".join(get_text(location, name) for name in ("city", "stateprovince", "country"))
            for gpu in get_list(location, "gpus"):
                with collector.row(f"{region}: {gpu}"):
                    _read(gpu, region, get_text(location, "id"), collector)
    return collector.fetched()


def _read(gpu: Mapping[str, Any], region: str, location: str, collector: OfferCollector) -> None:
    name, most = get_text(gpu, "v0Name"), get_decimal(gpu, "max_count")
    accelerator = _accelerator(name, collector)
    counts, availability = [count for count in COUNTS if count <= most], _availability(most)
    for count in counts or [1]:
        with collector.row(f"{region}: {count}x {name}"):
            includes = f"{VCPUS_A_GPU * count} vCPU, {RAM_GB_A_GPU * count} GB RAM, {DISK_GB} GB disk"
            more = {"market": "marketplace", "availability": availability, "extras": {"location": location, "includes": includes}}
            collector.add(region, f"{count}x {name}", accelerator, count, "on_demand", _price(gpu, count), **more)


def _availability(most: Decimal) -> Availability:
    if most < 0:
        raise BadRow(f"max_count is {most}")
    return "live" if most >= 1 else "listed"


def _accelerator(name: str, collector: OfferCollector) -> str:
    """Canonical name of `h100-sxm5-80gb`; workstation parts state PCIe too."""
    found = LABEL.fullmatch(name)
    return accelerator_in_form(collector, found[1], found[2], float(found[3])) if found else collector.accelerator(name)


def _price(gpu: Mapping[str, Any], count: int) -> Decimal:
    """Price of `count` GPUs with the smallest host [USD per hour]. Raises SkippedRow where the location has fewer."""
    most, prices = get_object(gpu, "resources"), get_object(gpu, "pricing")
    needs = (
        (VCPUS_A_GPU * count, "max_vcpus", "per_vcpu_hr"),
        (RAM_GB_A_GPU * count, "max_ram_gb", "per_gb_ram_hr"),
        (DISK_GB, "max_storage_gb", "per_gb_storage_hr"),
    )
    total = get_usd(gpu, "price_per_hr") * count
    for amount, limit, price in needs:
        if get_decimal(most, limit) < amount:
            raise SkippedRow(f"{limit} is below {amount}")
        total += amount * get_usd(prices, price)
    return total
