"""What the parts of this provider hand each other, and how one part may fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from providers.offer import Pricing, ProviderError
from providers.row_parsing import BadRow, OfferCollector


@dataclass(frozen=True, slots=True)
class Price:
    """A price of a whole instance [USD/h]; `extras` as in an offer."""

    instance_type: str
    pricing: Pricing
    usd_per_hour: Decimal
    extras: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hardware:
    """What an instance type holds, in EC2's words: label and memory of one device [GiB], number, and whether capacity blocks exist."""

    label: str
    memory_gib: float | None
    count: int
    has_capacity_blocks: bool


@dataclass(frozen=True, slots=True)
class CapacityBlock:
    """Instances that can be had from a date on for a fixed time, prepaid: stock that EC2 says it has."""

    instance_type: str
    zone: str
    instances: int
    starts: datetime
    hours: Decimal
    upfront_usd: Decimal

    @property
    def usd_per_hour(self) -> Decimal:
        """What one instance comes to [USD/h]."""
        return self.upfront_usd / (self.hours * self.instances)


@dataclass(frozen=True, slots=True)
class RegionalMarket:
    """What EC2 tells an account of a region, by instance type: hardware, zones where it can be ordered, cheapest block; and spot prices."""

    hardware: Mapping[str, Hardware] = field(default_factory=dict)
    zones: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    blocks: Mapping[str, CapacityBlock] = field(default_factory=dict)
    spot: tuple[Price, ...] = ()


@contextmanager
def isolate_region(collector: OfferCollector, name: str) -> Iterator[None]:
    """Around one part of the source: its failure is named in `rejected` and costs no other part."""
    with collector.row(name):
        try:
            yield
        except ProviderError as error:
            collector.failed_parts += 1
            raise BadRow(str(error)) from error
