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
from providers.offer import Fetched, ProviderError, Rejected
from providers.row_parsing import (
    BadRow,
    OfferCollector,
    SkippedRow,
    expect_list,
    expect_object,
    get_count,
    get_text,
    parse_decimal,
    parse_usd,
)

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
    for row in expect_list(whole_answer.get("offers"), "offers"):
        with collector.row(row.get("id") if isinstance(row, dict) else row):
            _read(row, groups, collector)
    for key, group in groups.items():
        _add(key, group, collector)
    return collector.fetched()


def _read(row: Mapping[str, Any], groups: dict[Key, HostOffers], collector: OfferCollector) -> None:
    gpu, count = get_text(row, "gpu_name"), get_count(row, "num_gpus")
    accelerator = collector.accelerator(gpu, float(parse_decimal(row.get("gpu_ram"), "gpu_ram")) / 1024)
    if row.get("rented") is True or row.get("rentable") is False:
        raise SkippedRow("rented")
    storage = parse_decimal(row.get("storage_cost"), "storage_cost")
    if storage < 0:
        raise BadRow(f"storage_cost is {storage}")
    price = parse_usd(row.get("dph_base"), "dph_base") + DISK_GB * storage / HOURS_A_MONTH
    group = groups[gpu, accelerator, count, _country(row.get("geolocation"))]
    group.prices.append(price)
    with collector.row(f"{row.get('id')} bid"):
        group.bids.append(_bid(row, price))


def _bid(row: Mapping[str, Any], price: Decimal) -> Decimal:
    """Lowest accepted bid [USD per hour], at most the price without bidding."""
    if not row.get("min_bid"):
        raise SkippedRow("no bids")
    bid = parse_usd(row["min_bid"], "min_bid")
    if bid > price:
        raise BadRow(f"min_bid is {bid}, above {price} on demand")
    return bid


def _country(geolocation: object) -> str:
    """`KR` of `South Korea, KR, AS`; old rows have a name only, or nothing."""
    if not isinstance(geolocation, str) or not geolocation.strip(" ,"):
        return NO_COUNTRY
    found = COUNTRY.search(geolocation)
    return found[0] if found else geolocation.strip(" ,")


def _add(key: Key, group: HostOffers, collector: OfferCollector) -> None:
    gpu, accelerator, count, country = key
    sold = {"region": country, "instance_type": f"{count}x {gpu}", "accelerator": accelerator, "accelerator_count": count}
    kinds = (("on_demand", "marketplace", group.prices), ("spot", "auction_floor", group.bids))
    for pricing, market, prices in kinds:
        with collector.row(f"{count}x {gpu} {country} {pricing}"):
            if len(prices) < MIN_HOSTS:
                collector.skipped[f"fewer than {MIN_HOSTS} machines of a kind"] += len(prices)
                continue
            extras = {"machines": str(len(prices)), "lowest_usd_per_hour": str(_rounded(min(prices)))}
            price = _rounded(median(prices))
            collector.add(**sold, pricing=pricing, market=market, usd_per_hour=price, availability="live", extras=extras)


def _rounded(price: Decimal) -> Decimal:
    """Price rounded to a millionth of a dollar: a share of a month has endless digits."""
    return Decimal(f"{price:.6f}")
