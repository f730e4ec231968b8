"""Sources, quotes, and a log of rejected and skipped rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation

from providers.offer import Market, Pricing, Rejected
from providers.row_parsing import BadRow
from providers.tables import read_table

MICRO_USD = Decimal("0.000001")
MAX_ACCELERATORS = 1_000_000
MAX_USD = Decimal("1e9")  # more than anything costs an hour; above it stands what is no price


@dataclass(frozen=True, slots=True)
class Source:
    """One price file: path below the source folder, reader, provider, date, source and licence.

    `gpu_memory`: what a catalogue's memory figure means: of the `device`, of all devices of the `row`, or `unusable`.
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
    """One price as a source states it [USD per hour of the whole instance].

    `accelerator` is the vendor's label until `naming` replaces it by the canonical name.
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
        """Key of a thing to buy, over all sources."""
        return (self.source.provider, self.region, self.instance_type, self.accelerator, self.count, self.pricing)

    @property
    def usd_per_accelerator(self) -> Decimal:
        """Price of one accelerator [USD per hour]."""
        return self.usd / self.count

    def __str__(self) -> str:
        place = self.zone or self.region
        return f"{self.source.key}: {place} {self.instance_type} {self.count}x {self.accelerator} {self.pricing} {self.usd}"


@dataclass
class ParseLog:
    """Rejected rows with their reason, and counts of skipped rows by reason."""

    rejected: list[Rejected] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def reject(self, row: object, reason: str) -> None:
        """Record a rejected row."""
        self.rejected.append(Rejected(str(row), reason))


def parse_optional_usd(text: str | None) -> Decimal | None:
    """Price in `text` [USD], None where it is empty.

    Returns
    -------
    Decimal or None
        Price [USD per hour], rounded to a millionth.

    Raises
    ------
    BadRow
        Zero, negative, too large or not a number.
    """
    if text is None or not text.strip():
        return None
    try:
        price = Decimal(text.strip())
    except InvalidOperation as error:
        raise BadRow(f"price {text!r} is not a number") from error
    if not price.is_finite() or not MICRO_USD / 2 < price < MAX_USD:
        raise BadRow(f"price {text} is unknown, not free")
    return price.quantize(MICRO_USD)


def parse_count(text: str | None) -> int:
    """Number of accelerators in `text`.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    BadRow
        A fraction, too large or not a number.
    """
    try:
        count = Decimal(text or "")
    except InvalidOperation as error:
        raise BadRow(f"accelerator count {text!r} is not a number") from error
    if count.is_finite() and count > MAX_ACCELERATORS:
        raise BadRow(f"no number of accelerators: {text}")
    if not count.is_finite() or count < 1 or count != int(count):
        raise BadRow(f"fractional accelerator: {text}")
    return int(count)


def read_catalog_table(name: str) -> tuple[dict[str, str], ...]:
    """Rows of a data file of this package."""
    return read_table(name, "catalog_files")
