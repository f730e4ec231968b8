"""Peak memory of pre-training against published measurements. Nothing is fitted to them.

A measured peak is of the program's tensors (PyTorch's allocated) or of what its allocator holds (reserved): ours is compared without what
the measurement does not see. `answered_*` compares `memory.per_accelerator_gb`, which holds all of it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.accuracy.peers import document, memory_errors, step_errors
from bench.accuracy.report import percent, table
from bench.accuracy.rows import ScoredRow
from service.engine.training.memory.memory_use import memory_use
from tools.calibration.cases import LISTS, MeasuredCase, Row, read_table, throughput_cases

Summary = dict[str, Any]
GROUPS = {"pretraining-memory": "", "pretraining-memory: allocated": "allocated", "pretraining-memory: reserved": "reserved"}


@dataclass(frozen=True)
class PeakRow:
    """A measured peak: ours over it, of what the measurement sees (`predicted`) and of all of it (`answered`)."""

    id: str
    basis: str
    predicted: float
    answered: float


@functools.cache
def rows() -> tuple[PeakRow, ...]:
    """Every measured peak of the lists that is not excluded."""
    measured = {row["id"]: row for name in LISTS for row in read_table(name) if row.get("memory_gb") and not row["excluded"]}
    return tuple(_row(case, measured[case.ids[0]]) for case in throughput_cases() if case.ids[0] in measured)


def _row(case: MeasuredCase, row: Row) -> PeakRow:
    """Of layouts that what is not stated leaves, the leanest."""
    used, kept = memory_use(case.model, case.training, case.layouts), case.training.footprint
    leanest = int(np.argmin(used.total))
    total = float(used.total[leanest])
    unseen = float(used.parts["reserve"][leanest]) if row["memory_basis"] == "allocated" else kept.reserve_bytes
    measured = float(row["memory_gb"]) * 1e9
    return PeakRow(row["id"], row["memory_basis"], (total - unseen) / measured, total / measured)


def summaries(scored: Sequence[ScoredRow]) -> list[Summary]:
    """One line over all peaks, one a basis, and one for the rows that a peer predicted, with its errors of memory and time."""
    lines = [_summary(name, [row for row in rows() if basis in ("", row.basis)]) for name, basis in GROUPS.items()]
    return lines + [_beside(one, scored) for one in document()["predicted"]]


def _summary(name: str, some: Sequence[PeakRow]) -> Summary:
    away = np.array([row.predicted for row in some]) - 1
    answered = np.array([row.answered for row in some]) - 1
    return {
        "name": name,
        "rows": len(some),
        **_figures(np.abs(away)),
        "bias": _rounded(np.median(away)),
        "answered_median_ape": _rounded(np.median(np.abs(answered))),
    }


def _beside(predicted: Summary, scored: Sequence[ScoredRow]) -> Summary:
    """Ours on a peer's rows, the answered total too, and the peer's own errors."""
    ids = {name for name, *_ in predicted["rows"]}
    found = _summary(f"{predicted['data_set']}: memory", [row for row in rows() if row.id in ids])
    theirs = {"memory": memory_errors(predicted)[1], "time": step_errors(predicted, scored)}
    peer = str(predicted["peer"]).lower()
    return found | {f"{peer}_{what}_{name}": value for what, away in theirs.items() for name, value in _figures(away).items()}


def _figures(away: np.ndarray[Any, Any]) -> dict[str, float]:
    return {"median_ape": _rounded(np.median(away)), "mean_ape": _rounded(np.mean(away)), "p90_ape": _rounded(np.quantile(away, 0.9))}


def _rounded(figure: float | np.floating) -> float:  # type: ignore[type-arg]
    return round(float(figure), 4)


def memory_table(lines: Sequence[Summary]) -> str:
    """The lines without the peer's figures, which stand in a table of their own."""
    keys = ("median_ape", "mean_ape", "p90_ape", "answered_median_ape")
    head = ["peaks", "rows", "median", "mean", "90 % below", "bias", "with all that a device holds: median"]
    cells = [[line["name"], str(line["rows"]), *(percent(line[key]) for key in keys[:3]), f"{100 * line['bias']:+.1f} %"] for line in lines]
    return table(head, [[*row, percent(line[keys[3]])] for row, line in zip(cells, lines, strict=True)])
