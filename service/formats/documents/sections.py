"""Sections of text and tables: the common content of readable documents (Markdown, HTML)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class DocumentTable:
    """Cells as text. `numeric`: columns aligned right; `dated`: columns of days. `total`: the last row is a sum."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numeric: frozenset[int] = frozenset()
    dated: frozenset[int] = frozenset()
    total: bool = False


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """`name`: where a page may place a chart; `listed`: sentences, one an item."""

    name: str
    title: str
    listed: tuple[str, ...] = ()
    tables: tuple[DocumentTable, ...] = ()


def filled_sections(*sections: DocumentSection) -> tuple[DocumentSection, ...]:
    """The sections that have sentences or tables, without tables that have no rows."""
    filled = (replace(section, tables=tuple(table for table in section.tables if table.rows)) for section in sections)
    return tuple(section for section in filled if section.listed or section.tables)
