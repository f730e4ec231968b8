"""A plan in Markdown (GitHub's tables), its columns padded so that a terminal shows it as well as a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from service.formats.documents.program.sections import Section, Table, footer, sections

# What would be markup: HTML, links, emphasis, code, the end of a cell.
_MARKUP = re.compile(r"([\\`*_\[\]<>|])")
_BREAKS = re.compile(r"\s+")


def write(answer: Mapping[str, Any]) -> bytes:
    """The document in UTF-8."""
    parts = [f"# {cell_text(answer['name'])}", *(markdown_section(section) for section in sections(answer)), cell_text(footer(answer))]
    return ("\n\n".join(parts) + "\n").encode()


def markdown_section(section: Section) -> str:
    parts = [f"## {section.title}"]
    if section.listed:
        parts.append("\n".join(f"- {cell_text(said)}" for said in section.listed))
    return "\n\n".join([*parts, *(_table(table) for table in section.tables)])


def _table(table: Table) -> str:
    rows = [[cell_text(cell) for cell in row] for row in (table.head, *table.rows)]
    widths = [max(3, *(len(row[at]) for row in rows)) for at in range(len(table.head))]
    # The last column is left ragged: padding a long source would only fill the screen with blanks.
    widths[-1] = widths[-1] if len(widths) - 1 in table.numeric else 3
    rule = [("-" * (width - 1) + ":") if at in table.numeric else "-" * width for at, width in enumerate(widths)]
    return "\n".join(_row(row, widths, table) for row in (rows[0], rule, *rows[1:]))


def _row(cells: Sequence[str], widths: Sequence[int], table: Table) -> str:
    padded = [
        cell.rjust(width) if at in table.numeric else cell.ljust(width) for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "| " + " | ".join(padded) + " |"


def cell_text(said: str) -> str:
    """Text that no reader of Markdown takes for markup, on one line."""
    return _MARKUP.sub(r"\\\1", _BREAKS.sub(" ", said).strip())
