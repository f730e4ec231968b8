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


def test_figures_and_dates_stay_whole_while_texts_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure in pieces is misread."""
    monkeypatch.setattr(tables, "_terminal_width", lambda: 44)
    rows = [("USD", "read", "where"), ("1,086,145", "2026-05-20", "8 x gpu-h100-sxm_8gpu-128vcpu-1600gb at eu-north1")]
    text = tables.columns(rows)
    assert "1,086,145  2026-05-20  8 x" in text
    assert max(map(len, text.splitlines())) <= 44


def test_ids_stay_whole_while_names_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id in pieces cannot be copied, though it is longer than the name."""
    monkeypatch.setattr(tables, "_terminal_width", lambda: 70)
    rows = [("id", "name", "budget USD"), ("cf464a31-1330-43dc-b0cc-c5bc98121001", "1B base model on 64 accelerators", "59,365")]
    first, second = tables.columns(rows).splitlines()[1:]
    assert first.startswith("cf464a31-1330-43dc-b0cc-c5bc98121001  1B base model on")
    assert first.endswith("59,365")
    assert second.strip() == "accelerators"


def test_dispensable_columns_give_way_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the width needs."""
    rows = [("USD", "tCO2e", "region", "read"), ("1,086,145", "3.01", "europe-north1", "2026-05-20")]
    heads = []
    for width in (60, 34, 30, 10):
        monkeypatch.setattr(tables, "_terminal_width", lambda width=width: width)
        heads.append(tuple(tables.narrowed(rows, ("read", "tCO2e", "region"))[0]))
    assert heads == [("USD", "tCO2e", "region", "read"), ("USD", "tCO2e", "region"), ("USD", "region"), ("USD",)]


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
