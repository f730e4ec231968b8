"""Calls to EC2 for one region with an account's credentials."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from providers.aws import capacity_blocks, instance_types, spot
from providers.aws.ec2 import Account
from providers.aws.model import RegionalMarket, isolate_region
from providers.row_parsing import OfferCollector

ACCELERATED_FAMILIES = {"Filter.1.Name": "instance-type"} | {
    f"Filter.1.Value.{number}": pattern for number, pattern in enumerate(("p*", "g*", "trn*", "dl*"), start=1)
}
"""The families with accelerators for training: https://aws.amazon.com/ec2/instance-types/#Accelerated_Computing (2026)."""
SMALLEST_BLOCK = {"InstanceCount": "1", "CapacityDurationHours": "24"}
"""The smallest capacity block."""


def fetch_market(account: Account, region: str, now: datetime, collector: OfferCollector) -> RegionalMarket:
    """Hardware, zones, blocks and spot prices of a region; a call that fails is recorded in `rejected` and leaves its part empty."""

    def rows(action: str, fields: Mapping[str, str]) -> list[Any]:
        found: list[Any] = []
        with isolate_region(collector, f"{region} {action}"):
            found += account.rows(region, action, fields)
        return found

    hardware = instance_types.parse(rows("DescribeInstanceTypes", ACCELERATED_FAMILIES), collector)
    zones = instance_types.parse_offerings(
        rows("DescribeInstanceTypeOfferings", ACCELERATED_FAMILIES | {"LocationType": "availability-zone-id"}), collector
    )
    since = {"ProductDescription.1": spot.LINUX, "StartTime": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    prices = spot.parse(rows("DescribeSpotPriceHistory", ACCELERATED_FAMILIES | since), collector)
    asked = [name for name in zones if name in hardware and hardware[name].has_capacity_blocks]
    offered = [row for name in asked for row in rows("DescribeCapacityBlockOfferings", SMALLEST_BLOCK | {"InstanceType": name})]
    return RegionalMarket(hardware, zones, capacity_blocks.cheapest_by_type(capacity_blocks.parse(offered, collector)), prices)
