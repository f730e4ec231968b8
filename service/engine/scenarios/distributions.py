"""Quantile functions of distributions at standard normal scores; scores correlate fields by a Gaussian copula (Nelsen 2006, chapter 2).

Hours of waiting are those of the M/M/c queue, first come first served (Erlang 1917; Kleinrock 1975, volume I, 3.5).
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

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

# Larger scores do not occur in 1e15 trials. Between a table's points values are interpolated linearly: off by 1e-6 of the spread.
FARTHEST_SCORE = 8.0
TABLE_POINTS = 8193
DENSITY_POINTS = 65_537
PERT_WEIGHT = 4.0
LEAST_EIGENVALUE = -1e-9


def quantile_at_score(distribution: Distribution, z: Floats | Singles) -> Floats:
    """Quantile of a distribution at Φ(z).

    Parameters
    ----------
    distribution : Distribution
        Distribution of a field [the field's unit].
    z : float array, any shape
        Standard normal scores [1].

    Returns
    -------
    float array, shape of z
        Values [the field's unit].
    """
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
            return _interpolate(_quantile_table(distribution), z)


def discrete_index(distribution: Discrete, z: Floats | Singles) -> Ints:
    """Index of the value of a discrete distribution at Φ(z).

    Parameters
    ----------
    distribution : Discrete
        Values and weights.
    z : float array, any shape
        Standard normal scores [1].

    Returns
    -------
    int array, shape of z
        Index into `distribution.values`.
    """
    shares = np.cumsum(distribution.weights)[:-1]
    return np.searchsorted([normal_quantile(float(share)) for share in shares], z, side="right")


def normal_cdf(z: Floats | Singles) -> Floats:
    """Φ(z), interpolated from a table: probability that a standard normal quantity is at most z, shape of z [1]."""
    return _interpolate(_score_shares(), z)


def correlation_factor(correlations: Floats) -> Floats:
    """Matrix factor L with L Lᵀ equal to the correlations: L times independent scores has them.

    Parameters
    ----------
    correlations : (fields, fields) float array
        Correlation matrix, symmetric with ones on the diagonal [1].

    Returns
    -------
    (fields, fields) float array
        Eigenvectors scaled by the roots of the eigenvalues [1].

    Raises
    ------
    InvalidRequest
        The matrix is not positive semi-definite: no quantities can have these correlations.
    """
    eigenvalues, vectors = np.linalg.eigh(correlations)
    if eigenvalues[0] < LEAST_EIGENVALUE:
        raise InvalidRequest(
            f"these correlations contradict each other: the matrix has an eigenvalue of {eigenvalues[0]:.3g}, and it must be at"
            " least 0; bring the correlations nearer to 0",
            "/correlations",
        )
    return np.asarray(vectors * np.sqrt(np.maximum(eigenvalues, 0.0)))


def normal_quantile(share: float) -> float:
    """Φ⁻¹(share): standard normal score with this probability below it; infinite at 0 and 1 [1]."""
    if share <= 0:
        return -math.inf
    return math.inf if share >= 1 else NormalDist().inv_cdf(share)


def waiting_probability(queue: QueueWait) -> float:
    """Probability that all servers are busy (Erlang C), by the recursion of Erlang B, which does not overflow.

    Parameters
    ----------
    queue : QueueWait
        Slots, arrivals [1/h] and mean job time [h]; the load is below 1.

    Returns
    -------
    float
        Probability that a job waits [1].

    References
    ----------
    Erlang 1917; Kleinrock 1975, volume I, section 3.5.
    """
    offered = queue.arrivals_per_hour * queue.mean_hours
    blocked = 1.0
    for servers in range(1, queue.slots + 1):
        blocked = offered * blocked / (servers + offered * blocked)
    load = offered / queue.slots
    return blocked / (1 - load * (1 - blocked))


def spare_capacity_per_hour(queue: QueueWait) -> float:
    """Rate of the exponential wait of jobs that wait: service capacity less arrivals [1/h]."""
    return queue.slots / queue.mean_hours - queue.arrivals_per_hour


def wait_quantile(queue: QueueWait, shares: Floats) -> Floats:
    """Quantiles of the waiting time.

    Parameters
    ----------
    queue : QueueWait
        Slots, arrivals [1/h] and mean job time [h]; the load is below 1.
    shares : float array, any shape
        Probabilities [1].

    Returns
    -------
    float array, shape of shares
        Waiting time [h].

    References
    ----------
    Kleinrock 1975, volume I, section 3.5.
    """
    waits = waiting_probability(queue)
    remaining = np.clip((1 - shares) / waits, 1e-300, 1.0)
    return np.asarray(-np.log(remaining) / spare_capacity_per_hour(queue))


def _interpolate(table: Floats, z: Floats | Singles) -> Floats:
    """A table's values at scores, interpolated linearly."""
    position = np.clip((z + FARTHEST_SCORE) * ((TABLE_POINTS - 1) / (2 * FARTHEST_SCORE)), 0, TABLE_POINTS - 1.001, dtype=np.float64)
    before = position.astype(np.int64)
    low = table.take(before)
    return np.asarray(low + (position - before) * (table.take(before + 1) - low))


@lru_cache(maxsize=256)
def _quantile_table(distribution: Uniform | Triangular | Pert | QueueWait) -> Floats:
    """The distribution's quantiles at the scores of `_score_shares`."""
    shares = _score_shares()
    match distribution:
        case Uniform(low, high):
            return low + (high - low) * shares
        case Triangular(low, mode, high):
            return _triangular(low, mode, high, shares)
        case Pert(low, mode, high):
            return _pert(low, mode, high, shares)
        case QueueWait():
            return wait_quantile(distribution, shares)


@lru_cache(maxsize=1)
def _score_shares() -> Floats:
    """Φ of equidistant scores."""
    return np.array([0.5 * math.erfc(-score / math.sqrt(2)) for score in np.linspace(-FARTHEST_SCORE, FARTHEST_SCORE, TABLE_POINTS)])


def _triangular(low: float, mode: float, high: float, shares: Floats) -> Floats:
    width = high - low
    rising = low + np.sqrt(shares * width * (mode - low))
    falling = high - np.sqrt((1 - shares) * width * (high - mode))
    return np.where(shares * width < mode - low, rising, falling)


def _pert(low: float, mode: float, high: float, shares: Floats) -> Floats:
    """Beta quantiles: the density integrated by the trapezoidal rule on a fine grid, and inverted."""
    width = high - low
    if width == 0:
        return np.full(shares.shape, low)
    below, above = PERT_WEIGHT * (mode - low) / width, PERT_WEIGHT * (high - mode) / width
    at = np.linspace(0.0, 1.0, DENSITY_POINTS)
    density = at**below * (1 - at) ** above
    passed = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
    return low + width * np.interp(shares, passed / passed[-1], at)
