"""Amounts of a row: price and committed spend in dollars, and what the price is for."""

from __future__ import annotations

import re
from decimal import Decimal

from service.formats.imports.quotes.cells import LARGEST, CellError, OpenQuestionError, find_currency, read_number, text_of
from service.formats.imports.quotes.layout import TableColumn
from service.formats.imports.quotes.reading import PriceDraft, Reading, cell_of, mark_of, row_text
from service.formats.imports.quotes.sheets import Cell
from service.formats.imports.quotes.units import basis_of, period_of

USD = "USD"


def price_usd(reading: Reading, row: int, column: TableColumn, draft: PriceDraft) -> Decimal:
    """The price in dollars, in its own unit. Raises CellError."""
    cell = reading.table.sheet.cell(row, column.index)
    amount = read_number(cell, reading.settings.marks[column.index].value)
    if amount <= 0:
        raise CellError(f"a price of {amount} is unknown, not free")
    code = _currency(reading, row, column, cell)
    rate = _rate(reading, code)
    if code != USD:
        of = reading.corrections.rates[code]
        draft.values["currency"] = {
            "currency": code,
            "quoted_price": f"{amount}",
            "usd_rate": f"{of.usd}",
            "usd_rate_at": of.at.isoformat(),
        }
    if amount * rate > LARGEST:
        raise CellError(f"a price of {amount * rate:g} USD is none of a quote")
    return amount * rate


def committed_usd(reading: Reading, row: int) -> Decimal | None:
    """Spend that the buyer commits to [USD]. Raises CellError."""
    cell, column = cell_of(reading, row, "committed"), reading.table.of("committed")
    if cell is None or column is None:
        stated: Decimal | None = reading.settings.stated("committed_usd")
        return stated
    amount = read_number(cell, mark_of(reading, column))
    code = _currency(reading, row, column, cell)
    return (amount * _rate(reading, code)).quantize(Decimal("0.01")) or None


def _currency(reading: Reading, row: int, column: TableColumn, cell: Cell) -> str:
    """ISO 4217 code of an amount: of the corrections, the cell, the row's currency column, the header, the notes. Raises CellError."""
    corrected = reading.corrections.settings.get("currency")
    texts = ([text_of(cell)] if isinstance(cell, str) else []) + [
        row_text(reading, row, "currency"),
        row_text(reading, row, "price_unit"),
        column.header,
    ]
    found = corrected or next((code for code in map(find_currency, texts) if code), None) or reading.settings.stated("currency")
    if found is None:
        raise OpenQuestionError("nothing says in which currency the price is", "mapping.settings.currency", ("USD", "EUR", "GBP"))
    return str(found)


def _rate(reading: Reading, code: str) -> Decimal:
    if code == USD:
        return Decimal(1)
    rate = reading.corrections.rates.get(code)
    if rate is None:
        raise OpenQuestionError(f"the price is in {code}: state the dollars for one {code} and their day", f"mapping.rates.{code}")
    return rate.usd


def unit_of(reading: Reading, row: int, column: TableColumn) -> tuple[str | None, str | None]:
    """What the price is for and the period, as far as the caller, the row, the header or the notes say."""
    cell = reading.table.sheet.cell(row, column.index)
    said = reading.corrections.settings
    unit = row_text(reading, row, "price_unit")
    texts = [unit, text_of(cell) if isinstance(cell, str) else "", column.header]
    basis = said.get("price_basis") or next((found for found in map(basis_of, texts) if found), None) or _bare_basis(unit)
    period = said.get("price_period") or next((found for found in map(period_of, texts) if found), None) or _bare_period(unit)
    return basis or reading.settings.stated("price_basis"), period or reading.settings.stated("price_period")


def _bare_basis(unit: str) -> str | None:
    """The basis that a unit column names without "per"."""
    return basis_of(f"per {unit}") if unit else None


def _bare_period(unit: str) -> str | None:
    return next((found for word in re.findall(r"[A-Za-z.]+", unit) if (found := period_of(f"per {word}"))), None)
