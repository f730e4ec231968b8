"""What every CSV table has in common."""

from __future__ import annotations

from service.formats.documents.csv_table import write_csv


def test_figures_are_the_same_on_every_processor() -> None:
    """Sums of binary floats differ in the last of 17 digits, by the order in which a processor adds."""
    rows = [[{"usd": 42562.72747397314}], [{"usd": 42562.72747397313}]]
    assert {write_csv(("usd",), each) for each in rows} == {b"usd\r\n42562.727474\r\n"}


def test_whole_figures_keep_all_their_digits() -> None:
    """Counts of tokens are whole numbers, beyond 12 digits too."""
    assert write_csv(("tokens",), [{"tokens": 14_800_000_000_001}]) == b"tokens\r\n14800000000001\r\n"
