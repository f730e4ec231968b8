"""Sweep: the base request at every combination of some fields' values, or with each of a list of changes, as a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.presets.version import engine_version
from service.serialization import to_builtins
from service.usecases.scenarios.base_check import check_names, unchanged_parts
from service.usecases.scenarios.changes.request_paths import (
    at_time,
    check_path,
    evaluate_row,
    is_number,
    pin_prices,
    read_numbers,
    read_value,
    takes_whole_numbers,
    with_values,
)
from service.usecases.scenarios.registry import Body, PreparedScenario, ScenarioKind, ScenarioRequest, Step
from service.usecases.scenarios.summary import summarise_sweep

MOST_CELLS = {"estimate": 20_000, "program": 2_000}
# A cell whose layout is searched anew takes some 10 ms, a program with its schedule ten times that.
CELLS_PER_CHUNK = {"estimate": 50, "program": 5}
MOST_AXES = 12
# Values that are no plain numbers (texts, sections) are read one by one by the request's schema.
MOST_OTHER_VALUES = 100
ENDS = ("from", "to")


def prepare(context: AppContext, request: ScenarioRequest) -> PreparedScenario:
    """The axes or the list of changes, every value read. Raises DomainErrors with a pointer into the request, also for the base's names."""
    axes, changes = request.options.get("axes"), request.options.get("changes")
    if bool(axes) == bool(changes):
        raise InvalidRequest("state either axes or a list of changes", "/axes")
    base, snapshot = pin_prices(context, request)
    table = _grid(request, axes) if axes else _list(request, changes or ())
    check_names(context, request.shape, base, unchanged_parts(table["columns"]), swept=table["columns"])
    cells, per_chunk = _count_cells(table), CELLS_PER_CHUNK[request.shape]
    return PreparedScenario(
        kind="sweep",
        chunks=math.ceil(cells / per_chunk),
        units_per_chunk=per_chunk,
        units=cells,
        checkpoints=(),
        request={"shape": request.shape, "base": base, "now": context.clock(), **table},
        snapshot=snapshot,
        lessons=context.lessons(),
    )


def run_chunk(context: AppContext, prepared: PreparedScenario, index: int, step: Step) -> dict[str, Any]:
    """The rows of one chunk of cells. An infeasible cell is a row with its problem."""
    task, context = prepared.request, at_time(context, prepared.request["now"])
    rows = []
    for cell in range(index * prepared.units_per_chunk, prepared.units_after(index + 1)):
        step()
        values = _values(task, cell)
        rows.append({"inputs": to_builtins(values), **evaluate_row(context, task["shape"], with_values(task["base"], values))})
    return {"rows": rows}


def finish(context: AppContext, prepared: PreparedScenario, tallies: Iterable[Body]) -> dict[str, Any]:
    """All rows, in the order of the cells: the last axis varies fastest."""
    del context
    rows = [row for tally in tallies for row in tally["rows"]]
    return {
        "summary": to_builtins(summarise_sweep(rows)),
        "paths": list(prepared.request["columns"]),
        "rows": rows,
        "cells": len(rows),
        "infeasible": sum(not row["feasible"] for row in rows),
        "price_snapshot": prepared.snapshot,
        "lessons": prepared.lessons_reference,
        "engine_version": engine_version(),
    }


def _grid(request: ScenarioRequest, axes: Body) -> dict[str, Any]:
    """Columns of the axes' values. Raises InvalidRequest for too many cells, before any is built."""
    if len(axes) > MOST_AXES:
        raise InvalidRequest(f"{len(axes)} axes are more than the {MOST_AXES} a sweep may have", "/axes")
    for path in axes:
        check_path(path, f"/axes/{path}")
    cells = math.prod(_length(axis, f"/axes/{path}") for path, axis in axes.items())
    _check_cells(cells, request, "/axes")
    listed = {path: _list_values(request, path, axis) for path, axis in axes.items()}
    _check_other_values(listed, "/axes")
    return {"grid": True, "columns": {path: _read(request, path, values, f"/axes/{path}") for path, values in listed.items()}}


