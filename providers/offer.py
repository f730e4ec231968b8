"""The offer type and the interface of a price provider. Standard library only.

How to write a provider: docs/reference/providers.md. In short: subclass `providers.base.RemoteProvider` (or `Provider` where nothing
is called), do the I/O in `fetch()` and the parsing in a pure function `parse()`; one `Offer` for each thing that can be bought. A row that
cannot be parsed goes to `Fetched.rejected`; it never becomes a price of 0 and never drops other rows. Register the provider with one line
in `providers.registry`, or from another package with an entry point of the group `outlay.providers`; test it with `providers.testing`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Literal, get_args

Pricing = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "reserved"]
PRICINGS: tuple[Pricing, ...] = get_args(Pricing)
"""Kinds of pricing; `reserved` is a commitment of any other length, which the offer's terms state."""
TERM_HOURS: dict[str, float] = {"on_demand": 0.0, "spot": 0.0, "reserved_1y": 8760.0, "reserved_3y": 26280.0}
"""Hours paid for whether used or not, by pricing [h]; a term that an offer states has precedence (`Offer.term_hours`)."""
BY_THE_HOUR: tuple[Pricing, ...] = ("on_demand", "spot")
"""Kinds of pricing without a commitment."""
MAX_TERM_HOURS = 175_200.0
"""Upper bound of a term [h]: twenty years."""
Availability = Literal["unknown", "listed", "offered", "advisory", "live"]
AVAILABILITIES: tuple[Availability, ...] = get_args(Availability)
Market = Literal["list", "marketplace", "auction_floor"]
MARKETS: tuple[Market, ...] = get_args(Market)
FILE, UNREAD_SINCE = "file", "unread_since"
"""Keys in the `extras` of an offer from a price file: the file, and since when it cannot be read."""


@dataclass(frozen=True, slots=True)
class OfferTerms:
    """Terms of a commitment or quote, as far as the source states them.

    Attributes
    ----------
    term_hours : float, optional
        Hours paid for whether used or not [h]; None: those of the kind of pricing.
    upfront_share : float, optional
        Share of the whole term's price paid at its start [1].
    valid_until : date, optional
        Last day (UTC) on which the offer can be accepted.
    minimum_accelerators : int, optional
        Fewest accelerators that this price is for.
    committed_usd : Decimal, optional
        Spend over the term that the buyer commits to [USD].
    capacity : bool, optional
        True: the accelerators are held for the buyer; False: a discount only, what runs depends on what is free.
    """

    term_hours: float | None = None
    upfront_share: float | None = None
    valid_until: date | None = None
    minimum_accelerators: int | None = None
    committed_usd: Decimal | None = None
    capacity: bool | None = None

    def __post_init__(self) -> None:
        if self.term_hours is not None and not 0 < self.term_hours <= MAX_TERM_HOURS:
            raise ValueError(f"a term is above 0 and at most {MAX_TERM_HOURS:,.0f} h, not {self.term_hours:g}")
        if self.upfront_share is not None and not 0 <= self.upfront_share <= 1:
            raise ValueError(f"an upfront share is between 0 and 1, not {self.upfront_share:g}")
        if self.minimum_accelerators is not None and self.minimum_accelerators < 1:
            raise ValueError(f"a minimum is at least one accelerator, not {self.minimum_accelerators}")
        if self.committed_usd is not None and not (self.committed_usd.is_finite() and self.committed_usd > 0):
            raise ValueError(f"a committed spend is above zero, not {self.committed_usd}")

    @property
    def key(self) -> str:
        """What tells offers of one thing apart, as `term_hours=4380,minimum_accelerators=64`; empty where nothing is stated."""
        if self is NO_TERMS:
            return ""
        stated = (
            ("term_hours", self.term_hours),
            ("upfront_share", self.upfront_share),
            ("minimum_accelerators", self.minimum_accelerators),
            ("committed_usd", self.committed_usd),
            ("capacity", None if self.capacity is None else int(self.capacity)),
        )
        return ",".join(f"{name}={value:.12g}" for name, value in stated if value is not None)


NO_TERMS = OfferTerms()


