"""Run histories of Weights & Biases as events: CSV of a run's `history()`, or JSON lines.

A row holds what was logged at a step: `_step`, `_timestamp` (seconds since 1970, or ISO 8601) and metrics by name. The CSV export of charts
has no times and cannot be read.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from service.domain.tracking.imports import ImportedEvent, ImportedFile, RunReference, digest
from service.formats.imports.metrics import Point, events_of
from service.formats.imports.rows import (
    Row,
    cell_text,
    check_rows,
    decoded,
    measured,
    moment,
    name_of,
    since_1970,
    step_of,
    table,
    take_rows,
)

TIME, STEP = "_timestamp", "_step"
RUN_COLUMNS = ("outlay_run", "run_id", "run_name", "run")


def read_wandb(content: bytes, run: str = "") -> ImportedFile:
    """Known metrics as progress and evaluations of the run that a row names in `outlay_run`, `run_id`, `run_name` or `run`.

    Rows without a name belong to `run`, where given. Raises InvalidRequest for a table without `_timestamp` and for anything but CSV or
    JSON lines.
    """
    points: dict[RunReference, list[tuple[int, Point]]] = defaultdict(list)
    unmatched = take_rows(_rows(content), lambda row: points[_reference(row, run)].extend([(row.number, point) for point in _points(row)]))
    matched = [event for reference, of_run in points.items() for event in _matched(reference, of_run)]
    return ImportedFile(tuple(matched), unmatched)


def _rows(content: bytes) -> Iterable[Row]:
    return _json_lines(content) if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else _table(content)


def _table(content: bytes) -> Iterator[Row]:
    """Rows of CSV without empty cells: an export writes them, and NaN, where nothing was logged."""
    for row in table(content, (TIME,), lower=False):
        cells = {name: value for name, value in row.cells.items() if cell_text(value)}
        yield Row(row.number, cells, row.trouble)


def _json_lines(content: bytes) -> Iterator[Row]:
    for number, line in enumerate(decoded(content).split("\n"), start=1):
        check_rows(number)
        if line.strip():
            yield _json_row(number, line)


def _json_row(number: int, line: str) -> Row:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Row(number, {}, f"no JSON that can be read: {error}")
    if not isinstance(value, dict):
        return Row(number, {}, "no JSON object")
    return Row(number, value)


def _reference(row: Row, default: str) -> RunReference:
    named = (name_of(row.cells.get(column)) for column in RUN_COLUMNS)
    return RunReference(next((name for name in named if name), default))


def _points(row: Row) -> Iterator[Point]:
    at, step = _at(row.cells), step_of(row.cells.get(STEP))
    for name, cell in row.cells.items():
        value = measured(cell)
        if value is not None and not name.startswith("_"):
            yield Point(at, step, name, value)


def _at(cells: Mapping[str, Any]) -> datetime:
    seconds = measured(cells.get(TIME))
    if seconds is None or math.isnan(seconds):
        return moment(cells.get(TIME), TIME)
    return since_1970(seconds, TIME)


def _matched(reference: RunReference, points: list[tuple[int, Point]]) -> Iterator[ImportedEvent]:
    """Events at the row of their first point."""
    rows: dict[datetime, int] = {}
    for number, point in points:
        rows.setdefault(point.at, number)
    key = f"wandb-{digest(reference.run)}"
    return (ImportedEvent(rows[event.at], reference, event) for event in events_of([point for _, point in points], key))
