"""A report as headline figures, and sections of text and tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.formats.documents.program.branch_sections import branch_table
from service.formats.documents.report.budget_sections import budget_section, calendar_section, energy_section, swings_table
from service.formats.documents.report.gate_sections import open_decisions, tier_gate_sentences
from service.formats.documents.report.months import months_section
from service.formats.documents.report.quality import quality_section
from service.formats.documents.sections import DocumentSection, DocumentTable, filled_sections
from service.formats.documents.text import days, number, share, span, text
from service.formats.headline import counted

Report = Mapping[str, Any]
HEALTH_TITLES = {"on_track": "On track", "at_risk": "At risk", "off_track": "Off track", "unknown": "Not known"}
NONE = "not known"
MEANINGS = {
    "bac_usd": (
        "BAC, USD",
        "the budget of what is measured: the runs, and people and what is around the runs once a cost of them is reported",
    ),
    "pv_usd": ("PV, USD", "was planned to be spent by now"),
    "ev_usd": ("EV, USD", "is what the work done was budgeted at"),
    "ac_usd": ("AC, USD", "is spent"),
    "cpi": ("CPI", "of budgeted work was done for each dollar spent; below 1 it costs more than planned"),
    "spi": ("SPI", "of the work planned by now is done; below 1 it is behind"),
    "tcpi": ("TCPI", "is the CPI that the rest needs to end on BAC"),
}
SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"))
MAX_LISTED_INTERRUPTIONS = 12
"""Interruptions listed; the sentence above them counts all."""
UNPLANNED = "not planned"
WINDOWS = {
    "whole": "since the start",
    "28d": "last 28 days",
    "7d": "last 7 days",
    "24h": "last 24 hours",
    "planned": "as planned for the day",
}


@dataclass(frozen=True, slots=True)
class Tile:
    """A headline figure and its reference."""

    name: str
    figure: str
    reference: str


def title(report: Report) -> str:
    """The program's name."""
    return str(report["program"]["name"])


def subtitle(report: Report) -> str:
    """Time and author of the report."""
    return f"Program report as of {_minute(report['status']['as_of'])} UTC, by {report['author'] or 'Outlay'}"


def footer(report: Report) -> str:
    """Prices and engine that the figures were made with."""
    made = f"Prices of the plan: {report['price_snapshot'] or 'none'}. Engine: {report['engine_version']}."
    return f"{made} Program {report['program']['id']}. Ranges are p50 (p10 to p90). Times are UTC."


def find_budget(report: Report) -> float | None:
    """The budget with its reserve, else the planned cost of the runs [USD]."""
    stated, planned = report["program"]["budget_usd"], report["status"]["earned_value"]["bac_usd"]
    budget: float | None = planned if stated is None else stated
    return budget


def tiles(report: Report) -> tuple[Tile, ...]:
    """Headline figures."""
    status, program = report["status"], report["program"]
    spend, earned, forecast = status["spend"], status["earned_value"], status["forecast"]
    finish = forecast["finish"]
    return (
        Tile("Spent", _usd(spend["usd"]), f"of {_usd(find_budget(report))} ({share(spend['share_of_budget']) or NONE})"),
        Tile("Forecast cost", _usd(_middle(forecast["cost_usd"])), _against(report["headline"]["over_usd"])),
        Tile("Forecast end", finish["p50"] if finish else NONE, f"deadline {program['deadline'] or 'not stated'}"),
        Tile("Cost efficiency, CPI", _ratio(earned["cpi"]), "1 is as planned"),
        Tile("Work done", share(earned["tokens_share"]) or NONE, f"SPI {_ratio(earned['spi'])}"),
        Tile("Half-spend gate", _gate_word(status["gate"]), f"on {report['gate_date']}" if report["gate_date"] else "no date forecast"),
    )


