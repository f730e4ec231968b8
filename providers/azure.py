"""Azure: retail prices of the N series, by region and meter.

GET /api/retail/prices (https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices), no credentials, pages of
1,000 rows; values in the filter are case-sensitive. Linux and Windows differ in the product's name only, spot in the meter's; a
reservation's price is for the whole term. The answer does not describe hardware: the project's table of instance types does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from providers.base import RemoteProvider
from providers.catalog_files.naming import shape_of
from providers.common import isolate_part
from providers.http import origin
from providers.offer import NO_TERMS, Fetched, OfferTerms, Pricing, ProviderError
from providers.row_parsing import BadRow, OfferCollector, SkippedRow, expect_list, expect_object, get_list, get_text, parse_usd

QUERY = {
    "api-version": "2023-01-01-preview",
    "$filter": "serviceName eq 'Virtual Machines' and contains(armSkuName, 'Standard_N')",
}
MAX_PAGES = 200
NEVER = datetime.max.replace(tzinfo=UTC)
WINDOWS = (" Windows", " Win")
TERMS: Mapping[str, tuple[Pricing, int]] = {
    "1 Year": ("reserved_1y", 8760),
    "3 Years": ("reserved_3y", 3 * 8760),
    "5 Years": ("reserved", 5 * 8760),
}
"""Kind of pricing and hours of a commitment."""
DISCOUNT = OfferTerms(capacity=False)
"""Terms of a savings plan, which tell it from a reservation of the same term."""

Sale = tuple[str, str, Pricing]
"""Region, size and kind of pricing."""


@dataclass(frozen=True, slots=True)
class MeterPrice:
    """Price of one row [USD per hour], and whether this meter bills in this region."""

    usd_per_hour: Decimal
    is_primary: bool


class Azure(RemoteProvider):
    """Azure's public cloud at list prices; its sovereign clouds publish no such list."""

    name = "azure"
    home = "https://prices.azure.com"
    fresh_for = timedelta(hours=12)

    def fetch(self) -> Fetched:
        """All sizes in all regions; where a later page fails, that is named in `rejected`. Raises ProviderError where nothing came."""
        collector = self.collector()
        items: list[Any] = []
        pages = self._pages()
        items += next(pages)
        with isolate_part(collector, "further pages"):
            for page in pages:
                items += page
        if not items:
            raise ProviderError("azure answered without rows: the filter's names no longer fit")
        return parse({"Items": items}, collector)

    def _pages(self) -> Iterator[list[Any]]:
        answer = self.http.get_json(f"{self.url}/api/retail/prices", params=QUERY)
        for _ in range(MAX_PAGES):
            page = expect_object(answer, "the answer")
            yield expect_list(page.get("Items"), "Items")
            if page.get("NextPageLink") is None:
                return
            answer = self.http.get_json(self._same_host(page["NextPageLink"]))
        raise ProviderError(f"azure answered with more than {MAX_PAGES} pages")

    def _same_host(self, link: object) -> str:
        """The link to the next page, without the port 443 that it names."""
        try:
            if isinstance(link, str) and origin(urlsplit(link)) == origin(urlsplit(self.url)):
                return link
        except ValueError as error:
            raise ProviderError(f"no address: {str(link)[:80]}") from error
        raise ProviderError(f"NextPageLink leads elsewhere: {str(link)[:80]}")


def parse(answer: object, collector: OfferCollector) -> Fetched:
    """Offers of an answer's rows: a savings plan where the same term has no reservation."""
    meters: dict[Sale, set[MeterPrice]] = defaultdict(set)
    plans: dict[Sale, set[MeterPrice]] = defaultdict(set)
    for row in expect_list(expect_object(answer, "the answer").get("Items"), "Items"):
        with collector.row(_named(row)):
            sale, meter = _read(row, collector)
            meters[sale].add(meter)
            for plan, price in _read_plans(row, sale, collector):
                plans[plan].add(replace(meter, usd_per_hour=price))
    prices, plan_prices = _one_each(meters, collector), _one_each(plans, collector)
    for sale, price in prices.items():
        with collector.row(" ".join(sale)):
            _add(sale, price, prices.get((*sale[:2], "on_demand")), collector)
    for plan, price in plan_prices.items():
        if plan not in prices:
            with collector.row(f"{' '.join(plan)} savings plan"):
                _add(plan, price, None, collector, terms=DISCOUNT, extras={"purchase_option": "savings plan"})
    return collector.fetched()


