"""A report as PDF with its charts, typeset by Typst with its own fonts, without network.

The template reads the report as JSON: its texts are values, never Typst's markup or code.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import typst

from service.formats.documents.charts import svg
from service.formats.documents.report.charts import report_charts
from service.formats.documents.report.sections import HEALTH_TITLES, footer, sections, subtitle, tiles, title
from service.formats.documents.sections import DocumentSection, DocumentTable
from service.formats.reading_order import in_order

TEMPLATE = "templates/report.typ"
MOST_ROWS = 400
"""Rows of a table, over as many pages as they take; it says how many more there are and where."""
HALF_WIDTH = ("quality", "losses", "spend", "energy")
"""Sections whose charts stand two side by side."""
WRAPPED = 26
"""Characters of a cell from which its column is as wide as there is room."""
NARROW = 9
"""Characters of a word that the narrowest column takes."""
LONGEST_WORD = 20
"""Letters of a word that the typesetter divides; what is longer is a name, and may break anywhere."""
WIDEST_HEAD = 16
"""Characters of a line of a column's head."""
BREAK = "\N{ZERO WIDTH SPACE}"
_LONG = re.compile(rf"\S{{{NARROW + 1},}}")
_PART_END = re.compile(r"(?<=[_/@.:+-])(?=[^_/@.:+-])")


def write(report: Mapping[str, Any]) -> bytes:
    """The pages."""
    template = files("service.formats.documents").joinpath(TEMPLATE).read_bytes()
    text = in_order(json.dumps(_content(report), ensure_ascii=False))
    return typst.compile(template, format="pdf", ignore_system_fonts=True, sys_inputs={"report": text})


def _content(report: Mapping[str, Any]) -> dict[str, Any]:
    health, charts = report["headline"]["health"], report_charts(report)
    first, *others = sections(report)
    return {
        "title": title(report),
        "subtitle": subtitle(report),
        "health": health,
        "health_title": HEALTH_TITLES[health],
        "summary": first.listed,
        "tiles": [asdict(tile) for tile in tiles(report)],
        "sections": [_section(section, [svg(chart) for chart in charts.get(section.name, ())]) for section in others],
        "footer": footer(report),
    }


def _section(section: DocumentSection, charts: list[str]) -> dict[str, Any]:
    return {
        "title": section.title,
        "listed": section.listed,
        "charts": charts,
        "half": section.name in HALF_WIDTH,
        "tables": [table_content(each) for each in section.tables],
    }


def table_content(table: DocumentTable) -> dict[str, Any]:
    """A table for the template; `wide`: columns that share the room that is left. Long names may break, and heads have several lines."""
    columns = range(len(table.head))
    longest = [max(len(row[column]) for row in table.rows) for column in columns]
    wide = [column for column in columns if column not in table.numeric and longest[column] > WRAPPED]
    shown = table.rows if len(table.rows) <= MOST_ROWS else [*table.rows[: MOST_ROWS - 1], table.rows[-1]]
    left = len(table.rows) - len(shown)
    note = (
        f"{left:,} of {len(table.rows):,} rows are left out between the last two rows: this report as HTML, Markdown and JSON has them."
        if left
        else ""
    )
    rows = [[cell if column in table.numeric else _breakable(cell) for column, cell in enumerate(row)] for row in shown]
    head = [textwrap.fill(each, WIDEST_HEAD, break_long_words=False, break_on_hyphens=False) for each in table.head]
    return {"head": head, "rows": rows, "numeric": sorted(table.numeric), "wide": wide, "total": table.total, "left": note}


def _breakable(cell: str) -> str:
    """The cell with places where its long names may break: between their parts, or anywhere in a part that is no word. Days are whole."""
    return _LONG.sub(lambda found: _breakable_name(found[0]), cell)


def _breakable_name(name: str) -> str:
    has_letters = any(map(str.isalpha, name))
    return BREAK.join(map(_breakable_part, _PART_END.split(name))) if has_letters else name


def _breakable_part(part: str) -> str:
    is_word = len(part) <= NARROW or (part.isalpha() and len(part) <= LONGEST_WORD)
    return part if is_word else BREAK.join(part)
