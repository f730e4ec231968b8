"""Asking EC2 what an account may know of one region."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from providers.aws import capacity_blocks, instance_types, spot
from providers.aws.ec2 import Account
from providers.aws.model import RegionMarket, one_part
from providers.row_parsing import Reading

ACCELERATED = {"Filter.1.Name": "instance-type"} | {
    f"Filter.1.Value.{number}": pattern for number, pattern in enumerate(("p*", "g*", "trn*", "dl*"), start=1)
}
"""The families with accelerators for training: https://aws.amazon.com/ec2/instance-types/#Accelerated_Computing (2026)."""
BLOCK = {"InstanceCount": "1", "CapacityDurationHours": "24"}
"""The smallest capacity block there is."""


def ask(account: Account, region: str, now: datetime, reading: Reading) -> RegionMarket:
    """All of it; a call that fails is named in `rejected` and leaves its part empty."""

    def rows(action: str, fields: Mapping[str, str]) -> list[Any]:
        found: list[Any] = []
        with one_part(reading, f"{region} {action}"):
            found += account.rows(region, action, fields)
        return found

    hardware = instance_types.parse(rows("DescribeInstanceTypes", ACCELERATED), reading)
    zones = instance_types.parse_offerings(
        rows("DescribeInstanceTypeOfferings", ACCELERATED | {"LocationType": "availability-zone-id"}), reading
    )
    since = {"ProductDescription.1": spot.LINUX, "StartTime": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    prices = spot.parse(rows("DescribeSpotPriceHistory", ACCELERATED | since), reading)
    asked = [name for name in zones if name in hardware and hardware[name].has_capacity_blocks]
    offered = [row for name in asked for row in rows("DescribeCapacityBlockOfferings", BLOCK | {"InstanceType": name})]
    return RegionMarket(hardware, zones, capacity_blocks.cheapest(capacity_blocks.parse(offered, reading)), prices)
