"""Prime Intellect: machines of many clouds, resold; prices of whole machines in dollars.

GET /api/v1/availability/gpus (https://docs.primeintellect.ai/api-reference/check-gpu-availability), a Bearer key with the permission
Availability:Read, in pages. `prices.onDemand` is for all GPUs; processors, memory and disk stand apart where they are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from providers.base import RemoteProvider
from providers.common import accelerator_in_form, read_pages
from providers.offer import Fetched
from providers.row_parsing import (
    ANY_REGION,
    BadRow,
    OfferCollector,
    SkippedRow,
    expect_object,
    get_count,
    get_object,
    get_text,
    get_usd,
    list_at,
    parse_decimal,
)

PAGE = 100
IN_STOCK = ("available", "high", "medium", "low")
NEEDED = ("vcpu", "memory", "disk")
"""Parts of a machine other than its GPUs; `sharedDisk` is optional."""


class PrimeIntellect(RemoteProvider):
    """Prime Intellect's catalogue of other clouds."""

    name = "prime_intellect"
    home = "https://api.primeintellect.ai"
    fresh_for = timedelta(minutes=30)
    credentials = ("PRIME_API_KEY",)

    def fetch(self) -> Fetched:
        """All machines of all clouds. Raises ProviderError."""
        collector = self.collector()

        def read_page(page: int) -> bool:
            answer = self.get_json("/api/v1/availability/gpus", page=str(page), page_size=str(PAGE))
            return read(answer, collector) == PAGE and expect_object(answer, "the answer").get("totalCount") != page * PAGE

        read_pages(collector, read_page)
        return collector.fetched()


def read(answer: object, collector: OfferCollector) -> int:
    """Add the offers of one page; returns the number of its rows."""
    page = list_at(answer, "items")
    collector.read_each(page, _read, "cloudId")
    return len(page)


def _read(row: Mapping[str, Any], collector: OfferCollector) -> None:
    cloud, model = get_text(row, "provider"), get_text(row, "gpuType")
    if row.get("prepaidTime"):
        raise SkippedRow("paid in advance")
    community = row.get("security") == "community_cloud"
    collector.add(
        _region(row),
        f"{cloud}/{get_text(row, 'cloudId')}" + (" community" if community else ""),
        accelerator_in_form(collector, model, str(row.get("socket") or "")),
        get_count(row, "gpuCount"),
        "spot" if row.get("isSpot") is True else "on_demand",
        _price(row, community),
        market="marketplace" if community else "list",
        availability="live" if str(row.get("stockStatus")).casefold() in IN_STOCK else "listed",
        extras={"cloud": cloud} | ({"country": str(row["country"])} if row.get("country") else {}),
    )


def _region(row: Mapping[str, Any]) -> str:
    """Data center, or what else is known of the place."""
    return next((get_text(row, name) for name in ("dataCenter", "region", "country") if row.get(name)), ANY_REGION)


def _price(row: Mapping[str, Any], community: bool) -> Decimal:
    """Price of the whole machine with its usual processors, memory and disk [USD per hour]."""
    prices = get_object(row, "prices")
    if prices.get("currency") != "USD":
        raise BadRow(f"currency is {prices.get('currency')} where USD was expected")
    name = "communityPrice" if community and prices.get("communityPrice") else "onDemand"
    return get_usd(prices, name) + sum((_besides(row, what) for what in NEEDED), Decimal(0))


def _besides(row: Mapping[str, Any], what: str) -> Decimal:
    """Price of another part of the machine where it is not included [USD per hour]."""
    if row.get(what) is None:
        return Decimal(0)
    extra = get_object(row, what)
    included = extra.get("defaultIncludedInPrice", "missing")
    if included is None or included is True:
        return Decimal(0)
    if included is not False:
        raise BadRow(f"{what}.defaultIncludedInPrice is {included!r} where true, false or null was expected"[:200])
    count, price = (parse_decimal(extra.get(name), f"{what}.{name}") for name in ("defaultCount", "pricePerUnit"))
    if count < 0 or price < 0:
        raise BadRow(f"{what} costs {count} x {price}")
    return count * price