def _one_each(stated: Mapping[Sale, Iterable[MeterPrice]], collector: OfferCollector) -> dict[Sale, Decimal]:
    """The price of each sale that has one [USD per hour]."""
    prices: dict[Sale, Decimal] = {}
    for sale, meters in stated.items():
        with collector.row(" ".join(sale)):
            prices[sale] = _one(meters)
    return prices


def _read_plans(row: Any, sale: Sale, collector: OfferCollector) -> Iterator[tuple[Sale, Decimal]]:
    """Savings plans of an on-demand row [USD per hour]; a plan that is not understood does not cost the row."""
    if sale[2] != "on_demand" or not row.get("savingsPlan"):
        return
    with collector.row(f"{_named(row)} savings plans"):
        for plan in get_list(row, "savingsPlan"):
            with collector.row(f"{_named(row)} savings plan"):
                yield (sale[0], sale[1], _term(get_text(plan, "term"))[0]), parse_usd(plan.get("retailPrice"), "savingsPlan retailPrice")


def _read(row: Any, collector: OfferCollector) -> tuple[Sale, MeterPrice]:
    _check_kind(get_text(row, "productName"), get_text(row, "meterName"), get_text(row, "type"))
    if (get_text(row, "unitOfMeasure"), get_text(row, "currencyCode")) != ("1 Hour", "USD"):
        raise BadRow(f"a price in {row['currencyCode']} for {row['unitOfMeasure']}")
    if (_moment(row, "effectiveStartDate") or collector.at) > collector.at:
        raise SkippedRow("price of a later date")
    if (_moment(row, "effectiveEndDate") or NEVER) <= collector.at:
        raise SkippedRow("price of an earlier date")
    pricing, hours = _pricing(row)
    price = parse_usd(row.get("retailPrice"), "retailPrice") / hours
    return (get_text(row, "armRegionName"), get_text(row, "armSkuName"), pricing), MeterPrice(
        price, row.get("isPrimaryMeterRegion") is not False
    )


def _check_kind(product: str, meter: str, kind: str) -> None:
    if product.endswith(WINDOWS):
        raise SkippedRow("Windows")
    if "Low Priority" in meter:
        raise SkippedRow("Low Priority, retired")
    if "Dedicated" in product:
        raise SkippedRow("dedicated host")
    if "CloudServices" in product.replace(" ", ""):
        raise SkippedRow("Cloud Services, not virtual machines")
    if kind not in ("Consumption", "Reservation"):
        raise SkippedRow(f"price of the type {kind}")


def _moment(row: Any, name: str) -> datetime | None:
    """Start or end of a price's validity; None where the row has none."""
    written = row.get(name)
    try:
        return datetime.fromisoformat(str(written)).astimezone(UTC) if written else None
    except (ValueError, OverflowError) as error:
        raise BadRow(f"{name} is {str(written)[:40]!r} where a time was expected") from error


def _pricing(row: Any) -> tuple[Pricing, int]:
    """Kind of pricing, and hours that the row's price pays for."""
    if row["type"] == "Consumption":
        return ("spot" if "Spot" in row["meterName"] else "on_demand"), 1
    return _term(get_text(row, "reservationTerm"))


def _term(term: str) -> tuple[Pricing, int]:
    if term not in TERMS:
        raise SkippedRow(f"commitment of {term}")
    return TERMS[term]


def _one(stated: Iterable[MeterPrice]) -> Decimal:
    """Price of the billing meter where meters state different prices [USD per hour]."""
    prices = {meter.usd_per_hour for meter in stated if meter.is_primary} or {meter.usd_per_hour for meter in stated}
    if len(prices) > 1:
        raise BadRow(f"{len(prices)} prices: {', '.join(str(price) for price in sorted(prices))}")
    return prices.pop()


def _add(sale: Sale, price: Decimal, on_demand: Decimal | None, collector: OfferCollector, **more: Any) -> None:
    region, size, pricing = sale
    if pricing == "reserved":
        more["terms"] = replace(more.get("terms", NO_TERMS), term_hours=float(TERMS["5 Years"][1]))
    shape = shape_of("azure", size)
    if shape is None or shape.reason:
        raise SkippedRow(shape.reason if shape else "no accelerator")
    if pricing == "spot" and on_demand is not None and price > on_demand:
        raise BadRow(f"a spot price of {price} above the on-demand price of {on_demand}")
    collector.add(region, size, collector.accelerator(shape.accelerator), int(shape.count), pricing, price, **more)


def _named(row: Any) -> str:
    names = ("armRegionName", "armSkuName", "meterName", "reservationTerm")
    return " ".join(str(row[name]) for name in names if row.get(name)) if isinstance(row, dict) else str(row)
