"""Cells of a vendor's file: the tables of a CSV or XLSX file, within limits.

Saved values are read and nothing is executed: formulas are not evaluated, macros are refused.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta

from service.domain.errors import InvalidRequest

Cell = str | float | bool | date | datetime | None
MAX_FILE_BYTES = 8 * 2**20
MAX_ROWS = 5_000
MAX_COLUMNS = 100
MAX_CELL_CHARACTERS = 2_000
MAX_SHEETS = 50
DELIMITERS = (",", ";", "\t", "|")
SNIFFED_LINES = 200


@dataclass(frozen=True, slots=True)
class VendorSheet:
    """A table of cells. Rows and columns count from 0; `merged` are ranges (first row, first column, last row, last column)."""

    name: str
    rows: list[list[Cell]]
    hidden: bool = False
    hidden_rows: frozenset[int] = frozenset()
    merged: tuple[tuple[int, int, int, int], ...] = ()
    formulas: int = 0

    def cell(self, row: int, column: int) -> Cell:
        """The value there; None beyond the end of a row."""
        cells = self.rows[row] if row < len(self.rows) else []
        return cells[column] if column < len(cells) else None

    @property
    def width(self) -> int:
        """Columns of the longest row."""
        return max(map(len, self.rows), default=0)


@dataclass(frozen=True, slots=True)
class VendorFile:
    """The tables of a file, and notes on how it was read."""

    format: str
    sheets: tuple[VendorSheet, ...]
    notes: tuple[str, ...] = field(default_factory=tuple)


def read_csv(content: bytes) -> VendorFile:
    """The table of delimited text. Raises InvalidRequest for what is no text, and above the limits."""
    text, encoding = _decode(content)
    stated, text = _stated_delimiter(text)
    delimiter = stated or _guess_delimiter(text)
    rows: list[list[Cell]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            rows.append([clip(cell) or None for cell in record])
            check_size(len(rows), len(record))
    except csv.Error as error:
        raise InvalidRequest(f"line {len(rows) + 1}: no well-formed CSV: {error}", "/content_base64") from None
    shown = "tab" if delimiter == "\t" else delimiter
    return VendorFile("csv", (VendorSheet("", trimmed(rows)),), (f"read as {encoding} text with {shown!r} between cells",))


def check_size(rows: int, columns: int) -> None:
    """Raises InvalidRequest for a table beyond the limits."""
    if rows > MAX_ROWS or columns > MAX_COLUMNS:
        what = f"{rows:,} rows" if rows > MAX_ROWS else f"{columns:,} columns"
        raise InvalidRequest(f"a table reaches {what}; at most {MAX_ROWS:,} rows and {MAX_COLUMNS} columns are taken", "/content_base64")


def clip(cell: str) -> str:
    """Text of a cell without surrounding blanks, its characters that no store takes, and what is beyond the limit."""
    return cell.replace("\0", "").replace("\u00a0", " ").replace("\u202f", " ").strip()[:MAX_CELL_CHARACTERS]


def trimmed(rows: list[list[Cell]]) -> list[list[Cell]]:
    """The rows without empty ones at the end."""
    last = max((number for number, row in enumerate(rows, start=1) if any(cell is not None for cell in row)), default=0)
    return rows[:last]


def plain_cell(value: object) -> Cell:
    """A workbook's value as a cell: durations and times of day are no values of a quote."""
    if isinstance(value, str):
        return clip(value.encode("utf-8", "replace").decode()) or None
    if isinstance(value, bool | datetime | date) or value is None:
        return value
    if isinstance(value, time | timedelta):
        return str(value)
    if isinstance(value, int | float):
        number = float(value)
        return number if -1e18 < number < 1e18 else str(value)
    return str(value)[:MAX_CELL_CHARACTERS] or None


def _decode(content: bytes) -> tuple[str, str]:
    """The text and its encoding: by its mark, else UTF-8, else Windows' Western one. Raises InvalidRequest for what is no text."""
    marks = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
    encodings = [name for mark, name in marks if content.startswith(mark)] or ["utf-8", "cp1252"]
    for encoding in encodings:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if text.count("\0") == 0:
            return text, encoding
    raise InvalidRequest("the file is neither .xlsx nor text: save the table as .xlsx, or as CSV in UTF-8", "/content_base64")


def _stated_delimiter(text: str) -> tuple[str | None, str]:
    """The delimiter of a first line `sep=;`, as spreadsheets write it, and the text after it."""
    first, _, rest = text.partition("\n")
    stated = first.strip().strip('"')
    if stated.lower().startswith("sep=") and stated[4:] in DELIMITERS:
        return stated[4:], rest
    return None, text


def _guess_delimiter(text: str) -> str:
    """The delimiter by which most lines of the beginning have the same number of cells, more than one."""
    lines = text.splitlines()[:SNIFFED_LINES]
    return max(DELIMITERS, key=lambda delimiter: _evenness(lines, delimiter))


def _evenness(lines: Iterable[str], delimiter: str) -> tuple[int, int]:
    counts: dict[int, int] = {}
    try:
        for record in csv.reader(lines, delimiter=delimiter):
            if len(record) > 1:
                counts[len(record)] = counts.get(len(record), 0) + 1
    except csv.Error:
        return (0, 0)
    return max(((number, cells) for cells, number in counts.items()), default=(0, 0))