def sections(report: Report) -> tuple[DocumentSection, ...]:
    """The report in the order of reading; empty sections are left out."""
    status = report["status"]
    return filled_sections(
        DocumentSection("summary", "Summary", listed=(report["headline"]["text"], *report["headline"]["notes"])),
        budget_section(report),
        DocumentSection("forecast", "Forecast", tables=(_forecast(report), swings_table(report))),
        DocumentSection(
            "gate",
            "Gates",
            (*_gate(status["gate"], report["gate_date"]), *tier_gate_sentences(status)),
            (branch_table(open_decisions(status)),),
        ),
        calendar_section(report),
        DocumentSection("earned_value", "Earned value", tables=(_earned(status["earned_value"]),)),
        months_section(report),
        DocumentSection("why", "Why the cost moved", *_why(status["cost_drivers"])),
        DocumentSection("risks", "Risks and reserve", _reserve(status["reserve"], status["risks"]), (_risks(status["risks"]),)),
        quality_section(report),
        DocumentSection("drift", "Drift", listed=tuple(_drift(status["drift"]))),
        DocumentSection("spend", "Spending", tables=(_spending(report), *_lines(status["spend"]), _burn(status["burn_rate"]))),
        energy_section(status),
        DocumentSection("runs", "Runs", tables=(_runs(status["runs"]), _quality(status["runs"]), _checkpoints(status["runs"]))),
        DocumentSection("losses", "Losses", listed=tuple(_alarms(status["runs"])), tables=(_losses(status["runs"]),)),
        DocumentSection("interruptions", "Interruptions", (_failures(status["interruptions"]),), (_stops(report["interruptions"]),)),
        DocumentSection("log", "Decisions and notes", tables=(_log(report["log"]),)),
        DocumentSection("warnings", "Warnings", listed=tuple(dict.fromkeys(status["warnings"]))),
        DocumentSection("unknown", "Not known", tables=(_unknown(report["unknown"]),)),
        DocumentSection("assumptions", "What the figures rest on", tables=(_assumptions(report["assumptions"]),)),
    )


