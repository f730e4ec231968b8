"""A scenario's result as text: what each kind of it has, then its figures, statements and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.cli.terminal.tables import columns, figure, headline, percent, scaled

Body = Mapping[str, Any]

STATISTICS = ("p10", "p50", "p90", "mean", "standard_error")
MOST_ROWS = 40


def render_result(result: Body) -> str:
    """Tables, figures, causes, statements and warnings of any kind of scenario."""
    tables = (_ranges(result), _tornado(result), *_indices(result), _cells(result), _options(result))
    figures = [f"{name}: {_cell(value)}" for name, value in result.items() if isinstance(value, int | float | str)]
    causes = [f"{cause}: {share:.0%} of the variance" for cause, share in (result.get("drivers") or {}).items()]
    texts = [line["text"] for line in result.get("statements") or ()] + list(result.get("warnings") or ())
    return "\n".join([*headline(result), *(table for table in tables if table), *figures, *causes, *texts, "--json shows all of it"])


def _ranges(result: Body) -> str:
    """Quantities of a Monte Carlo, a row each."""
    ranges = {name: value for name, value in result.items() if isinstance(value, Mapping) and "p50" in value}
    return _table(("", *STATISTICS), [(name, *(_cell(value.get(column)) for column in STATISTICS)) for name, value in ranges.items()])


def _tornado(result: Body) -> str:
    """A row for each input at its low and its high value, the largest change of the cost first; of the time without a price."""
    bars = result.get("tornado") or ()
    if bars and result["base"]["cost_usd"] is None:
        ends = [[_cell(bar["input"]), *(f"{_cell(bar[end])}: {_hours(bar[f'at_{end}'])}" for end in ("low", "high"))] for bar in bars]
        return _table(("input", "low: time", "high: time"), ends)
    rows = [
        (bar["input"], *(f"{_cell(bar[end])}: {_usd(bar[f'at_{end}']['cost_usd'])}" for end in ("low", "high")), _usd(bar["swing_usd"]))
        for bar in bars
    ]
    return _table(("input", "low: cost", "high: cost", "swing"), rows)


def _indices(result: Body) -> list[str]:
    """Sobol' indices of the cost, without a price of the time, the largest total first."""
    outputs = (result.get("sobol") or {}).get("outputs") or {}
    name, what = ("cost_usd", "cost") if "cost_usd" in outputs else ("hours_to_finish", "time")
    rows = [(row["input"], percent(row["first_order"]), percent(row["total"])) for row in outputs.get(name, {}).get("inputs", ())]
    return [_table((f"variance of the {what} by", "alone", "with the others"), rows)]


def _cells(result: Body) -> str:
    """Rows of a sweep: the values that were set, and what the request costs with them, or why it has no answer."""
    paths, rows = result.get("paths") or (), result.get("rows") or ()
    body = [(*(_cell(row["inputs"].get(path)) for path in paths), *_outcome(row)) for row in rows[:MOST_ROWS]]
    table = _table((*paths, "cost", "hours", "finish", ""), body)
    return f"{table}\n{len(rows) - MOST_ROWS:,} more rows" if len(rows) > MOST_ROWS else table


def _outcome(row: Body) -> tuple[str, str, str, str]:
    """Cost, hours, finish and problem of a sweep's row."""
    if "cost_usd" not in row:
        return "", "", "", str(row["problem"])
    finish = row.get("finish")
    hours = figure(row["wall_clock_hours"]["p50"])
    cost = _usd(row["cost_usd"]["p50"]) if row["cost_usd"] else "-"
    return cost, hours, str(finish["p50"]) if finish else "", str(row.get("problem") or "")


def _options(result: Body) -> str:
    """The best option of an optimisation, and those of its Pareto front."""
    best = result.get("best")
    if best is None:
        return ""
    rows = [("best", *_option(best)), *(("", *_option(row)) for row in result.get("pareto_front") or ())]
    return _table(("", "accelerators", "from", "pricing", "model", "start", "cost", "hours"), rows)


def _option(row: Body) -> tuple[str, ...]:
    place = " ".join(str(row[name]) for name in ("provider", "region", "instance_type") if row[name])
    size = f"{scaled(row['params'])}, {scaled(row['tokens'])} tokens" if row["params"] else "as stated"
    machine = f"{row['count']:,} x {row['accelerator']}"
    return machine, place, row["pricing"], size, row["start"], _usd(row["usd"]), figure(row["wall_clock_hours"]["p50"])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return columns([head, *rows]) if rows else ""


def _hours(figures: Body) -> str:
    hours = figures["hours_to_finish"]
    return "no answer" if hours is None else f"{figure(hours)} h"


def _usd(value: float | None) -> str:
    return "no answer" if value is None else f"{figure(value)} USD"


def _cell(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, int | float) else "" if value is None else str(value)
