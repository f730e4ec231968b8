"""Ours beside the two usual rules and beside other predictors: on the very rows where their predictions are known, else as published."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.accuracy.naive import NAMES
from bench.accuracy.report import RUN_GROUPS, TOTALS, Line, errors, percent, table
from bench.accuracy.rows import ScoredRow
from service.engine.training.memory.memory_use import memory_use
from tools.calibration.cases import LISTS, MeasuredCase, read_table, throughput_cases

Floats = NDArray[np.float64]
FILE = Path(__file__).parent / "peers.toml"
GIB_IN_GB = 2**30 / 1e9
STATISTICS = ("median_ape", "p90_ape")


@functools.cache
def document() -> dict[str, Any]:
    """The data file."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def peer_tables(lines: Sequence[Line], rows: Sequence[ScoredRow]) -> dict[str, str]:
    """The page's tables, by the name that page.md gives them."""
    given = [row for row in rows if row.kind == "throughput" and row.layout_known != "goal"]
    found = [*lines, *memory_lines()]
    return {"rules": rules_table(lines, given), "peer_rows": peer_rows_table(given), "peers": published_table(found)}


def rules_table(lines: Sequence[Line], given: Sequence[ScoredRow]) -> str:
    """Every data set: median and 90 % quantile of ours, of both rules, and of the peer whose predictions of its rows are known."""
    head = ["data set", "rows", "ours: median", "90 % below", "6 N D: median", "90 % below", "constant rate: median", "90 % below"]
    shown = [line for line in lines if line["rows"] and f"{NAMES[0]}_p90_ape" in line and line["name"] not in RUN_GROUPS]
    ordered = sorted(shown, key=lambda line: line["name"] in TOTALS)
    return table([*head, "a peer on these rows: median, 90 % below"], [_rule_cells(line, given) for line in ordered])


def _rule_cells(line: Line, given: Sequence[ScoredRow]) -> list[str]:
    keys = [*STATISTICS, *(f"{name}_{statistic}" for name in NAMES for statistic in STATISTICS)]
    name = str(line["name"])
    shares = [percent(line[key]) if key in line else "" for key in keys]
    return [f"**{name}**" if name in TOTALS else name, f"{line['rows']:,}", *shares, _peer_cell(name, given)]


def _peer_cell(data_set: str, given: Sequence[ScoredRow]) -> str:
    found = {one["peer"]: step_errors(one, given) for one in document()["predicted"] if one["data_set"] == data_set}
    return "; ".join(f"{peer}: {', '.join(percent(share) for share in np.quantile(away, (0.5, 0.9)))}" for peer, away in found.items())


def step_errors(predicted: Mapping[str, Any], given: Sequence[ScoredRow]) -> Floats:
    """A peer's errors of the step's time, on the rows that it predicted."""
    measured = {row.id: row.measured for row in given}
    cases = _cases()
    return np.array([abs(1e-3 * step_ms / _step_seconds(cases[name], measured[name]) - 1) for name, step_ms, _ in predicted["rows"]])


def _step_seconds(case: MeasuredCase, tokens_per_s_per_accelerator: float) -> float:
    return case.training.global_batch * case.training.seq_len / tokens_per_s_per_accelerator / case.cluster.count


@functools.cache
def _cases() -> dict[str, MeasuredCase]:
    return {case.ids[0]: case for case in throughput_cases() if not case.each}


def memory_errors(predicted: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Ours and the peer's errors of what the program's tensors take at the peak, on the rows that it predicted."""
    measured = {row["id"]: float(row["memory_gb"]) for name in LISTS for row in read_table(name) if row.get("memory_gb")}
    ours = [abs(_tensors_gb(_cases()[name]) / measured[name] - 1) for name, *_ in predicted["rows"]]
    theirs = [abs(gib * GIB_IN_GB / measured[name] - 1) for name, _, gib in predicted["rows"]]
    return np.array(ours), np.array(theirs)


def _tensors_gb(case: MeasuredCase) -> float:
    """Peak of the published layout without what the device and the allocator hold, the least of those that what is not stated leaves."""
    used = memory_use(case.model, case.training, case.layouts)
    return float((used.total - used.parts["reserve"]).min()) / 1e9


def memory_lines() -> list[Line]:
    """Ours on the memory of the rows that peers predicted."""
    found = [(one["data_set"], memory_errors(one)[0]) for one in document()["predicted"]]
    return [{"name": f"{name}: memory", "rows": away.size, **_figures(away)} for name, away in found]


def _figures(away: Floats) -> dict[str, float]:
    return {"median_ape": float(np.median(away)), "mean_ape": float(np.mean(away)), "p90_ape": float(np.quantile(away, 0.9))}


def peer_rows_table(given: Sequence[ScoredRow]) -> str:
    """Time and memory of the rows that a peer predicted: ours and the peer's."""
    head = ["data set", "rows", "of", "who", "median", "mean", "90 % below", "source"]
    return table(head, [cells for one in document()["predicted"] for cells in _compared(one, given)])


def _compared(predicted: Mapping[str, Any], given: Sequence[ScoredRow]) -> list[list[str]]:
    ids = {name for name, *_ in predicted["rows"]}
    rows = [row for row in given if row.id in ids]
    our_memory, their_memory = memory_errors(predicted)
    peer, source = predicted["peer"], f"{predicted['source']}, read {predicted['read']}"
    compared = [
        ("step time", "ours, document out", errors(rows), ""),
        ("step time", "ours, in sample", errors(rows, "predicted_in_sample"), ""),
        ("step time", peer, step_errors(predicted, given), source),
        ("peak memory", "ours, not fitted", our_memory, ""),
        ("peak memory", peer, their_memory, source),
    ]
    return [
        [predicted["data_set"], str(len(rows)), what, who, *map(percent, _figures(away).values()), text]
        for what, who, away, text in compared
    ]


def published_table(lines: Sequence[Line]) -> str:
    """What peers publish of rows of their own, beside ours on the data set that comes nearest."""
    head = ["peer", "its error", "of", "on", "basis", "ours: median", "mean", "90 % below", "on our", "source"]
    by_name = {str(line["name"]): line for line in lines}
    return table(head, [_published_cells(one, by_name.get(one["data_set"], {})) for one in document()["published"]])


def _published_cells(one: Mapping[str, Any], line: Line) -> list[str]:
    ours = [percent(line[key]) if key in line else "" for key in ("median_ape", "mean_ape", "p90_ape")]
    source = f"{one['source']}, read {one['read']}"
    return [one["peer"], one["error"], one["statistic"], one["rows"], one["basis"], *ours, one["data_set"], source]
