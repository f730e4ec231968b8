"""The bulk price list of EC2 in one region: a CSV of a million rows, of which a few thousand are wanted.

https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/reading-an-offer.html. Five lines about the file precede the header. A
reservation has up to three rows: dollars per hour, and dollars upfront under the unit "Quantity".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from operator import attrgetter

from providers.aws.instance_types import is_known
from providers.aws.model import Hardware, Price
from providers.aws.offer_file import OfferFile, read_rows
from providers.offer import Pricing
from providers.row_parsing import BadRow, OfferCollector, parse_usd

KEPT = {
    "Tenancy": ("Shared",),
    "Operating System": ("Linux",),
    "CapacityStatus": ("Used",),
    "Currency": ("USD",),
    "Pre Installed S/W": ("", "NA"),
    "MarketOption": ("OnDemand",),
    "OfferingClass": ("", "standard"),
}
"""A machine of one's own kind of sale: no licence in the price, no dedicated host, no idle reservation, no capacity block at price 0."""
OTHERS = ("TermType", "Unit", "PricePerUnit", "LeaseContractLength", "PurchaseOption", "Region Code", "Instance Type", "GPU")
BULK_LIST = OfferFile("price list", KEPT, OTHERS, words=("Linux", "Shared", "Used"))
TERMS: Mapping[str, tuple[Pricing, int]] = {"1yr": ("reserved_1y", 8760), "3yr": ("reserved_3y", 3 * 8760)}
NO_UPFRONT = "No Upfront"
UNITS = {NO_UPFRONT: ("Hrs",), "Partial Upfront": ("Hrs", "Quantity"), "All Upfront": ("Quantity",)}

Sale = tuple[str, str, str]
"""Instance type, term of the lease and purchase option; the last two are empty for on-demand."""
Stated = Mapping[str, set[str]]
"""The prices stated for a sale, by unit: one each where the list is in order."""


def parse(lines: Iterable[str], region: str, described: Mapping[str, Hardware], collector: OfferCollector) -> list[Price]:
    """On-demand and reserved prices of the types with accelerators [USD per hour]. Raises ProviderError where the file is no price list."""
    sales: dict[Sale, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in read_rows(lines, BULK_LIST, region, collector):
        if row["Region Code"] == region and (row["GPU"] or is_known(row["Instance Type"], described)):
            sale = row["Instance Type"], row["LeaseContractLength"], row["PurchaseOption"]
            sales[sale][row["Unit"]].add(row["PricePerUnit"])
    found: dict[Sale, Price] = {}
    for sale, stated in sales.items():
        with collector.row(" ".join((region, *sale)).strip()):
            found[sale] = _on_demand(sale, stated) if sale[1:] == ("", "") else _reserved(sale, stated)
    return _one_a_term(found)


def _on_demand(sale: Sale, stated: Stated) -> Price:
    return Price(sale[0], "on_demand", parse_usd(_only(stated, "Hrs")))


def _reserved(sale: Sale, stated: Stated) -> Price:
    """Hourly price plus upfront price over the hours of the term [USD per hour]; both above 0 where the option charges them."""
    instance_type, term, option = sale
    if term not in TERMS or option not in UNITS:
        raise BadRow("a term or purchase option that is not known")
    pricing, hours = TERMS[term]
    price = {unit: parse_usd(_only(stated, unit), unit) for unit in UNITS[option]}
    per_hour = price.get("Hrs", Decimal(0)) + price.get("Quantity", Decimal(0)) / hours
    return Price(instance_type, pricing, per_hour, {"purchase_option": option})


def _only(stated: Stated, unit: str) -> str:
    prices = sorted(stated.get(unit, ()))
    if len(prices) != 1:
        raise BadRow(f"{len(prices)} prices with the unit {unit} where one was expected: {', '.join(prices)}")
    return prices[0]


def _one_a_term(found: Mapping[Sale, Price]) -> list[Price]:
    """One price for each type and term: no upfront where sold, else the cheapest option."""
    options: dict[tuple[str, str], list[Price]] = defaultdict(list)
    for price in found.values():
        options[price.instance_type, price.pricing].append(price)
    return [_preferred(prices) for prices in options.values()]


def _preferred(prices: list[Price]) -> Price:
    plain = [price for price in prices if price.extras.get("purchase_option") == NO_UPFRONT]
    return min(plain or prices, key=attrgetter("usd_per_hour"))
