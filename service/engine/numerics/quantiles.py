"""Values of a range at standard normal scores: log-normal on either side of the median; normal, and not below 0, where it reaches 0."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.engine.numerics.ranges import P90_Z_SCORE

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
# A 10th percentile below this counts as 0, which a log-normal quantity cannot have.
SMALLEST_LOG_NORMAL = 1e-6
Scores = TypeVar("Scores", Floats, Singles, Floats | Singles)


def range_quantiles(spread: Range, z: Floats | Singles) -> Floats:
    """The values that as large a share of the range does not exceed as of a standard normal quantity does not exceed z."""
    if spread.p10 == spread.p90:
        return np.full(z.shape, spread.p50, dtype=np.float64)
    if spread.p10 < SMALLEST_LOG_NORMAL:
        return np.maximum(0.0, spread.p50 + two_piece_normal(z, spread.p50 - spread.p10, spread.p90 - spread.p50).astype(np.float64))
    return spread.p50 * np.exp(log_ratio_to_median(spread, z).astype(np.float64))


def log_ratio_to_median(spread: Range, z: Floats | Singles) -> Floats | Singles:
    """The logarithm of a range's value over its median."""
    return two_piece_normal(z, math.log(spread.p50 / spread.p10), math.log(spread.p90 / spread.p50))


def two_piece_normal(z: Scores, below: float, above: float) -> Scores:
    """Scores times the distance to the 90th percentile above the median, and to the 10th below it; in the scores' own precision."""
    low, high = z * z.dtype.type(below / P90_Z_SCORE), z * z.dtype.type(above / P90_Z_SCORE)
    found: Scores = np.asarray(np.maximum(low, high) if above > below else np.minimum(low, high))
    return found


def median(values: Floats) -> float:
    """Median of a short 1-D array without NaN, bit for bit that of `numpy.median`, whose checks take 30 times as long.

    Parameters
    ----------
    values : (n,) float array, n >= 1
        Any unit.

    Returns
    -------
    float
        In the unit of `values`.
    """
    ranked = np.sort(values)
    middle = len(ranked) // 2
    return float(ranked[middle]) if len(ranked) % 2 else float((ranked[middle - 1] + ranked[middle]) / 2)
