"""Vendors' price sheets: what a caller corrects, what is proposed, and what is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from providers.offer import PRICINGS, Offer
from service.domain.answer_fields import HIDDEN, Doc
from service.domain.prices import CommitmentTerms

Fate = Literal["offer", "refused", "skipped"]
PriceBasis = Literal["accelerator", "instance"]
PricePeriod = Literal["hour", "month", "year", "term"]
DateOrder = Literal["dmy", "mdy", "ymd"]
TermUnit = Literal["hours", "days", "months", "years"]
PRICE_BASES: tuple[PriceBasis, ...] = get_args(PriceBasis)
PRICE_PERIODS: tuple[PricePeriod, ...] = get_args(PricePeriod)
DATE_ORDERS: tuple[DateOrder, ...] = get_args(DateOrder)
TERM_UNITS: tuple[TermUnit, ...] = get_args(TermUnit)
MAX_ENTRIES = 20_000
"""Most rows of a proposal: a row of a sheet has an entry for each of its prices."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CurrencyRate:
    """Dollars for one unit of a currency, as of a day."""

    usd: Decimal
    at: date


@dataclass(frozen=True, slots=True)
class QuoteCorrections:
    """What the caller says of a sheet; it has precedence over what the sheet says.

    `columns` are fields by column letter or header, None for a column to leave out; `settings` hold for the whole sheet; `accelerators` are
    canonical names by label; `rates` are by ISO 4217 code.
    """

    sheet: str | None = None
    header_row: int | None = None
    columns: Mapping[str, str | None] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    accelerators: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, CurrencyRate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuoteColumn:
    """A column of the table and what it is taken for."""

    column: Annotated[str, Doc("Letter of the column, as spreadsheets have it")]
    header: Annotated[str, Doc("Its header", max_length=2000)]
    field: Annotated[str | None, Doc("Field of an offer; null: not used")]
    reason: Annotated[str, Doc("Why", max_length=1000)]
    examples: Annotated[Sequence[str], Doc("Its first values", max_items=3, max_length=2000)]


@dataclass(frozen=True, slots=True)
class QuoteSetting:
    """What holds for the whole sheet."""

    setting: Annotated[str, Doc("Name of the setting, as `mapping.settings` takes it")]
    value: Annotated[str, Doc("What is taken", max_length=1000)]
    reason: Annotated[str, Doc("Why", max_length=1000)]


@dataclass(frozen=True, slots=True)
class QuoteQuestion:
    """What the sheet does not tell; rows that depend on it are refused until it is answered."""

    about: Annotated[str, Doc("What to state, as a path in the request", max_length=500)]
    question: Annotated[str, Doc("The question", max_length=1000)]
    candidates: Annotated[Sequence[str], Doc("Possible answers; empty: any", max_items=20)] = ()
    rows: Annotated[int, Doc("Prices that wait for the answer", minimum=0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteOffer:
    """An offer of a vendor's sheet."""

    provider: Annotated[str, Doc("Name of the provider")]
    region: Annotated[str, Doc("Region as the sheet names it; any where it names none")]
    instance_type: Annotated[str, Doc("Instance type as the sheet names it")]
    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    accelerator_count: Annotated[int, Doc("Accelerators of the instance", minimum=1)]
    pricing: Annotated[str, Doc("Kind of pricing", choices=PRICINGS)]
    usd_per_hour: Annotated[Decimal, Doc("Price of the whole instance", "USD per hour")]
    usd_per_accelerator_hour: Annotated[Decimal, Doc("Price of one accelerator", "USD per accelerator-hour")]
    observed_at: Annotated[datetime, Doc("Since when the price holds")]
    terms: Annotated[CommitmentTerms | None, Doc("Terms that the sheet states; absent: none", optional=True)] = None


@dataclass(frozen=True, slots=True)
class QuoteRow:
    """A price of the sheet and what becomes of it. `kept` is the offer itself."""

    row: Annotated[int, Doc("Row of the sheet, from 1", minimum=1)]
    column: Annotated[str | None, Doc("Column of the price; null for a row without a price")]
    fate: Annotated[Fate, Doc("offer: it is kept when confirmed; refused: it cannot be; skipped: it is no price")]
    reasons: Annotated[Sequence[str], Doc("Why it is refused or skipped: every fault; of an offer what was assumed", max_length=1000)]
    offer: Annotated[QuoteOffer | None, Doc("What it becomes; absent where it is no offer", optional=True)] = None
    kept: Annotated[Offer | None, HIDDEN] = None


@dataclass(frozen=True, slots=True)
class QuoteSheet:
    """A sheet of the file."""

    name: Annotated[str, Doc("Its name; empty in a CSV file", min_length=0, max_length=200)]
    rows: Annotated[int, Doc("Rows with cells", minimum=0)]
    hidden: Annotated[bool, Doc("Whether the workbook hides it")]
    chosen: Annotated[bool, Doc("Whether its prices are read")]


@dataclass(frozen=True, slots=True)
class QuoteCounts:
    """Number of prices by what becomes of them."""

    offer: Annotated[int, Doc("Offers", minimum=0)]
    refused: Annotated[int, Doc("Refused prices", minimum=0)]
    skipped: Annotated[int, Doc("Rows that are no price", minimum=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteProposal:
    """How a sheet is read. Nothing of it is kept before it is confirmed."""

    format: Annotated[str, Doc("csv or xlsx")]
    sheets: Annotated[Sequence[QuoteSheet], Doc("Sheets of the file", max_items=50)]
    header_rows: Annotated[Sequence[int], Doc("Rows that name the columns, from 1", max_items=3)]
    columns: Annotated[Sequence[QuoteColumn], Doc("Columns of the table", max_items=100)]
    settings: Annotated[Sequence[QuoteSetting], Doc("Settings of the whole sheet", max_items=40)]
    questions: Annotated[Sequence[QuoteQuestion], Doc("What the sheet does not tell", max_items=200)]
    counts: Annotated[QuoteCounts, Doc("Prices by what becomes of them")]
    rows: Annotated[Sequence[QuoteRow], Doc("Every price and what becomes of it", max_items=MAX_ENTRIES)]
    warnings: Annotated[Sequence[str], Doc("What to check", max_length=1000, max_items=200)]
