"""A sweep: the base request at every combination of some fields' values, or with each of a list of changes, as a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.presets.version import engine_version
from service.serialization import plain
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
from service.usecases.scenarios.registry import PreparedScenario, ScenarioKind, ScenarioRequest, Step, never_sufficient

Body = Mapping[str, Any]

MOST_CELLS = {"estimate": 20_000, "program": 2_000}
# A cell whose layout is searched anew takes some 10 ms, a program with its schedule ten times that.
CELLS_A_CHUNK = {"estimate": 50, "program": 5}
MOST_AXES = 12
# What is no plain number (a text, a section) is read by the request's schema, each for itself.
MOST_READ = 100
ENDS = ("from", "to")


def prepare(context: AppContext, given: ScenarioRequest) -> PreparedScenario:
    """The axes or the list, every value read. Raises DomainErrors with a pointer into the request, the base's names included."""
    axes, changes = given.options.get("axes"), given.options.get("changes")
    if bool(axes) == bool(changes):
        raise InvalidRequest("state axes, or a list of changes: one of them", "/axes")
    base, snapshot = pin_prices(context, given)
    table = _grid(given, axes) if axes else _list(given, changes or ())
    check_names(context, given.shape, base, unchanged_parts(table["columns"]), swept=table["columns"])
    cells, a_chunk = _cells(table), CELLS_A_CHUNK[given.shape]
    return PreparedScenario(
        kind="sweep",
        chunks=math.ceil(cells / a_chunk),
        units_per_chunk=a_chunk,
        units=cells,
        checkpoints=(),
        request={"shape": given.shape, "base": base, "now": context.clock(), **table},
        snapshot=snapshot,
    )


def run_chunk(context: AppContext, prepared: PreparedScenario, index: int, step: Step) -> dict[str, Any]:
    """The rows of one chunk of cells. A cell that cannot be is a row with its problem."""
    asked, context = prepared.request, at_time(context, prepared.request["now"])
    rows = []
    for cell in range(index * prepared.units_per_chunk, prepared.units_after(index + 1)):
        step()
        values = _values(asked, cell)
        rows.append({"inputs": plain(values), **evaluate_row(context, asked["shape"], with_values(asked["base"], values))})
    return {"rows": rows}


def finish(context: AppContext, prepared: PreparedScenario, tallies: Iterable[Body]) -> dict[str, Any]:
    """All rows, in the order of the cells: the last axis turns fastest."""
    del context
    rows = [row for tally in tallies for row in tally["rows"]]
    return {
        "paths": list(prepared.request["columns"]),
        "rows": rows,
        "cells": len(rows),
        "infeasible": sum(not row["feasible"] for row in rows),
        "price_snapshot": prepared.snapshot,
        "engine_version": engine_version(),
    }


def _grid(given: ScenarioRequest, axes: Body) -> dict[str, Any]:
    """Columns of the axes' values. Raises InvalidRequest where there are too many cells, before any is made."""
    if len(axes) > MOST_AXES:
        raise InvalidRequest(f"{len(axes)} axes are more than the {MOST_AXES} a sweep may have", "/axes")
    for path in axes:
        check_path(path, f"/axes/{path}")
    cells = math.prod(_length(axis, f"/axes/{path}") for path, axis in axes.items())
    _check_cells(cells, given, "/axes")
    spelt = {path: _spelt(given, path, axis) for path, axis in axes.items()}
    _check_read(spelt, "/axes")
    return {"grid": True, "columns": {path: _read(given, path, values, f"/axes/{path}") for path, values in spelt.items()}}


def _list(given: ScenarioRequest, changes: Sequence[Body]) -> dict[str, Any]:
    """Columns of what the list changes, with the rows in which each field is changed."""
    _check_cells(len(changes), given, "/changes")
    rows: dict[str, list[int]] = {}
    for row, change in enumerate(changes):
        for path in change:
            rows.setdefault(check_path(path, f"/changes/{row}"), []).append(row)
    if len(rows) > MOST_AXES:
        raise InvalidRequest(f"{len(rows)} different fields are more than the {MOST_AXES} a sweep may change", "/changes")
    spelt = {path: [changes[row][path] for row in rows[path]] for path in rows}
    _check_read(spelt, "/changes")
    columns = {path: _read(given, path, values, "/changes") for path, values in spelt.items()}
    return {"grid": False, "columns": columns, "rows": rows, "cells": len(changes)}


def _check_cells(cells: int, given: ScenarioRequest, pointer: str) -> None:
    if cells > MOST_CELLS[given.shape]:
        raise InvalidRequest(
            f"{cells:,.15g} cells are more than the {MOST_CELLS[given.shape]:,} that a sweep of {given.shape} requests may have", pointer
        )


def _check_read(spelt: Mapping[str, Sequence[Any]], pointer: str) -> None:
    texts = sum(len(values) for values in spelt.values() if not all(map(is_number, values)))
    if texts > MOST_READ:
        raise InvalidRequest(f"{texts:,} values that are no plain numbers are more than the {MOST_READ} a sweep may have", pointer)


def _length(axis: Any, pointer: str) -> int:
    """How many values an axis has, before they are made. Raises InvalidRequest where it is no axis."""
    if isinstance(axis, list | tuple) and axis:
        return len(axis)
    if not isinstance(axis, Mapping) or not set(axis) <= {*ENDS, "steps", "log"}:
        raise InvalidRequest("an axis is a list of values, or an object with from, to, steps and log", pointer)
    low, high, steps = (float(axis[name]) if is_number(axis.get(name)) else math.nan for name in (*ENDS, "steps"))
    if math.isnan(low - high) or low == high:
        raise InvalidRequest("from and to are two different numbers", pointer)
    if not (steps >= 2 and steps.is_integer()):
        raise InvalidRequest("steps is a whole number of 2 or more: how many values there are, both ends among them", pointer)
    if axis.get("log", False) not in (True, False) or (axis.get("log") and min(low, high) <= 0):
        raise InvalidRequest("log is true for equal factors between two numbers above 0, or false for equal steps", pointer)
    return int(steps)


def _spelt(given: ScenarioRequest, path: str, axis: Any) -> list[Any]:
    """The values of an axis as the caller would list them; steps between two ends are whole where the field counts."""
    if not isinstance(axis, Mapping):
        return list(axis)
    low, high, steps = axis["from"], axis["to"], int(axis["steps"])
    values = (np.geomspace if axis.get("log") else np.linspace)(low, high, steps).tolist()
    values[0], values[-1] = low, high
    return [low, *map(round, values[1:-1]), high] if takes_whole_numbers(given, path, low) else values


def _read(given: ScenarioRequest, path: str, values: Sequence[Any], pointer: str) -> list[Any]:
    """The values as the use cases take them."""
    if all(map(is_number, values)):
        return read_numbers(given, path, values, pointer)
    return [read_value(given, path, value, pointer) for value in values]


def _cells(table: Body) -> int:
    return math.prod(len(values) for values in table["columns"].values()) if table["grid"] else int(table["cells"])


def _values(asked: Body, cell: int) -> dict[str, Any]:
    """What a cell sets: of a grid a value of every axis, the last axis turning fastest; of a list what its row says."""
    columns = asked["columns"]
    if not asked["grid"]:
        return {path: columns[path][rows.index(cell)] for path, rows in asked["rows"].items() if cell in rows}
    sizes = [len(values) for values in columns.values()]
    places = np.unravel_index(cell, sizes)
    return {path: values[int(place)] for (path, values), place in zip(columns.items(), places, strict=True)}


KIND = ScenarioKind(prepare, run_chunk, never_sufficient, finish)
