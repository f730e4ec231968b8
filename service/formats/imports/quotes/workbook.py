"""Sheets of an XLSX workbook: checked before a reader sees it, then repacked without what no table needs.

The parts are unpacked within limits and stored anew, so that what was checked is what the reader reads.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

from service.domain.errors import InvalidRequest
from service.formats.imports.quotes.sheets import MAX_SHEETS, Cell, VendorFile, VendorSheet, check_size, plain_cell, trimmed

MAX_PARTS = 1_000
MAX_UNPACKED_BYTES = 48 * 2**20
MAX_AREA = 1_000_000
"""Cells of all sheets with the empty ones between them: a reader allocates them."""
MAX_MERGED = 10_000
MAX_RATIO = 300
"""Unpacked over packed size of a large part: tables of a vendor stay below 50."""
RATIO_FROM_BYTES = 2**20
POINTER = "/content_base64"
REFERENCE = re.compile(r"([A-Za-z]{1,7})([0-9]{1,9})")
BOOK, RELATIONS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
"""Names of parts, in which case does not count."""


@dataclass(slots=True)
class SheetFacts:
    """What a sheet's XML says besides values: its extent (counted from 1), hidden rows (from 0), and formulas."""

    rows: int = 0
    columns: int = 0
    hidden_rows: set[int] = field(default_factory=set)
    formulas: int = 0
    merged: int = 0


def read_workbook(content: bytes) -> VendorFile:
    """The sheets of an XLSX workbook. Raises InvalidRequest for another or a damaged file, macros, and above the limits."""
    parts = _parts(content)
    names = _sheet_parts(parts)
    facts = {sheet: _facts(parts[name]) for sheet, name in names.items()}
    _check_area(facts.values())
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(_repacked(parts)))
        _check_sheets(len(book.sheets_metadata))
        sheets = [_sheet(book, meta, facts) for meta in book.sheets_metadata if meta.typ == SheetTypeEnum.WorkSheet]
    except (CalamineError, ValueError, OSError) as error:
        raise InvalidRequest(f"the workbook cannot be read: {str(error)[:200]}", POINTER) from None
    except BaseException as error:  # the reader's own panic is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise InvalidRequest("the workbook is damaged: save it anew as .xlsx", POINTER) from None
    if not sheets:
        raise InvalidRequest("the workbook has no sheet with cells", POINTER)
    formulas = sum(sheet.formulas for sheet in sheets)
    notes = (f"{formulas} cells hold formulas: the values that were saved with them are read, nothing is calculated",) if formulas else ()
    return VendorFile("xlsx", tuple(sheets), notes)


def _check_sheets(count: int) -> None:
    if count > MAX_SHEETS:
        raise InvalidRequest(f"the workbook has {count} sheets; at most {MAX_SHEETS} are taken", POINTER)


def _check_area(facts: Collection[SheetFacts]) -> None:
    area, merged = sum(sheet.rows * sheet.columns for sheet in facts), sum(sheet.merged for sheet in facts)
    if area > MAX_AREA or merged > MAX_MERGED:
        what = f"its sheets span {area:,} cells" if area > MAX_AREA else f"{merged:,} ranges are merged"
        raise InvalidRequest(f"{what}; at most {MAX_AREA:,} cells and {MAX_MERGED:,} merged ranges are taken", POINTER)


