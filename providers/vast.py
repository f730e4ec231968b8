"""Vast.ai: a marketplace of hosts, each with its own price, summarised as medians.

POST /api/v0/bundles/ with the filters as body (https://docs.vast.ai/api-reference): answers without a key; one is sent where it is set.
One host's low price is gone once rented, so an offer is the median of an accelerator, count and country, with at least five hosts. An
error comes with status 200 and `success: false`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from statistics import median
from typing import Any

from providers.base import RemoteProvider
from providers.offer import Fetched, Market, Pricing, ProviderError, Rejected
from providers.row_parsing import BadRow, OfferCollector, SkippedRow, expect_object, get_count, get_decimal, get_text, get_usd, list_at

MIN_HOSTS = 5
"""Machines below which a median says little; a client that watches this market takes the same floor."""
DISK_GB = 10
"""Default disk of an instance (https://docs.vast.ai/cli/reference/create-instance, --disk)."""
HOURS_A_MONTH = 30 * 24
"""Of Vast's own storage charge, as its offers' `storage_total_cost` shows."""
FILTERS = {
    "rentable": {"eq": True},
    "rented": {"eq": False},
    "verified": {"eq": True},
    "external": {"eq": False},
    "type": "on-demand",
    "order": [["score", "desc"]],
    "limit": 10_000,
    "allocated_storage": DISK_GB,
}
COUNTRY = re.compile(r"\b[A-Z]{2}\b")
NO_COUNTRY = "unknown"


@dataclass
class HostOffers:
    """Prices of machines of one kind in one country [USD per hour for all accelerators], and their lowest bids."""

    prices: list[Decimal] = field(default_factory=list)
    bids: list[Decimal] = field(default_factory=list)


Key = tuple[str, str, int, str]
"""Vast's name of the GPU, its canonical name, how many, and the country."""


class Vast(RemoteProvider):
    """Vast.ai's verified hosts."""

    name = "vast"
    home = "https://console.vast.ai"
    fresh_for = timedelta(minutes=30)

    def fetch(self) -> Fetched:
        """The medians of all verified machines that can be rented now. Raises ProviderError."""
        key = self.context.env.get("VAST_API_KEY")
        headers = {"Authorization": f"Bearer {key}"} if key else None
        return parse(self.http.post_json(f"{self.url}/api/v0/bundles/", FILTERS, headers=headers), self.collector())


def parse(answer: object, collector: OfferCollector) -> Fetched:
    """One offer for each accelerator, count and country with enough machines, and one for the bids on them."""
    whole_answer = expect_object(answer, "the answer")
    if whole_answer.get("success") is False:
        raise ProviderError(f"vast refused: {whole_answer.get('error')}: {whole_answer.get('msg')}"[:300])
    if whole_answer.get("truncated") is True:
        collector.rejected.append(Rejected("offers", "the answer is truncated: the medians are of the machines that Vast ranks first"))
    groups: dict[Key, HostOffers] = defaultdict(HostOffers)
    collector.read_each(list_at(answer, "offers"), lambda row, _: _read(row, groups, collector), "id")
    for key, group in groups.items():
        _add_median(key, "on_demand", "marketplace", group.prices, collector)
        _add_median(key, "spot", "auction_floor", group.bids, collector)
    return collector.fetched()


def _read(row: Mapping[str, Any], groups: dict[Key, HostOffers], collector: OfferCollector) -> None:
    gpu, count = get_text(row, "gpu_name"), get_count(row, "num_gpus")
    accelerator = collector.accelerator(gpu, float(get_decimal(row, "gpu_ram")) / 1024)
    if row.get("rented") is True or row.get("rentable") is False:
        raise SkippedRow("rented")
    storage = get_decimal(row, "storage_cost")
    if storage < 0:
        raise BadRow(f"storage_cost is {storage}")
    price = get_usd(row, "dph_base") + DISK_GB * storage / HOURS_A_MONTH
    group = groups[gpu, accelerator, count, _country(row.get("geolocation"))]
    group.prices.append(price)
    with collector.row(f"{row.get('id')} bid"):
        if not row.get("min_bid"):
            raise SkippedRow("no bids")
        group.bids.append(get_usd(row, "min_bid", price))


def _country(geolocation: object) -> str:
    """`KR` of `South Korea, KR, AS`; old rows have a name only, or nothing."""
    if not isinstance(geolocation, str) or not geolocation.strip(" ,"):
        return NO_COUNTRY
    found = COUNTRY.search(geolocation)
    return found[0] if found else geolocation.strip(" ,")


def _add_median(key: Key, pricing: Pricing, market: Market, prices: list[Decimal], collector: OfferCollector) -> None:
    gpu, accelerator, count, country = key
    if len(prices) < MIN_HOSTS:
        collector.skipped[f"fewer than {MIN_HOSTS} machines of a kind"] += len(prices)
        return
    extras = {"machines": str(len(prices)), "lowest_usd_per_hour": str(_rounded(min(prices)))}
    more = {"market": market, "availability": "live", "extras": extras}
    with collector.row(f"{count}x {gpu} {country} {pricing}"):
        collector.add(country, f"{count}x {gpu}", accelerator, count, pricing, _rounded(median(prices)), **more)


def _rounded(price: Decimal) -> Decimal:
    """Price rounded to a millionth of a dollar: a share of a month has endless digits."""
    return Decimal(f"{price:.6f}")
