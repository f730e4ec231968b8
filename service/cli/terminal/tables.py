"""Answers as tables for people. Figures are rounded for reading; `--json` has them in full."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

Entry = Mapping[str, Any]
Cells = Mapping[str, str | Callable[[Entry], str]]
"""By the head of a column, what its cells show: a format of the entry's fields, or a function of the entry."""
UNLIMITED_WIDTH = 100_000
GAP, LEAST_ROOM, FOLDED = 2, 8, 24
"""Characters between columns, the fewest of one whose cells are folded, and the fewest that read well."""
ID_LENGTH = 36
"""Characters of a UUID."""
SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))


def summary(rows: Sequence[tuple[str, str]]) -> str:
    """Labels with their texts; those without a text are left out."""
    return columns([row for row in rows if row[1]])


def headline(answer: Entry) -> list[str]:
    """The answer's sentence, where it has one."""
    return [styled(answer["summary"]["text"], bold=True)] if "summary" in answer else []


def warning_lines(answer: Entry) -> list[str]:
    """A line for each warning."""
    return [styled(f"warning: {warning}", "yellow") for warning in answer["warnings"]]


def styled(text: str, colour: str | None = None, *, bold: bool = False) -> str:
    """The text in a colour, where standard output is a terminal that shows them and NO_COLOR (https://no-color.org) is not set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return click.style(text, fg=colour, bold=bold or None)


def report(parts: Iterable[str], answer: Entry, *, verbose: bool) -> str:
    """The answer in a sentence, the parts, then its warnings, and its assumptions where they are asked for."""
    return "\n".join([*headline(answer), *parts, *warning_lines(answer), *assumptions(answer, verbose=verbose)])


def assumptions(answer: Entry, *, verbose: bool) -> list[str]:
    """The assumptions, or only their number."""
    if not verbose:
        return [f"{len(answer['assumptions'])} values were assumed; -v lists them"]
    items = [f"  {item['field']} = {format_value(item['value'])}: {clip(item['source'])}" for item in answer["assumptions"]]
    return ["assumed (p10 - p50 - p90 are shown as ranges):", *items]


def csv_text(names: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV under the names of their columns; None is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def range_cells(ranges: Mapping[str, Entry | None]) -> dict[str, Any]:
    """The percentiles of each range as columns; unknown ranges are empty."""
    return {f"{name}_{part}": quantity and quantity[part] for name, quantity in ranges.items() for part in ("p10", "p50", "p90")}


def figure(value: float) -> str:
    """A rounded figure: whole from 100, else three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"


def grid(entries: Iterable[Entry], cells: Cells, dispensable: Sequence[str] = ()) -> str:
    """A table with a row an entry, without the dispensable columns for which the terminal has no room."""
    rows = [[cell.format_map(entry) if isinstance(cell, str) else cell(entry) for cell in cells.values()] for entry in entries]
    return columns(narrowed([list(cells), *rows], dispensable))


def columns(rows: Sequence[Sequence[str]], *, fit: bool = True) -> str:
    """Rows with aligned cells; on a terminal with `fit` no wider than it, long cells continue on further lines."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    room = _terminal_width() if fit else UNLIMITED_WIDTH
    whole = _whole_columns(rows, room)
    table = Table.grid(padding=(0, GAP))
    for index in range(len(rows[0])):
        table.add_column(overflow="fold", no_wrap=index in whole)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(width=room, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def shown_accelerator(name: str) -> str:
    """The name of an accelerator: in full for scripts, without vendor and form factor on a terminal."""
    from service.formats.headline import short_name

    return short_name(name) if sys.stdout.isatty() else name


def narrowed(rows: Sequence[Sequence[str]], dispensable: Sequence[str]) -> list[Sequence[str]]:
    """The rows, head first, without the dispensable columns for which the terminal has no room; the first named is the first to go."""
    found: list[Sequence[str]] = list(rows)
    for head in dispensable:
        widths = _widths(found)
        if sum(min(width, FOLDED) + GAP for width in widths) - GAP <= _terminal_width():
            break
        left = [index for index, name in enumerate(found[0]) if name != head]
        found = [[row[index] for index in left] for row in found]
    return found


def _whole_columns(rows: Sequence[Sequence[str]], room: int) -> set[int]:
    """Columns that are not folded: those of one word, such as ids, figures and dates, then the narrow ones, as many as have room."""
    widths = _widths(rows)
    order = sorted(range(len(widths)), key=lambda index: (not _is_of_words(rows, index, widths[index]), widths[index]))
    for count in range(len(order), 0, -1):
        whole = set(order[:count])
        needed = sum((width if index in whole else min(width, LEAST_ROOM)) + GAP for index, width in enumerate(widths)) - GAP
        if needed <= room:
            return whole
    return set()


def _is_of_words(rows: Sequence[Sequence[str]], index: int, width: int) -> bool:
    """Whether the cells of a column are single words, none longer than an id; its head may be more."""
    return width <= ID_LENGTH and not any(" " in row[index] for row in rows[1:])


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Characters of each column's longest cell."""
    return [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]


def _terminal_width() -> int:
    """Characters a line of the terminal; unlimited where standard output is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED_WIDTH


def scaled(count: float) -> str:
    """A count with a suffix: 7B, 1.5T."""
    for scale, suffix in SCALES:
        if count >= scale:
            return f"{count / scale:.4g}{suffix}"
    return f"{count:g}"


def spread(quantity: Entry, shown_as: Callable[[float], str]) -> str:
    """A range as p50 with its ends; one figure where it is certain."""
    if quantity["p10"] == quantity["p90"]:
        return shown_as(quantity["p50"])
    return f"{shown_as(quantity['p50'])} ({shown_as(quantity['p10'])} - {shown_as(quantity['p90'])})"


def usd_text(usd: Entry | None) -> str:
    """A cost with its range; where none is known, what to do."""
    return "cost not known, state a price" if usd is None else f"{spread(usd, figure)} USD"


def percent(share: float) -> str:
    """A share in per cent."""
    return f"{share:.0%}"


def price_text(price: Entry | None) -> str:
    """The price with where and when it was read."""
    if price is None:
        return "not known"
    rate = f"{price['usd_per_accelerator_hour']:.4f} USD an accelerator-hour"
    if price["provider"] is None:
        return f"{rate}, yours"
    read = f"read {price['observed_at'][:10]}{', stale' if price['stale'] else ''}"
    return f"{rate}, {price['provider']} {price['region']} {price['instance_type']} {price['pricing']}, {read}"


def format_value(value: Any) -> str:
    """A value on one line."""
    return ", ".join(f"{name} {part}" for name, part in value.items()) if isinstance(value, Mapping) else str(value)


def clip(text: str, length: int = 120) -> str:
    """The beginning of a long text."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
