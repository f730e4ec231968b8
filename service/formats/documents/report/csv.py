"""A report as one CSV table (RFC 4180): a row for each figure, line, window, run, interruption and note; `section` is its kind.

The rows of section `line` add up to the spending. An unknown figure is empty, and `text` has the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.formats.documents.csv_table import write_csv
from service.formats.documents.program.branch_sections import branch_name
from service.formats.documents.report.gate_sections import open_decisions

COLUMNS = ("section", "run", "name", "value", "p10", "p90", "unit", "date", "text")
SPEND = ("usd", "accelerator_hours", "tokens", "remaining_usd", "share_of_budget")
EARNED = ("bac_usd", "pv_usd", "ev_usd", "ac_usd", "cpi", "spi", "eac_usd", "vac_usd", "tcpi", "cv_usd", "sv_usd", "tokens_share")
FAILURES = ("count", "budgeted", "expected", "probability", "downtime_hours", "lost_tokens")
UTILISATION = ("mfu", "planned_mfu", "goodput", "planned_goodput", "share")
REMAINING = ("cost_usd", "remaining_usd", "remaining_hours", "remaining_accelerator_hours")
ENDS = ("p50", "p10", "p90")
UNITS = {"usd": "USD", "hours": "hours", "tokens": "tokens", "days": "days"}
Report = Mapping[str, Any]
Row = dict[str, Any]


def write(report: Report) -> bytes:
    """The table in UTF-8."""
    return write_csv(COLUMNS, (_in_cents(row) for make in (_headline, _program, _months, _runs, _events, _notes) for row in make(report)))


def _in_cents(row: Row) -> Row:
    """The row with its dollars rounded to cents: digits beyond them are noise of sums, and differ from one time to the next."""
    if not row.get("unit", "").startswith("USD"):
        return row
    return row | {name: round(row[name], 2) for name in ("value", "p10", "p90") if row.get(name) is not None}


def _headline(report: Report) -> Iterable[Row]:
    headline = report["headline"]
    yield {"section": "headline", "name": headline["health"], "date": report["status"]["as_of"], "text": headline["text"]}
    yield from _figures("headline", headline, ("over_usd", "late_days"))
    yield {"section": "program", "name": "name", "text": report["program"]["name"]}
    yield from ({"section": "program", "name": name, "date": report["program"][name]} for name in ("start", "deadline"))


def _gates(report: Report) -> Iterable[Row]:
    """The gates, and the ways on from those that are undecided."""
    status = report["status"]
    gate = status["gate"]
    row = {"name": gate["recommendation"], "value": gate["due_usd"], "unit": "USD", "date": report["gate_date"]}
    yield {"section": "gate", **row, "text": "; ".join(gate["reasons"])}
    for tier in status["tier_gates"]:
        name = tier["decided"] or tier["recommendation"] or "not_due"
        yield {"section": "gate", "run": tier["tier"], "name": name, "text": "; ".join(tier["reasons"])}
    for gate_name, decision in open_decisions(status):
        for branch in decision["branches"]:
            cost = (branch["cost_usd"] or {}).get("p50")
            named = {"section": "branch", "run": gate_name, "name": branch_name(branch), "value": cost, "unit": "USD"}
            yield named | {"date": (branch["finish"] or {}).get("p50"), "text": branch["statement"]}


def _program(report: Report) -> Iterable[Row]:
    status = report["status"]
    yield from _standing(status, "")
    for part in (status["cost_drivers"] or {"parts": ()})["parts"]:
        yield {"section": "why", "name": part["cause"], "value": part["usd"], "unit": "USD"}
    yield from _gates(report)
    for entry in status["drift"]:
        change = {
            "name": entry["quantity"],
            "value": entry["change"],
            "date": entry["since"],
            "text": f"confidence {entry['confidence']:.3f}, against {entry['against']}",
        }
        yield {"section": "drift", "run": entry["run"], **change}
    yield from _quality(report)


def _months(report: Report) -> Iterable[Row]:
    for month in report["months"]:
        ahead = month["forecast_usd"] or {}
        rows = {"planned": (month["planned_usd"],), "actual": (month["actual_usd"],), "still to come": [ahead.get(p) for p in ENDS]}
        for name, (usd, *ends) in rows.items():
            named = {"section": "month", "name": name, "value": usd, "unit": "USD", "date": f"{month['month']}-01"}
            yield named | dict(zip(("p10", "p90"), ends, strict=False))


def _quality(report: Report) -> Iterable[Row]:
    """Metrics, guardrails, and the evaluations behind them."""
    for metric in report["status"]["quality"]:
        state = metric["state"] if metric["confidence"] is None else f"{metric['state']}, confidence {metric['confidence']:.3f}"
        row = {"section": "quality", "run": metric["run"], "name": metric["metric"], "value": metric["last"], "date": metric["since"]}
        yield {**row, "text": state}
    for each in report["status"]["guardrails"]:
        state = "not evaluated" if each["breached"] is None else "broken" if each["breached"] else "kept"
        row = {"section": "guardrail", "run": each["run"] or "", "name": each["metric"], "value": each["last"], "date": each["at"]}
        yield {**row, "text": f"{state}, floor {each['floor']:g}"}
    for point in report["evaluations"]:
        yield {"section": "evaluation", "run": point["run"], "name": point["metric"], "value": point["value"], "date": point["at"]}


def _runs(report: Report) -> Iterable[Row]:
    for run in report["status"]["runs"]:
        yield {"section": "run", "run": run["name"], "name": run["tier"] or "", "date": run["started_at"], "text": run["state"]}
        yield from _standing(run, run["name"])
        yield from _figures("utilisation", run["utilisation"], UTILISATION, run["name"])
        yield from _figures("checkpoints", run["checkpoints"], ("count", "bytes", "interval_minutes", "longest_gap_minutes"), run["name"])
        yield from _figures("loss", run["loss"], ("last", "lowest"), run["name"])


def _standing(block: Report, run: str) -> Iterable[Row]:
    """Rows of a program, or of one of its runs."""
    prefix = "run " if run else ""
    yield from _figures(f"{prefix}spend", block["spend"], SPEND, run)
    for line in block["spend"]["lines"]:
        yield {"section": f"{prefix}line", "run": run, "name": line["line"], "value": line["usd"], "unit": "USD"}
    for window in block["burn_rate"]["windows"]:
        yield {"section": f"{prefix}burn", "run": run, "name": window["window"], "value": window["usd_per_day"], "unit": "USD a day"}
    if block["burn_rate"]["planned"]:
        planned = block["burn_rate"]["planned"]["usd_per_day"]
        yield {"section": f"{prefix}burn", "run": run, "name": "planned", "value": planned, "unit": "USD a day"}
    yield from _figures(f"{prefix}earned_value", block["earned_value"], EARNED, run)
    yield from _forecast(f"{prefix}forecast", block["forecast"], run)
    yield from _figures(f"{prefix}interruptions", block["interruptions"], FAILURES, run)


def _forecast(section: str, forecast: Report, run: str) -> Iterable[Row]:
    reasons = _reasons(forecast)
    for name in REMAINING:
        found = forecast[name] or {}
        ends = {"value": found.get("p50"), "p10": found.get("p10"), "p90": found.get("p90"), "unit": _unit(name)}
        yield {"section": section, "run": run, "name": name, **ends, "text": reasons.get(name, "")}
    for name, day in (forecast["finish"] or {"p50": None}).items():
        yield {"section": section, "run": run, "name": f"finish {name}", "date": day, "text": reasons.get("finish", "")}


def _figures(section: str, block: Report, names: Iterable[str], run: str = "") -> Iterable[Row]:
    reasons = _reasons(block)
    for name in names:
        row = {"section": section, "run": run, "name": name, "value": block[name], "unit": _unit(name)}
        yield {**row, "text": reasons.get(name, "")}


def _reasons(block: Report) -> dict[str, str]:
    return {entry["field"]: entry["reason"] for entry in block.get("unknown", ())}


def _unit(name: str) -> str:
    return UNITS.get(name.rpartition("_")[2], "")


def _events(report: Report) -> Iterable[Row]:
    for interruption in report["interruptions"]:
        state = "" if interruption["ended"] else "still down"
        down = {
            "name": interruption["cause"],
            "value": interruption["downtime_hours"],
            "unit": "hours",
            "date": interruption["at"],
            "text": state,
        }
        yield {"section": "interruption", "run": interruption["run"], **down}
    for entry in report["log"]:
        yield {"section": entry["type"], "run": entry["run"], "date": entry["at"], "text": entry["text"]}


def _notes(report: Report) -> Iterable[Row]:
    for warning in report["status"]["warnings"]:
        yield {"section": "warning", "text": warning}
    for entry in report["assumptions"]:
        yield {"section": "assumption", "name": entry["field"], "text": f"{entry['value']}: {entry['source']}"}
    for name in ("price_snapshot", "engine_version"):
        yield {"section": "made with", "name": name, "text": report[name] or ""}
