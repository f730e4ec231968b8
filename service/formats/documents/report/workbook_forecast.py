"""Sheets of a report's forecast, each with its chart: the budget's bridge, what moves the forecast, the calendar, and energy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from service.formats.documents.cells import FIRST_ROW, LIGHT_GRID, ROW_PIXELS, TITLE_FONT, Book, Cell, Column, Formula, Input, Sheet
from service.formats.documents.charts import COLOURS, GREY, PART_COLOURS
from service.formats.documents.report.budget_sections import ENERGY_COLUMNS, ENERGY_ROWS, total_part

Report = Mapping[str, Any]
BUDGET_SHEET, FORECAST_SHEET, CALENDAR_SHEET, ENERGY_SHEET = "Budget", "Forecast", "Calendar", "Energy"
BRIDGE = (
    *(Column("", 22), Column("budget", 16, "usd"), Column("spent", 16, "usd"), Column("forecast", 16, "usd")),
    *(Column("to come", 16, "usd"), Column("forecast, p10", 16, "usd"), Column("forecast, p90", 16, "usd")),
    Column("over the budget", 16, "usd"),
)
SWINGS = (
    *(Column("what moves it", 44, "wrapped"), Column("less, USD", 16, "usd"), Column("more, USD", 16, "usd")),
    *(Column("one time in ten less than", 28), Column("or more than", 28)),
)
CALENDAR = (
    *(Column("", 44, "wrapped"), Column("kind", 8), Column("planned start", 13, "date"), Column("planned finish", 13, "date")),
    *(Column("start", 13, "date"), Column("finish, p50", 13, "date"), Column("finish, p10", 13, "date"), Column("finish, p90", 13, "date")),
    *(Column("days late", 10, "whole"), Column("bar from", 13, "date"), Column("bar, days", 10, "whole")),
    Column("to p90, days", 12, "whole"),
)
ENERGY = (Column("", 22), *(Column(head, 22, "number") for head in ("planned, whole", "planned for work done", "used", "forecast, whole")))
CHART_ROWS = 20
WIDTH = 760
FIRST_YEAR = 1900


def workbook_day(moment: str | None) -> Cell:
    """A day; as text before 1900, where a workbook's calendar begins."""
    found = None if moment is None else date.fromisoformat(moment[:10])
    return moment[:10] if moment and found and found.year < FIRST_YEAR else found


def workbook_moment(moment: str) -> Cell:
    """A time, UTC; as text before 1900."""
    found = datetime.fromisoformat(moment)
    return moment[:10] if found.year < FIRST_YEAR else found.astimezone(UTC).replace(tzinfo=None)


def write_forecast_sheets(book: Book, report: Report) -> dict[str, int]:
    """The sheets; returns the rows that charts take below the cells, by sheet."""
    sheets = {BUDGET_SHEET: _bridge, FORECAST_SHEET: _swings, CALENDAR_SHEET: _calendar, ENERGY_SHEET: _energy}
    return {name: rows for name, write in sheets.items() if (rows := write(book, report))}


def place_chart(sheet: Sheet, chart: Any, below: int, title: str, rows: int = CHART_ROWS) -> int:
    """Insert a chart two rows below a row, with its title; returns the rows that it takes with the gap above it."""
    chart.set_title({"name": title, "name_font": TITLE_FONT, "overlay": False})
    chart.set_size({"width": WIDTH, "height": ROW_PIXELS * (rows - 2)})
    sheet.worksheet.insert_chart(below + 2, 0, chart)
    return rows


