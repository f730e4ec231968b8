"""The narrow interface every price source implements. Standard library only.

How to write a provider: subclass `Provider`, give it a `name` and say in `fresh_for` how long its prices hold;
do the I/O in `fetch()` and the reading in a pure function beside it. Yield one `Offer` for each thing that can be bought.
A row that cannot be read is skipped and named in `Fetched.rejected`; it never becomes a zero price and never blanks the others.
Register it with one line in `providers.registry`, or from another package with an entry point of the group `outlay.providers`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

Pricing = Literal["on_demand", "spot", "reserved_1y", "reserved_3y"]
PRICINGS: tuple[Pricing, ...] = ("on_demand", "spot", "reserved_1y", "reserved_3y")
Availability = Literal["unknown", "listed", "offered", "advisory", "live"]
Market = Literal["list", "marketplace", "auction_floor"]


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that can be bought: an instance type with accelerators, in a region, under a kind of pricing.

    `accelerator` is the canonical name (`NVIDIA-H100-80GB-SXM`); `usd_per_hour` is for the whole instance, always above zero.
    `market` tells a published list price from one host's offer on a marketplace and from the floor of an auction.
    `observed_at` is when the price was read at its source, in UTC; `source` names that source.
    `extras` holds what only this vendor has, by name.
    """

    provider: str
    region: str
    instance_type: str
    accelerator: str
    accelerator_count: int
    pricing: Pricing
    usd_per_hour: Decimal
    observed_at: datetime
    source: str
    market: Market = "list"
    availability: Availability = "listed"
    extras: dict[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not (self.usd_per_hour.is_finite() and self.usd_per_hour > 0):
            raise ValueError(f"{self.provider} {self.instance_type}: a price must be above zero, not {self.usd_per_hour}")
        if self.accelerator_count < 1:
            raise ValueError(f"{self.provider} {self.instance_type}: an offer has at least one accelerator")
        if self.observed_at.tzinfo is None:
            raise ValueError(f"{self.provider} {self.instance_type}: observed_at needs a time zone")

    @property
    def usd_per_accelerator_hour(self) -> Decimal:
        """Price of one accelerator for one hour, unrounded."""
        return self.usd_per_hour / self.accelerator_count


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that was not understood, and why."""

    row: str
    reason: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one fetch brought: the offers, what was skipped, and a name for this state of the prices."""

    offers: tuple[Offer, ...]
    snapshot: str
    rejected: tuple[Rejected, ...] = ()


class ProviderError(Exception):
    """The source could not be reached or understood as a whole; its last good prices stay in use."""


class Provider(ABC):
    """A source of offers. See the module's text for how to write one."""

    name: str
    fresh_for: timedelta

    @abstractmethod
    def fetch(self) -> Fetched:
        """All current offers. Raises ProviderError when there are none to be had."""
