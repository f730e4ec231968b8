"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, with what would end a cell escaped."""
    lines = [_row(header), "|" + "---|" * len(header), *(_row([cell(text) for text in row]) for row in rows)]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """`text` on one line; a bar would end the cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
