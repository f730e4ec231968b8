"""The report as PDF: a long table goes on over pages, and says what it leaves out and where that is."""

from __future__ import annotations

from service.formats.documents.report.pdf import MOST_ROWS, table_content
from service.formats.documents.sections import DocumentTable


def table(rows: int, *, total: bool = False) -> DocumentTable:
    return DocumentTable(("run", "USD"), [(f"run {row}", "1.00") for row in range(rows)], frozenset({1}), total=total)


def test_a_table_of_some_pages_is_whole() -> None:
    """Every row, and nothing that says otherwise."""
    found = table_content(table(MOST_ROWS))
    assert (len(found["rows"]), found["left"]) == (MOST_ROWS, "")


def test_a_longer_one_says_how_many_rows_are_left_out_and_where_they_are() -> None:
    """The last row, which may be the sum, is shown."""
    found = table_content(table(1234, total=True))
    assert len(found["rows"]) == MOST_ROWS
    assert found["rows"][-1][0] == "run 1233"
    assert found["left"] == "834 of 1,234 rows are left out between the last two rows: this report as HTML, Markdown and JSON has them."
