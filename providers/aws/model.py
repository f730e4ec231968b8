"""Types that the modules of this provider share, and isolation of one region's errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from providers.common import isolate_part
from providers.offer import NO_TERMS, OfferTerms, Pricing
from providers.row_parsing import OfferCollector


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a whole instance [USD per hour]; `extras` and `terms` as in an offer."""

    instance_type: str
    pricing: Pricing
    usd_per_hour: Decimal
    extras: Mapping[str, str] = field(default_factory=dict)
    terms: OfferTerms = NO_TERMS


@dataclass(frozen=True, slots=True)
class Hardware:
    """Devices of an instance type as EC2 describes them: label, memory of one [GiB], number; and whether capacity blocks exist."""

    label: str
    memory_gib: float | None
    count: int
    has_capacity_blocks: bool


@dataclass(frozen=True, slots=True)
class CapacityBlock:
    """Instances available from a date for a fixed time [h], prepaid [USD]."""

    instance_type: str
    zone: str
    instances: int
    starts: datetime
    hours: Decimal
    upfront_usd: Decimal

    @property
    def usd_per_hour(self) -> Decimal:
        """Price of one instance [USD per hour]."""
        return self.upfront_usd / (self.hours * self.instances)


@dataclass(frozen=True, slots=True)
class RegionalMarket:
    """A region as the account sees it, by instance type: hardware, zones where it can be ordered, cheapest block; and spot prices."""

    hardware: Mapping[str, Hardware] = field(default_factory=dict)
    zones: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    blocks: Mapping[str, CapacityBlock] = field(default_factory=dict)
    spot: tuple[Price, ...] = ()


@contextmanager
def isolate_region(collector: OfferCollector, name: str) -> Iterator[None]:
    """Context of one part of the source: its failure is recorded in `rejected` and affects no other part."""
    with collector.row(name), isolate_part(collector, name, sold_as=True):
        yield
