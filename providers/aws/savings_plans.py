"""The price list of savings plans in one region: what types without a reservation cost under a commitment to dollars.

https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/service-region-index-files-for-savings-plan.html. A rate is per hour. P5, P5en
and P6 have no standard reservation of a year: their blank is filled by a plan, it is no price of zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from providers.aws.instance_types import is_known
from providers.aws.model import Hardware, Price
from providers.aws.offer_file import OfferFile, read_rows
from providers.offer import OfferTerms, Pricing
from providers.row_parsing import BadRow, OfferCollector, expect_list, expect_object, get_text, parse_usd

INDEX = "/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/current/region_index.json"
KEPT = {
    "DiscountedServiceCode": ("AmazonEC2",),
    "DiscountedOperation": ("RunInstances",),
    "PurchaseOption": ("No Upfront",),
    "LeaseContractLengthUnit": ("year",),
    "Product Family": ("EC2InstanceSavingsPlans", "ComputeSavingsPlans"),
    "Unit": ("Hrs",),
    "Currency": ("USD",),
}
"""Plans without upfront payment for Linux on shared machines; the operation of Windows and others has a suffix."""
OTHERS = ("DiscountedRate", "DiscountedUsageType", "LeaseContractLength", "DiscountedRegionCode", "DiscountedInstanceType")
PLANS = OfferFile("list of savings plans", KEPT, OTHERS, words=("BoxUsage:", "No Upfront"))
"""A shared machine's usage is BoxUsage; a dedicated one's has another name."""
TERMS: Mapping[str, Pricing] = {"1": "reserved_1y", "3": "reserved_3y"}
DISCOUNT = OfferTerms(capacity=False)
"""Terms of a plan, which tell it from a reservation of the same term."""

Sale = tuple[str, str]
"""Instance type and length of the commitment [years]."""


def file_of(index: object, region: str) -> str:
    """Path of a region's list as CSV, from the index of lists. Raises ProviderError, or BadRow where the region is not in it."""
    for row in expect_list(expect_object(index, "the index of savings plans").get("regions"), "regions"):
        if get_text(row, "regionCode") == region:
            path = get_text(row, "versionUrl")
            if not path.startswith("/"):
                raise BadRow(f"versionUrl is {path[:80]!r} where a path was expected")
            return path.removesuffix(".json") + ".csv"
    raise BadRow("not in the index of savings plans")


def parse(lines: Iterable[str], region: str, described: Mapping[str, Hardware], collector: OfferCollector) -> list[Price]:
    """The cheaper plan of each type and term without upfront payment [USD per hour]. Raises ProviderError where the file is no list."""
    stated: dict[tuple[Sale, str], set[str]] = defaultdict(set)
    for row in read_rows(lines, PLANS, region, collector):
        sale = row["DiscountedInstanceType"], row["LeaseContractLength"]
        if row["DiscountedRegionCode"] == region and is_known(sale[0], described):
            stated[sale, row["Product Family"]].add(row["DiscountedRate"])
    plans: dict[Sale, list[Price]] = defaultdict(list)
    for (sale, family), rates in stated.items():
        with collector.row(f"{region} {sale[0]} {sale[1]} {family}"):
            plans[sale].append(_plan(sale, family, rates))
    return [min(found, key=lambda price: price.usd_per_hour) for found in plans.values() if found]


def without_reservations(plans: Iterable[Price], prices: Iterable[Price]) -> list[Price]:
    """The plans of types and terms that no reservation is sold for."""
    reserved = {(price.instance_type, price.pricing) for price in prices}
    return [plan for plan in plans if (plan.instance_type, plan.pricing) not in reserved]


def _plan(sale: Sale, family: str, rates: set[str]) -> Price:
    if sale[1] not in TERMS:
        raise BadRow(f"a plan of {sale[1]} years")
    if len(rates) != 1:
        raise BadRow(f"{len(rates)} rates where one was expected: {', '.join(sorted(rates))}")
    (rate,) = rates
    return Price(sale[0], TERMS[sale[1]], parse_usd(rate, "DiscountedRate"), {"purchase_option": f"{family}, No Upfront"}, DISCOUNT)
