"""The budget's bridge to the forecast, what moves the forecast, the calendar, and energy: sections of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from service.formats.documents.sections import DocumentSection, DocumentTable
from service.formats.documents.text import days, number

Report = Mapping[str, Any]
NONE = "not known"
ENERGY_ROWS = {"mwh": "energy, MWh", "tco2e": "emissions, t CO2e"}
ENERGY_COLUMNS = ("planned", "planned_to_date", "used", "forecast")


def budget_section(report: Report) -> DocumentSection:
    """The bridge by part, and how the forecast is made."""
    bridge = report["status"]["budget"]
    listed = (bridge["method"], *([bridge["beside_eac"]] if bridge["beside_eac"] else []))
    return DocumentSection("budget", "From the budget to the forecast", listed, (_bridge(report),))


def _bridge(report: Report) -> DocumentTable:
    parts = report["status"]["budget"]["parts"]
    rows = [_bridge_row(part["part"], part) for part in parts]
    head = ("", "budget, USD", "spent, USD", "to come, USD", "forecast, USD", "p10", "p90", "over the budget, USD")
    return DocumentTable(head, (*rows, _bridge_row("together", total_part(report))), frozenset(range(1, 8)), total=True)


def total_part(report: Report) -> dict[str, Any]:
    """The sum of the parts: the budget, what is spent, and the forecast."""
    status = report["status"]
    budgets = [part["budget_usd"] for part in status["budget"]["parts"]]
    return {
        "budget_usd": None if None in budgets else sum(budgets),
        "spent_usd": status["spend"]["usd"],
        "remaining_usd": status["forecast"]["remaining_usd"],
        "forecast_usd": status["forecast"]["cost_usd"],
    }


def _bridge_row(name: str, part: Report) -> tuple[str, ...]:
    left, forecast, budget = part["remaining_usd"], part["forecast_usd"], part["budget_usd"]
    over = None if forecast is None or budget is None else forecast["p50"] - budget
    ends = [None if forecast is None else forecast[name] for name in ("p50", "p10", "p90")]
    return (
        name,
        *(_usd(usd) for usd in (budget, part["spent_usd"], None if left is None else left["p50"], *ends)),
        NONE if over is None else f"{over:+,.0f}",
    )


def swings_table(report: Report) -> DocumentTable:
    """What moves the forecast, the largest first."""
    rows = [
        (swing["cause"], swing["low"], f"{swing['low_usd']:+,.0f}", swing["high"], f"{swing['high_usd']:+,.0f}")
        for swing in report["status"]["budget"]["swings"]
    ]
    return DocumentTable(
        ("what moves it", "one time in ten less than", "forecast, USD", "or more than", "forecast, USD"), rows, frozenset({2, 4})
    )


def calendar_section(report: Report) -> DocumentSection:
    """Runs and gates with their planned and forecast days."""
    rows = [
        (
            entry["what"],
            entry["planned_start"] or "",
            entry["planned_finish"] or "",
            entry["start"] or "",
            _end(entry),
            _late(entry),
        )
        for entry in report["calendar"]
    ]
    head = ("", "planned start", "planned finish", "start", "finish", "days late")
    return DocumentSection("calendar", "Calendar", tables=(DocumentTable(head, rows, frozenset({5}), frozenset({1, 2, 3})),))


def _end(entry: Report) -> str:
    if entry["finish"] is None:
        return "not tracked"
    return f"{entry['finish']['p50']}, done" if entry["done"] else days(entry["finish"])


def _late(entry: Report) -> str:
    late = days_late(entry)
    return "" if late is None else f"{late:+,}" if late else "0"


def days_late(entry: Report) -> int | None:
    """Days from the planned finish to the forecast one; None where one is unknown."""
    if entry["finish"] is None or entry["planned_finish"] is None:
        return None
    return (date.fromisoformat(entry["finish"]["p50"]) - date.fromisoformat(entry["planned_finish"])).days


def energy_section(status: Report) -> DocumentSection:
    """Energy and emissions, planned beside used; empty without planned ones."""
    energy = status["energy"]
    if energy is None:
        return DocumentSection("energy", "Energy and emissions")
    rows = [(label, *_amounts(energy[name])) for name, label in ENERGY_ROWS.items()]
    head = ("", "planned, whole program", "planned for the work done", "used", "forecast, whole program")
    return DocumentSection(
        "energy", "Energy and emissions", (f"Used: {energy['basis']}.",), (DocumentTable(head, rows, frozenset({1, 2, 3, 4})),)
    )


def _amounts(figures: Report) -> Iterator[str]:
    return (NONE if figures[name] is None else number(figures[name]) for name in ENERGY_COLUMNS)


def filled_parts(report: Report) -> Sequence[Report]:
    """The bridge's parts with a known forecast."""
    found: Iterable[Report] = report["status"]["budget"]["parts"]
    return [part for part in found if part["forecast_usd"] is not None]


def _usd(amount: float | None) -> str:
    return NONE if amount is None else f"{amount:,.0f}"