@dataclass(frozen=True, slots=True)
class Offer:
    """A price of one thing that can be bought: an instance type with accelerators, in a region, under a kind of pricing.

    Attributes
    ----------
    provider, region, instance_type : str
        Seller's name, its region and its name of the instance type.
    accelerator : str
        Canonical name, such as `NVIDIA-H100-80GB-SXM`.
    accelerator_count : int
        Accelerators of the instance, at least 1.
    usd_per_hour : Decimal
        Price of the whole instance [USD per hour], above 0.
    observed_at : datetime
        When the price was read at its source; with time zone.
    source : str
        The source, for readers.
    market : Market
        A published list price, one host's offer on a marketplace, or the floor of an auction.
    availability : Availability
        Strongest claim of the source: nothing known, listed, can be ordered, chance estimated by the vendor, in stock now.
    extras : dict of str
        Further facts of this vendor by name.
    available_since : datetime, optional
        When this availability was first seen.
    terms : OfferTerms
        Terms of a commitment or quote, as far as the source states them.
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
    terms: OfferTerms = NO_TERMS

    def __post_init__(self) -> None:
        if not (self.usd_per_hour.is_finite() and self.usd_per_hour > 0):
            raise ValueError(f"{self.provider} {self.instance_type}: a price must be above zero, not {self.usd_per_hour}")
        if self.accelerator_count < 1:
            raise ValueError(f"{self.provider} {self.instance_type}: an offer has at least one accelerator")
        if self.observed_at.tzinfo is None:
            raise ValueError(f"{self.provider} {self.instance_type}: observed_at needs a time zone")
        if self.pricing in BY_THE_HOUR and self.terms.term_hours is not None:
            raise ValueError(f"{self.provider} {self.instance_type}: {self.pricing} is a price by the hour and has no term")
        if self.pricing not in TERM_HOURS and self.terms.term_hours is None:
            raise ValueError(f"{self.provider} {self.instance_type}: {self.pricing} needs the length of its term")

    @property
    def identity(self) -> tuple[object, ...]:
        """Key of the offer: one price for each."""
        sold = (self.provider, self.region, self.instance_type, self.accelerator, self.accelerator_count)
        return (*sold, self.pricing, self.market, self.terms.key)

    @property
    def term_hours(self) -> float:
        """Hours paid for whether used or not [h]: the stated term's, else those of the kind of pricing; 0 by the hour."""
        stated = self.terms.term_hours
        return TERM_HOURS[self.pricing] if stated is None else stated

    @property
    def terms_key(self) -> str:
        """`terms.key`."""
        return self.terms.key

    @property
    def usd_per_accelerator_hour(self) -> Decimal:
        """Price of one accelerator, unrounded [USD per hour]."""
        return self.usd_per_hour / self.accelerator_count


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that was not understood, and the reason."""

    row: str
    reason: str


@dataclass(frozen=True, slots=True)
class Discount:
    """A share off list prices by contract.

    `share` is above 0 and below 1. `provider`, `region`, `pricing` and `accelerator` limit it; None means any. Discounts apply in the order
    of their price book, each to the price that the previous ones left. `file` is the price file that states it.
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
    """Result of one fetch: offers, rejected and skipped rows, and the name of this state of the prices.

    `skipped` counts rows by reason that are understood and not wanted (no accelerator, Windows, unknown accelerator). `discounts` are those
    of price books, in order; offers and discounts of books have precedence over list prices. `partial`: a part of the source could not be
    read, so all offers known before stay. `teams` holds what price files state for one team, by its name; no other field contains any of
    it. `unread` names price files that could not be read; its reasons may quote a team's book.
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
    """The source as a whole could not be reached or understood; its last good prices stay in use."""


class Provider(ABC):
    """A source of offers; the module's text says how to write one.

    `fresh_for`: how long prices count as fresh. `credentials`: environment variables without which it cannot be fetched; it is then "not
    configured", which is no error. `local`: it reads this machine only, so it is also fetched offline.
    """

    name: str
    fresh_for: timedelta
    credentials: tuple[str, ...] = ()
    local: bool = False

    @abstractmethod
    def fetch(self) -> Fetched:
        """All current offers. Raises ProviderError where there are none."""
