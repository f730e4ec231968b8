"""Capacity blocks: the only stock that EC2 states. They are prepaid for fixed dates, so they are no price of an instance by the hour.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityBlockOffering.html: the fee is for all instances and the whole time;
the minutes come on top of the hours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from providers.aws.model import CapacityBlock
from providers.aws.spot import moment
from providers.row_parsing import BadRow, NotForUs, Reading, decimal, text, usd, whole

MINUTES_PER_HOUR = 60


def parse(rows: Iterable[object], reading: Reading) -> list[CapacityBlock]:
    """The blocks of `DescribeCapacityBlockOfferings`."""
    found = []
    for row in rows:
        with reading.row("DescribeCapacityBlockOfferings"):
            found.append(_block(row))
    return found


def cheapest(blocks: Iterable[CapacityBlock]) -> dict[str, CapacityBlock]:
    """The block of each instance type with the lowest price an hour; of equal ones the earliest."""
    return {block.instance_type: block for block in sorted(blocks, key=lambda block: (block.usd_per_hour, block.starts), reverse=True)}


def extras(block: CapacityBlock) -> Mapping[str, str]:
    """A block as what a reader of the on-demand offer may want to know."""
    return {
        "capacity_block_usd_per_hour": f"{block.usd_per_hour:.4f}",
        "capacity_block_hours": f"{block.hours:f}",
        "capacity_block_starts": block.starts.isoformat(),
        "capacity_block_zone": block.zone,
    }


def _block(row: Any) -> CapacityBlock:
    instance_type, currency = text(row, "InstanceType"), text(row, "CurrencyCode")
    if row.get("UltraserverType"):
        raise NotForUs("capacity block of a whole UltraServer")
    if currency != "USD":
        raise BadRow(f"the fee of {instance_type} is in {currency}")
    return CapacityBlock(
        instance_type=instance_type,
        zone=text(row, "AvailabilityZone"),
        instances=whole(row, "InstanceCount"),
        starts=moment(text(row, "StartDate"), "StartDate"),
        hours=_hours(row),
        upfront_usd=usd(row.get("UpfrontFee"), "UpfrontFee"),
    )


def _hours(row: Mapping[str, Any]) -> Decimal:
    minutes = decimal(row.get("CapacityBlockDurationMinutes", 0), "CapacityBlockDurationMinutes")
    hours = decimal(row.get("CapacityBlockDurationHours"), "CapacityBlockDurationHours") + minutes / MINUTES_PER_HOUR
    if minutes < 0 or hours <= 0:
        raise BadRow(f"a block of {hours} hours")
    return hours
