"""Sections in Markdown (GitHub's tables), with padded columns so that they are readable in a terminal too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from service.formats.documents.sections import DocumentSection, DocumentTable
from service.formats.reading_order import in_order

# Characters of markup: HTML, links, emphasis, code, the end of a cell.
_MARKUP = re.compile(r"([\\`*_\[\]<>|])")
_BREAKS = re.compile(r"\s+")


def write_markdown(head: Sequence[str], sections: Iterable[DocumentSection], footer: str) -> bytes:
    """A document in UTF-8; `head` are its first paragraphs, as Markdown."""
    return ("\n\n".join([*head, *map(_section, sections), escape(footer)]) + "\n").encode()


def escape(text: str) -> str:
    """Text on one line without markup."""
    return _MARKUP.sub(r"\\\1", _BREAKS.sub(" ", in_order(text)).strip())


def _section(section: DocumentSection) -> str:
    parts = [f"## {escape(section.title)}"]
    if section.listed:
        parts.append("\n".join(f"- {escape(sentence)}" for sentence in section.listed))
    return "\n\n".join([*parts, *map(_table, section.tables)])


def _table(table: DocumentTable) -> str:
    rows = [[escape(cell) for cell in row] for row in (table.head, *table.rows)]
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(table.head))]
    # A last column of text is not padded: one long source would fill the screen with blanks.
    widths[-1] = widths[-1] if len(widths) - 1 in table.numeric else 3
    rule = [("-" * (width - 1) + ":") if column in table.numeric else "-" * width for column, width in enumerate(widths)]
    return "\n".join(_row(row, widths, table) for row in (rows[0], rule, *rows[1:]))


def _row(cells: Sequence[str], widths: Sequence[int], table: DocumentTable) -> str:
    columns = enumerate(zip(cells, widths, strict=True))
    padded = [cell.rjust(width) if column in table.numeric else cell.ljust(width) for column, (cell, width) in columns]
    return "| " + " | ".join(padded) + " |"
