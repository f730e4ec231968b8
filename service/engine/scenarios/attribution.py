"""Share of the variance by cause, and the cause that contributed most where a limit was passed.

The first-order share of a cause is the variance of the mean given the cause's score, over the whole variance (Sobol 1993; Saltelli et al.
2008, Global sensitivity analysis, 1.2.15): trials are put into groups of equal probability by the score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from service.domain.scenarios import Attribution, Floats, GroupSums, Ints
from service.engine.scenarios.aggregates import compute_moments, to_units

GROUPS = 64


@dataclass(frozen=True, slots=True)
class ScoreBins:
    """A cause's score: inner edges of its groups, its median, and what a unit of it adds to the quantity (least squares)."""

    edges: Floats
    median: float
    slope: float


def fit_score_bins(scores: Mapping[str, Floats], values: Floats) -> dict[str, ScoreBins]:
    """Score bins of each cause that varies.

    Parameters
    ----------
    scores : mapping of (trials,) float arrays
        Score of each cause [any unit].
    values : (trials,) float array
        The quantity explained [its own unit].

    Returns
    -------
    dict of ScoreBins
        By cause; causes whose score is constant are left out.
    """
    return {name: _fit_bins(score, values) for name, score in scores.items() if np.ptp(score) > 0}


def attribute_block(
    bins: Mapping[str, ScoreBins], scores: Mapping[str, Floats], values: Floats, unit: Decimal, limit: float | None
) -> Attribution:
    """Sums of a block's trials by cause.

    Parameters
    ----------
    bins : mapping of ScoreBins
        Causes; one without scores counts as 0 in all trials.
    scores : mapping of (trials,) float arrays
        Score of each cause [any unit].
    values : (trials,) float array
        The quantity explained [its own unit].
    unit : Decimal
        Counting unit [the quantity's unit].
    limit : float or None
        Above it the largest cause of each trial is counted [the quantity's unit].

    Returns
    -------
    Attribution
        Sums that merge exactly [counting units].
    """
    counted, zeros = to_units(values, unit), np.zeros(values.shape)
    scores = {name: scores.get(name, zeros) for name in bins}
    causes = {name: _sum_by_score(score_bins, scores[name], counted) for name, score_bins in bins.items()}
    above = np.zeros(0, dtype=np.int64) if limit is None else np.flatnonzero(values > limit)
    return Attribution(compute_moments(counted), causes, _count_largest_causes(bins, scores, above))


def first_order_shares(attribution: Attribution) -> dict[str, float]:
    """First-order share of the variance by cause.

    Parameters
    ----------
    attribution : Attribution
        Sums by cause.

    Returns
    -------
    dict of float
        Shares [1], corrected for the variance that chance makes between groups; scaled down where they add up to more than 1.

    References
    ----------
    Saltelli et al. 2008, Global sensitivity analysis, equation 1.2.15.
    """
    count, total, squares = attribution.moments.trials, attribution.moments.total, attribution.moments.squares
    scaled_variance = squares * count - total**2
    if scaled_variance <= 0:
        return dict.fromkeys(attribution.causes, 0.0)
    shares = {name: _omega_squared(sums, count, total, scaled_variance) for name, sums in attribution.causes.items()}
    total_share = max(1.0, sum(shares.values()))
    return {name: share / total_share for name, share in shares.items()}


def _fit_bins(score: Floats, values: Floats) -> ScoreBins:
    centred = score - score.mean()
    edges = np.unique(np.quantile(score, np.arange(1, GROUPS) / GROUPS))
    return ScoreBins(edges, float(np.median(score)), float(np.sum(centred * values) / np.sum(centred * centred)))


def _sum_by_score(bins: ScoreBins, score: Floats, counted: Ints) -> GroupSums:
    """Number of trials and sum of values in each group; sums of one block are exact because they stay below 2^53."""
    # Comparing with all edges takes a third of the time of a binary search, whose branches cannot be predicted.
    groups = (bins.edges[:, np.newaxis] < score).sum(axis=0, dtype=np.uint8)
    totals = np.bincount(groups, weights=counted.astype(np.float64), minlength=GROUPS)
    return GroupSums(tuple(np.bincount(groups, minlength=GROUPS).tolist()), tuple(map(int, totals)))


def _count_largest_causes(bins: Mapping[str, ScoreBins], scores: Mapping[str, Floats], above: Ints) -> dict[str, int]:
    if not bins or not above.size:
        return {}
    added = np.stack([score_bins.slope * (scores[name][above] - score_bins.median) for name, score_bins in bins.items()])
    counts = np.bincount(np.argmax(added, axis=0), minlength=len(bins))
    return {name: int(count) for name, count in zip(bins, counts, strict=True) if count}


def _omega_squared(sums: GroupSums, count: int, total: int, scaled_variance: int) -> float:
    """(Between groups - (groups - 1) x mean square within) / whole, the estimate of omega squared in analysis of variance."""
    groups = [(trials, group_total) for trials, group_total in zip(sums.trials, sums.totals, strict=True) if trials]
    between = sum(group_total * group_total / trials for trials, group_total in groups) - total * total / count
    whole = scaled_variance / count
    within = max(0.0, whole - between) / max(1, count - len(groups))
    return min(1.0, max(0.0, (between - (len(groups) - 1) * within) / whole))
