"""A report as PDF with its charts, typeset by Typst with its own fonts, without network.

The template reads the report as JSON: its texts are values, never Typst's markup or code.
"""

from __future__ import annotations

import json
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
    """A table for the template; `wide`: columns that share the room that is left. Long names may break after their underscores."""
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
    rows = [[cell.replace("_", "_\N{ZERO WIDTH SPACE}") for cell in row] for row in shown]
    return {"head": table.head, "rows": rows, "numeric": sorted(table.numeric), "wide": wide, "total": table.total, "left": note}
