"""RunPod: prices for one GPU, in RunPod's own data centers ("secure") and at its hosts ("community").

POST /graphql (https://graphql-spec.runpod.io): `gpuTypes` answers without a key; one is sent where it is set. A second query tells
which data center has which type in stock. An error comes with status 200.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from providers.base import RemoteProvider
from providers.common import isolate_part
from providers.offer import NO_TERMS, Availability, Fetched, Market, OfferTerms, Pricing, ProviderError
from providers.row_parsing import (
    ANY_REGION,
    OfferCollector,
    SkippedRow,
    expect_object,
    get_count,
    get_list,
    get_memory_gb,
    get_object,
    get_text,
    get_usd,
    list_at,
)

TYPES = """{ gpuTypes {
  id memoryInGb maxGpuCountSecureCloud maxGpuCountCommunityCloud
  securePrice secureSpotPrice oneMonthPrice threeMonthPrice sixMonthPrice oneYearPrice communityPrice communitySpotPrice
  lowestPrice(input: {gpuCount: 1}) { minimumBidPrice uninterruptablePrice stockStatus }
} }"""
CENTERS = "{ dataCenters { id listed gpuAvailability { gpuTypeId stockStatus } } }"
IN_STOCK = ("High", "Medium", "Low")
HOURS_PER_MONTH = 730
COUNTS = (1, 2, 4, 8)
"""The sizes of pods that are read, of all that RunPod sells up to a type's maximum."""

Stock = Mapping[str, Mapping[str, bool]]
"""Type of GPU -> data center -> whether RunPod says that it is in stock there."""


@dataclass(frozen=True)
class PriceKind:
    """A way in which a GPU type is sold, with the fields of its price and its largest pod."""

    cloud: str
    pricing: Pricing
    price: str
    most: str
    market: Market
    terms: OfferTerms = NO_TERMS


def _prepaid(months: int) -> OfferTerms:
    """Terms of a savings plan, paid at its start (https://docs.runpod.io/pods/pricing)."""
    return OfferTerms(term_hours=float(months * HOURS_PER_MONTH), upfront_share=1.0)


SECURE, COMMUNITY = "maxGpuCountSecureCloud", "maxGpuCountCommunityCloud"
KINDS = (
    PriceKind("secure", "on_demand", "securePrice", SECURE, "list"),
    PriceKind("secure", "spot", "secureSpotPrice", SECURE, "list"),
    PriceKind("secure", "reserved", "oneMonthPrice", SECURE, "list", _prepaid(1)),
    PriceKind("secure", "reserved", "threeMonthPrice", SECURE, "list", _prepaid(3)),
    PriceKind("secure", "reserved", "sixMonthPrice", SECURE, "list", _prepaid(6)),
    PriceKind("secure", "reserved_1y", "oneYearPrice", SECURE, "list"),
    PriceKind("community", "on_demand", "communityPrice", COMMUNITY, "marketplace"),
    PriceKind("community", "spot", "communitySpotPrice", COMMUNITY, "marketplace"),
)


class RunPod(RemoteProvider):
    """RunPod's pods, on demand, interruptible and reserved."""

    name = "runpod"
    home = "https://api.runpod.io"
    fresh_for = timedelta(minutes=30)

    def fetch(self) -> Fetched:
        """All GPU types; without stock where that cannot be read. Raises ProviderError."""
        collector, types = self.collector(), self._ask(TYPES)
        stock: Stock = {}
        with isolate_part(collector, "stock by data center"):
            stock = parse_stock(self._ask(CENTERS), collector)
        return parse(types, stock, collector)

    def _ask(self, query: str) -> object:
        key = self.context.env.get("RUNPOD_API_KEY")
        headers = {"Authorization": f"Bearer {key}"} if key else None
        return self.http.post_json(f"{self.url}/graphql", {"query": query}, headers=headers)


def parse_stock(answer: object, collector: OfferCollector) -> Stock:
    """Where each type of GPU is, and whether in stock."""
    stock: dict[str, dict[str, bool]] = defaultdict(dict)
    for center in list_at(_data(answer), "dataCenters"):
        with collector.row(center):
            region = get_text(center, "id")
            if center.get("listed") is False:
                raise SkippedRow("data center not listed")
            for entry in get_list(center, "gpuAvailability"):
                gpu = get_text(entry, "gpuTypeId")
                stock[gpu][region] = entry.get("stockStatus") in IN_STOCK
    return stock


def parse(answer: object, stock: Stock, collector: OfferCollector) -> Fetched:
    """The offers of an answer: secure ones for each data center that has the type, all others without a place."""
    for row in list_at(_data(answer), "gpuTypes"):
        with collector.row(row):
            gpu = get_text(row, "id")
            accelerator = collector.accelerator(gpu, get_memory_gb(row, "memoryInGb"))
            for kind in KINDS:
                with collector.row(f"{gpu} {kind.cloud} {kind.price}"):
                    _read(row, kind, accelerator, stock.get(gpu, {}), collector)
            with collector.row(f"{gpu} bid"):
                _read_bid(row, accelerator, collector)
    return collector.fetched()


def _data(answer: object) -> Mapping[str, Any]:
    errors = expect_object(answer, "the answer").get("errors")
    if errors:
        raise ProviderError(f"runpod answered with errors: {errors}"[:300])
    return expect_object(expect_object(answer, "the answer").get("data"), "data")


def _read(row: Mapping[str, Any], kind: PriceKind, accelerator: str, centers: Mapping[str, bool], collector: OfferCollector) -> None:
    price, most = _price(row, kind), get_count(row, kind.most) if row.get(kind.most) is not None else 1
    places = centers if kind.cloud == "secure" and centers else {ANY_REGION: False}
    for count in (count for count in COUNTS if count <= most):
        for region, in_stock in places.items():
            name, more = (
                f"{count}x {row['id']} {kind.cloud}",
                {"market": kind.market, "availability": _availability(in_stock, count), "terms": kind.terms},
            )
            collector.add(region, name, accelerator, count, kind.pricing, price * count, **more)


def _availability(in_stock: bool, count: int) -> Availability:
    """Availability of a pod: RunPod states stock of a type, not of pods with several GPUs, which can only be ordered."""
    if not in_stock:
        return "listed"
    return "live" if count == 1 else "offered"


def _price(row: Mapping[str, Any], kind: PriceKind) -> Decimal:
    """Price of one GPU [USD per hour]; the rates of terms are per hour too."""
    if not row.get(kind.price):
        raise SkippedRow(f"no {kind.cloud} {kind.pricing} price")
    on_demand = f"{kind.cloud}Price"
    return get_usd(row, kind.price, get_usd(row, on_demand) if row.get(on_demand) else None)


def _read_bid(row: Mapping[str, Any], accelerator: str, collector: OfferCollector) -> None:
    lowest = get_object(row, "lowestPrice") if row.get("lowestPrice") else {}
    if not lowest.get("minimumBidPrice"):
        raise SkippedRow("no bids")
    on_demand = get_usd(lowest, "uninterruptablePrice") if lowest.get("uninterruptablePrice") else None
    floor = get_usd(lowest, "minimumBidPrice", on_demand)
    more = {"market": "auction_floor", "availability": "live" if lowest.get("stockStatus") in IN_STOCK else "listed"}
    collector.add(ANY_REGION, f"1x {row['id']} bid", accelerator, 1, "spot", floor, **more)
