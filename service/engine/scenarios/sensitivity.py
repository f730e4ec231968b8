"""Sobol' indices: share of an output's variance that comes from each of several independent inputs.

The function is evaluated at the rows of a design: for each of N points A_j and B_j of the unit cube A_j itself, B_j, and for each input A_j
with that one coordinate of B_j. Points are a scrambled Sobol' sequence of twice as many dimensions (Owen 1995), which integrates more
accurately than random points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.scenarios import Floats

INTERVAL = (0.05, 0.95)
BOOTSTRAPS = 400
# Deviations below this share of the mean come from rounding amounts to cents, not from an input.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SobolIndices:
    """Indices of each input, shape (inputs,) [1]: `first` alone, `total` with all interactions; intervals are 90 %, shape (2, inputs).

    `mean` and `variance` are the output's [its unit, and its square].
    """

    first: Floats
    first_interval: Floats
    total: Floats
    total_interval: Floats
    mean: float
    variance: float


def count_evaluations(inputs: int, points: int) -> int:
    """Number of rows of the design, N (d + 2)."""
    return points * (inputs + 2)


def saltelli_design(inputs: int, points: int, seed: int) -> Floats:
    """Design in the unit cube: for each point A, B, then A with each coordinate of B in turn.

    Parameters
    ----------
    inputs : int
        Number of inputs d.
    points : int
        Number of points N, a power of two: a Sobol' sequence is balanced only then.
    seed : int
        Seed of the scrambling.

    Returns
    -------
    (N (d + 2), d) float array
        One evaluation a row [1].

    References
    ----------
    Saltelli et al. 2010, Computer Physics Communications 181, 259; Owen 1995.
    """
    from scipy.stats import qmc  # takes a second to load: workers only

    both = qmc.Sobol(2 * inputs, rng=np.random.default_rng(seed)).random_base2(points.bit_length() - 1)
    rows = np.repeat(both[:, np.newaxis, :inputs], inputs + 2, axis=1)
    rows[:, 1] = both[:, inputs:]
    columns = np.arange(inputs)
    rows[:, 2 + columns, columns] = both[:, inputs + columns]
    return np.asarray(rows.reshape(-1, inputs))


def estimate_indices(values: Floats, seed: int) -> SobolIndices:
    """First-order and total indices with bootstrap intervals.

    Parameters
    ----------
    values : (points, inputs + 2) float array
        Output at the rows of `saltelli_design` [its unit]; points with a value that is not finite are left out.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    SobolIndices
        All 0 where nothing varies. Intervals are percentiles of bootstrap samples of the points, conservative for a Sobol' sequence.

    References
    ----------
    Saltelli et al. 2010, table 2, estimators (b) and (f).
    """
    known = values[np.isfinite(values).all(axis=1)]
    if not len(known):
        zeros, interval = np.zeros(values.shape[1] - 2), np.zeros((2, values.shape[1] - 2))
        return SobolIndices(zeros, interval, zeros, interval, np.nan, 0.0)
    drawn = np.random.default_rng(seed).integers(len(known), size=(BOOTSTRAPS, len(known)))
    samples = [_estimate(known[rows]) for rows in drawn]
    first, total = _estimate(known)
    first_interval, total_interval = (np.quantile([sample[which] for sample in samples], INTERVAL, axis=0) for which in (0, 1))
    ends = known[:, :2]
    return SobolIndices(first, first_interval, total, total_interval, float(ends.mean()), float(ends.var()))


def _estimate(values: Floats) -> tuple[Floats, Floats]:
    """First-order indices by estimator (b) and total indices by (f), Jansen's, of Saltelli et al. 2010, table 2.

    The mean is subtracted first: that changes neither index and lowers the variance of the first-order estimate.
    """
    mean = values[:, :2].mean()
    centred = values - mean
    at_a, at_b, mixed = centred[:, :1], centred[:, 1:2], centred[:, 2:]
    variance = float((centred[:, :2] ** 2).mean())
    if variance <= (ROUNDING * mean) ** 2:
        zeros = np.zeros(mixed.shape[1])
        return zeros, zeros
    first = (at_b * (mixed - at_a)).mean(axis=0) / variance
    total = ((at_a - mixed) ** 2).mean(axis=0) / (2 * variance)
    return first, total
