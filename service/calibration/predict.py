"""The engine's answer to the cases, under any set of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.calibration.cases import CANDIDATES_KEPT, Case
from service.engine.throughput import step
from service.presets.utilisation import Key, Parameters, utilisation

Floats = NDArray[np.float64]
ROWS_THAT_COUNT = 64


@dataclass(frozen=True)
class Residuals:
    """One position a measured row: log of measured over predicted rate, how much of the step scales with the share of the
    peak, the row's weight, and what it is grouped by."""

    log_ratio: Floats
    elasticity: Floats
    weight: Floats
    key: list[Key]
    source: list[str]
    table: list[str]


def key_of(case: Case, parameters: Parameters) -> Key:
    return case.accelerator.family, parameters.classes[case.training.precision]


def predict(case: Case, parameters: Parameters) -> tuple[Floats, Floats]:
    """Predicted tokens a second and accelerator, and the share of the step spent on matrix work, at each measured row."""
    used = utilisation(parameters, case.accelerator, case.training.precision)
    steps = step(case.model, case.training, case.cluster, used, case.layouts)
    rates = steps.batch * case.training.seq_len / steps.total / case.cluster.count
    # The bubble idles the machine for as long as its work would have taken: it shrinks with it.
    compute = steps.compute / np.maximum(steps.total - steps.pipeline, 1e-30)
    if case.each:
        return rates, compute
    best = int(np.argmax(rates))
    return rates[best : best + 1], compute[best : best + 1]


def pruned(cases: Iterable[Case], parameters: Parameters) -> list[Case]:
    """The cases with their fastest candidates only."""
    kept = []
    for case in cases:
        if not case.each and len(case.layouts) > CANDIDATES_KEPT:
            used = utilisation(parameters, case.accelerator, case.training.precision)
            steps = step(case.model, case.training, case.cluster, used, case.layouts)
            order = np.argsort(steps.total / steps.batch, kind="stable")[:CANDIDATES_KEPT]
            kept.append(Case(**{**case.__dict__, "layouts": case.layouts.take(order)}))
        else:
            kept.append(case)
    return kept


def row_weights(cases: Iterable[Case]) -> dict[str, float]:
    """The weight of a row of each table: a table weighs as the square root of its rows, of so many at most."""
    sizes: dict[str, int] = {}
    for case in cases:
        sizes[case.table] = sizes.get(case.table, 0) + len(case.rates)
    return {table: min(rows, ROWS_THAT_COUNT) ** 0.5 / rows for table, rows in sizes.items()}


def residuals(cases: Sequence[Case], parameters: Parameters, weights: Mapping[str, float] | None = None) -> Residuals:
    """How far the engine is from every measured row; a row's weight is its table's unless given."""
    weights = weights or row_weights(cases)
    return joined([_residuals(case, parameters, weights[case.table]) for case in cases])


def _residuals(case: Case, parameters: Parameters, weight: float) -> Residuals:
    rates, compute = predict(case, parameters)
    count = len(rates)
    key = key_of(case, parameters)
    ratio = np.log(case.rates / rates)
    return Residuals(ratio, compute, np.full(count, weight), [key] * count, [case.source] * count, [case.table] * count)


def joined(parts: Sequence[Residuals]) -> Residuals:
    """Residuals of several cases as one."""
    return Residuals(
        np.concatenate([part.log_ratio for part in parts]),
        np.concatenate([part.elasticity for part in parts]),
        np.concatenate([part.weight for part in parts]),
        [key for part in parts for key in part.key],
        [source for part in parts for source in part.source],
        [table for part in parts for table in part.table],
    )


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """The value below which `share` of the weight lies, half of its own weight counted."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share * weights.sum(), below, values[order]))
