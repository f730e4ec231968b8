"""Tables of the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from service.cli.terminal import tables

ROWS = [
    ("name", "reason", "count"),
    ("first [bold]", "a reason of many words that no narrow terminal holds in one line", "1"),
    ("", "x" * 90, "2"),
]


def test_without_a_terminal_each_row_is_one_line() -> None:
    """Scripts read one row a line, cells aligned, and brackets are no markup."""
    head, first, second = tables.columns(ROWS).splitlines()
    assert (head[:4], first[:12]) == ("name", "first [bold]")
    assert head.index("reason") == first.index("a reason") == second.index("xx")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_table_fits_the_terminal_and_loses_nothing(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long cells continue on further lines."""
    monkeypatch.setattr(tables, "_terminal_width", lambda: width)
    text = tables.columns(ROWS)
    assert max(map(len, text.splitlines())) <= width
    assert (text.count("x"), *(word in text for word in ROWS[1][1].split())) == (90, *[True] * 13)


def test_help_imports_no_table_code() -> None:
    """Rich is loaded with the first table."""
    lines = (
        "import sys",
        "from click.testing import CliRunner",
        "from service.cli import main",
        "CliRunner().invoke(main, ['--help'])",
        "print('rich' in sys.modules)",
    )
    assert subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True).stdout == "False\n"
