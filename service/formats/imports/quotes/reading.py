"""A price of the table while it is read, and the cells of its row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

from service.domain.price_files import QuoteCorrections
from service.formats.imports.quotes.cells import CellError, is_empty, read_number, text_of
from service.formats.imports.quotes.labels import QuoteReference
from service.formats.imports.quotes.layout import Table, TableColumn
from service.formats.imports.quotes.settings import SheetSettings
from service.formats.imports.quotes.sheets import Cell
from service.formats.imports.quotes.vocabulary import Field

Found = TypeVar("Found")


@dataclass(slots=True)
class PriceDraft:
    """A price of the table: what is known of it, `faults` that refuse it and `notes` on what was assumed."""

    row: int
    column: TableColumn
    faults: list[CellError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    basis: str | None = None
    period: str | None = None

    def attempt(self, read: Callable[[], Found]) -> Found | None:
        """What is read; None with its fault noted."""
        try:
            return read()
        except CellError as error:
            self.faults.append(error)
            return None


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading the rows of a table takes."""

    table: Table
    settings: SheetSettings
    corrections: QuoteCorrections
    reference: QuoteReference


def cell_of(reading: Reading, row: int, name: Field) -> Cell:
    """The row's cell in the column of a field; None where there is none or it holds no value."""
    column = reading.table.of(name)
    cell = None if column is None else reading.table.sheet.cell(row, column.index)
    return None if is_empty(cell) else cell


def row_text(reading: Reading, row: int, name: Field) -> str:
    """Text of the row's cell in the column of a field; empty where there is none."""
    return text_of(cell_of(reading, row, name)).replace("\n", " ").strip()


def number_of(reading: Reading, row: int, name: Field) -> Decimal | None:
    """The number of the row's cell in the column of a field. Raises CellError."""
    column, cell = reading.table.of(name), cell_of(reading, row, name)
    return None if column is None or cell is None else read_number(cell, reading.settings.marks[column.index].value)


def mark_of(reading: Reading, column: TableColumn | None) -> str | None:
    """Decimal mark of a column's numbers in text; None where it is not told."""
    return None if column is None else reading.settings.marks[column.index].value
