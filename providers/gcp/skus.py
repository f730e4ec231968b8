"""Prices of parts: which part a SKU's description names, its pricing and its regions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from types import MappingProxyType

from providers.catalog_files.model import MAX_USD
from providers.offer import Pricing
from providers.row_parsing import BadRow, OfferCollector, SkippedRow, get_first, get_object, get_text, get_texts, parse_decimal, parse_usd
from providers.tables import read_table

PartPrices = Mapping[tuple[str, Pricing], Mapping[str, Decimal]]
"""USD an hour of one unit of a part (core, GiB, device, chip) by part and pricing, then by region."""

DESCRIPTION = re.compile(
    r"(?P<commitment>Commitment v1: )?(?P<spot>(?:Spot )?Preemptible )?(?P<name>.+?)"
    r"(?P<spot_vm> attached to (?:Spot )?Preemptible VMs)?(?P<place> (?:running )?in .+?| (?:USA?|EU|Europe|Asia))?"
    r"(?: for (?P<years>[13]) Years?)?"
)
NOT_THESE = re.compile(
    r"Sole Tenancy|Reserved|Premium|Custom|DWS|Calendar Mode|Defined Duration|Capacity Optimized|suspended|dollar based", re.IGNORECASE
)
"""Other ways to buy the same parts, which are no price of the machines here."""
COMMITMENTS: Mapping[str, Pricing] = {"1": "reserved_1y", "3": "reserved_3y"}
USAGE: Mapping[str, Pricing] = {"OnDemand": "on_demand", "Preemptible": "spot", "Commit1Yr": "reserved_1y", "Commit3Yr": "reserved_3y"}
HOURS_PER_MONTH = 730  # of Google's price list
UNITS_PER_HOUR: Mapping[str, Decimal] = {"h": Decimal(1), "GiBy.h": Decimal(1), "GiBy.mo": Decimal(HOURS_PER_MONTH)}
NANO_USD = Decimal("1e-9")
NANOS_A_UNIT = 10**9


def read_skus(skus: Iterable[object], collector: OfferCollector) -> PartPrices:
    """Prices of all parts of machines; the higher of two prices of one part in one region."""
    prices: dict[tuple[str, Pricing], dict[str, Decimal]] = defaultdict(dict)
    for sku in skus:
        description = sku.get("description") if isinstance(sku, dict) else sku
        with collector.row(description):
            key = _part(sku)
            if key is None:
                continue
            price = _usd(sku)
            for region in get_texts(sku, "serviceRegions"):
                prices[key][region] = max(price, prices[key].get(region, price))
    return MappingProxyType(prices)


@cache
def _names() -> Mapping[str, str]:
    return {row["name"].lower(): row["part"] for row in read_table("gcp_parts.csv")}


def _part(sku: object) -> tuple[str, Pricing] | None:
    """Part and pricing of a SKU; None for SKUs of other things. Raises SkippedRow for an accelerator without part."""
    description = get_text(sku, "description")
    found = DESCRIPTION.fullmatch(description)
    if found is None or NOT_THESE.search(description):
        return None
    name = _names().get(found["name"].lower())
    if name is None:
        if get_object(sku, "category").get("resourceGroup") in ("GPU", "TPU"):
            raise SkippedRow(f"no machine known that is composed of: {found['name']}")
        return None
    return name, _pricing(found, get_text(get_object(sku, "category"), "usageType"))


def _pricing(found: re.Match[str], usage: str) -> Pricing:
    """Kind of pricing. Some spot SKUs have the usage type of on-demand and state spot in the description only."""
    if found["commitment"]:
        if found["years"] is None:
            raise BadRow("a commitment without its term")
        return COMMITMENTS[found["years"]]
    if found["spot"] or found["spot_vm"]:
        return "spot"
    if usage not in USAGE:
        raise SkippedRow(f"usage type {usage}")
    return USAGE[usage]


def _usd(sku: object) -> Decimal:
    """Exact price of one unit [USD per hour], from units and billionths. Raises BadRow."""
    expression = get_object(get_first(sku, "pricingInfo"), "pricingExpression")
    unit = get_text(expression, "usageUnit")
    if unit not in UNITS_PER_HOUR:
        raise BadRow(f"the unit {unit} where one an hour or a month was expected")
    money = get_object(get_first(expression, "tieredRates"), "unitPrice")
    if get_text(money, "currencyCode") != "USD":
        raise BadRow(f"a price in {get_text(money, 'currencyCode')} where USD was asked for")
    units, nanos = parse_decimal(money.get("units", "0"), "units"), parse_decimal(money.get("nanos", 0), "nanos")
    if not 0 <= nanos < NANOS_A_UNIT:
        raise BadRow(f"nanos is {nanos}: no billionths of a dollar")
    listed = parse_usd(units + nanos * NANO_USD, "unitPrice")
    if listed > MAX_USD:
        raise BadRow(f"unitPrice is {listed}: no price of an hour")
    return listed / UNITS_PER_HOUR[unit]
