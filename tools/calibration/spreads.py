"""Widths of the engine's ranges: percentiles of residuals on documents that the parameters were not fitted to."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from service.engine.training.run_time import off_node_fraction
from service.presets.hardware.accelerators import find_accelerator
from service.presets.training.models import find_model
from service.presets.training.utilisation import (
    FittedParameters,
    Key,
    LayoutKnowledge,
    MatmulShare,
    SpreadScale,
    ThroughputSpread,
    spread_of,
)
from tools.calibration.cases import MeasuredCase, parameter_key, read_table
from tools.calibration.folds import Folds, predict_left_out_rates, search_case_rate
from tools.calibration.runs import PublishedRun, published_runs, steps_hours
from tools.calibration.table import CaseTable, Floats

# A spread of a family's own needs rows of at least this many documents, each predicted without itself.
DOCUMENTS_FOR_OWN_SPREAD = 3
# Machines of one node to eight, of some racks, and beyond.
SIZES = (1, 65, 1025)
# Rows of one table beyond so many say the same again.
ROWS_THAT_COUNT = 64
# Percentiles of few rows reach less far than those of many: taken a little outside, so that four rows in five lie within.
LOW, HIGH = 0.07, 0.93
# A side that no row lies on is an edge all the same; a size whose rows all lie near is no promise of that.
LEAST_EDGE, LEAST_POWER = 0.03, 1.0
# A job that loses as much between its nodes as its steps take is not one that anybody goes on with.
MOST_LOST = 1.0


@dataclass(frozen=True)
class WholeRuns:
    """Accelerator-hours of published runs against their steps: loss between nodes, then percentiles of actual over planned hours.

    `beyond_p10` and `beyond_p90` are without the error of the throughput.
    """

    runs: int
    lost_between_nodes: float
    median: float
    p10: float
    p90: float
    beyond_p10: float
    beyond_p90: float


@dataclass(frozen=True)
class Residuals:
    """Rows predicted without their document: log of measured over predicted rate, and their groups."""

    log_ratio: Floats
    weight: Floats
    key: list[Key]
    count: NDArray[np.int64]
    document: NDArray[np.str_]


def residuals(cases: Sequence[MeasuredCase], predicted: Floats, parameters: FittedParameters) -> Residuals:
    """Residual of every row; `predicted` is without its document."""
    owners = [case for case in cases for _ in case.rates]
    return Residuals(
        log_ratio=np.log(np.concatenate([case.rates for case in cases]) / predicted),
        weight=group_weights([case.table for case in owners]),
        key=[parameter_key(case, parameters) for case in owners],
        count=np.array([case.cluster.count for case in owners]),
        document=np.array([case.document for case in owners]),
    )


def group_weights(groups: Sequence[Hashable]) -> Floats:
    """Weight of each row: a group weighs as the square root of its rows, up to a limit."""
    sizes = Counter(groups)
    return np.array([min(sizes[group], ROWS_THAT_COUNT) ** 0.5 / sizes[group] for group in groups])


@dataclass(frozen=True)
class FittedSpreads:
    """Widths of ranges: by family and class, and their exponents by size of the machine."""

    spreads: tuple[ThroughputSpread, ...]
    scales: tuple[SpreadScale, ...]


def fit_spreads(
    cases: Sequence[MeasuredCase], goals: Sequence[MeasuredCase], parameters: FittedParameters, folds: Mapping[str, FittedParameters]
) -> FittedSpreads:
    """Spreads with the layout stated and with the goal alone."""
    given = predict_left_out_rates(cases, folds, lambda case: case.document)
    alone = np.array([search_case_rate(case, folds[case.document]) for case in goals])
    found = [
        fit_spreads_of("layout", residuals(cases, given, parameters)),
        fit_spreads_of("goal", residuals(goals, alone, parameters)),
    ]
    return FittedSpreads(tuple(row for one in found for row in one.spreads), tuple(row for one in found for row in one.scales))


def fit_spreads_of(known: LayoutKnowledge, misses: Residuals) -> FittedSpreads:
    """Spread of all rows, those of families and classes with enough documents, and their exponents by size of the machine."""
    everything = np.ones(len(misses.key), dtype=bool)
    found = [_spread(known, ("*", "*"), misses, everything)]
    for key in sorted(set(misses.key)):
        mine = np.array([other == key for other in misses.key])
        if len(set(misses.document[mine])) >= DOCUMENTS_FOR_OWN_SPREAD:
            found.append(_spread(known, key, misses, mine))
    reach = _reach(found, misses, known)
    sizes = np.searchsorted(SIZES, misses.count, side="right") - 1
    scales = [_scale(known, size, reach[sizes == at], misses.weight[sizes == at]) for at, size in enumerate(SIZES) if (sizes == at).any()]
    return FittedSpreads(tuple(found), tuple(scales))


def _reach(found: Sequence[ThroughputSpread], misses: Residuals, known: LayoutKnowledge) -> Floats:
    """By row, its distance from the median over that of its family's p10 or p90: 1 at the percentile."""
    edges = [spread_of(found, key, known) for key in misses.key]
    low, high = (np.maximum(np.abs(np.log([getattr(edge, name) for edge in edges])), LEAST_EDGE) for name in ("p10", "p90"))
    reach: Floats = np.where(misses.log_ratio < 0, -misses.log_ratio / low, misses.log_ratio / high)
    return reach


