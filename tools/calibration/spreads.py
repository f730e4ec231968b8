"""Widths of the engine's ranges: percentiles of residuals on documents that the parameters were not fitted to."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.presets.hardware.accelerators import find_accelerator
from service.presets.training.models import find_model
from service.presets.training.throughput_parameters import (
    FittedParameters,
    Key,
    LayoutKnowledge,
    MatmulShare,
    SpreadScale,
    ThroughputSpread,
)
from service.presets.training.utilisation import spread_of
from tools.calibration.cases import MeasuredCase, parameter_key, read_table
from tools.calibration.folds import predict_left_out_rates, search_case_rate
from tools.calibration.table import CaseTable, Floats

# A family's own spread counts as its documents, each predicted without itself, that of all rows as this many more.
DOCUMENTS_OF_ALL = 4
# Machines of one node to eight, of some racks, and beyond.
SIZES = (1, 65, 1025)
# Rows of one table beyond so many say the same again.
ROWS_THAT_COUNT = 64
# Percentiles of few rows reach less far than those of many: taken a little outside, so that four rows in five lie within.
LOW, HIGH = 0.08, 0.92
# A side that no row lies on is an edge all the same; a size whose rows all lie near is no promise of that.
LEAST_EDGE, LEAST_POWER = 0.03, 1.0


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
    cases: Sequence[MeasuredCase],
    goals: Sequence[MeasuredCase],
    parameters: FittedParameters,
    folds: Mapping[str, FittedParameters],
) -> FittedSpreads:
    """Spreads with the layout stated and with the goal alone."""
    given = predict_left_out_rates(cases, folds, lambda case: case.document)
    alone = np.array([search_case_rate(case, folds[case.document]) for case in goals])
    stated = fit_spreads_of("layout", residuals(cases, given, parameters))
    open_ = fit_spreads_of("goal", residuals(goals, alone, parameters), stated.spreads)
    return FittedSpreads(stated.spreads + open_.spreads, stated.scales + open_.scales)


def fit_spreads_of(known: LayoutKnowledge, misses: Residuals, at_least: Sequence[ThroughputSpread] = ()) -> FittedSpreads:
    """Spread of all rows, those of families and classes drawn towards it, and their exponents by size of the machine.

    `at_least`: spreads of those who know more, which none is narrower than.
    """
    rows: dict[Key, list[int]] = defaultdict(list)
    for at, key in enumerate(misses.key):
        rows[key].append(at)
    pooled = _spread(known, ("*", "*"), misses, range(len(misses.key)))
    found = [_widened(pooled, at_least)]
    found += [_widened(_drawn(_spread(known, key, misses, mine), pooled, misses, mine), at_least) for key, mine in sorted(rows.items())]
    reach = _reach(found, misses, known)
    sizes = np.searchsorted(SIZES, misses.count, side="right") - 1
    scales = [_scale(known, size, reach[sizes == at], misses.weight[sizes == at]) for at, size in enumerate(SIZES) if (sizes == at).any()]
    # Larger machines are measured less: their ranges are no narrower.
    powers = np.maximum.accumulate([scale.power for scale in scales])
    return FittedSpreads(tuple(found), tuple(replace(scale, power=float(power)) for scale, power in zip(scales, powers, strict=True)))


def _drawn(own: ThroughputSpread, pooled: ThroughputSpread, misses: Residuals, mine: Sequence[int]) -> ThroughputSpread:
    """A family's own spread, of its rows, drawn towards that of all rows, the more the fewer documents it has."""
    documents = len(set(misses.document[mine]))
    weight = documents / (documents + DOCUMENTS_OF_ALL)
    low, high = (getattr(own, edge) ** weight * getattr(pooled, edge) ** (1 - weight) for edge in ("p10", "p90"))
    return replace(own, p10=round(low, 3), p90=round(high, 3))


def _widened(spread: ThroughputSpread, at_least: Sequence[ThroughputSpread]) -> ThroughputSpread:
    """The spread, as wide as that of those who know more.

    Theirs lies about another median, so its sides are not compared. What teams lose in their layouts is in this one's median: what is
    missing is the fast side.
    """
    rows = [row for row in at_least if (row.family, row.precision) in ((spread.family, spread.precision), ("*", "*"))]
    if not rows:
        return spread
    other = max(rows, key=lambda row: row.family != "*")
    return replace(spread, p90=round(max(spread.p90, spread.p10 * other.p90 / other.p10), 3))


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


def _spread(known: LayoutKnowledge, key: Key, misses: Residuals, mine: Sequence[int]) -> ThroughputSpread:
    low, high = quantiles(misses.log_ratio[mine], misses.weight[mine])
    return ThroughputSpread(known, *key, round(low, 3), round(high, 3), len(mine))


def quantiles(values: Floats, weights: Floats, shares: tuple[float, float] = (LOW, HIGH)) -> tuple[float, float]:
    """p10 and p90 of measured over predicted, from log residuals; 1 always lies between them."""
    low, high = (math.exp(weighted_quantile(values, weights, share)) for share in shares)
    return min(low, 1.0), max(high, 1.0)


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """Value with `share` of the weight below it, half of its own weight counted."""
    return float(weighted_quantiles(values, weights, np.array([share]))[0])


def weighted_quantiles(values: Floats, weights: Floats, shares: Floats) -> Floats:
    """Values with each of `shares` of the weight below them."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) - weights[order] / 2
    found: Floats = np.interp(shares * weights.sum(), below, values[order])
    return found


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
