"""How far teams stay below the fastest layout that is found: the median of rows on several nodes, asked with the goal alone.

Each row is predicted without its document. Teams try few layouts, their software does not run them all, and the search takes the layout
whose errors flatter it most: the rows reach less than predicted, which they do not with their own layout given. The shortfall does not grow
with the machine: 16 accelerators lose as much as a thousand.

Every row counts the same. With tables weighed as the square root of their rows, which gives small tables of older software more say, the
loss is half as large again, and rows of other publications are planned too slow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.presets.training.throughput_parameters import FittedParameters
from tools.calibration.cases import MeasuredCase
from tools.calibration.folds import Folds, search_case_rate
from tools.calibration.spreads import weighted_quantile
from tools.calibration.table import Floats


@dataclass(frozen=True)
class Shortfalls:
    """Rows on several nodes: log of the fastest found over the measured rate, each without its document, and the share off the node."""

    cases: tuple[MeasuredCase, ...]
    log_ratio: Floats
    off_node: Floats


def shortfalls(goals: Sequence[MeasuredCase], folds: Mapping[str, FittedParameters]) -> Shortfalls:
    """Shortfall of every row on several nodes; `goals` are cases of one row without their layout."""
    cases = tuple(case for case in goals if case.cluster.nodes > 1)
    fastest = [search_case_rate(case, replace(folds[case.document], layout_loss=0.0)) for case in cases]
    return Shortfalls(
        cases=cases,
        log_ratio=np.log(np.array(fastest) / np.array([case.rates[0] for case in cases])),
        off_node=np.array([case.cluster.off_node_fraction for case in cases]),
    )


def fit_layout_loss(found: Shortfalls) -> float:
    """The loss that leaves the least sum of absolute misses; never below 0, since no layout beats the fastest."""
    return round(max(0.0, weighted_quantile(found.log_ratio / found.off_node, found.off_node, 0.5)), 4)


def with_layout_losses(goals: Sequence[MeasuredCase], full: FittedParameters, folds: Folds) -> tuple[FittedParameters, Folds]:
    """Parameters and folds with the loss of all rows, and with that of those outside of each document and publication."""
    found = shortfalls(goals, folds.documents)
    return replace(full, layout_loss=fit_layout_loss(found)), replace(
        folds,
        documents=_left_out(found, folds.documents, lambda case: case.document),
        publications=_left_out(found, folds.publications, lambda case: case.source),
    )


def _left_out(
    found: Shortfalls, folds: Mapping[str, FittedParameters], group: Callable[[MeasuredCase], str]
) -> Mapping[str, FittedParameters]:
    return {name: replace(fold, layout_loss=fit_layout_loss(_without(found, group, name))) for name, fold in folds.items()}


def _without(found: Shortfalls, group: Callable[[MeasuredCase], str], name: str) -> Shortfalls:
    others = np.array([group(case) != name for case in found.cases])
    cases = tuple(case for case, kept in zip(found.cases, others, strict=True) if kept)
    return Shortfalls(cases, found.log_ratio[others], found.off_node[others])
