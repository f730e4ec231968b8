"""Capacity blocks: the only stock that EC2 states. They are prepaid for fixed dates, so they are no hourly price.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityBlockOffering.html: the fee is for all instances and the whole time;
the minutes are added to the hours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from providers.aws.model import CapacityBlock
from providers.aws.spot import parse_time
from providers.row_parsing import BadRow, OfferCollector, SkippedRow, get_count, get_text, parse_decimal, parse_usd

MINUTES_PER_HOUR = 60


def parse(rows: Iterable[object], collector: OfferCollector) -> list[CapacityBlock]:
    """Blocks of `DescribeCapacityBlockOfferings`."""
    found = []
    for row in rows:
        with collector.row("DescribeCapacityBlockOfferings"):
            found.append(_block(row))
    return found


def cheapest_by_type(blocks: Iterable[CapacityBlock]) -> dict[str, CapacityBlock]:
    """The cheapest block of each instance type [USD per hour]; the earliest of equal ones."""
    return {block.instance_type: block for block in sorted(blocks, key=lambda block: (block.usd_per_hour, block.starts), reverse=True)}


def offer_extras(block: CapacityBlock) -> Mapping[str, str]:
    """Price [USD per hour], duration [h], start and zone of a block, as extras of the on-demand offer."""
    return {
        "capacity_block_usd_per_hour": f"{block.usd_per_hour:.4f}",
        "capacity_block_hours": f"{block.hours:f}",
        "capacity_block_starts": block.starts.isoformat(),
        "capacity_block_zone": block.zone,
    }


def _block(row: Any) -> CapacityBlock:
    instance_type, currency = get_text(row, "InstanceType"), get_text(row, "CurrencyCode")
    if row.get("UltraserverType"):
        raise SkippedRow("capacity block of a whole UltraServer")
    if currency != "USD":
        raise BadRow(f"the fee of {instance_type} is in {currency}")
    return CapacityBlock(
        instance_type=instance_type,
        zone=get_text(row, "AvailabilityZone"),
        instances=get_count(row, "InstanceCount"),
        starts=parse_time(get_text(row, "StartDate"), "StartDate"),
        hours=_hours(row),
        upfront_usd=parse_usd(row.get("UpfrontFee"), "UpfrontFee"),
    )


def _hours(row: Mapping[str, Any]) -> Decimal:
    minutes = parse_decimal(row.get("CapacityBlockDurationMinutes", 0), "CapacityBlockDurationMinutes")
    hours = parse_decimal(row.get("CapacityBlockDurationHours"), "CapacityBlockDurationHours") + minutes / MINUTES_PER_HOUR
    if minutes < 0 or hours <= 0:
        raise BadRow(f"a block of {hours} hours")
    return hours
