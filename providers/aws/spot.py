"""Spot prices: one for each zone in EC2, one for each region here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from statistics import median

from providers.aws.model import Price
from providers.row_parsing import BadRow, OfferCollector, SkippedRow, get_text, parse_usd

LINUX = "Linux/UNIX"


def parse(rows: Iterable[object], collector: OfferCollector) -> tuple[Price, ...]:
    """Prices of `DescribeSpotPriceHistory` [USD per hour]: the median over zones of each zone's newest price."""
    newest: dict[str, dict[str, tuple[datetime, Decimal]]] = defaultdict(dict)
    for row in rows:
        with collector.row(f"DescribeSpotPriceHistory {row if not isinstance(row, dict) else row.get('InstanceType')}"):
            if get_text(row, "ProductDescription") != LINUX:
                raise SkippedRow("spot price of another operating system")
            seen = parse_time(get_text(row, "Timestamp"), "Timestamp"), parse_usd(get_text(row, "SpotPrice"), "SpotPrice")
            name, zone = get_text(row, "InstanceType"), get_text(row, "AvailabilityZone")
            newest[name][zone] = max(seen, newest[name].get(zone, seen))
    return tuple(_price(name, [price for _, price in zones.values()]) for name, zones in newest.items())


def _price(instance_type: str, prices: list[Decimal]) -> Price:
    return Price(instance_type, "spot", median(prices), {"zones_with_spot_price": str(len(prices))})


def parse_time(written: str, name: str) -> datetime:
    """Time with time zone from ISO text. Raises BadRow."""
    try:
        found = datetime.fromisoformat(written)
    except ValueError as error:
        raise BadRow(f"{name} is {written[:40]!r} where a time was expected") from error
    if found.tzinfo is None:
        raise BadRow(f"{name} is {written[:40]!r}, without a time zone")
    return found
