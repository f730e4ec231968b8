"""AWS's samples against values read by hand, and against catalogues of the same instance types."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from providers.aws import capacity_blocks, instance_types, price_list, spot
from providers.aws.ec2 import parse_xml
from providers.aws.model import Price
from providers.catalog_files.naming import shape_of
from tests.unit.providers.aws_samples import price_list as as_price_list
from tests.unit.providers.aws_samples import row as list_row
from tests.unit.providers.aws_samples import xml
from tests.unit.providers.recorded_samples import collector, recorded, sample

KARPENTER = "karpenter-pricing/aws_ondemand_linux_2026-07-20.csv"
VANTAGE = "aws-gpu-2025-11-30/aws_gpu_instances.csv"


def on_demand(path: str, instance_type: str) -> Decimal:
    """A catalogue's price in us-east-1."""
    with sample(path).open(encoding="utf-8", newline="") as lines:
        rows = (row for row in csv.DictReader(lines) if (row["InstanceType"], row["Region"]) == (instance_type, "us-east-1"))
        return Decimal(next(rows)["OnDemandUSDPerHour"])


@pytest.mark.parametrize("as_xml", [False, True])
def test_ec2_and_the_table_agree_on_what_a_type_holds(as_xml: bool) -> None:
    """82 accelerated types; where both know one, they say the same. The same from the SDK's shape and from XML."""
    rows = recorded("aws/ec2_DescribeInstanceTypes_accelerated.json")["InstanceTypes"]
    if as_xml:
        rows = parse_xml(xml("DescribeInstanceTypes", {"InstanceTypeSet": rows}))["InstanceTypes"]
    notes = collector("aws")
    described = instance_types.parse(rows, notes)
    compared = 0
    for name, hardware in described.items():
        shape = shape_of("aws", name)
        if shape is not None and not shape.reason:
            assert (notes.accelerator(hardware.label, hardware.memory_gib), hardware.count) == (shape.accelerator, int(shape.count)), name
            compared += 1
    assert compared == 52
    assert {each.row.split()[1].split(".")[0] for each in notes.rejected} == {"g6f", "gr6f"}
    assert {name for name, hardware in described.items() if hardware.has_capacity_blocks} == {
        "p4d.24xlarge", "p4de.24xlarge", "p5.4xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge",
        "p6-b300.48xlarge", "trn1.32xlarge", "trn2.3xlarge", "trn2.48xlarge",
    }  # fmt: skip


def test_types_without_accelerator_are_passed_over() -> None:
    """25 processor types hold none; of t3.micro and p3.16xlarge only the latter does."""
    notes = collector("aws")
    assert instance_types.parse(recorded("aws/ec2_DescribeInstanceTypes_25.json")["InstanceTypes"], notes) == {}
    found = instance_types.parse(recorded("aws/ec2_DescribeInstanceTypes_t3.micro_p3.16xlarge.json")["InstanceTypes"], notes)
    assert [(name, held.label, held.memory_gib, held.count) for name, held in found.items()] == [("p3.16xlarge", "V100", 16.0, 8)]
    assert instance_types.accelerator_of("p3.16xlarge", found, notes) == ("NVIDIA-V100-16GB-SXM2", 8)


def test_offerings_by_zone() -> None:
    """By zone name of one account, and by zone identifier, which means the same in all."""
    notes = collector("aws")
    by_name = instance_types.parse_offerings(
        recorded("aws/ec2_DescribeInstanceTypeOfferings_us-east-2a.json")["InstanceTypeOfferings"], notes
    )
    assert (len(by_name), by_name["p3.16xlarge"]) == (228, ("us-east-2a",))
    regions = recorded("aws/ec2_DescribeInstanceTypeOfferings_az-id_accelerated.json")
    zones = [zone["ZoneId"] for zone in recorded("aws/ec2_DescribeAvailabilityZones_us-east-2.json")["AvailabilityZones"]]
    assert instance_types.parse_offerings(regions["us-east-2"], notes)["p5.48xlarge"] == tuple(zones)
    assert notes.rejected == []


