"""What a price source brings, and the narrow interface it implements. Standard library only.

How to write one: docs/providers.md. In short: subclass `providers.base.RemoteProvider` (or `Provider` where nothing is called), do the
I/O in `fetch()` and the reading in a pure `parse()` beside it; one `Offer` for each thing that can be bought. A row that cannot be read
is named in `Fetched.rejected`: it never becomes a zero price and never blanks the others. Register it with one line in
`providers.registry`, or from another package with an entry point of the group `outlay.providers`; test it with `providers.testing`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, get_args

Pricing = Literal["on_demand", "spot", "reserved_1y", "reserved_3y"]
PRICINGS: tuple[Pricing, ...] = ("on_demand", "spot", "reserved_1y", "reserved_3y")
TERM_HOURS: dict[str, float] = {"on_demand": 0.0, "spot": 0.0, "reserved_1y": 8760.0, "reserved_3y": 26280.0}
"""Hours that are paid for whether used or not, by kind of price."""
Availability = Literal["unknown", "listed", "offered", "advisory", "live"]
AVAILABILITIES: tuple[Availability, ...] = get_args(Availability)
Market = Literal["list", "marketplace", "auction_floor"]
MARKETS: tuple[Market, ...] = get_args(Market)
FILE, UNREAD_SINCE = "file", "unread_since"
"""In the `extras` of an offer from a price file: its name; and since when it cannot be read, where the price is the last one it stated."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that can be bought: an instance type with accelerators, in a region, under a kind of pricing.

    `accelerator` is the canonical name (`NVIDIA-H100-80GB-SXM`); `usd_per_hour` is for the whole instance, always above zero.
    `market` tells a published list price from one host's offer on a marketplace and from the floor of an auction.
    `availability` is the strongest of five different claims: nothing is known; a price is listed; it can be ordered there; the vendor
    estimates the chance of getting it; the vendor says that it is in stock now. `available_since` is when this claim was first seen.
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
    available_since: datetime | None = None

    def __post_init__(self) -> None:
        if not (self.usd_per_hour.is_finite() and self.usd_per_hour > 0):
            raise ValueError(f"{self.provider} {self.instance_type}: a price must be above zero, not {self.usd_per_hour}")
        if self.accelerator_count < 1:
            raise ValueError(f"{self.provider} {self.instance_type}: an offer has at least one accelerator")
        if self.observed_at.tzinfo is None:
            raise ValueError(f"{self.provider} {self.instance_type}: observed_at needs a time zone")

    @property
    def identity(self) -> tuple[object, ...]:
        """What may have one price only."""
        sold = (self.provider, self.region, self.instance_type, self.accelerator, self.accelerator_count)
        return (*sold, self.pricing, self.market)

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
class Discount:
    """A share taken off list prices by contract: of one provider or of all, of some regions, kinds of pricing or accelerators.

    None means any. Discounts apply in the order in which their price book lists them, each to what the one before has left. `file` is the
    price file that states it.
    """

    name: str
    share: Decimal
    provider: str | None = None
    region: str | None = None
    pricing: Pricing | None = None
    accelerator: str | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        if not (self.share.is_finite() and 0 < self.share < 1):
            raise ValueError(f"discount {self.name}: the share must be between 0 and 1, not {self.share}")


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one fetch brought: the offers, what was skipped, and a name for this state of the prices.

    `skipped` counts by reason what was understood and is not for us (no accelerator, Windows, an accelerator nobody trains on).
    `discounts` are a price book's, in their order; its offers and discounts stand above list prices. `partial`: a part of the source could
    not be read, and nobody can tell which offers were in it, so that all that were known before stay. `teams` is what price files state
    for one team alone, by its name: nobody else may learn of it, so it is in none of the other fields. `unread` names the price files that
    could not be read; what is wrong with one may quote a team's book.
    """

    offers: tuple[Offer, ...]
    snapshot: str
    rejected: tuple[Rejected, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    discounts: tuple[Discount, ...] = ()
    partial: bool = False
    teams: Mapping[str, Fetched] = field(default_factory=dict)
    unread: tuple[Rejected, ...] = ()


class ProviderError(Exception):
    """The source could not be reached or understood as a whole; its last good prices stay in use."""


class Provider(ABC):
    """A source of offers. See the module's text for how to write one.

    `fresh_for` is how long its prices hold. `credentials` are the environment variables without which it cannot be asked at all; it is
    then no error but "not configured". `local`: it reads what lies on this machine, so it is asked offline too.
    """

    name: str
    fresh_for: timedelta
    credentials: tuple[str, ...] = ()
    local: bool = False

    @abstractmethod
    def fetch(self) -> Fetched:
        """All current offers. Raises ProviderError when there are none to be had."""
