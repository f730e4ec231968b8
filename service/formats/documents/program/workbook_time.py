"""Sheets of a plan in time: who waits for whom, and spend by month with its chart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.cells import FIRST_ROW, LIGHT_GRID, ROW_PIXELS, TITLE_FONT, Book, Column, Formula, Sheet
from service.formats.documents.program.time_sections import awaited, enough, waits_of

Answer = Mapping[str, Any]
WAITING_SHEET, MONTHS_SHEET = "Waiting", "Months"
WAITING_COLUMNS = (
    *(Column("run", 40, "wrapped"), Column("waits for", 50, "wrapped"), Column("days", 10, "number"), Column("pool", 28)),
    *(Column("accelerators", 14, "whole"), Column("one more node saves, days", 16, "number"), Column("to wait no more", 50, "wrapped")),
)
MONTH_COLUMNS = (
    *(Column("month", 12), Column("planned, USD", 18, "usd"), Column("p10, USD", 18, "usd"), Column("p90, USD", 18, "usd")),
    *(Column("planned by then, USD", 20, "usd"), Column("p10 by then, USD", 18, "usd"), Column("p90 by then, USD", 18, "usd")),
)
CHART_ROWS = 20
PLANNED, BY_THEN, SPREAD = "#0072B2", "#D55E00", "#8a8a8a"


def write_waiting(book: Book, answer: Answer) -> None:
    """A sheet of the runs that wait for accelerators, where there are any."""
    waits = list(waits_of(answer))
    if not waits:
        return
    sheet = book.sheet(WAITING_SHEET, ("Who waits for whom", "By medians. It does not follow changes."), WAITING_COLUMNS)
    for row, (pool, wait) in enumerate(waits, FIRST_ROW):
        saved = pool["one_more_node"] and pool["one_more_node"]["days_saved"]
        sheet.row(row, (wait["run"], awaited(wait), wait["days"], pool["pool"], pool["accelerators"], saved, enough(pool)))


def write_months(book: Book, answer: Answer) -> dict[str, int]:
    """A sheet of planned spend by month with its chart; returns the rows that the chart takes, by sheet."""
    months = answer.get("months", ())
    if not months:
        return {}
    caption = "Planned spend adds up to the budget; p10 and p90 are of the calendar's draws. It does not follow changes."
    sheet = book.sheet(MONTHS_SHEET, ("Spend by month", caption), MONTH_COLUMNS)
    for row, month in enumerate(months, FIRST_ROW):
        by_then = Formula(f"=SUM({sheet.down(FIRST_ROW, row, 1)})", month["by_then_usd"])
        own, later = month["drawn_usd"], month["drawn_by_then_usd"]
        sheet.row(row, (month["month"], month["usd"], own["p10"], own["p90"], by_then, later["p10"], later["p90"]))
    last = FIRST_ROW + len(months) - 1
    whole = Formula(f"=SUM({sheet.down(FIRST_ROW, last, 1)})", months[-1]["by_then_usd"])
    sheet.row(last + 1, ("all", whole), "total: ")
    _chart(book, sheet, last)
    return {MONTHS_SHEET: CHART_ROWS}


def _chart(book: Book, sheet: Sheet, last: int) -> None:
    """Each month's planned spend as a column, and by then with its p10 and p90 as lines, which follow the cells."""
    months = f"={sheet.down(FIRST_ROW, last, 0)}"
    columns, lines = book.workbook.add_chart({"type": "column"}), book.workbook.add_chart({"type": "line"})
    values = f"={sheet.down(FIRST_ROW, last, 1)}"
    columns.add_series({"name": "planned, USD a month", "categories": months, "values": values, "fill": {"color": PLANNED}})
    for at, name, colour, width in (
        (4, "planned by then", BY_THEN, 2.25),
        (5, "p10 by then", SPREAD, 1.0),
        (6, "p90 by then", SPREAD, 1.0),
    ):
        cells = {"name": name, "categories": months, "values": f"={sheet.down(FIRST_ROW, last, at)}", "y2_axis": True}
        lines.add_series(cells | {"line": {"color": colour, "width": width}})
    columns.combine(lines)
    columns.set_title({"name": "Planned spend by month", "name_font": TITLE_FONT})
    columns.set_y_axis({"name": "USD a month", "num_format": "#,##0", **LIGHT_GRID})
    lines.set_y2_axis({"name": "USD by then", "num_format": "#,##0"})
    columns.set_legend({"position": "bottom"})
    columns.set_size({"width": 720, "height": ROW_PIXELS * (CHART_ROWS - 2)})
    sheet.worksheet.insert_chart(last + 3, 0, columns)
