"""Small answers of AWS, written anew in its documented shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HOST = "https://pricing.us-east-1.amazonaws.com"
INDEX = f"{HOST}/offers/v1.0/aws/AmazonEC2/current/region_index.json"
PREAMBLE = ("FormatVersion", "Disclaimer", "Publication Date", "Version", "OfferCode")
COLUMNS = (
    "SKU", "TermType", "Unit", "PricePerUnit", "Currency", "LeaseContractLength", "PurchaseOption", "OfferingClass", "Location Type",
    "Instance Type", "Tenancy", "Operating System", "CapacityStatus", "GPU", "MarketOption", "Pre Installed S/W", "Region Code",
)  # fmt: skip
ON_DEMAND = {
    "SKU": "SKU1", "TermType": "OnDemand", "Unit": "Hrs", "PricePerUnit": "55.0400000000", "Currency": "USD", "Location Type": "AWS Region",
    "Instance Type": "p5.48xlarge", "Tenancy": "Shared", "Operating System": "Linux", "CapacityStatus": "Used", "GPU": "8",
    "MarketOption": "OnDemand", "Pre Installed S/W": "NA", "Region Code": "us-east-1",
}  # fmt: skip


def list_url(region: str) -> str:
    """Where a region's price list lies."""
    return f"{HOST}/offers/v1.0/aws/AmazonEC2/20261120/{region}/index.csv"


def index(*regions: str) -> dict[str, Any]:
    """The index of regions."""
    entries = {name: {"regionCode": name, "currentVersionUrl": list_url(name).removeprefix(HOST)[:-4] + ".json"} for name in regions}
    return {"formatVersion": "v1.0", "publicationDate": "2026-11-20T00:00:00Z", "regions": entries}


def row(**changes: str) -> dict[str, str]:
    """One row of a price list: p5.48xlarge on demand in us-east-1, but for the changes (underscores stand for spaces)."""
    return ON_DEMAND | {name.replace("_", " "): value for name, value in changes.items()}


def reserved(term: str, option: str, prices: Mapping[str, str], **changes: str) -> list[dict[str, str]]:
    """The rows of one reservation: a price for each unit."""
    sale = {"TermType": "Reserved", "LeaseContractLength": term, "PurchaseOption": option, "OfferingClass": "standard"}
    return [row(Unit=unit, PricePerUnit=price, **(sale | changes)) for unit, price in prices.items()]


def price_list(*rows: Mapping[str, str]) -> str:
    """A price list of these rows."""
    lines = [[name, "text"] for name in PREAMBLE]
    lines += [list(COLUMNS), *([each.get(name, "") for name in COLUMNS] for each in rows)]
    return "\n".join(",".join(f'"{value}"' for value in line) for line in lines) + "\n"


PLANS_INDEX = f"{HOST}/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/current/region_index.json"
PLAN = {
    "SKU": "SKU9", "RateCode": "SKU9.1", "Unit": "Hrs", "EffectiveDate": "2026-09-01", "DiscountedRate": "34.6752", "Currency": "USD",
    "DiscountedSKU": "SKU1", "DiscountedServiceCode": "AmazonEC2", "DiscountedUsageType": "BoxUsage:p5.48xlarge",
    "DiscountedOperation": "RunInstances", "PurchaseOption": "No Upfront", "LeaseContractLength": "1", "LeaseContractLengthUnit": "year",
    "Product Family": "EC2InstanceSavingsPlans", "DiscountedRegionCode": "us-east-1", "DiscountedInstanceType": "p5.48xlarge",
}  # fmt: skip


def plans_url(region: str) -> str:
    """Where a region's list of savings plans lies."""
    return f"{HOST}/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/20261120/{region}/index.csv"


def plans_index(*regions: str) -> dict[str, Any]:
    """The index of the lists of savings plans."""
    entries = [{"regionCode": name, "versionUrl": plans_url(name).removeprefix(HOST)[:-4] + ".json"} for name in regions]
    return {"disclaimer": "text", "publicationDate": "2026-11-20T00:00:00Z", "regions": entries}


def plan(**changes: str) -> dict[str, str]:
    """One rate: p5.48xlarge for a year in us-east-1 as listed in September 2026, but for the changes (underscores stand for spaces)."""
    return PLAN | {name.replace("_", " "): value for name, value in changes.items()}


def plans_list(*rows: Mapping[str, str]) -> str:
    """A list of these rates."""
    lines = [[name, "text"] for name in PREAMBLE]
    lines += [list(PLAN), *([each[name] for name in PLAN] for each in rows)]
    return "\n".join(",".join(f'"{value}"' for value in line) for line in lines) + "\n"


def xml(action: str, value: Mapping[str, Any]) -> str:
    """An answer of the EC2 API: objects become elements, lists become `item` elements."""
    inside = "".join(_element(name, each) for name, each in value.items())
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return f'{head}<{action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>1</requestId>{inside}</{action}Response>'


def _element(name: str, value: Any) -> str:
    local = name[:1].lower() + name[1:]
    if isinstance(value, Mapping):
        inside = "".join(_element(each, child) for each, child in value.items())
    elif isinstance(value, list):
        inside = "".join(_element("item", child) for child in value)
    else:
        inside = "" if value is None else str(value)
    return f"<{local}>{inside}</{local}>"
