"""A report as a workbook (XLSX): sums and earned value are formulas, everything else is numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.formats.documents.cells import FIRST_ROW, Book, Cell, Column, Formula, Input, Sheet, new_book
from service.formats.documents.program.workbook_worth import write_branches
from service.formats.documents.report.gate_sections import open_decisions
from service.formats.documents.report.sections import HEALTH_TITLES, find_budget, subtitle, title
from service.formats.documents.report.workbook_forecast import workbook_day, write_forecast_sheets
from service.formats.documents.report.workbook_months import write_months
from service.formats.documents.report.workbook_series import write_series_sheets
from service.formats.documents.text import text

Report = Mapping[str, Any]
SUMMARY = (Column("", 38), Column("figure", 20, "number"), Column("how", 100, "wrapped"))
RUNS = (
    *(Column("run", 30), Column("tier", 12), Column("state", 12), Column("planned, USD", 16, "usd"), Column("spent, USD", 16, "usd")),
    *(Column("tokens", 20, "whole"), Column("planned tokens", 20, "whole"), Column("done", 9, "share"), Column("EV, USD", 16, "usd")),
    *(Column("CPI", 9, "number"), Column("forecast, USD", 16, "usd"), Column("p10", 16, "usd"), Column("p90", 16, "usd")),
    Column("end", 12, "date"),
)
EVENTS = (Column("day", 12, "date"), Column("run", 30), Column("what", 16), Column("hours down", 12, "number"), Column("", 100, "wrapped"))
NOTES = (Column("", 34, "wrapped"), Column("value", 40, "wrapped"), Column("source", 100, "wrapped"))
LABELS = {
    "bac_usd": "BAC: budget at completion, USD",
    "tokens_share": "work done",
    "pv_usd": "PV: planned by now, USD",
    "ac_usd": "AC: spent, USD",
    "ev_usd": "EV: earned, USD",
    "cpi": "CPI",
    "spi": "SPI",
    "eac_usd": "EAC: BAC at this CPI, a check, USD",
    "vac_usd": "VAC: BAC less EAC, USD",
    "tcpi": "TCPI",
}
GIVEN = ("bac_usd", "tokens_share", "pv_usd")
KINDS = {"tokens_share": "share", "cpi": "number", "spi": "number", "tcpi": "number"}


def write(report: Report) -> bytes:
    """The workbook. Unchanged, its recalculated figures are the report's."""
    book = new_book()
    book.workbook.set_properties({"title": title(report), "comments": f"{report['price_snapshot']}, {report['engine_version']}"})
    health = HEALTH_TITLES[report["headline"]["health"]].lower()
    summary = book.sheet("Report", (title(report), f"{subtitle(report)}: {health}"), SUMMARY)
    spent = _runs(book, report)
    _lines(book, report)
    last = _summary(summary, report, spent)
    chart_rows = write_forecast_sheets(book, report) | write_series_sheets(book, summary, last, report)
    chart_rows |= write_months(book, report)
    write_branches(book, open_decisions(report["status"]))
    _events(book, report)
    _notes(book, report)
    return book.finished(chart_rows)


def _summary(sheet: Sheet, report: Report, spent: str) -> int:
    """Earned value from its three inputs and the runs' cost; an unknown figure is empty, with its reason. Returns the last row."""
    earned = report["status"]["earned_value"]
    at = {name: sheet.at(row, 1) for row, name in enumerate(LABELS, FIRST_ROW)}
    for row, (name, label) in enumerate(LABELS.items(), FIRST_ROW):
        value = earned[name]
        formula = {"ac_usd": f"={spent}", **_formulas(at)}.get(name)
        cell: Cell = None if value is None else Input(value) if name in GIVEN else Formula(str(formula), value)
        reason = next((entry["reason"] for entry in earned["unknown"] if entry["field"] == name), str(formula or "")[1:])
        sheet.row(row, (label, None, reason))
        sheet.cell(row, 1, cell, KINDS.get(name, "usd"))
    return _forecast(sheet, report, at["bac_usd"], FIRST_ROW + len(LABELS) + 1)


def _formulas(at: Mapping[str, str]) -> dict[str, str]:
    """Formulas of earned value; empty where a divisor is 0."""
    bac, ev, ac = at["bac_usd"], at["ev_usd"], at["ac_usd"]
    return {
        "ev_usd": f"={bac}*{at['tokens_share']}",
        "cpi": _over(ev, ac),
        "spi": _over(ev, at["pv_usd"]),
        "eac_usd": _over(bac, at["cpi"]),
        "vac_usd": f"={bac}-{at['eac_usd']}",
        "tcpi": _over(f"({bac}-{ev})", f"({bac}-{ac})"),
    }


def _over(single: str, other: str) -> str:
    return f'=IF({other}=0,"",{single}/{other})'


