"""A plan as a workbook (XLSX): prices, counts, shares and probabilities are inputs of formulas, everything else is numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from service.formats.documents.cells import FIRST_ROW, Book, Column, Formula, Sheet, new_book
from service.formats.documents.program.branch_sections import gate_decisions
from service.formats.documents.program.evaluation_sections import how, needed
from service.formats.documents.program.workbook_budget import write_budget
from service.formats.documents.program.workbook_time import write_months, write_waiting
from service.formats.documents.program.workbook_worth import write_branches, write_gate_worth, write_mitigations
from service.formats.documents.text import text, xml_text

Answer = Mapping[str, Any]
CALENDAR_COLUMNS = (
    *(Column("what", 50, "wrapped"), Column("kind", 12), Column("critical", 10), Column("start", 12, "date")),
    *(Column(head, 12, "date") for head in ("finish", "finish, p10", "finish, p90")),
)
EVALUATION_COLUMNS = (
    *(
        Column("suite", 40, "wrapped"),
        Column("tier", 14),
        Column("how, or what it sees", 52, "wrapped"),
        Column("evaluations", 12, "whole"),
    ),
    *(Column("samples", 14, "whole"), Column("accelerator-hours", 18, "usd"), Column("USD", 16, "usd")),
)
BURN_COLUMNS = (
    *(Column("week", 12), Column("USD", 16, "usd"), Column("USD by then", 18, "usd"), Column("accelerator-hours", 18, "usd")),
    *(Column("tokens", 22, "whole"), Column("checkpoints", 12, "whole")),
)
BURN_SHEET = "Burn plan"
CHART_ROWS = 22
"""Rows that the chart takes."""
WEEKLY, BY_THEN = "#0072B2", "#D55E00"
NOTE_COLUMNS = (Column("", 34, "wrapped"), Column("value", 30, "wrapped"), Column("source", 110, "wrapped"))


def write(answer: Answer) -> bytes:
    """The workbook. Unchanged, its totals are the plan's to the cent."""
    book = new_book()
    book.workbook.set_properties({"title": xml_text(answer["name"]), "comments": f"{answer['price_snapshot']}, {answer['engine_version']}"})
    write_budget(book, answer)
    write_mitigations(book, answer)
    write_gate_worth(book, answer)
    write_branches(book, list(gate_decisions(answer)))
    if answer["evaluation"]:
        _evaluation(book, answer["evaluation"])
    _calendar(book, answer)
    write_waiting(book, answer)
    charted = write_months(book, answer)
    _burn_plan(book, answer)
    _notes(book, answer)
    return book.finished({BURN_SHEET: CHART_ROWS, **charted})


def _evaluation(book: Book, evaluation: Answer) -> None:
    """Suites with their cost, then what each can see."""
    caption = "Cost at the runs' own prices; the probability is that of seeing the difference. It does not follow changes."
    sheet = book.sheet("Evaluation", ("Evaluation", caption), EVALUATION_COLUMNS)
    for row, suite in enumerate(evaluation["suites"], FIRST_ROW):
        hours = suite["accelerator_hours"]["p50"]
        sheet.row(row, (suite["suite"], suite["tier"], how(suite), suite["evaluations"], suite["samples"], hours, suite["usd"]))
    for row, found in enumerate(evaluation["detection"], FIRST_ROW + len(evaluation["suites"])):
        seen = f"sees {found['difference']:.3g} with a probability of {found['power']:.0%}: {needed(found)}"
        sheet.row(row, (found["suite"], "", seen, None, found["samples"]))


def _calendar(book: Book, answer: Answer) -> None:
    schedule = answer["schedule"]
    sheet = book.sheet("Schedule", ("Schedule", "Median days, and the interval of 80 % of each finish."), CALENDAR_COLUMNS)
    for row, entry in enumerate(schedule["calendar"], FIRST_ROW):
        critical = "yes" if entry["what"] in schedule["critical_path"] else ""
        sheet.row(row, (entry["what"], entry["kind"].replace("_", "-"), critical, *_days(entry["start"], entry["finish_range"])))
    last = FIRST_ROW + len(schedule["calendar"])
    sheet.row(last, ("program", "", "", *_days(schedule["start"], schedule["finish"])))
    if schedule["deadline"]:
        sheet.row(last + 1, ("deadline", "", "", None, date.fromisoformat(schedule["deadline"])))


def _days(start: str, finish: Mapping[str, str]) -> tuple[date, ...]:
    return tuple(date.fromisoformat(day) for day in (start, finish["p50"], finish["p10"], finish["p90"]))


def _burn_plan(book: Book, answer: Answer) -> None:
    caption = "What is planned for each week (ISO 8601): what tracking compares with. It does not follow changes."
    sheet = book.sheet(BURN_SHEET, ("Burn plan", caption), BURN_COLUMNS)
    spent, last = 0.0, FIRST_ROW + len(answer["burn_plan"]) - 1
    for row, week in enumerate(answer["burn_plan"], FIRST_ROW):
        spent = round(spent + week["usd"], 2)
        by_then = Formula(f"=SUM({sheet.down(FIRST_ROW, row, 1)})", spent)
        sheet.row(row, (week["week"], week["usd"], by_then, week["accelerator_hours"], week["tokens"], week["checkpoints"]))
    sums = [sum(week[name] for week in answer["burn_plan"]) for name in ("usd", "accelerator_hours", "tokens", "checkpoints")]
    usd, *used = (Formula(f"=SUM({sheet.down(FIRST_ROW, last, at)})", value) for at, value in zip((1, 3, 4, 5), sums, strict=True))
    sheet.row(last + 1, ("all", usd, None, *used), "total: ")
    _burn_chart(book, sheet, last)


def _burn_chart(book: Book, sheet: Sheet, last: int) -> None:
    """Spending of each week as columns, and by then as a line, which follow the cells."""
    weeks = f"={sheet.down(FIRST_ROW, last, 0)}"
    columns, line = book.workbook.add_chart({"type": "column"}), book.workbook.add_chart({"type": "line"})
    columns.add_series(
        {"name": "USD a week", "categories": weeks, "values": f"={sheet.down(FIRST_ROW, last, 1)}", "fill": {"color": WEEKLY}}
    )
    by_then = {"name": "USD by then", "categories": weeks, "values": f"={sheet.down(FIRST_ROW, last, 2)}", "y2_axis": True}
    line.add_series(by_then | {"line": {"color": BY_THEN, "width": 2.25}})
    columns.combine(line)
    columns.set_title({"name": "Planned spending", "name_font": {"size": 12, "bold": True}})
    columns.set_y_axis({"name": "USD a week", "num_format": "#,##0", "major_gridlines": {"visible": True, "line": {"color": "#E6E6E6"}}})
    line.set_y2_axis({"name": "USD by then", "num_format": "#,##0"})
    columns.set_legend({"position": "bottom"})
    columns.set_size({"width": 720, "height": 20 * (CHART_ROWS - 2)})
    sheet.worksheet.insert_chart(last + 3, 0, columns)


def _notes(book: Book, answer: Answer) -> None:
    """Warnings, assumptions, prices and engine."""
    sheet = book.sheet("Notes", ("Notes", "What to worry about, and what was assumed because nobody said."), NOTE_COLUMNS)
    rows = [("warning", "", warning) for warning in answer["warnings"]]
    rows += [(entry["field"], text(entry["value"]), entry["source"]) for entry in answer["assumptions"]]
    rows += [("price_snapshot", answer["price_snapshot"], ""), ("engine_version", answer["engine_version"], "")]
    for row, cells in enumerate(rows, FIRST_ROW):
        sheet.row(row, cells)
