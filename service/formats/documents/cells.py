"""Cells of a workbook: inputs, formulas and their formats. Text is never interpreted as a formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from io import BytesIO
from types import MappingProxyType
from typing import Any

from xlsxwriter import Workbook
from xlsxwriter.utility import xl_rowcol_to_cell

from service.formats.documents.text import xml_text

NUMBER_FORMATS = {
    "text": "General",
    "usd": "#,##0.00_)",
    "cash": '#,##0.00_);-#,##0.00_);"–"_)',
    "price": "#,##0.0000_)",
    "share": "0.0%_)",
    "number": "#,##0.##_)",
    "exact": "General",
    "factor": "0.000000_)",
    "whole": "#,##0_)",
    "date": "yyyy-mm-dd",
    "choice": "General",
    "moment": "General",
}
"""Shown formats by kind; `_)` keeps figures off the next column."""
WRAPPED_KINDS = ("wrapped", "field")
TEXT_KINDS = ("text", "choice", "moment", *WRAPPED_KINDS)
LINE_HEIGHT = 15
# Mean characters that fit a column over its width, which counts digits.
LETTERS_OVER_WIDTH = 1.1
INPUT_LOOK = {"bg_color": "#FFF7D6", "font_color": "#0B3D91", "border": 1, "border_color": "#E0D28A"}
NO_CHARTS: Mapping[str, int] = MappingProxyType({})
LIGHT_GRID = {"major_gridlines": {"visible": True, "line": {"color": "#E6E6E6"}}}
TITLE_FONT = {"size": 12, "bold": True}
ROW_PIXELS = 20
FIRST_ROW = 4
"""First row of every sheet's table, below title, caption, a blank and the head."""


@dataclass(frozen=True, slots=True)
class Input:
    """A number that a reader may change; None is an empty cell that takes one."""

    value: float | None


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula, and its value for programs that show a workbook without calculating it."""

    formula: str
    value: float | str


Cell = str | float | date | Input | Formula | None


@dataclass(frozen=True, slots=True)
class Column:
    head: str
    width: float
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Book:
    """A workbook being written; `looks`: cell formats by purpose."""

    workbook: Workbook
    looks: dict[str, Any]
    out: BytesIO

    def sheet(self, name: str, heading: tuple[str, str], columns: Sequence[Column]) -> Sheet:
        """A new sheet with title and caption, set up for landscape printing."""
        worksheet = self.workbook.add_worksheet(name)
        worksheet.set_landscape()
        worksheet.set_paper(9)
        worksheet.fit_to_pages(1, 0)
        worksheet.freeze_panes(FIRST_ROW, 0)
        worksheet.repeat_rows(FIRST_ROW - 1)
        worksheet.write_string(0, 0, xml_text(heading[0]), self.looks["title"])
        worksheet.write_string(1, 0, xml_text(heading[1]), self.looks["caption"])
        for at, column in enumerate(columns):
            worksheet.set_column(at, at, column.width)
            worksheet.write_string(
                FIRST_ROW - 1, at, xml_text(column.head), self.looks["head" if column.kind in TEXT_KINDS else "head of figures"]
            )
        worksheet.set_row(FIRST_ROW - 1, LINE_HEIGHT * max(_lines(column.head, column.width) for column in columns))
        return Sheet(self, worksheet, name, tuple(columns))

    def finished(self, chart_rows: Mapping[str, int] = NO_CHARTS) -> bytes:
        """The file. Every sheet prints whole, with the rows that charts take below its cells, by the sheet's name."""
        for sheet in self.workbook.worksheets():
            sheet.print_area(0, 0, sheet.dim_rowmax + chart_rows.get(sheet.name, 0), sheet.dim_colmax)
        self.workbook.close()
        return self.out.getvalue()


@dataclass(frozen=True, slots=True)
class Sheet:
    book: Book
    worksheet: Any
    name: str
    columns: tuple[Column, ...]

    def row(self, row: int, cells: Sequence[Cell], look: str = "") -> None:
        """Write cells from the first column on; None leaves a cell empty. `look` is "" or "total: "."""
        for at, cell in enumerate(cells):
            self.cell(row, at, cell, look + self.columns[at].kind)
        texts = ((cell, column.width) for cell, column in zip(cells, self.columns, strict=False) if column.kind in WRAPPED_KINDS)
        lines = max((_lines(cell, width * LETTERS_OVER_WIDTH) for cell, width in texts if isinstance(cell, str)), default=1)
        if lines > 1:
            self.worksheet.set_row(row, LINE_HEIGHT * lines)

    def cell(self, row: int, at: int, cell: Cell, look: str) -> None:
        looks = self.book.looks
        if isinstance(cell, Input):
            self.worksheet.write(row, at, cell.value, looks[f"input: {look}"])
        elif isinstance(cell, Formula):
            value = xml_text(cell.value) if isinstance(cell.value, str) else cell.value
            self.worksheet.write_formula(row, at, cell.formula, looks[look], value)
        elif isinstance(cell, str):
            self.worksheet.write_string(row, at, xml_text(cell), looks[look])
        elif isinstance(cell, date):
            self.worksheet.write_datetime(row, at, cell, looks["date"])
        elif cell is not None:
            self.worksheet.write_number(row, at, cell, looks[look])

    def at(self, row: int, column: int) -> str:
        """A cell's absolute address with its sheet."""
        return f"'{self.name}'!{xl_rowcol_to_cell(row, column, row_abs=True, col_abs=True)}"

    def down(self, first: int, last: int, column: int) -> str:
        """The address of rows `first` to `last` of a column."""
        return f"{self.at(first, column)}:{xl_rowcol_to_cell(max(first, last), column, row_abs=True, col_abs=True)}"


def _lines(text: str, width: float) -> int:
    """Lines that a text takes in a column: few programs find the height of wrapped rows themselves."""
    lines, used = 1, 0
    for word in text.split():
        if used and used + 1 + len(word) > width:
            lines, used = lines + 1, 0
        used += len(word) + bool(used)
        lines, used = lines + int(used // (width + 1)), min(used, int(width))
    return lines


def new_book() -> Book:
    """An empty workbook in memory."""
    out = BytesIO()
    workbook = Workbook(out, {"in_memory": True})
    head = {"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"}
    looks = {
        "title": workbook.add_format({"bold": True, "font_size": 14}),
        "caption": workbook.add_format({"italic": True, "font_color": "#555555"}),
        "head": workbook.add_format(head),
        "head of figures": workbook.add_format(head | {"align": "right", "indent": 1}),
        "wrapped": workbook.add_format({"text_wrap": True, "valign": "top"}),
        "field": workbook.add_format({"text_wrap": True, "valign": "top"}),
    }
    for kind, shown in NUMBER_FORMATS.items():
        plain: dict[str, object] = {"num_format": shown, "valign": "top"}
        plain |= {"align": "right", "indent": 1} if kind in ("exact", "date") else {}
        looks[kind] = workbook.add_format(plain)
        looks[f"input: {kind}"] = workbook.add_format(plain | INPUT_LOOK)
        looks[f"total: {kind}"] = workbook.add_format(plain | {"bold": True, "top": 1})
    return Book(workbook, looks, out)
