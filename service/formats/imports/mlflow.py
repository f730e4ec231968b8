"""Runs of MLflow, as its REST API returns them, as events.

The document is `{"runs": […], "histories": {"<run_id>": […]}}`: `runs` of runs/search unchanged, and for each run the `metrics` of
metrics/get-history of all its metrics (MLflow REST API 2.0). Without a history a run's latest values are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.tracking.events import Event
from service.domain.tracking.imports import ImportedEvent, ImportedFile
from service.formats.imports.metrics import Point, events_of
from service.formats.imports.rows import (
    Row,
    RowRefused,
    cell_text,
    check_rows,
    json_value,
    listed,
    measured,
    name_of,
    since_1970,
    step_of,
    take_rows,
)
from service.formats.imports.tags import RUN, reference_of

MILLISECONDS = 1000
MAX_ID_CHARACTERS = 64
"""Longest run id; MLflow's have 32 characters."""


def read_mlflow(content: bytes) -> ImportedFile:
    """A restart at the start of each MLflow run, its known metrics as progress and evaluations, and an interruption if it failed.

    The run is named by the tag `outlay_run`, else by MLflow's run name. Rows are numbered as in `runs`. Raises InvalidRequest for any other
    document.
    """
    document = json_value(content, "the document")
    if not isinstance(document, dict) or "runs" not in document:
        raise InvalidRequest("the document has to be an object with `runs`, as runs/search of MLflow's REST interface answers")
    histories = document.get("histories", {})
    if not isinstance(histories, dict):
        raise InvalidRequest("`histories` has to be an object that has a list of metrics for each run_id")
    check_rows(sum(len(listed(history, f"histories/{run_id[:80]}")) for run_id, history in histories.items()))
    matched: list[ImportedEvent] = []
    runs = (Row(number, run) for number, run in enumerate(listed(document["runs"], "`runs`"), start=1))
    unmatched = take_rows(runs, lambda row: matched.extend(_run(row, histories)))
    return ImportedFile(tuple(matched), unmatched)


def _run(row: Row, histories: Mapping[str, list[Any]]) -> Iterator[ImportedEvent]:
    info, data = (_object(row.cells, name) for name in ("info", "data"))
    run_id = name_of(info.get("run_id") or info.get("run_uuid"))
    if not run_id or len(run_id) > MAX_ID_CHARACTERS:
        raise RowRefused(f"has no info.run_id of at most {MAX_ID_CHARACTERS} characters")
    reference = reference_of(data.get("tags"), {RUN: info.get("run_name")})
    metrics = histories.get(run_id) or data.get("metrics") or []
    if not isinstance(metrics, list):
        raise RowRefused("data.metrics is no list")
    events = [*_bounds(run_id, info), *events_of([_point(metric) for metric in metrics], f"mlflow-{run_id}")]
    return (ImportedEvent(row.number, reference, event) for event in events)


def _object(run: Any, name: str) -> Mapping[str, Any]:
    value = run.get(name, {}) if isinstance(run, dict) else None
    if not isinstance(value, dict):
        raise RowRefused(f"is no run of MLflow: {name} is no object")
    return value


def _bounds(run_id: str, info: Mapping[str, Any]) -> Iterator[Event]:
    """Start and end. A killed run is a note: it may have been stopped on purpose."""
    status = cell_text(info.get("status"))
    if cell_text(info.get("start_time")):
        yield Event(f"mlflow-{run_id}-start", "restart", _at(info["start_time"], "start_time"), text=f"MLflow run {run_id} started")
    if status in ("FAILED", "KILLED") and cell_text(info.get("end_time")):
        at = _at(info["end_time"], "end_time")
        if status == "FAILED":
            yield Event(f"mlflow-{run_id}-end", "interruption", at, cause="failed")
        else:
            yield Event(f"mlflow-{run_id}-end", "note", at, text=f"MLflow run {run_id} was killed")


def _at(milliseconds: object, what: str) -> datetime:
    number = measured(milliseconds)
    if number is None:
        raise RowRefused(f"{what} is {cell_text(milliseconds)[:40]!r}, which is no number of milliseconds since 1970")
    return since_1970(number / MILLISECONDS, what)


def _point(metric: Any) -> Point:
    if not isinstance(metric, dict):
        raise RowRefused("a metric is no object with key, value, timestamp and step")
    value = measured(metric.get("value"))
    if value is None:
        raise RowRefused(f"metric {cell_text(metric.get('key'))[:80]!r} has a value that is no number")
    return Point(_at(metric.get("timestamp"), "timestamp"), step_of(metric.get("step")), cell_text(metric.get("key")), value)
