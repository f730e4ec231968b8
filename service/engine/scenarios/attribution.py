"""What of the spread each cause makes, and which one did most where a limit was passed.

The first-order share of a cause is the variance of the mean given how hard it struck, over the whole variance (Sobol 1993; Saltelli et al.
2008, Global sensitivity analysis, 1.2.15): trials are put into groups of equal probability by the cause's score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from service.domain.scenarios import Attribution, Floats, GroupSums, Ints
from service.engine.scenarios.aggregates import compute_moments, sum_groups, to_units

GROUPS = 64


@dataclass(frozen=True, slots=True)
class ScoreBins:
    """How a cause's score is read: edges of its groups, its median, and what a unit of it adds to the quantity (least squares)."""

    edges: Floats
    median: float
    slope: float


def fit_score_bins(scores: Mapping[str, Floats], values: Floats) -> dict[str, ScoreBins]:
    """Gauges by some trials made ahead. A cause that never differs is left out."""
    return {name: _gauge(score, values) for name, score in scores.items() if np.ptp(score) > 0}


def attribute_block(
    known: Mapping[str, ScoreBins], scores: Mapping[str, Floats], values: Floats, unit: Decimal, limit: float | None
) -> Attribution:
    """A block's trials by cause, and the cause that did most in each whose value is above the limit. A cause without scores did nothing."""
    counted, nothing = to_units(values, unit), np.zeros(values.shape)
    scores = {name: scores.get(name, nothing) for name in known}
    causes = {name: _groups(gauge, scores[name], counted) for name, gauge in known.items()}
    over = np.zeros(0, dtype=np.int64) if limit is None else np.flatnonzero(values > limit)
    return Attribution(compute_moments(counted), causes, _blamed(known, scores, over))


def first_order_shares(found: Attribution) -> dict[str, float]:
    """Each cause's share of the variance, in exact sums, less what chance alone makes of groups' means; never more than 1 together."""
    count, total, squares = found.moments.trials, found.moments.total, found.moments.squares
    whole = squares * count - total**2
    if whole <= 0:
        return dict.fromkeys(found.causes, 0.0)
    shares = {name: _share(one, count, total, whole) for name, one in found.causes.items()}
    together = max(1.0, sum(shares.values()))
    return {name: share / together for name, share in shares.items()}


def _gauge(score: Floats, values: Floats) -> ScoreBins:
    centred = score - score.mean()
    edges = np.unique(np.quantile(score, np.arange(1, GROUPS) / GROUPS))
    return ScoreBins(edges, float(np.median(score)), float(np.sum(centred * values) / np.sum(centred * centred)))


def _groups(gauge: ScoreBins, score: Floats, counted: Ints) -> GroupSums:
    # All edges compared, which is a third of the time that searching among them takes: its branches cannot be predicted.
    groups = (gauge.edges[:, np.newaxis] < score).sum(axis=0, dtype=np.uint8)
    return sum_groups(groups, GROUPS, counted)


def _blamed(known: Mapping[str, ScoreBins], scores: Mapping[str, Floats], over: NDArray[np.int64]) -> dict[str, int]:
    if not known or not over.size:
        return {}
    added = np.stack([gauge.slope * (scores[name][over] - gauge.median) for name, gauge in known.items()])
    often = np.bincount(np.argmax(added, axis=0), minlength=len(known))
    return {name: int(times) for name, times in zip(known, often, strict=True) if times}


def _share(one: GroupSums, count: int, total: int, whole: int) -> float:
    """(Between groups - (groups - 1) x mean square within) / whole, as the estimate of omega squared in analysis of variance."""
    groups = [(trials, sum_) for trials, sum_ in zip(one.trials, one.totals, strict=True) if trials]
    between = sum(sum_ * sum_ / trials for trials, sum_ in groups) - total * total / count
    all_ = whole / count
    within = max(0.0, all_ - between) / max(1, count - len(groups))
    return min(1.0, max(0.0, (between - (len(groups) - 1) * within) / all_))
