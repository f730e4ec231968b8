"""Sheets of a report's series, each with its charts: plan, earned value and cost over time, and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from service.formats.documents.cells import FIRST_ROW, LIGHT_GRID, Book, Column, Formula, Sheet
from service.formats.documents.charts import COLOURS, GREY
from service.formats.documents.report.charts import forecast_fan
from service.formats.documents.report.workbook_forecast import place_chart, workbook_moment

Report = Mapping[str, Any]
CURVES_SHEET, QUALITY_SHEET = "Curves", "Quality"
CURVES = (
    *(Column("day", 12, "date"), Column("planned value, USD", 18, "usd"), Column("earned value, USD", 18, "usd")),
    *(Column("actual cost, USD", 18, "usd"), Column("cost less planned, USD", 18, "usd")),
    *(Column("forecast, USD", 18, "usd"), Column("forecast p10, USD", 18, "usd"), Column("forecast p90, USD", 18, "usd")),
    *(Column("planned tokens", 20, "whole"), Column("tokens", 20, "whole")),
)
QUALITY = (
    *(Column("day", 12, "date"), Column("run", 30), Column("metric", 30), Column("step", 14, "whole")),
    *(Column("value", 14, "factor"), Column("standard error", 16, "factor"), Column("floor", 12, "factor"), Column("target", 12, "factor")),
)
CURVE_LINES = {
    1: (GREY, "dash", 2.25), 2: (COLOURS[2], "solid", 2.25), 3: (COLOURS[0], "solid", 2.25),
    5: (COLOURS[1], "solid", 2.25), 6: (COLOURS[1], "round_dot", 1.0), 7: (COLOURS[1], "round_dot", 1.0),
}  # fmt: skip
"""Columns of the S-curve with colour, dash and width."""
MAX_QUALITY_CHARTS = 4
VALUE, FLOOR, TARGET = 4, 6, 7
"""Columns of evaluations that are drawn."""
LINE_COLOURS = {VALUE: COLOURS[0], FLOOR: "#B2182B", TARGET: COLOURS[2]}


def write_series_sheets(book: Book, summary: Sheet, below: int, report: Report) -> dict[str, int]:
    """The sheets, and the S-curve below a row of the summary; returns the rows that charts take below the cells, by sheet."""
    rows = {summary.name: _curves(book, summary, below, report), QUALITY_SHEET: _quality(book, report)}
    return {name: taken for name, taken in rows.items() if taken}


def _curves(book: Book, summary: Sheet, below: int, report: Report) -> int:
    caption = "Sums by each moment, of what earned value measures. What is earned and spent ends with the report's day."
    sheet = book.sheet(CURVES_SHEET, ("Planned value, earned value and actual cost", caption), CURVES)
    moments, fan = report["time_series"], forecast_fan(report)
    for row, moment in enumerate(moments, FIRST_ROW):
        planned, earned, spent = (moment[name] for name in ("planned_usd", "earned_usd", "spent_usd"))
        both = planned is not None and spent is not None
        difference = Formula(f"={sheet.at(row, 3)}-{sheet.at(row, 1)}", spent - planned) if both else None
        known = (planned, earned, spent, difference, *_forecast(fan, moment["at"]), moment["planned_tokens"], moment["tokens"])
        sheet.row(row, (workbook_moment(moment["at"]), *known))
    if not moments:
        return 0
    last = FIRST_ROW + len(moments) - 1
    chart = book.workbook.add_chart({"type": "scatter", "subtype": "straight"})
    days = f"={sheet.down(FIRST_ROW, last, 0)}"
    for at, (colour, dash, width) in CURVE_LINES.items():
        line = {"color": colour, "width": width, "dash_type": dash}
        cells = {"name": f"={sheet.at(FIRST_ROW - 1, at)}", "categories": days, "values": f"={sheet.down(FIRST_ROW, last, at)}"}
        chart.add_series({**cells, "line": line, "marker": {"type": "none"}})
    chart.set_x_axis({"num_format": "d mmm yy"})
    chart.set_y_axis({"num_format": "#,##0", "min": 0, **LIGHT_GRID})
    chart.set_legend({"position": "bottom"})
    return place_chart(summary, chart, below, "Planned value, earned value, actual cost and forecast, USD")


def _forecast(fan: Sequence[Mapping[str, Any]], at: str) -> tuple[float | None, ...]:
    """Median, p10 and p90 of the forecast at a time, linear from now to the end; None outside."""
    if not fan:
        return None, None, None
    (begin, end), now = (datetime.fromisoformat(f"{point['at'][:10]}T00:00:00+00:00") for point in fan), datetime.fromisoformat(at)
    share = (now - begin) / (end - begin) if end > begin else -1.0
    if not 0 <= share <= 1:
        return None, None, None
    return tuple(fan[0][name] + share * (fan[1][name] - fan[0][name]) for name in ("y", "low", "high"))


def _quality(book: Book, report: Report) -> int:
    """Evaluations, the newest of each metric last, with floor and target; no sheet without any."""
    points = report["evaluations"]
    if not points:
        return 0
    floors, goal = {each["metric"]: each["floor"] for each in report["status"]["guardrails"]}, report["target"]
    sheet = book.sheet(QUALITY_SHEET, ("Quality", "Evaluations on the surviving line of each run."), QUALITY)
    for row, point in enumerate(points, FIRST_ROW):
        target = goal["target"] if goal is not None and goal["metric"] == point["metric"] else None
        found = (point["run"], point["metric"], point["step"], point["value"], point["standard_error"], floors.get(point["metric"]), target)
        sheet.row(row, (workbook_moment(point["at"]), *found))
    return _quality_charts(book, sheet, report)


def _quality_charts(book: Book, sheet: Sheet, report: Report) -> int:
    """A chart for each of the first metrics of a run, whose evaluations stand together; returns the rows that they take."""
    points, taken, row = report["evaluations"], 0, FIRST_ROW
    floors = {each["metric"] for each in report["status"]["guardrails"]}
    targets = {report["target"]["metric"]} if report["target"] else set()
    groups = [(named, len(list(group))) for named, group in groupby(points, key=lambda point: (point["run"], point["metric"]))]
    for (run, metric), count in groups[:MAX_QUALITY_CHARTS]:
        chart = book.workbook.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
        columns = [VALUE, *([FLOOR] if metric in floors else []), *([TARGET] if metric in targets else [])]
        for column in columns:
            chart.add_series(_series(sheet, column, row, row + count - 1))
        chart.set_x_axis({"num_format": "d mmm"})
        levels = [each["value"] for each in points[row - FIRST_ROW : row - FIRST_ROW + count]]
        chart.set_y_axis({"num_format": "0.00", "min": _least(levels, report, metric), **LIGHT_GRID})
        chart.set_legend({"position": "bottom"})
        taken += place_chart(sheet, chart, FIRST_ROW + len(points) - 1 + taken, f"{metric}, {run}")
        row += count
    return taken


def _least(values: Sequence[float], report: Report, metric: str) -> float:
    """Begin of a chart's axis, below all that is drawn."""
    floors: list[float] = [each["floor"] for each in report["status"]["guardrails"] if each["metric"] == metric]
    drawn = [*values, *floors]
    return round(min(drawn) - 0.2 * (max(drawn) - min(drawn) or abs(drawn[0]) or 1.0), 3)


def _series(sheet: Sheet, column: int, first: int, last: int) -> dict[str, Any]:
    """A column of the evaluations as a line; only evaluations have markers."""
    marker = {"type": "circle", "size": 5} if column == VALUE else {"type": "none"}
    line = {"color": LINE_COLOURS[column], "width": 1.5}
    cells = {"categories": f"={sheet.down(first, last, 0)}", "values": f"={sheet.down(first, last, column)}"}
    return {"name": f"={sheet.at(FIRST_ROW - 1, column)}", **cells, "line": line, "marker": marker}
