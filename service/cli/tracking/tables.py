"""Tracked programs as tables. An unknown figure is shown as -; `--json` gives the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from service.cli.terminal.tables import Cells, Entry, clip, columns, figure, grid, percent, scaled, spread

NONE = "-"
WINDOWS = ("whole", "28d", "7d", "24h")
QUALITY = ("run", "metric", "last", "best", "error", "state", "change", "since", "confidence")
SHOWN = 20
"""Rows of an import that are listed."""


def programs(entries: Sequence[Entry]) -> str:
    """Programs with their limits."""
    cells: Cells = {
        "id": "{id}",
        "name": "{name}",
        "state": lambda entry: "archived" if entry["archived_at"] else entry["state"],
        "budget USD": lambda entry: _figure(entry["budget_usd"]),
        "tokens": lambda entry: _scaled(entry["planned_tokens"]),
        "start": lambda entry: entry["start"] or NONE,
        "deadline": lambda entry: entry["deadline"] or NONE,
    }
    return grid(entries, cells, ("tokens", "start"))


def started(program: Entry) -> str:
    """A new program, and the runs of its plan."""
    planned = [f"  {run['tier']}: {run['name']}" for run in program["planned_runs"]]
    held = f"{_figure(program['budget_usd'])} USD, {_scaled(program['planned_tokens'])} tokens, {program['start']} to {program['deadline']}"
    return "\n".join([f"{program['id']}  {program['name']}: {held}", "runs of its plan:", *planned])


def pivoted(program: Entry) -> str:
    """A program that goes on with a pivot: what it goes on with, and what it is held to now."""
    said = program["pivoted"]
    return f"goes on with {said['program']} from {said['from']}, decided at the gate {said['gate']}\n{started(program)}"


def status(body: Entry, headline: Entry) -> str:
    """Status of a program, its runs, and warnings."""
    parts = [
        f"{body['name']}, {body['as_of']}",
        headline["text"],
        *headline["notes"],
        "",
        columns(_summary(body)),
        "",
        columns([("run", "state", "tokens", "done", "USD", "CPI", "MFU", "goodput", "stops", "finish"), *map(_run, body["runs"])]),
        *([""] if body["quality"] else []),
        *([columns([QUALITY, *map(_metric, body["quality"])])] if body["quality"] else []),
        *(f"guardrail: {_guardrail(each)}" for each in body["guardrails"]),
        *(f"warning: {warning}" for warning in body["warnings"]),
    ]
    return "\n".join(parts)


def _summary(body: Entry) -> list[tuple[str, str]]:
    spend, earned, forecast, gate = (body[name] for name in ("spend", "earned_value", "forecast", "gate"))
    left = f"{_percent(spend['share_of_budget'])} of the budget, {_figure(spend['remaining_usd'])} left"
    return [
        ("spent", f"{_figure(spend['usd'])} USD, {left}; {_figure(spend['accelerator_hours'])} accelerator-hours"),
        ("earned", f"{scaled(spend['tokens'])} tokens, {_percent(earned['tokens_share'])} of the work"),
        ("a day", _burn(body["burn_rate"])),
        ("PV, EV, AC", " ".join(_figure(earned[name]) for name in ("pv_usd", "ev_usd", "ac_usd"))),
        ("CPI, SPI", f"{_ratio(earned['cpi'])} {_ratio(earned['spi'])}; EAC {_figure(earned['eac_usd'])}, TCPI {_ratio(earned['tcpi'])}"),
        ("forecast", f"{spread(forecast['cost_usd'], figure) if forecast['cost_usd'] else NONE} USD, finish {_finish(forecast)}"),
        ("why", body["cost_drivers"]["headline"] if body["cost_drivers"] else NONE),
        ("gate", f"{'due' if gate['due'] else 'decided' if gate['decided'] else 'not due'}: {'; '.join(gate['reasons'])}"),
        *((f"gate {each['tier']}", f"due: {'; '.join(each['reasons'])}") for each in body["tier_gates"] if each["due"]),
        ("interruptions", _failures(body["interruptions"])),
        ("prices, engine", f"{body['price_snapshot'] or NONE}, {body['engine_version']}"),
    ]


def _burn(burn: Entry) -> str:
    windows = {window["window"]: window for window in burn["windows"]}
    found = (f"{_figure(windows[name]['usd_per_day'])} USD ({name})" for name in WINDOWS if name in windows)
    planned = [f"{_figure(burn['planned']['usd_per_day'])} USD (planned)"] if burn["planned"] else []
    return ", ".join([*found, *planned]) or NONE


def _finish(forecast: Entry) -> str:
    days = forecast["finish"]
    return f"{days['p50']} ({days['p10']} - {days['p90']})" if days else NONE


def _failures(failures: Entry) -> str:
    causes = ", ".join(f"{cause} {count}" for cause, count in failures["causes"].items())
    expected = f"{_figure(failures['expected'])} expected by now, {_figure(failures['budgeted'])} budgeted"
    return f"{failures['count']}{f' ({causes})' if causes else ''}; {expected}; {figure(failures['downtime_hours'])} h down"


def _run(run: Entry) -> tuple[str, ...]:
    spend, earned, used = run["spend"], run["earned_value"], run["utilisation"]
    return (
        run["name"],
        run["state"],
        scaled(spend["tokens"]),
        _percent(earned["tokens_share"]),
        _figure(spend["usd"]),
        _ratio(earned["cpi"]),
        _percent(used["mfu"]),
        _percent(used["goodput"]),
        str(run["interruptions"]["count"]),
        _finish(run["forecast"]),
    )


def _metric(metric: Entry) -> tuple[str, ...]:
    change, confidence = metric["change"], metric["confidence"]
    return (
        metric["run"],
        metric["metric"],
        f"{metric['last']:.4g}",
        f"{metric['best']:.4g}",
        f"{metric['standard_error']:.2g}",
        metric["state"],
        NONE if change is None else f"{change:+.3g}",
        metric["since"][:10],
        NONE if confidence is None else f"{confidence:.1%}",
    )


def _guardrail(each: Entry) -> str:
    if each["last"] is None:
        return f"{each['metric']}: floor {each['floor']:.4g}, not evaluated"
    return f"{each['metric']}: {each['last']:.4g} in {each['run']}, floor {each['floor']:.4g}, {'broken' if each['breached'] else 'kept'}"


def taken(import_: Entry) -> str:
    """Result of an import, with the rows that were not imported."""
    counts = ", ".join(f"{import_[name]:,} {name}" for name in ("accepted", "duplicates", "corrected"))
    refused = [f"rejected {each['id']}: {clip(each['reason'])}" for each in import_["rejected"]]
    unmatched = list(dict.fromkeys(f"row {each['row']} unmatched: {clip(each['reason'])}" for each in import_["unmatched"]))
    return "\n".join([f"events: {counts}", *_first(refused), *_first(unmatched), *import_["notes"]])


def _first(lines: Sequence[str]) -> Iterable[str]:
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"and {len(lines) - SHOWN:,} more"


def _figure(value: float | None) -> str:
    return NONE if value is None else figure(value)


def _scaled(count: float | None) -> str:
    return NONE if count is None else scaled(count)


def _percent(share: float | None) -> str:
    return NONE if share is None else percent(share)


def _ratio(value: float | None) -> str:
    return NONE if value is None else f"{value:.3g}"
