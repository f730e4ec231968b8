"""What differs between two answers and their requests, as rows, as Markdown or as a comment on GitHub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.formats.headline import money

Body = Mapping[str, Any]
QUANTITIES = (
    ("cost, p50", ("summary", "p50_usd"), "usd"),
    ("cost, kept with 80 %", ("summary", "p80_usd"), "usd"),
    ("days, p50", ("summary", "p50_finish_days"), "number"),
    ("days, kept with 80 %", ("summary", "p80_finish_days"), "number"),
    ("chance to meet the deadline", ("schedule", "deadline_probability"), "share"),
    ("chance to keep to the budget", ("budget_probability",), "share"),
    ("accelerator-hours, p50", ("time", "accelerator_hours", "p50"), "number"),
    ("MFU, p50", ("throughput", "mfu", "p50"), "share"),
    ("emissions in tCO2e", ("energy", "tco2e"), "number"),
)
"""What is compared of two answers: its name, its path in the answer, and how it is written."""
SAME_SHARE = 1e-9
"""Relative difference below which two figures are the same: the rounding of floating-point sums."""
COMMAS_FROM = 10_000
Row = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows of name, before, after and change: of the request's fields, the headline figures, and the cost lines."""

    headline: str
    fields: tuple[Row, ...]
    figures: tuple[Row, ...]
    lines: tuple[Row, ...]
    notes: tuple[str, ...]


def compare_answers(before: Body, after: Body, requests: tuple[Body, Body] | None = None) -> Difference:
    """The difference of two answers of one kind; of the requests' fields where both are known."""
    figures = tuple(row for name, path, unit in QUANTITIES if (row := _figure_row(name, _at(before, path), _at(after, path), unit)))
    lines = tuple(_line_rows(_cost_lines(before), _cost_lines(after)))
    fields = tuple(_field_rows(dict(_leaves(requests[0])), dict(_leaves(requests[1])))) if requests else ()
    names = (("prices", "price_snapshot"), ("engine", "engine_version"))
    versions = [(title, before.get(name), after.get(name)) for title, name in names]
    notes = [f"{title}: {was}, then {now}" for title, was, now in versions if was and now and was != now]
    warned = before.get("warnings")
    new = [] if warned is None else [warning for warning in after.get("warnings", ()) if warning not in warned]
    return Difference(_headline(before, after), fields, figures, lines, (*notes, *(f"new warning: {warning}" for warning in new)))


def render_difference(difference: Difference, form: str, names: tuple[str, str]) -> str:
    """The difference as Markdown or, with its cost lines folded, a comment on GitHub."""
    tables = [("What it costs", difference.figures), ("What changed", difference.fields), ("Cost lines", difference.lines)]
    parts = [f"### {difference.headline}", f"`{names[0]}` → `{names[1]}`"]
    for title, rows in tables:
        if rows:
            parts.append(_folded(title, rows) if form == "github" and title == "Cost lines" else f"**{title}**\n\n{_markdown(rows)}")
    parts += [f"- {note}" for note in difference.notes]
    return "\n\n".join(parts)


def _folded(title: str, rows: Sequence[Row]) -> str:
    return f"<details><summary>{title} ({len(rows)})</summary>\n\n{_markdown(rows)}\n\n</details>"


def _markdown(rows: Sequence[Row]) -> str:
    head = "| | before | after | change |\n|---|---:|---:|---:|"
    return "\n".join([head, *(f"| {' | '.join(cell.replace('|', '&#124;').replace(chr(10), ' ') for cell in row)} |" for row in rows)])


def _headline(before: Body, after: Body) -> str:
    was, now = ([_at(answer, ("summary", name)) for name in ("p50_usd", "p50_finish_days")] for answer in (before, after))
    if was == [None, None] and None not in now:
        return f"{money(now[0])} and {_days(now[1])}, not known before"
    parts = [_moved(was[0], now[0], money), _moved(was[1], now[1], _days)]
    return "; ".join(part for part in parts if part) or "No figure to compare is known of both"


def _days(days: float) -> str:
    return f"{days:.3g} days"


def _moved(before: float | None, after: float | None, write: Any) -> str:
    if before is None or after is None:
        return ""
    if _same(before, after):
        return f"{write(after)} as before"
    share = f" ({after / before - 1:+.1%})" if before else ""
    return f"{write(abs(after - before))} {'more' if after > before else 'less'}: {write(before)} → {write(after)}{share}"


def _figure_row(name: str, before: Any, after: Any, unit: str) -> Row | None:
    if before is None and after is None:
        return None
    change = "" if before is None or after is None else "same" if _same(before, after) else _signed(after - before, unit)
    return name, _written(before, unit), _written(after, unit), change


def _written(value: float | None, unit: str) -> str:
    if value is None:
        return "not known"
    return {"usd": f"${value:,.0f}", "share": f"{value:.1%}"}.get(unit, f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}")


def _signed(value: float, unit: str) -> str:
    size = f"{abs(value) * 100:.1f} points" if unit == "share" else _written(abs(value), unit)
    return f"{'+' if value > 0 else '-'}{size}"


def _same(before: float, after: float) -> bool:
    return abs(after - before) <= SAME_SHARE * max(abs(before), abs(after))


def _cost_lines(answer: Body) -> dict[str, float]:
    entries = answer.get("lines") or (answer.get("cost") or {}).get("lines") or ()
    return {entry["line"]: entry["usd"] for entry in entries}


def _line_rows(before: Mapping[str, float], after: Mapping[str, float]) -> Iterator[Row]:
    for name in dict.fromkeys((*before, *after)):
        if not _same(before.get(name, 0.0), after.get(name, 0.0)):
            change = _signed(after.get(name, 0.0) - before.get(name, 0.0), "usd")
            yield name, _cents(before.get(name)), _cents(after.get(name)), change


def _cents(usd: float | None) -> str:
    return "-" if usd is None else f"${usd:,.2f}"


def _field_rows(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[Row]:
    for path in dict.fromkeys((*before, *after)):
        if before.get(path, _ABSENT) != after.get(path, _ABSENT):
            word = "added" if path not in before else "left out" if path not in after else "changed"
            yield path, _plain(before.get(path, "-")), _plain(after.get(path, "-")), word


def _plain(value: object) -> str:
    """A field's value; amounts with commas between thousands, years without."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.15g}" if abs(value) >= COMMAS_FROM else f"{value:.15g}"


_ABSENT = object()


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Values of a request by their dotted path."""
    pairs: Any = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else None
    if pairs is None:
        yield path, node
        return
    for name, below in pairs:
        yield from _leaves(below, f"{path}.{name}" if path else str(name))


def _at(answer: Any, path: Sequence[str]) -> Any:
    for name in path:
        answer = answer.get(name) if isinstance(answer, Mapping) else None
    return answer