def _bridge(book: Book, report: Report) -> int:
    bridge = report["status"]["budget"]
    sheet = book.sheet(
        BUDGET_SHEET, ("From the budget to the forecast, USD", "Parts add up to the budget, the spend and the forecast."), BRIDGE
    )
    parts, last = bridge["parts"], FIRST_ROW + len(bridge["parts"]) - 1
    for row, part in enumerate(parts, FIRST_ROW):
        sheet.row(row, (part["part"], *_bridge_cells(sheet, row, part, is_sum=False)))
    sheet.row(last + 1, ("together", *_bridge_cells(sheet, last + 1, total_part(report), is_sum=True)), "total: ")
    notes = [bridge["method"], *([bridge["beside_eac"]] if bridge["beside_eac"] else [])]
    for row, note in enumerate(notes, last + 3):
        sheet.worksheet.merge_range(row, 0, row, len(BRIDGE) - 1, note, book.looks["wrapped"])
        sheet.worksheet.set_row(row, 15 * (1 + len(note) // 130))
    if any(part["forecast_usd"] is None for part in parts):
        return 0
    chart = book.workbook.add_chart({"type": "bar", "subtype": "stacked"})
    heads = f"={sheet.at(FIRST_ROW - 1, 1)}:{sheet.at(FIRST_ROW - 1, 3).partition('!')[2]}"
    for row, part in enumerate(parts, FIRST_ROW):
        values = f"={sheet.at(row, 1)}:{sheet.at(row, 3).partition('!')[2]}"
        chart.add_series(
            {
                "name": f"={sheet.at(row, 0)}",
                "categories": heads,
                "values": values,
                "fill": {"color": PART_COLOURS[part["part"]]},
                "gap": 60,
            }
        )
    chart.set_y_axis({"reverse": True})
    chart.set_x_axis({"num_format": "#,##0", **LIGHT_GRID})
    chart.set_legend({"position": "bottom"})
    return place_chart(sheet, chart, last + 3 + len(notes), "Budget, spend and forecast by part, USD")


def _bridge_cells(sheet: Sheet, row: int, part: Report, *, is_sum: bool) -> Sequence[Cell]:
    """Amounts of a part, or their sums; the forecast is spent plus to come."""
    left, forecast, budget = part["remaining_usd"], part["forecast_usd"], part["budget_usd"]
    spent = part["spent_usd"]
    amounts: list[float | None] = [budget, spent, *(None if each is None else each["p50"] for each in (forecast, left))]
    amounts += [None if forecast is None else forecast[name] for name in ("p10", "p90")]
    over = None if forecast is None or budget is None else Formula(f"={sheet.at(row, 3)}-{sheet.at(row, 1)}", forecast["p50"] - budget)
    if is_sum:
        sums = [None if usd is None else Formula(f"=SUM({sheet.down(FIRST_ROW, row - 1, at)})", usd) for at, usd in enumerate(amounts, 1)]
        return (*sums, over)
    inputs: list[Cell] = [None if usd is None else Input(usd) for usd in amounts]
    if forecast is not None and left is not None:
        inputs[2] = Formula(f"={sheet.at(row, 2)}+{sheet.at(row, 4)}", forecast["p50"])
    return (*inputs[:4], *amounts[4:], over)


def _swings(book: Book, report: Report) -> int:
    swings = report["status"]["budget"]["swings"]
    if not swings:
        return 0
    caption = "Change of the forecast cost where one part ends at its p10 or p90, and all else at its median."
    sheet = book.sheet(FORECAST_SHEET, ("What moves the forecast", caption), SWINGS)
    for row, swing in enumerate(swings, FIRST_ROW):
        sheet.row(row, (swing["cause"], swing["low_usd"], swing["high_usd"], swing["low"], swing["high"]))
    last = FIRST_ROW + len(swings) - 1
    chart = book.workbook.add_chart({"type": "bar"})
    for at, colour in ((1, COLOURS[2]), (2, COLOURS[1])):
        cells = {"categories": f"={sheet.down(FIRST_ROW, last, 0)}", "values": f"={sheet.down(FIRST_ROW, last, at)}"}
        chart.add_series({"name": f"={sheet.at(FIRST_ROW - 1, at)}", **cells, "fill": {"color": colour}, "overlap": 100, "gap": 50})
    chart.set_y_axis({"reverse": True, "label_position": "low"})
    chart.set_x_axis({"num_format": "#,##0", **LIGHT_GRID})
    chart.set_legend({"none": True})
    return place_chart(sheet, chart, last, "Change of the forecast cost, USD")


def _calendar(book: Book, report: Report) -> int:
    entries = report["calendar"]
    if not entries:
        return 0
    caption = f"As planned, and as forecast with the interval of 80 %. Deadline: {report['program']['deadline'] or 'not stated'}."
    sheet = book.sheet(CALENDAR_SHEET, ("Calendar", caption), CALENDAR)
    for row, entry in enumerate(entries, FIRST_ROW):
        sheet.row(row, _calendar_cells(sheet, row, entry))
    last = FIRST_ROW + len(entries) - 1
    begins = [begin for entry in entries if isinstance(begin := workbook_day(_first(entry)), date)]
    if not begins:
        return 0
    chart = book.workbook.add_chart({"type": "bar", "subtype": "stacked"})
    names = f"={sheet.down(FIRST_ROW, last, 0)}"
    chart.add_series(
        {
            "name": "from",
            "categories": names,
            "values": f"={sheet.down(FIRST_ROW, last, 9)}",
            "fill": {"none": True},
            "border": {"none": True},
        }
    )
    chart.add_series(
        {"name": "days", "categories": names, "values": f"={sheet.down(FIRST_ROW, last, 10)}", "fill": {"color": COLOURS[0]}, "gap": 40}
    )
    rest = {"categories": names, "values": f"={sheet.down(FIRST_ROW, last, 11)}"}
    chart.add_series({"name": "days to p90", **rest, "fill": {"color": COLOURS[5]}})
    chart.set_y_axis({"reverse": True})
    chart.set_x_axis({"num_format": "d mmm yyyy", "min": (min(begins) - date(1899, 12, 30)).days, **LIGHT_GRID})
    chart.set_legend({"none": True})
    return place_chart(sheet, chart, last, "Runs, gates and the end; light: from the median finish to p90", CHART_ROWS + len(entries) // 2)


def _first(entry: Report) -> str | None:
    """First day of an entry's bar: of a gate and of the end the day itself."""
    finish = entry["finish"]["p50"] if entry["finish"] else entry["planned_finish"]
    found: str | None = (entry["start"] or entry["planned_start"] or finish) if entry["kind"] == "run" else finish
    return found


def _calendar_cells(sheet: Sheet, row: int, entry: Report) -> Sequence[Cell]:
    finish = entry["finish"] or dict.fromkeys(("p10", "p50", "p90"))
    days = [workbook_day(entry[name]) for name in ("planned_start", "planned_finish", "start")]
    ends = [workbook_day(finish[name]) for name in ("p50", "p10", "p90")]
    late = bar = None
    if isinstance(ends[0], date) and isinstance(days[1], date):
        late = Formula(f"={sheet.at(row, 5)}-{sheet.at(row, 3)}", (ends[0] - days[1]).days)
    begin, end = workbook_day(_first(entry)), ends[0] or days[1]
    if isinstance(begin, date) and isinstance(end, date):
        bar = max(1, (end - begin).days + 1)
    more = (ends[2] - ends[0]).days if isinstance(ends[0], date) and isinstance(ends[2], date) else None
    return (entry["what"], entry["kind"], *days, *ends, late, begin, bar, more)


def _energy(book: Book, report: Report) -> int:
    energy = report["status"]["energy"]
    if energy is None:
        return 0
    sheet = book.sheet(ENERGY_SHEET, ("Energy and emissions", f"Used: {energy['basis']}."), ENERGY)
    for row, (name, label) in enumerate(ENERGY_ROWS.items(), FIRST_ROW):
        sheet.row(row, (label, *(energy[name][column] for column in ENERGY_COLUMNS)))
    chart = book.workbook.add_chart({"type": "column"})
    heads, values = (f"={sheet.at(row, 1)}:{sheet.at(row, 4).partition('!')[2]}" for row in (FIRST_ROW - 1, FIRST_ROW))
    points = [{"fill": {"color": colour}} for colour in (GREY, GREY, COLOURS[0], COLOURS[1])]
    chart.add_series({"name": "energy, MWh", "categories": heads, "values": values, "points": points, "gap": 60})
    chart.set_y_axis({"num_format": "#,##0.0", **LIGHT_GRID})
    chart.set_legend({"none": True})
    return place_chart(sheet, chart, FIRST_ROW + len(ENERGY_ROWS) - 1, "Energy, MWh")
