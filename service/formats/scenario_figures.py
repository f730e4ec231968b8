"""Figures that a scenario's page and charts read off its result: how probable a cost or a finish is, and a sweep's cells in a grid."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import accumulate
from typing import Any

from service.formats.headline import short_count

Result = Mapping[str, Any]
Point = tuple[float, float]
"""A value, and the share of the trials that are not above it [1]."""
PERCENTILES = ("p05", "p10", "p25", "p50", "p75", "p80", "p90", "p95")
SMALLEST_SHOWN = 0.01
SHORTENED_FROM = 1e6
LONGEST_LABEL = 40
UNCHANGED = "as in the base"


def share_of(percentile: str) -> float:
    """The share of a percentile by its name [1]: p05 is 0.05."""
    return int(percentile[1:]) / 100


def cost_points(result: Result) -> list[Point]:
    """How probable costs are [USD], from percentiles and bins and, where a budget was stated, the share that keeps to it."""
    binned = histogram_of(result, "cost_usd")
    points = [(float(result["cost_usd"][name]), share_of(name)) for name in PERCENTILES]
    points += zip(binned["edges"], _shares_below(binned), strict=True) if binned else []
    return _with_known(points, result["budget_usd"], result["budget_probability"])


def finish_points(result: Result, deadline: date | None) -> list[Point]:
    """How probable days of finish are [ordinal of the day], from bins or percentiles, with the share that meets the stated deadline."""
    binned = histogram_of(result, "finish")
    percentiles = [(_ordinal(result["finish"][name]), share_of(name)) for name in PERCENTILES]
    # A bin ends before its upper edge: what is below an edge has ended by the day before.
    points = (
        [(_ordinal(edge) - 1, share) for edge, share in zip(binned["edges"], _shares_below(binned), strict=True)] if binned else percentiles
    )
    return _with_known(points, None if deadline is None else deadline.toordinal(), result["deadline_probability"])


def histogram_of(result: Result, name: str) -> Result | None:
    """The bins of `cost_usd` or `finish`: `edges`, `shares`, `below`, `above`; None of a result that has none."""
    found: Result | None = (result.get("histograms") or {}).get(name)
    return found


def _shares_below(binned: Result) -> list[float]:
    """The share of the trials below each edge."""
    return list(accumulate(binned["shares"], initial=binned["below"]))


def _ordinal(day: str) -> float:
    return float(date.fromisoformat(day).toordinal())


def chance_at(points: Sequence[Point], value: float) -> str:
    """The share of the trials that are not above a value, in words; between two points it is read off a straight line."""
    values = [at for at, _ in points]
    if value < values[0]:
        return f"less than {max(points[0][1], SMALLEST_SHOWN):.0%}"
    above = bisect_right(values, value)
    if above == len(points):
        share = points[-1][1]
        return f"at least {min(share, 1 - SMALLEST_SHOWN):.0%}" if value > values[-1] else f"about {share:.0%}"
    return f"about {share_at(points, value):.0%}"


def share_at(points: Sequence[Point], value: float) -> float:
    """The share of the trials that are not above a value, read off a straight line between two points [1]; beyond the ends theirs."""
    above = bisect_right([at for at, _ in points], value)
    if above in (0, len(points)):
        return points[min(above, len(points) - 1)][1]
    (low, least), (high, most) = points[above - 1], points[above]
    return least + (most - least) * (value - low) / (high - low)


def grid_cells(result: Result) -> list[dict[str, Any]]:
    """A sweep's cells by the values of its first two fields, in the order of the rows; with more fields the lowest over the others.

    `value`: cost [USD] or, where no price is known, time [h]; None: nothing there has an answer.
    """
    is_priced = sweep_is_priced(result)
    cells: dict[tuple[str, str], float | None] = {}
    for row in result["rows"]:
        across, up = (label_of_value(row["inputs"].get(path, UNCHANGED)) if path else "" for path in grid_paths(result))
        value, before = _cell_value(row, priced=is_priced), cells.get((across, up))
        cells[across, up] = min((each for each in (value, before) if each is not None), default=None)
    return [{"across": across, "up": up, "value": value} for (across, up), value in cells.items()]


def grid_paths(result: Result) -> tuple[str, str]:
    """The fields that are the axes of a sweep's grid; the second is empty where there is one."""
    first, second = [*result["paths"], "", ""][:2]
    return first, second


def sweep_is_priced(result: Result) -> bool:
    """Whether any feasible cell of a sweep has a cost."""
    return any(row["feasible"] and row["cost_usd"] for row in result["rows"])


def label_of_value(value: Any) -> str:
    """A field's value as a label: 1.8T, 256, H100; of a section its JSON."""
    if isinstance(value, bool | dict | list):
        return json.dumps(value)[:LONGEST_LABEL]
    if isinstance(value, int | float):
        return short_count(value) if value >= SHORTENED_FROM else f"{value:,.6g}"
    return str(value)[:LONGEST_LABEL]


def _cell_value(row: Result, *, priced: bool) -> float | None:
    if not row["feasible"]:
        return None
    value = (row["cost_usd"] or {}).get("p50") if priced else row["hours_to_finish"]
    return None if value is None else float(value)


def _with_known(points: Sequence[Point], at: float | None, share: float | None) -> list[Point]:
    """The points by value, each value once with its largest share, with a point that is known exactly in the place of others there."""
    found = dict(sorted(points))
    if at is not None and share is not None:
        found = {value: part for value, part in found.items() if (value < at and part <= share) or (value > at and part >= share)}
        found[float(at)] = share
    return sorted(found.items())