def _list(request: ScenarioRequest, changes: Sequence[Body]) -> dict[str, Any]:
    """Columns of the changed fields' values, with the rows that change each field."""
    _check_cells(len(changes), request, "/changes")
    rows: dict[str, list[int]] = {}
    for row, change in enumerate(changes):
        for path in change:
            rows.setdefault(check_path(path, f"/changes/{row}"), []).append(row)
    if len(rows) > MOST_AXES:
        raise InvalidRequest(f"{len(rows)} different fields are more than the {MOST_AXES} a sweep may change", "/changes")
    listed = {path: [changes[row][path] for row in rows[path]] for path in rows}
    _check_other_values(listed, "/changes")
    columns = {path: _read(request, path, values, "/changes") for path, values in listed.items()}
    return {"grid": False, "columns": columns, "rows": rows, "cells": len(changes)}


def _check_cells(cells: int, request: ScenarioRequest, pointer: str) -> None:
    if cells > MOST_CELLS[request.shape]:
        raise InvalidRequest(
            f"{cells:,.15g} cells are more than the {MOST_CELLS[request.shape]:,} that a sweep of {request.shape} requests may have",
            pointer,
        )


def _check_other_values(listed: Mapping[str, Sequence[Any]], pointer: str) -> None:
    texts = sum(len(values) for values in listed.values() if not all(map(is_number, values)))
    if texts > MOST_OTHER_VALUES:
        raise InvalidRequest(f"{texts:,} values that are not plain numbers are more than the {MOST_OTHER_VALUES} a sweep may have", pointer)


def _length(axis: Any, pointer: str) -> int:
    """Number of values of an axis, before they are built. Raises InvalidRequest for a malformed axis."""
    if isinstance(axis, list | tuple) and axis:
        return len(axis)
    if not isinstance(axis, Mapping) or not set(axis) <= {*ENDS, "steps", "log"}:
        raise InvalidRequest("an axis is a list of values, or an object with from, to, steps and log", pointer)
    low, high, steps = (float(axis[name]) if is_number(axis.get(name)) else math.nan for name in (*ENDS, "steps"))
    if math.isnan(low - high) or low == high:
        raise InvalidRequest("from and to must be two different numbers", pointer)
    if not (steps >= 2 and steps.is_integer()):
        raise InvalidRequest("steps must be a whole number of 2 or more: the number of values, with both ends", pointer)
    if axis.get("log", False) not in (True, False) or (axis.get("log") and min(low, high) <= 0):
        raise InvalidRequest("log must be true (equal factors, between two numbers above 0) or false (equal steps)", pointer)
    return int(steps)


def _list_values(request: ScenarioRequest, path: str, axis: Any) -> list[Any]:
    """The values of an axis; steps between two ends are whole where the field takes whole numbers."""
    if not isinstance(axis, Mapping):
        return list(axis)
    low, high, steps = axis["from"], axis["to"], int(axis["steps"])
    values = (np.geomspace if axis.get("log") else np.linspace)(low, high, steps).tolist()
    values[0], values[-1] = low, high
    return [low, *map(round, values[1:-1]), high] if takes_whole_numbers(request, path, low) else values


def _read(request: ScenarioRequest, path: str, values: Sequence[Any], pointer: str) -> list[Any]:
    """The values as the use cases take them."""
    if all(map(is_number, values)):
        return read_numbers(request, path, values, pointer)
    return [read_value(request, path, value, pointer) for value in values]


def _count_cells(table: Body) -> int:
    return math.prod(len(values) for values in table["columns"].values()) if table["grid"] else int(table["cells"])


def _values(task: Body, cell: int) -> dict[str, Any]:
    """Values that a cell sets: in a grid one of every axis, the last axis varying fastest; in a list those of its row."""
    columns = task["columns"]
    if not task["grid"]:
        return {path: columns[path][rows.index(cell)] for path, rows in task["rows"].items() if cell in rows}
    sizes = [len(values) for values in columns.values()]
    indices = np.unravel_index(cell, sizes)
    return {path: values[int(index)] for (path, values), index in zip(columns.items(), indices, strict=True)}


KIND = ScenarioKind(prepare, run_chunk, finish)