def _reserve(reserve: Mapping[str, Any] | None, risks: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What risks leave of the reserve, where there are any."""
    if reserve is None or not risks:
        return ()
    planned, drawn, released, left = (_usd(reserve[f"{part}_usd"]) for part in ("planned", "drawn", "released", "left"))
    return (f"Of the reserve of {planned} USD {drawn} USD are drawn and {released} USD released: {left} USD are left.",)


def _risks(risks: Sequence[Mapping[str, Any]]) -> DocumentTable:
    rows = [
        (
            risk["name"],
            risk["state"],
            _minute(risk["since"]) if risk["since"] else "",
            _usd(risk["planned_usd"]),
            _usd(risk["usd"]),
            number(risk["days"]),
        )
        for risk in risks
    ]
    head = ("risk", "state", "since", "held for it, USD", "draws, USD", "delays, days")
    return DocumentTable(head, rows, frozenset({3, 4, 5}), frozenset({2}))


def _spending(report: Report) -> DocumentTable:
    spend = report["status"]["spend"]
    known = "" if spend["complete"] else "; not of every run"
    rows = (
        ("spent, USD", _usd(spend["usd"]), f"{share(spend['share_of_budget']) or NONE} of the budget{known}"),
        ("left of the budget, USD", _usd(spend["remaining_usd"]), f"of {_usd(find_budget(report))}"),
        ("accelerator-hours", _number(spend["accelerator_hours"]), "relaunches summed"),
        ("tokens earned", _tokens(spend["tokens"]), f"of {_tokens(report['program']['planned_tokens'])} planned"),
    )
    return DocumentTable(("", "", ""), rows, frozenset({1}))


def _lines(spend: Report) -> tuple[DocumentTable, ...]:
    rows = [(line["line"], _usd(line["usd"])) for line in spend["lines"]]
    total = ("total", _usd(spend["usd"]))
    return (DocumentTable(("line", "USD"), (*rows, total), frozenset({1}), total=True),) if len(rows) > 1 else ()


def _burn(burn: Report) -> DocumentTable:
    rows = [
        (
            WINDOWS[window["window"]],
            _number(window["usd_per_day"]),
            _number(window["accelerator_hours_per_day"]),
            _tokens(window["tokens_per_day"]),
            _number(window["checkpoints_per_day"]),
        )
        for window in (*burn["windows"], *([{"window": "planned", **burn["planned"]}] if burn["planned"] else []))
    ]
    return DocumentTable(("a day", "USD", "accelerator-hours", "tokens", "checkpoints"), rows, frozenset({1, 2, 3, 4}))


def _earned(earned: Report) -> DocumentTable:
    reasons = {entry["field"]: entry["reason"] for entry in earned["unknown"]}
    rows = [
        (word, _usd(earned[name]) if name.endswith("_usd") else _ratio(earned[name]), reasons.get(name, meaning))
        for name, (word, meaning) in MEANINGS.items()
    ]
    return DocumentTable(("", "figure", "what it says"), rows, frozenset({1}))


def _forecast(report: Report) -> DocumentTable:
    status, program, headline = report["status"], report["program"], report["headline"]
    forecast = status["forecast"]
    cost, finish = forecast["cost_usd"], forecast["finish"]
    late = headline["late_days"]
    rows = (
        ("cost, USD", _span(cost), _usd(find_budget(report)), _against(headline["over_usd"])),
        ("end", days(finish) if finish else NONE, program["deadline"] or NONE, NONE if late is None else _late(late)),
        ("left to spend, USD", _span(forecast["remaining_usd"]), "", ""),
        ("left to run, hours", _span(forecast["remaining_hours"]), "", ""),
        ("left to run, accelerator-hours", _span(forecast["remaining_accelerator_hours"]), "", ""),
    )
    return DocumentTable(("", "forecast", "held to", "difference"), rows)


def _why(why: Report | None) -> tuple[tuple[str, ...], tuple[DocumentTable, ...]]:
    if why is None:
        return (), ()
    rows = [(part["cause"], f"{part['usd']:+,.2f}") for part in why["parts"]]
    table = DocumentTable(("cause", "USD"), (*rows, ("together", f"{why['usd']:+,.2f}")), frozenset({1}), total=True)
    return (why["headline"], f"Compared: {why['comparison']}."), (table,)


def _gate(gate: Report, on: str | None) -> Iterable[str]:
    yield f"Half-spend gate {_gate_word(gate)}." + (f" Expected on {on}." if on and not gate["due"] and not gate["decided"] else "")
    yield from gate["reasons"]
    if gate["metric"] is not None:
        yield f"The newest evaluation is {gate['metric']:.4g}."


def _gate_word(gate: Report) -> str:
    if gate["decided"]:
        return f"decided: {gate['decided']}"
    return f"due: {gate['recommendation']}" if gate["due"] else "not due"


def _drift(drift: Iterable[Report]) -> Iterable[str]:
    for change in drift:
        against = "against the plan " if change["against"] == "plan" else ""
        since = f"{against}since {change['since'][:10]} (confidence {_confidence(change['confidence'])})"
        yield f"{change['run']}: {change['quantity']} {change['change']:+.1%} {since}."


def _confidence(confidence: float) -> str:
    return "above 99.9%" if confidence > 0.999 else f"{confidence:.1%}"


def _runs(runs: Iterable[Report]) -> DocumentTable:
    rows = [
        (
            run["name"], run["tier"] or "", run["state"].replace("_", " "), _tokens(run["spend"]["tokens"]),
            share(run["earned_value"]["tokens_share"]), _usd(run["spend"]["usd"]), _ratio(run["earned_value"]["cpi"]),
            _span(run["forecast"]["cost_usd"]), (run["forecast"]["finish"] or {"p50": NONE})["p50"],
        )
        for run in runs
    ]  # fmt: skip
    head = ("run", "tier", "state", "tokens", "done", "spent, USD", "CPI", "forecast, USD", "end")
    return DocumentTable(head, rows, frozenset({3, 4, 5, 6, 7}), frozenset({1, 2, 8}))


def _quality(runs: Iterable[Report]) -> DocumentTable:
    rows = [(run["name"], *_used(run["utilisation"]), *_failed(run["interruptions"])) for run in runs]
    head = ("run", "MFU", "planned", "goodput", "planned", "interruptions", "expected", "hours down", "tokens lost")
    return DocumentTable(head, rows, frozenset(range(1, 9)))


def _used(used: Report) -> tuple[str, ...]:
    shares = {"mfu": NONE, "planned_mfu": UNPLANNED, "goodput": NONE, "planned_goodput": UNPLANNED}
    return tuple(share(used[name]) or otherwise for name, otherwise in shares.items())


def _failed(failures: Report) -> tuple[str, ...]:
    expected = _number(failures["expected"], UNPLANNED)
    return f"{failures['count']:,}", expected, number(failures["downtime_hours"]), _tokens(failures["lost_tokens"])


def _checkpoints(runs: Iterable[Report]) -> DocumentTable:
    rows = [
        (run["name"], *_checkpoint_cells(run["checkpoints"]))
        for run in runs
        if run["checkpoints"]["count"] or run["checkpoints"]["planned_interval_minutes"]
    ]
    head = ("run", "checkpoints", "TB", "every, minutes", "planned", "longest gap, minutes", "kept")
    return DocumentTable(head, rows, frozenset({1, 2, 3, 4, 5}))


def _checkpoint_cells(checkpoints: Report) -> tuple[str, ...]:
    return (
        f"{checkpoints['count']:,}",
        number(checkpoints["bytes"] / 1e12),
        _number(checkpoints["interval_minutes"]),
        _number(checkpoints["planned_interval_minutes"], UNPLANNED),
        _number(checkpoints["longest_gap_minutes"]),
        _on_schedule(checkpoints),
    )


def _on_schedule(checkpoints: Report) -> str:
    if checkpoints["on_schedule"] is None:
        return UNPLANNED if checkpoints["planned_interval_minutes"] is None else "too early to say"
    return "yes" if checkpoints["on_schedule"] else "no"


def _losses(runs: Iterable[Report]) -> DocumentTable:
    rows = [(run["name"], *_loss(run["loss"])) for run in runs if run["loss"]["last"] is not None]
    return DocumentTable(
        ("run", "loss", "lowest", "state", "at its end", "planned", "reached, probability"), rows, frozenset({1, 2, 4, 5, 6})
    )


def _loss(loss: Report) -> tuple[str, ...]:
    end = loss["projection"] or {}
    expected = span(end["loss"]) if end else NONE
    now = (_ratio(loss["last"]), _ratio(loss["lowest"]), loss["state"] or NONE)
    return (*now, expected, _ratio(end.get("planned_loss"), ""), share(end.get("probability_of_planned")))


def _alarms(runs: Iterable[Report]) -> Iterable[str]:
    for run in runs:
        yield from (f"{run['name']}, {alarm['at'][:10]}: {alarm['text']}" for alarm in run["loss"]["alarms"])


def _failures(failures: Report) -> str:
    """Failures against their budget as a sentence."""
    causes = ", ".join(f"{cause} {count}" for cause, count in failures["causes"].items())
    parts = [f"{failures['count']:,} so far" + (f" ({causes})" if causes else "")]
    if failures["expected"] is not None:
        many = f", so many or more with a probability of {share(failures['probability'])}" if failures["count"] else ""
        parts.append(f"{number(failures['expected'])} expected for the work done{many}")
    parts.append(
        "no failure budget is planned" if failures["budgeted"] is None else f"{number(failures['budgeted'])} budgeted for the whole"
    )
    parts.append(f"{number(failures['downtime_hours'])} hours down, {_tokens(failures['lost_tokens'])} tokens lost")
    return "; ".join(parts) + "."


def _stops(interruptions: Sequence[Report]) -> DocumentTable:
    rows = [
        (_minute(interruption["at"]), interruption["run"], interruption["cause"], _down(interruption))
        for interruption in interruptions[:MAX_LISTED_INTERRUPTIONS]
    ]
    return DocumentTable(("the newest, at", "run", "cause", "hours down"), rows, frozenset({3}), frozenset({0}))


def _down(interruption: Report) -> str:
    return number(interruption["downtime_hours"]) + ("" if interruption["ended"] else ", still down")


def _log(log: Iterable[Report]) -> DocumentTable:
    rows = [(_minute(entry["at"]), entry["run"], entry["type"], entry["text"]) for entry in log]
    return DocumentTable(("at", "run", "what", ""), rows, dated=frozenset({0}))


def _unknown(unknown: Iterable[Report]) -> DocumentTable:
    """Unknown figures by reason."""
    fields: dict[str, list[str]] = defaultdict(list)
    for entry in unknown:
        fields[entry["reason"]].append(f"{entry['run']}: {entry['field']}" if entry["run"] else entry["field"])
    return DocumentTable(("figures", "why"), [(", ".join(dict.fromkeys(names)), reason) for reason, names in fields.items()])


def _assumptions(assumptions: Iterable[Report]) -> DocumentTable:
    return DocumentTable(("", "taken", "source"), [(entry["field"], text(entry["value"]), entry["source"]) for entry in assumptions])


def _minute(moment: str) -> str:
    return f"{moment[:10]} {moment[11:16]}"


def _usd(amount: float | None) -> str:
    return NONE if amount is None else f"{amount:,.0f}"


def _number(value: float | None, otherwise: str = NONE) -> str:
    return otherwise if value is None else number(value)


def _tokens(count: float | None) -> str:
    """A count with a suffix: 950B, 1T."""
    if count is None:
        return NONE
    return next((f"{count / scale:.4g}{suffix}" for scale, suffix in SCALES if count >= scale), f"{count:,.0f}")


def _ratio(value: float | None, otherwise: str = NONE) -> str:
    return otherwise if value is None else f"{value:.3g}"


def _span(quantity: Mapping[str, float] | None) -> str:
    """A range, one figure where it is certain."""
    if quantity is None:
        return NONE
    return number(quantity["p50"]) if quantity["p10"] == quantity["p90"] else span(quantity)


def _middle(quantity: Mapping[str, float] | None) -> float | None:
    return None if quantity is None else quantity["p50"]


def _against(over: float | None) -> str:
    return NONE if over is None else f"{over:,.0f} USD over budget" if over > 0 else f"{abs(over):,.0f} USD within budget"


def _late(days_late: int) -> str:
    count = counted(abs(days_late), "day")
    return f"{count} late" if days_late > 0 else f"{count} before the deadline"
