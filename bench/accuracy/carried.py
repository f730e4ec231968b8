"""Large jobs predicted from one measured step of a small job of the same model and machine (`efficiency.measured_on`)."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.accuracy.report import table
from service.domain.quantities import Range
from service.engine.training.flops import training_flops
from service.engine.training.parameters import total_parameters
from service.presets.training.carried import carried_spread, narrowed
from service.presets.training.throughput_parameters import LayoutKnowledge
from service.presets.training.utilisation import find_utilisation
from tools.calibration.carried import CarriedCase, Pair, carried_cases, find_pairs, fit_carried, machine_key
from tools.calibration.cases import MeasuredCase, throughput_cases
from tools.calibration.folds import read_folds

MOST_MEASURED = 64
LEAST_PREDICTED = 256


@dataclass(frozen=True)
class CarriedRow:
    """A large job and what is predicted of it; logs of measured over predicted rates. `same_mfu`: at the small job's MFU."""

    pair: Pair
    carried: float
    goal_alone: float
    modelled: float
    same_mfu: float
    covered: bool


@functools.cache
def carried_rows() -> tuple[CarriedRow, ...]:
    """Every published row of a large job with one of a small job of the same document, model, precision and accelerator."""
    cases = carried_cases(throughput_cases(), read_folds().documents)
    pairs = find_pairs(cases)
    return tuple(_row(pair, pairs) for pair in _large_from_small(cases))


def _large_from_small(cases: Sequence[CarriedCase]) -> Iterator[Pair]:
    """Each large job with the largest small one; of several of one size with that nearest in sequence length and batch."""
    groups: dict[Hashable, list[CarriedCase]] = defaultdict(list)
    for one in cases:
        groups[machine_key(one.case)].append(one)
    for group in groups.values():
        small = [one for one in group if one.case.cluster.count <= MOST_MEASURED]
        for here in group:
            if small and here.case.cluster.count >= LEAST_PREDICTED:
                yield Pair(min(small, key=functools.partial(_distance, here)), here)


def _distance(here: CarriedCase, there: CarriedCase) -> tuple[float, ...]:
    one, other = here.case, there.case
    sequence = math.log(one.training.seq_len / other.training.seq_len)
    batch = math.log(one.training.global_batch / one.cluster.count / (other.training.global_batch / other.cluster.count))
    return -other.cluster.count, abs(sequence), abs(batch)


def _row(pair: Pair, pairs: Sequence[Pair]) -> CarriedRow:
    here, there = pair.here.case, pair.there.case
    miss = pair.miss("layout", "layout")
    others = [other for other in pairs if other.here.case.document != here.document]
    found = carried_spread(fit_carried(others), _known(there), _known(here), pair.ratio)
    own = find_utilisation(here.accelerator, here.training.precision, _known(here), here.cluster.count).spread
    edges = narrowed(own, Range(found.p10, 1.0, found.p90))
    return CarriedRow(
        pair,
        carried=miss,
        goal_alone=pair.miss("layout", "goal"),
        modelled=pair.here.log_ratio["layout"],
        same_mfu=math.log(here.rates[0] / there.rates[0] * _flops(here) / _flops(there)),
        covered=edges.p10 <= math.exp(miss) <= edges.p90,
    )


def _known(case: MeasuredCase) -> LayoutKnowledge:
    return "layout" if case.training.axes.mesh_known(case.cluster.count) else "goal"


def _flops(case: MeasuredCase) -> float:
    return training_flops(case.model, case.training).total


def large_from_small() -> dict[str, object]:
    """The line of `make accuracy`. `goal_alone`: with the large job's layout searched; `modelled`: without the measured step."""
    rows = carried_rows()
    away = _errors([row.carried for row in rows])
    others = {name: _errors([getattr(row, name) for row in rows]) for name in ("goal_alone", "modelled", "same_mfu")}
    return {
        "name": "large-from-small",
        "rows": len(rows),
        "median_ape": round(float(np.median(away)), 4),
        "mean_ape": round(float(np.mean(away)), 4),
        "p90_ape": round(float(np.quantile(away, 0.9)), 4),
        "coverage_80": round(float(np.mean([row.covered for row in rows])), 3),
        "bias": round(float(np.expm1(np.median([row.carried for row in rows]))), 4),
        **{f"{name}_median_ape": round(float(np.median(error)), 4) for name, error in others.items()},
        "left_out": {},
    }


def carried_table(rows: Sequence[CarriedRow]) -> str:
    """One row a large job, by the tables they stand in."""
    head = [
        "data set",
        "model",
        "precision",
        "measured on",
        "predicted on",
        "carried",
        "layout searched",
        "as modelled",
        "same MFU",
        "in range",
    ]
    return table(head, [_cells(row) for row in sorted(rows, key=_order)])


def _order(row: CarriedRow) -> tuple[str, float, int]:
    here = row.pair.here.case
    return here.table, total_parameters(here.model), here.cluster.count


def _cells(row: CarriedRow) -> list[str]:
    here, there = row.pair.here.case, row.pair.there.case
    machine = here.accelerator.name.partition("-")[2]
    biases = (row.carried, row.goal_alone, row.modelled, row.same_mfu)
    return [
        here.table,
        f"{total_parameters(here.model) / 1e9:.3g}B",
        here.training.precision,
        f"{there.cluster.count} x {machine}, {there.training.seq_len:,} tokens",
        f"{here.cluster.count:,}, {here.training.seq_len:,} tokens",
        *(f"{100 * math.expm1(miss):+.1f} %" for miss in biases),
        "yes" if row.covered else "no",
    ]


def _errors(misses: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Absolute error of the time, relative to the measured time: a rate goes as one over time."""
    return np.abs(np.expm1(np.array(misses)))
