"""A kept result as a workbook: one sheet for each table, figures as numbers."""

from __future__ import annotations

from service.domain.results import ResultDetail
from service.formats.documents.cells import FIRST_ROW, Book, Column, new_book
from service.formats.documents.results.content import result_tables
from service.formats.documents.results.tables import ResultTable, footer, summary_text
from service.formats.documents.text import xml_text

NOTE_COLUMNS = (Column("", 20, "wrapped"), Column("text", 120, "wrapped"))


def write(result: ResultDetail) -> bytes:
    """The workbook."""
    book, row = new_book(), result.row
    # A fixed time of creation: the same result has the same bytes.
    book.workbook.set_properties({"title": xml_text(row.title), "comments": footer(result), "created": row.created_at.replace(tzinfo=None)})
    for table in result_tables(result):
        if table.rows:
            _sheet(book, result, table)
    notes = book.sheet("Notes", (row.title, "What to worry about, and what identifies the answer."), NOTE_COLUMNS)
    rows = [("warning", warning) for warning in result.answer["warnings"]]
    for at, cells in enumerate([*rows, ("identified by", footer(result))], FIRST_ROW):
        notes.row(at, cells)
    return book.finished()


def _sheet(book: Book, result: ResultDetail, table: ResultTable) -> None:
    sheet = book.sheet(table.title, (result.row.title, summary_text(result.answer)), table.columns)
    for at, cells in enumerate(table.rows, FIRST_ROW):
        sheet.row(at, cells)