@pytest.mark.parametrize("as_xml", [False, True])
def test_spot_prices_of_five_zones(as_xml: bool) -> None:
    """250 prices; the newest of the zones are .0381, .0389, .0423, .0431 and .0437."""
    rows = recorded("aws/ec2_DescribeSpotPriceHistory_m5.large.json")["SpotPriceHistory"]
    if as_xml:
        rows = parse_xml(xml("DescribeSpotPriceHistory", {"SpotPriceHistorySet": rows}))["SpotPriceHistory"]
    (price,) = spot.parse(rows, collector("aws"))
    assert (price.instance_type, price.usd_per_hour, price.extras) == ("m5.large", Decimal("0.0423"), {"zones_with_spot_price": "5"})


def test_a_capacity_block_of_a_day() -> None:
    """4500 dollars for 24 hours of eight GPUs: 23.4375 a GPU and hour."""
    rows = recorded("aws/ec2_DescribeCapacityBlockOfferings_fixture.json")["CapacityBlockOfferings"]
    (block,) = capacity_blocks.parse(rows, collector("aws"))
    assert (block.instance_type, block.zone, block.usd_per_hour / 8) == ("p5.48xlarge", "us-east-1a", Decimal("23.4375"))


def product_rows(options: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """The recorded product's terms as rows of a price list, under the name of a type with GPUs; reservations of these options."""
    product = recorded("aws/pricing_GetProducts_m5.large.json")
    attributes: dict[str, Any] = product["product"]["attributes"]
    same = {
        "Tenancy": attributes["tenancy"],
        "Operating System": attributes["operatingSystem"],
        "CapacityStatus": attributes["capacitystatus"],
        "Pre Installed S/W": attributes["preInstalledSw"],
    }
    names = {"LeaseContractLength": "LeaseContractLength", "PurchaseOption": "PurchaseOption", "OfferingClass": "OfferingClass"}
    for kind, terms in product["terms"].items():
        for term in terms.values():
            sale = {name: term["termAttributes"].get(field, "") for name, field in names.items()}
            if sale["PurchaseOption"] in ("", *options):
                for price in term["priceDimensions"].values():
                    stated = {"TermType": kind, "Unit": price["unit"], "PricePerUnit": price["pricePerUnit"]["USD"]}
                    yield list_row() | same | sale | stated


def read(options: tuple[str, ...]) -> dict[str, Price]:
    """What those rows become, by kind of pricing."""
    text = as_price_list(*product_rows(options))
    return {price.pricing: price for price in price_list.parse(text.splitlines(), "us-east-1", {}, collector("aws"))}


def test_a_product_with_all_its_terms() -> None:
    """On demand .096; a year .06 and three years .041 with nothing upfront, in the standard class."""
    found = read(("No Upfront", "Partial Upfront", "All Upfront"))
    assert {pricing: price.usd_per_hour for pricing, price in found.items()} == {
        "on_demand": Decimal("0.096"),
        "reserved_1y": Decimal("0.06"),
        "reserved_3y": Decimal("0.041"),
    }


def test_a_reservation_paid_upfront_agrees_with_the_offerings_of_ec2() -> None:
    """949 dollars for three years, as the table made of EC2's reservation offerings states for us-east-2, where prices are the same."""
    price = read(("Partial Upfront", "All Upfront"))["reserved_3y"]
    offerings = recorded("aws/ec2_reservation_offerings_opencost.json")
    assert price.extras == {"purchase_option": "All Upfront"}
    assert float(price.usd_per_hour) == pytest.approx(float(offerings["m5.large/us-east-2"]), rel=1e-12)


@pytest.mark.parametrize(("instance_type", "usd"), [("p5.48xlarge", "55.04"), ("p4d.24xlarge", "21.957642")])
def test_the_price_page_and_two_catalogues_state_the_same(instance_type: str, usd: str) -> None:
    """The public pricing page (September 2026, looked up by its field), karpenter (July 2026) and vantage (November 2025)."""
    feed = recorded("aws/pricing_page_feed_p5_p4d_us-east-1_fixture_2026-09.json")
    (row,) = (row for row in feed["regions"]["US East (N. Virginia)"].values() if row["Instance Type"] == instance_type)
    assert {Decimal(row["price"]), on_demand(KARPENTER, instance_type), on_demand(VANTAGE, instance_type)} == {Decimal(usd)}