def _forecast(sheet: Sheet, report: Report, at_completion: str, first: int) -> int:
    status, finish = report["status"], report["status"]["forecast"]["finish"] or {}
    cost, over = status["forecast"]["cost_usd"] or {}, report["headline"]["over_usd"]
    budget, bac = find_budget(report), status["earned_value"]["bac_usd"]
    p50, beside = sheet.at(first, 1), sheet.at(first + 3, 1)
    rows: list[tuple[str, Cell, str, str]] = [
        ("forecast cost, USD", cost.get("p50"), "usd", "median"),
        ("p10, USD", cost.get("p10"), "usd", "one time in ten it is less"),
        ("p90, USD", cost.get("p90"), "usd", "one time in ten it is more"),
        ("budget outside BAC, USD", None if budget is None or bac is None else Input(budget - bac), "usd", _beside_bac(status["budget"])),
        ("over budget, USD", None if over is None else Formula(f"={p50}-{at_completion}-{beside}", over), "usd", "below 0: within budget"),
        *((f"forecast end, {name}", workbook_day(day), "date", "") for name, day in finish.items()),
        ("deadline", workbook_day(report["program"]["deadline"]), "date", ""),
        ("goodput", status["goodput"], "share", "time of work that still counts, over wall-clock time"),
        ("interruptions", status["interruptions"]["count"], "whole", ""),
        ("interruptions expected by now", status["interruptions"]["expected"], "number", "of the failure budget, for the work done"),
    ]
    for row, (label, cell, look, how) in enumerate(rows, first):
        sheet.row(row, (label, None, how))
        sheet.cell(row, 1, cell, look)
    sentences = (report["headline"]["text"], *report["headline"]["notes"], *status["gate"]["reasons"])
    for row, sentence in enumerate(sentences, first + len(rows) + 1):
        sheet.row(row, (None, None, sentence))
    return first + len(rows) + len(sentences)


def _beside_bac(bridge: Report) -> str:
    """What of the budget is not in BAC, by part."""
    parts = [(part["part"], (1 - part["earned_share"]) * (part["budget_usd"] or 0.0)) for part in bridge["parts"]]
    return ", ".join(f"{name} {usd:,.0f}" for name, usd in parts if usd > 0) or "nothing"


def _runs(book: Book, report: Report) -> str:
    """Runs with their earned value; returns the address of their total cost."""
    caption = "What is spent, done and forecast of each run. EV and CPI are by the run's own plan, CPI without other lines than compute."
    sheet = book.sheet("Runs", ("Runs", caption), RUNS)
    runs = report["status"]["runs"]
    for row, run in enumerate(runs, FIRST_ROW):
        sheet.row(row, _run(sheet, row, run))
    last = FIRST_ROW + len(runs) - 1
    total = Formula(f"=SUM({sheet.down(FIRST_ROW, last, 4)})" if runs else "=0", report["status"]["spend"]["usd"] or 0.0)
    tokens = Formula(f"=SUM({sheet.down(FIRST_ROW, last, 5)})" if runs else "=0", report["status"]["spend"]["tokens"])
    sheet.row(max(last, FIRST_ROW) + 1, ("all", "", "", None, total, tokens), "total: ")
    return sheet.at(max(last, FIRST_ROW) + 1, 4)


def _run(sheet: Sheet, row: int, run: Report) -> tuple[Cell, ...]:
    earned, cost = run["earned_value"], run["forecast"]["cost_usd"] or {}
    finish = run["forecast"]["finish"] or {"p50": None}
    planned, spent, done, ev = (sheet.at(row, column) for column in (3, 4, 7, 8))
    others = (run["spend"]["usd"] or 0.0) - (earned["ac_usd"] or 0.0)
    compute = f"({spent}-{others:.6f})" if others else spent
    return (
        run["name"],
        run["tier"] or "",
        run["state"],
        _input(earned["bac_usd"]),
        _input(run["spend"]["usd"]),
        run["spend"]["tokens"],
        run["planned_tokens"],
        _input(earned["tokens_share"]),
        _formula(f"={planned}*{done}", earned["ev_usd"]),
        _formula(_over(ev, compute), earned["cpi"]),
        *(cost.get(name) for name in ("p50", "p10", "p90")),
        workbook_day(finish["p50"]),
    )


def _input(value: float | None) -> Cell:
    return None if value is None else Input(value)


def _formula(formula: str, value: float | None) -> Cell:
    return None if value is None else Formula(formula, value)


def _lines(book: Book, report: Report) -> None:
    sheet = book.sheet("Spending", ("Spending by line", "To date."), (Column("line", 40), Column("USD", 20, "usd")))
    lines = report["status"]["spend"]["lines"]
    for row, line in enumerate(lines, FIRST_ROW):
        sheet.row(row, (line["line"], line["usd"]))
    last = FIRST_ROW + len(lines) - 1
    total = Formula(f"=SUM({sheet.down(FIRST_ROW, last, 1)})" if lines else "=0", report["status"]["spend"]["usd"] or 0.0)
    sheet.row(max(last, FIRST_ROW) + 1, ("total", total), "total: ")


def _events(book: Book, report: Report) -> None:
    caption = "The newest interruptions, decisions and notes, newest first."
    sheet = book.sheet("Events", ("Events", caption), EVENTS)
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (
            interruption["at"],
            (workbook_day(interruption["at"]), interruption["run"], "interruption", interruption["downtime_hours"], interruption["cause"]),
        )
        for interruption in report["interruptions"]
    ]
    rows += [(entry["at"], (workbook_day(entry["at"]), entry["run"], entry["type"], None, entry["text"])) for entry in report["log"]]
    for row, (_, cells) in enumerate(sorted(rows, key=lambda entry: entry[0], reverse=True), FIRST_ROW):
        sheet.row(row, cells)


def _notes(book: Book, report: Report) -> None:
    """Warnings, unknown figures and assumptions."""
    sheet = book.sheet("Notes", ("Notes", "What to worry about, what is not known, and what was assumed."), NOTES)
    for row, cells in enumerate(_noted(report), FIRST_ROW):
        sheet.row(row, cells)


def _noted(report: Report) -> Iterable[tuple[str, str, str]]:
    yield from (("warning", "", warning) for warning in report["status"]["warnings"])
    yield from ((f"not known: {entry['run'] or 'program'}", entry["field"], entry["reason"]) for entry in report["unknown"])
    yield from ((entry["field"], text(entry["value"]), entry["source"]) for entry in report["assumptions"])
    yield from ((name, report[name] or "", "") for name in ("price_snapshot", "engine_version"))
