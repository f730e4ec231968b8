"""Values of uncertain fields from standard normal scores: with these, fields correlate by a Gaussian copula (Nelsen 2006, chapter 2)."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import assert_never

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.scenarios import (
    Discrete,
    Distribution,
    Floats,
    Ints,
    LogNormal,
    Normal,
    Percentiles,
    Pert,
    QueueWait,
    Singles,
    Triangular,
    Uniform,
)
from service.engine.numerics.quantiles import range_quantiles
from service.engine.scenarios.queue import wait_quantile

# Scores beyond it do not come in 1e15 trials. Between a table's points values are straight lines: off by 1e-6 of the spread.
FARTHEST_SCORE = 8.0
TABLE_POINTS = 8193
DENSITY_POINTS = 65_537
PERT_WEIGHT = 4.0
LEAST_EIGENVALUE = -1e-9


def quantile_at_score(distribution: Distribution, z: Floats | Singles) -> Floats:
    """The values that as large a share of the distribution does not exceed as of a standard normal one does not exceed z."""
    match distribution:
        case Normal(mean, sd):
            return mean + sd * z.astype(np.float64)
        case LogNormal(median, sigma):
            return np.asarray(median * np.exp(sigma * z.astype(np.float64)))
        case Percentiles(spread):
            return range_quantiles(spread, z)
        case Discrete(values, _):
            return np.array(values)[discrete_index(distribution, z)]
        case Uniform() | Triangular() | Pert() | QueueWait():
            return _read(_table(distribution), z)
        case _:
            assert_never(distribution)


def discrete_index(choice: Discrete, z: Floats | Singles) -> Ints:
    """Which of the values each score stands for."""
    shares = np.cumsum(choice.weights)[:-1]
    return np.searchsorted([normal_quantile(float(share)) for share in shares], z, side="right")


def normal_cdf(z: Floats | Singles) -> Floats:
    """The share of a standard normal quantity that does not exceed each score."""
    return _read(_scores()[1], z)


def correlation_factor(correlations: Floats) -> Floats:
    """The matrix that gives independent scores these correlations. Raises InvalidRequest where no scores can have them."""
    eigenvalues, vectors = np.linalg.eigh(correlations)
    if eigenvalues[0] < LEAST_EIGENVALUE:
        raise InvalidRequest(
            f"no quantities can be correlated like that together: the matrix has an eigenvalue of {eigenvalues[0]:.3g}, and it has to be at"
            " least 0; bring the correlations nearer to 0",
            "/correlations",
        )
    return np.asarray(vectors * np.sqrt(np.maximum(eigenvalues, 0.0)))


def _read(table: Floats, z: Floats | Singles) -> Floats:
    """A table's values at scores, by straight lines."""
    position = np.clip((z + FARTHEST_SCORE) * ((TABLE_POINTS - 1) / (2 * FARTHEST_SCORE)), 0, TABLE_POINTS - 1.001, dtype=np.float64)
    before = position.astype(np.int64)
    low = table.take(before)
    return np.asarray(low + (position - before) * (table.take(before + 1) - low))


@lru_cache(maxsize=256)
def _table(distribution: Uniform | Triangular | Pert | QueueWait) -> Floats:
    """The distribution's values at the scores of a table."""
    _, shares = _scores()
    match distribution:
        case Uniform(low, high):
            return low + (high - low) * shares
        case Triangular(low, mode, high):
            return _triangular(low, mode, high, shares)
        case Pert(low, mode, high):
            return _pert(low, mode, high, shares)
        case QueueWait():
            return wait_quantile(distribution, shares)
        case _:
            assert_never(distribution)


@lru_cache(maxsize=1)
def _scores() -> tuple[Floats, Floats]:
    """Scores of a table, and the share of a standard normal quantity that does not exceed each."""
    scores = np.linspace(-FARTHEST_SCORE, FARTHEST_SCORE, TABLE_POINTS)
    return scores, np.array([0.5 * math.erfc(-score / math.sqrt(2)) for score in scores])


def _triangular(low: float, mode: float, high: float, shares: Floats) -> Floats:
    width = high - low
    rising = low + np.sqrt(shares * width * (mode - low))
    falling = high - np.sqrt((1 - shares) * width * (high - mode))
    return np.where(shares * width < mode - low, rising, falling)


def _pert(low: float, mode: float, high: float, shares: Floats) -> Floats:
    """The beta density added up on a fine grid, and turned around."""
    width = high - low
    if width == 0:
        return np.full(shares.shape, low)
    below, above = PERT_WEIGHT * (mode - low) / width, PERT_WEIGHT * (high - mode) / width
    at = np.linspace(0.0, 1.0, DENSITY_POINTS)
    density = at**below * (1 - at) ** above
    passed = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
    return low + width * np.interp(shares, passed / passed[-1], at)


def normal_quantile(share: float) -> float:
    """The score that this share of a standard normal quantity does not exceed, infinite for none and all of it."""
    if share <= 0:
        return -math.inf
    return math.inf if share >= 1 else NormalDist().inv_cdf(share)
