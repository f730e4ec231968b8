"""The report as PDF: a long table goes on over pages, and says what it leaves out and where that is."""

from __future__ import annotations

import pytest

from service.formats.documents.report.pdf import BREAK, MOST_ROWS, NARROW, table_content
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


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("gpu-h100-sxm_8gpu-128vcpu-1600gb", ["gpu-", "h100-", "sxm_", "8gpu-", "128vcpu-", "1600gb"]),
        ("Standard_ND96isr_H100_v5", ["Standard_", "ND96isr_", "H100_", "v5"]),
        ("read on 2026-01-01 of Consolidated Computing", ["read on 2026-01-01 of Consolidated Computing"]),
        ("us-east", ["us-east"]),
    ],
)
def test_a_long_name_breaks_between_its_parts(name: str, parts: list[str]) -> None:
    """Words are divided by the typesetter, days stay whole."""
    assert cells_of(name)[0].split(BREAK) == parts


@pytest.mark.parametrize("name", ["x" * 70, "a_" + "averyveryverylongname" * 4, "\N{CJK UNIFIED IDEOGRAPH-5317}" * 40])
def test_a_name_without_parts_breaks_anywhere(name: str) -> None:
    """Else it stands over the columns beside it."""
    (shown, _) = cells_of(name)
    assert shown.replace(BREAK, "") == name
    assert max(map(len, shown.split(BREAK))) <= NARROW


def test_a_head_takes_no_more_room_than_its_longest_word() -> None:
    """Figures are narrow, and the room is for names."""
    found = table_content(DocumentTable(("name", "USD per accelerator-hour"), [("a", "1.25")], frozenset({1})))
    assert found["head"] == ["name", "USD per\naccelerator-hour"]


def cells_of(name: str) -> tuple[str, str]:
    """The cells of a row with that name and a figure."""
    ((shown, figure),) = table_content(DocumentTable(("name", "USD"), [(name, "1,234,567,890.00")], frozenset({1})))["rows"]
    assert figure == "1,234,567,890.00"
    return shown, figure