def _parts(content: bytes) -> dict[str, bytes]:
    """XML parts of the package by name. Raises InvalidRequest for what is no XLSX, for macros, and above the limits."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            entries = package.infolist()
            _check_package({entry.filename: entry for entry in entries}, len(entries))
            wanted = [entry for entry in entries if entry.filename.lower().endswith((".xml", ".rels"))]
            wanted = [entry for entry in wanted if "calcchain" not in entry.filename.lower()]
            return {entry.filename: package.read(entry) for entry in wanted}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError, OSError) as error:
        raise InvalidRequest(f"the file is no .xlsx that can be read: {str(error)[:100]}", POINTER) from None


def _check_package(entries: Mapping[str, zipfile.ZipInfo], count: int) -> None:
    names = {name.lower() for name in entries}
    if any(name.endswith("vbaproject.bin") for name in names):
        raise InvalidRequest("the workbook has macros, which are never run: save it as .xlsx without macros", POINTER)
    if "xl/workbook.bin" in names:
        raise InvalidRequest("the workbook is binary (.xlsb): save it as .xlsx", POINTER)
    if BOOK not in names or RELATIONS not in names:
        raise InvalidRequest("the file is an archive and no .xlsx workbook: save the table as .xlsx or .csv", POINTER)
    if count > MAX_PARTS or count != len(entries):
        raise InvalidRequest(f"the workbook has {count:,} parts, or parts of one name; at most {MAX_PARTS:,} are taken", POINTER)
    if sum(entry.file_size for entry in entries.values()) > MAX_UNPACKED_BYTES:
        raise InvalidRequest(f"the workbook unpacks to more than {MAX_UNPACKED_BYTES:,} bytes", POINTER)
    for entry in entries.values():
        if entry.file_size > RATIO_FROM_BYTES and entry.file_size > MAX_RATIO * entry.compress_size:
            raise InvalidRequest(f"a part of the workbook unpacks to more than {MAX_RATIO} times its size: save the table as .csv", POINTER)


def _repacked(parts: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as package:
        for name, body in parts.items():
            package.writestr(name, body)
    return made.getvalue()


def _sheet_parts(parts: Mapping[str, bytes]) -> dict[str, str]:
    """Name of the part of each sheet by the sheet's name, then all other parts by their own: a reader may find a sheet by another way."""
    sheets: list[tuple[str, str]] = []
    targets: dict[str, str] = {}

    def on_book(tag: str, attributes: dict[str, str]) -> None:
        if tag == "sheet":
            related = next((value for key, value in attributes.items() if key.rpartition(":")[2] == "id"), "")
            sheets.append((attributes.get("name", ""), related))

    def on_relation(tag: str, attributes: dict[str, str]) -> None:
        if tag == "Relationship":
            targets[attributes.get("Id", "")] = attributes.get("Target", "")

    by_fold = {name.lower(): name for name in parts}
    _walk(parts[by_fold[BOOK]], on_book)
    _walk(parts[by_fold[RELATIONS]], on_relation)
    found = {name: _path(targets.get(related, "")) for name, related in sheets}
    known = {name: by_fold[path.lower()] for name, path in found.items() if path.lower() in by_fold}
    others = [name for name in parts if name not in known.values()]
    return {**known, **{name: name for name in others}}


def _path(target: str) -> str:
    return target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join("xl", target))


def _facts(body: bytes) -> SheetFacts:
    """Extent, hidden rows and formulas of a sheet. Raises InvalidRequest above the limits: a reader would allocate the whole extent."""
    facts = SheetFacts()
    place = [0, 0]

    def on_element(tag: str, attributes: dict[str, str]) -> None:
        if tag == "row":
            place[:] = [_number(attributes.get("r"), place[0] + 1), 0]
            facts.rows = max(facts.rows, place[0])
            if attributes.get("hidden") in ("1", "true"):
                facts.hidden_rows.add(place[0] - 1)
        elif tag == "c":
            at = REFERENCE.fullmatch(attributes.get("r", ""))
            place[1] = _column(at.group(1)) if at else place[1] + 1
            facts.rows = max(facts.rows, int(at.group(2)) if at else 0)
            facts.columns = max(facts.columns, place[1])
        elif tag == "f":
            facts.formulas += 1
        elif tag == "mergeCell":
            facts.merged += 1
        check_size(facts.rows, facts.columns)

    _walk(body, on_element)
    return facts


def _number(text: str | None, usual: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else usual


def _column(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def _walk(body: bytes, on_element: Any) -> None:
    """Call `on_element(tag, attributes)` for each element, its tag without prefix. Raises InvalidRequest for bad XML and for a DTD."""
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise InvalidRequest("the workbook's XML declares entities, which no table needs", POINTER)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda tag, attributes: on_element(tag.rpartition(":")[2], attributes)
    try:
        parser.Parse(body, True)  # noqa: FBT003 - expat's signature
    except expat.ExpatError as error:
        raise InvalidRequest(f"the workbook is damaged ({error}): save it anew as .xlsx", POINTER) from None


def _sheet(book: CalamineWorkbook, meta: Any, facts: Mapping[str, SheetFacts]) -> VendorSheet:
    read = book.get_sheet_by_name(meta.name)
    known = facts.get(meta.name, SheetFacts())
    rows: list[list[Cell]] = [[plain_cell(value) for value in row] for row in read.to_python(skip_empty_area=False)]
    merged = tuple(_filled(rows, *first, *last) for first, last in read.merged_cell_ranges or ())
    hidden = meta.visible != SheetVisibleEnum.Visible
    return VendorSheet(meta.name, trimmed(rows), hidden, frozenset(known.hidden_rows), merged, known.formulas)


def _filled(rows: list[list[Cell]], row: int, column: int, last_row: int, last_column: int) -> tuple[int, int, int, int]:
    """The merged range, within the table; its cells get the value of its first one."""
    last_row = min(last_row, len(rows) - 1)
    value = rows[row][column] if row < len(rows) and column < len(rows[row]) else None
    for cells in rows[row : last_row + 1]:
        for at in range(column, min(last_column + 1, len(cells))):
            cells[at] = value
    return row, column, last_row, last_column
