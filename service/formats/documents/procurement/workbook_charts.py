"""Charts of the workbook, which follow its cells: cumulative cash curves with their crossing, and cash by year."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.cells import FIRST_ROW, LIGHT_GRID, TITLE_FONT, Book, Sheet
from service.formats.documents.procurement.model import CashModel
from service.formats.documents.procurement.words import COLOURS
from service.formats.documents.procurement.workbook_months import OptionSheet

CHART_SIZE = {"width": 670, "height": 380}
CHART_ROWS = 24
"""Rows that the charts take."""
INK = "#222222"


def write_charts(
    book: Book, sheets: tuple[Sheet, Sheet], model: CashModel, options: Mapping[str, OptionSheet], cash_rows: Mapping[str, int]
) -> None:
    """Both charts, on the first of the sheets: the verdict, and the years."""
    verdict, years = sheets
    row = FIRST_ROW + len(model.options) + 1
    curves = book.workbook.add_chart({"type": "scatter", "subtype": "straight"})
    bars = book.workbook.add_chart({"type": "column"})
    seen: set[str] = set()
    for shown in model.shown:
        name = f"={verdict.at(FIRST_ROW + model.options.index(shown), 0)}"
        curves.add_series({"name": name, **_curve(model, options[shown.name], COLOURS[shown.kind], dashed=shown.kind in seen)})
        bars.add_series({"name": name, **_bars(years, cash_rows[shown.name], COLOURS[shown.kind])})
        seen.add(shown.kind)
    if all(model.sides):
        curves.add_series(_crossing(verdict, row))
    curves.set_title({"name": f"={verdict.at(row, 0)}", "name_font": TITLE_FONT})
    bars.set_title({"name": "Cash by year, not discounted", "name_font": TITLE_FONT})
    curves.set_x_axis({"name": "month", "min": 0, "max": model.last_month, "major_unit": 12 if model.last_month >= 24 else 3})
    bars.set_x_axis({"label_position": "low"})
    for chart in (curves, bars):
        chart.set_y_axis({"name": "million USD", "num_format": "#,##0.0,,", **LIGHT_GRID})
        chart.set_legend({"position": "bottom"})
        chart.set_size(CHART_SIZE)
    verdict.worksheet.insert_chart(row + 4, 0, curves)
    verdict.worksheet.insert_chart(row + 4, 4, bars, {"x_offset": 50})


def _curve(model: CashModel, made: OptionSheet, colour: str, *, dashed: bool) -> dict[str, Any]:
    line: dict[str, Any] = {"color": colour, "width": 2.25}
    months, usd = made.column(0, model.last_month), made.column(made.tail + 3, model.last_month)
    dash = {"dash_type": "dash"} if dashed else {}
    return {"categories": f"={months}", "values": f"={usd}", "line": line | dash, "marker": {"type": "none"}}


def _bars(years: Sheet, row: int, colour: str) -> dict[str, Any]:
    return {"categories": f"={_across(years, FIRST_ROW - 1)}", "values": f"={_across(years, row)}", "fill": {"color": colour}}


def _across(years: Sheet, row: int) -> str:
    """Address of all years of a row."""
    return f"{years.at(row, 2)}:{years.at(row, len(years.columns) - 2).partition('!')[2]}"


def _crossing(verdict: Sheet, row: int) -> dict[str, Any]:
    """The month from which owning has cost less; no point where that is never."""
    point = {"type": "circle", "size": 9, "fill": {"color": INK}, "border": {"color": INK}}
    at = {"categories": f"={verdict.at(row + 1, 3)}", "values": f"={verdict.at(row + 2, 3)}"}
    return {"name": "owning has cost less from here on", **at, "marker": point, "line": {"none": True}}
