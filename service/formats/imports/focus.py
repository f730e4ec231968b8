"""FOCUS invoices as `cost` events of the runs that their tags name.

FOCUS (FinOps Open Cost and Usage Specification, CC BY 4.0), versions 1.0 (June 2024) to 1.4: required are only columns that all of them
have; later additions (allocated tags and resources of 1.3, capacity reservations of 1.1) are read where present. CSV or Parquet; column
names are case-insensitive, because query engines lower them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_EVEN
from typing import Any, Literal

from service.domain.tracking.events import Event
from service.domain.tracking.imports import ImportedEvent, ImportedFile, digest
from service.formats.imports.parquet import is_parquet, parquet_rows
from service.formats.imports.rows import Row, RowRefused, cell_text, exact, moment, table, take_rows
from service.formats.imports.tags import reference_of

CostBasis = Literal["effective", "billed"]
COST_COLUMNS: Mapping[CostBasis, str] = {"effective": "EffectiveCost", "billed": "BilledCost"}
NEEDED = ("BillingCurrency", "ChargePeriodStart", "ChargePeriodEnd")
IDENTITY = (
    *("BillingAccountId", "SubAccountId", "BillingPeriodStart", "ChargePeriodStart", "ChargePeriodEnd", "ChargeCategory", "ChargeClass"),
    *("ChargeFrequency", "ChargeDescription", "ResourceId", "SkuId", "SkuPriceId", "CommitmentDiscountId", "CommitmentDiscountStatus"),
    *("PricingCategory", "PricingUnit", "ConsumedUnit", "RegionId", "AvailabilityZone", "ServiceName", "InvoiceIssuerName"),
    *("CapacityReservationId", "CapacityReservationStatus", "AllocatedMethodId", "AllocatedResourceId"),
)
"""What makes a charge the same one when its bill is read again: neither costs and quantities, which are restated, nor tags and invoice
numbers, which come later, nor columns that a version renames. Those that only later versions have are empty where they say nothing."""
TIMES = frozenset({"BillingPeriodStart", "ChargePeriodStart", "ChargePeriodEnd"})
WANTED = frozenset({*COST_COLUMNS.values(), *NEEDED, *IDENTITY, "ServiceCategory", "Tags", "AllocatedTags"})
LINES = {"Compute": "compute", "AI and Machine Learning": "compute", "Storage": "storage", "Networking": "network"}
"""Budget line by FOCUS service category."""
LARGEST_USD = 10**10
MAX_TEXT_CHARACTERS = 200
USD = "USD"


def read_focus(content: bytes, basis: CostBasis = "effective") -> ImportedFile:
    """Charges of an invoice, each at the start of its charge period; usage has `billed_until`, the period's end. Credits are negative.

    `effective` sums EffectiveCost, where commitments are spread over what they cover and their purchases cost nothing. `billed` sums
    BilledCost, the invoiced amounts. Rows without a tag `outlay_run` or `outlay_program` have no reference; rows in other currencies than
    USD or with unreadable cells are listed with the reason. Raises InvalidRequest for a file that is no such invoice.
    """
    cost = COST_COLUMNS[basis]
    charges: list[ImportedEvent] = []
    unmatched = take_rows(_rows(content, (*NEEDED, cost)), lambda row: charges.append(_charge(row, basis)))
    note = f"costs are the bill's {cost}, rounded to millionths of a dollar row by row"
    return ImportedFile(tuple(_numbered(charges)), unmatched, (note,))


def _rows(content: bytes, needed: Sequence[str]) -> Iterable[Row]:
    return parquet_rows(content, needed, WANTED) if is_parquet(content) else table(content, needed)


def _charge(row: Row, basis: CostBasis) -> ImportedEvent:
    """A row's cost; its id is the charge's identity. `billed_until` is None for purchases, taxes and credits."""
    cells = {name: row.cells.get(name.lower()) for name in WANTED}
    reference = reference_of(cells["Tags"], cells["AllocatedTags"])
    currency = cell_text(cells["BillingCurrency"])
    if currency.upper() != USD:
        raise RowRefused(f"billed in {currency[:20] or 'no currency'}; only {USD} is accepted; convert the costs first")
    start, end = (moment(cells[name], name) for name in ("ChargePeriodStart", "ChargePeriodEnd"))
    if end <= start:
        raise RowRefused("ChargePeriodEnd is not after ChargePeriodStart")
    until = end if cell_text(cells["ChargeCategory"]) == "Usage" else None
    identity, usd = digest(*(_same(name, cells[name]) for name in IDENTITY)), _usd(cells, basis)
    event = Event(identity, "cost", start, micro_usd=usd, line=_line(cells), billed_until=until, text=_text(cells))
    return ImportedEvent(row.number, reference, event)


def _usd(cells: Mapping[str, Any], basis: CostBasis) -> int:
    """Micro-USD. A commitment's purchase is part of the effective cost of what it covers."""
    column = COST_COLUMNS[basis]
    usd = exact(cells[column], column)
    if abs(usd) > LARGEST_USD:
        raise RowRefused(f"{column} is {usd:.3g} USD, more than a row can cost")
    covered = basis == "effective" and cell_text(cells["ChargeCategory"]) == "Purchase" and cell_text(cells["CommitmentDiscountId"])
    return 0 if covered else int((usd * 10**6).to_integral_value(ROUND_HALF_EVEN))


def _same(name: str, value: Any) -> str:
    """A cell as text that is equal in every export: times in one form."""
    if name in TIMES and cell_text(value):
        return moment(value, name).isoformat()
    return cell_text(value)


def _line(cells: Mapping[str, Any]) -> str:
    if "Unused" in (cell_text(cells["CommitmentDiscountStatus"]), cell_text(cells["CapacityReservationStatus"])):
        return "unused_commitment"
    if cell_text(cells["ChargeCategory"]) == "Tax":
        return "tax"
    return LINES.get(cell_text(cells["ServiceCategory"]), "other")


def _text(cells: Mapping[str, Any]) -> str | None:
    """Service, kind of charge unless usage, and description."""
    kind = cell_text(cells["ChargeClass"]) or cell_text(cells["ChargeCategory"])
    parts = (cell_text(cells["ServiceName"]), "" if kind == "Usage" else kind, cell_text(cells["ChargeDescription"]))
    return " ".join(" · ".join(part for part in parts if part).split())[:MAX_TEXT_CHARACTERS] or None


def _numbered(charges: Sequence[ImportedEvent]) -> Iterator[ImportedEvent]:
    """The charges in the order of rows. Equal ones are numbered by reference and cost, independent of the file's order."""
    seen: Counter[str] = Counter()
    numbers: dict[int, int] = {}
    for charge in sorted(charges, key=lambda charge: (charge.reference, charge.event.micro_usd)):
        numbers[charge.row] = seen[charge.event.id]
        seen[charge.event.id] += 1
    return (replace(charge, event=charge.event._replace(id=f"focus-{charge.event.id}-{numbers[charge.row]}")) for charge in charges)