def _scale(known: LayoutKnowledge, size: int, reach: Floats, weight: Floats) -> SpreadScale:
    power = weighted_quantile(reach, weight, HIGH - LOW)
    return SpreadScale(known, size, round(max(LEAST_POWER, power), 2), len(reach))


def without_document(misses: Residuals, document: str) -> Residuals:
    """The residuals of the other documents."""
    others = misses.document != document
    key = [one for one, kept in zip(misses.key, others, strict=True) if kept]
    return Residuals(misses.log_ratio[others], misses.weight[others], key, misses.count[others], misses.document[others])


def _spread(known: LayoutKnowledge, key: Key, misses: Residuals, mine: NDArray[np.bool_]) -> ThroughputSpread:
    low, high = quantiles(misses.log_ratio[mine], misses.weight[mine])
    return ThroughputSpread(known, *key, round(low, 3), round(high, 3), int(mine.sum()))


def quantiles(values: Floats, weights: Floats) -> tuple[float, float]:
    """p10 and p90 of measured over predicted, from log residuals; 1 always lies between them."""
    low, high = (math.exp(weighted_quantile(values, weights, share)) for share in (LOW, HIGH))
    return min(low, 1.0), max(high, 1.0)


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """Value with `share` of the weight below it, half of its own weight counted."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share * weights.sum(), below, values[order]))


def with_sources(parameters: FittedParameters, table: CaseTable) -> dict[Key, MatmulShare]:
    """Shares of the peak with the rows and the parts behind each."""
    rows: dict[Key, Counter[str]] = defaultdict(Counter)
    measured: dict[Key, set[str]] = defaultdict(set)
    for case in table.cases:
        key = parameter_key(case, parameters)
        rows[key][case.source] += 1
        measured[key].add(case.accelerator.name)
    texts = {key: ", ".join(f"{source} ({count} rows)" for source, count in sorted(mine.items())) for key, mine in rows.items()}
    return {key: replace(share, source=texts[key], accelerators=tuple(sorted(measured[key]))) for key, share in parameters.matmul.items()}


def other_shares(parameters: FittedParameters) -> dict[Key, float]:
    """Share of the peak that ResNet-50 reaches, by family and class: the only such network with published rates."""
    found: dict[Key, list[float]] = defaultdict(list)
    for key, share in vision_shares(parameters):
        found[key].append(share)
    return {key: round(float(np.median(shares)), 4) for key, shares in sorted(found.items())}


def vision_shares(parameters: FittedParameters) -> list[tuple[Key, float]]:
    """Share of the peak of every ResNet-50 row, with its family and class."""
    model = find_model("resnet-50").model
    flops = 3 * getattr(model, "flops_per_sample", math.nan)
    found = []
    for row in [row for row in read_table("throughput.csv") if row["table"] == "resnet"]:
        part = find_accelerator(row["accelerator"]).accelerator
        share = float(row["per_s"]) * flops / (part.peak_tflops[row["precision"]] * 1e12)
        found.append(((part.family, parameters.classes[row["precision"]]), share))
    return found


def fit_plan_calibration(parameters: FittedParameters, folds: Folds) -> WholeRuns:
    """How actual hours of published runs scatter about planned ones, and how much of that the speed's spread does not hold."""
    runs = published_runs()
    actual = over_steps(runs, parameters, folds)
    lost = lost_between_nodes(runs, actual)
    ratios = np.log(actual / np.array([slowdown(run, lost) for run in runs]))
    weights = np.ones(len(ratios))
    median, low, high = (weighted_quantile(ratios, weights, share) for share in (0.5, LOW, HIGH))
    # Hours go as one over speed: a slow tenth of the speeds is a long tenth of the hours.
    speed = next(row for row in parameters.spreads if (row.known, row.family) == ("goal", "*"))
    beyond_low = -math.sqrt(max(low**2 - math.log(speed.p90) ** 2, 0.0)) if low < 0 else 0.0
    beyond_high = math.sqrt(max(high**2 - math.log(speed.p10) ** 2, 0.0)) if high > 0 else 0.0
    return WholeRuns(len(ratios), lost, *(math.exp(value) for value in (median, low, high, beyond_low, beyond_high)))


def over_steps(runs: Sequence[PublishedRun], parameters: FittedParameters, folds: Folds) -> Floats:
    """Hours of runs over those of their steps, with parameters fitted without their publication."""
    return np.array([run.hours / steps_hours(run, folds.publications.get(run.publication, parameters)) for run in runs])


def lost_between_nodes(runs: Sequence[PublishedRun], actual: Floats) -> float:
    """What runs lose beyond their steps, over these, on ever more nodes: the least absolute error of the logarithm of the hours.

    `actual`: hours over those of the steps. Of six forms, each tried with the runs of one publication or family of models left out, two
    predict these best and alike: a step at two nodes, and the share of a job's peers that are on other nodes, which was taken because it
    has no jump. A constant has a larger mean error; the logarithm of the nodes, the largest of as many normal scatters and
    1 - 1 / sqrt(nodes) have larger medians.
    """
    off = np.log(actual)

    def error(lost: float) -> float:
        return float(np.abs(off - np.log([slowdown(run, lost) for run in runs])).sum())

    return round(float(minimize_scalar(error, bounds=(0.0, MOST_LOST), method="bounded").x), 3)


def slowdown(run: PublishedRun, lost: float) -> float:
    """A whole run's hours over those of its steps: `engine.training.run_time.run_over_step_speed` is its inverse."""
    return 1 + lost * off_node_fraction(run.cluster)
