"""Sheet of a report's spend by calendar month, with its chart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.cells import FIRST_ROW, LIGHT_GRID, Book, Column, Formula
from service.formats.documents.charts import COLOURS, GREY
from service.formats.documents.report.workbook_forecast import place_chart

Report = Mapping[str, Any]
MONTHS_SHEET = "Months"
MONTHS = (
    *(Column("month", 12), Column("planned, USD", 18, "usd"), Column("actual, USD", 18, "usd"), Column("still to come, USD", 18, "usd")),
    *(Column("p10, USD", 18, "usd"), Column("p90, USD", 18, "usd")),
)
DRAWN = {1: GREY, 2: COLOURS[0], 3: COLOURS[1]}
"""Columns that are drawn, with their colours."""


def write_months(book: Book, report: Report) -> dict[str, int]:
    """The sheet; returns the rows that its chart takes, by sheet."""
    months = report["months"]
    if not months:
        return {}
    caption = "What is spent and what is still to come add up to the forecast. The month of the report's day has both."
    sheet, last = book.sheet(MONTHS_SHEET, ("Spend by month", caption), MONTHS), FIRST_ROW + len(months) - 1
    rows = [(month["planned_usd"], month["actual_usd"], *_ahead(month)) for month in months]
    for row, (month, amounts) in enumerate(zip(months, rows, strict=True), FIRST_ROW):
        sheet.row(row, (month["month"], *amounts))
    sums = [sum(usd or 0.0 for usd in column) for column in zip(*rows, strict=True)]
    sheet.row(last + 1, ("all", *(Formula(f"=SUM({sheet.down(FIRST_ROW, last, at)})", usd) for at, usd in enumerate(sums, 1))), "total: ")
    chart = book.workbook.add_chart({"type": "column"})
    for at, colour in DRAWN.items():
        cells = {"categories": f"={sheet.down(FIRST_ROW, last, 0)}", "values": f"={sheet.down(FIRST_ROW, last, at)}"}
        chart.add_series({"name": f"={sheet.at(FIRST_ROW - 1, at)}", **cells, "fill": {"color": colour}})
    chart.set_y_axis({"num_format": "#,##0", **LIGHT_GRID})
    chart.set_legend({"position": "bottom"})
    return {MONTHS_SHEET: place_chart(sheet, chart, last + 1, "Spend by month, USD")}


def _ahead(month: Report) -> tuple[float | None, ...]:
    ahead = month["forecast_usd"]
    return (None, None, None) if ahead is None else (ahead["p50"], ahead["p10"], ahead["p90"])
