"""How much of an output's variance comes from each input: Sobol' indices of functions whose inputs are independent.

The function is evaluated at the rows of a design: for each of N points A_j and B_j of the unit cube A_j itself, B_j, and for each input A_j
with that one coordinate of B_j. Points are a scrambled Sobol' sequence of twice as many dimensions (Owen 1995), whose means are nearer
than random points'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

INTERVAL = (0.05, 0.95)
BOOTSTRAPS = 400
# Deviations of this share of the mean are the rounding of amounts to cents, no effect of an input.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SobolIndices:
    """Of each input: `first` is the share of the variance that it makes alone, `total` with all its interactions; intervals are 90 %."""

    first: Floats
    first_interval: Floats
    total: Floats
    total_interval: Floats
    mean: float
    variance: float


def count_evaluations(inputs: int, points: int) -> int:
    """Rows of the design: N (d + 2)."""
    return points * (inputs + 2)


def saltelli_design(inputs: int, points: int, seed: int) -> Floats:
    """The design in the unit cube, a row an evaluation: of each point A, B, then A with each coordinate of B in turn.

    `points` is a power of two, which a Sobol' sequence is balanced for.
    """
    from scipy.stats import qmc  # a second to load: workers only

    both = qmc.Sobol(2 * inputs, rng=np.random.default_rng(seed)).random_base2(points.bit_length() - 1)
    rows = np.repeat(both[:, np.newaxis, :inputs], inputs + 2, axis=1)
    rows[:, 1] = both[:, inputs:]
    each = np.arange(inputs)
    rows[:, 2 + each, each] = both[:, inputs + each]
    return np.asarray(rows.reshape(-1, inputs))


def estimate_indices(values: Floats, seed: int) -> SobolIndices:
    """Indices from the values at the design's rows, one row of `values` a point; points with a value that is not finite are left out.

    Intervals are percentiles of bootstrap samples of the points, wider than need be for a Sobol' sequence. All 0 where nothing varies.
    """
    known = values[np.isfinite(values).all(axis=1)]
    if not len(known):
        none, interval = np.zeros(values.shape[1] - 2), np.zeros((2, values.shape[1] - 2))
        return SobolIndices(none, interval, none, interval, np.nan, 0.0)
    drawn = np.random.default_rng(seed).integers(len(known), size=(BOOTSTRAPS, len(known)))
    samples = [_estimated(known[rows]) for rows in drawn]
    first, total = _estimated(known)
    intervals = (np.quantile([sample[which] for sample in samples], INTERVAL, axis=0) for which in (0, 1))
    first_interval, total_interval = intervals
    ends = known[:, :2]
    return SobolIndices(first, first_interval, total, total_interval, float(ends.mean()), float(ends.var()))


def _estimated(values: Floats) -> tuple[Floats, Floats]:
    """First-order and total indices: estimators (b) of Saltelli et al. 2010 and (f), Jansen's, of their table 2.

    The mean is taken off first, which changes neither and makes the first the surer.
    """
    mean = values[:, :2].mean()
    centred = values - mean
    at_a, at_b, mixed = centred[:, :1], centred[:, 1:2], centred[:, 2:]
    variance = float((centred[:, :2] ** 2).mean())
    if variance <= (ROUNDING * mean) ** 2:
        nothing = np.zeros(mixed.shape[1])
        return nothing, nothing
    first = (at_b * (mixed - at_a)).mean(axis=0) / variance
    total = ((at_a - mixed) ** 2).mean(axis=0) / (2 * variance)
    return first, total
