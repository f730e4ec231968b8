"""Sources, quotes, and a log of rows that are left out."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from providers.offer import Market, Pricing, Rejected

MICRO_USD = Decimal("0.000001")
MAX_ACCELERATORS = 1_000_000
MAX_USD = Decimal("1e9")  # more than anything costs an hour; above it stands what is no price


@dataclass(frozen=True, slots=True)
class Source:
    """One file of prices: where it lies below the source folder, how it is read, and what is known of its origin.

    `gpu_memory` says what a catalogue's memory figure stands for: the `device`, all devices of the `row`, or nothing (`unusable`).
    """

    key: str
    path: str
    reader: str
    provider: str
    observed_at: date
    source: str
    licence: str
    gpu_memory: str


@dataclass(frozen=True, slots=True)
class Quote:
    """One price as a source states it, in USD per hour of the whole instance.

    `accelerator` is the vendor's label until `naming` makes it canonical.
    """

    source: Source
    region: str
    zone: str
    instance_type: str
    accelerator: str
    count: int
    pricing: Pricing
    usd: Decimal
    memory_gb: float | None = None
    market: Market = "list"

    @property
    def key(self) -> tuple[str, str, str, str, int, str]:
        """What is one thing to buy, whichever source prices it."""
        return (self.source.provider, self.region, self.instance_type, self.accelerator, self.count, self.pricing)

    @property
    def usd_per_accelerator(self) -> Decimal:
        """USD for one accelerator and hour."""
        return self.usd / self.count

    def __str__(self) -> str:
        place = self.zone or self.region
        return f"{self.source.key}: {place} {self.instance_type} {self.count}x {self.accelerator} {self.pricing} {self.usd}"


@dataclass
class ParseLog:
    """What was not taken: single rows with their reason, and counts of what is left out on purpose."""

    rejected: list[Rejected] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def reject(self, row: object, reason: str) -> None:
        self.rejected.append(Rejected(str(row), reason))


class UnusableField(ValueError):
    """A figure in a row that cannot be used; the message is the reason."""


def parse_usd(text: str | None) -> Decimal | None:
    """The price in `text`, in USD, or None where the field is empty. Raises Unusable for zero, negative and unreadable prices."""
    if text is None or not text.strip():
        return None
    try:
        price = Decimal(text.strip())
    except InvalidOperation as error:
        raise UnusableField(f"price {text!r} is not a number") from error
    if not price.is_finite() or not MICRO_USD / 2 < price < MAX_USD:
        raise UnusableField(f"price {text} is unknown, not free")
    return price.quantize(MICRO_USD)


def parse_count(text: str | None) -> int:
    """The number of accelerators in `text`. Raises Unusable for fractions, absurd numbers and what is none."""
    try:
        count = Decimal(text or "")
    except InvalidOperation as error:
        raise UnusableField(f"accelerator count {text!r} is not a number") from error
    if count.is_finite() and count > MAX_ACCELERATORS:
        raise UnusableField(f"no number of accelerators: {text}")
    if not count.is_finite() or count < 1 or count != int(count):
        raise UnusableField(f"fractional accelerator: {text}")
    return int(count)


def read_table(name: str) -> list[dict[str, str]]:
    """Rows of a data file of this package."""
    return list(csv.DictReader(io.StringIO((files(__package__) / name).read_text(encoding="utf-8"))))


@cache
def rules() -> MappingProxyType[str, Decimal]:
    """The thresholds by name; units and reasons stand in `rules.csv`."""
    return MappingProxyType({row["name"]: Decimal(row["value"]) for row in read_table("rules.csv")})
