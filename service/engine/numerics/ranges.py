"""Arithmetic of ranges as log-normal quantities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

from service.domain.quantities import Range

P90_Z_SCORE = NormalDist().inv_cdf(0.9)
BISECTIONS = 50
SURE = 1e-9
"""Probabilities nearer to 0 or 1 are not told apart from these by bisection."""


def product(median: float, factors: Iterable[Range]) -> Range:
    """Product of independent uncertain factors.

    Log distances of the percentiles from the median add in squares, each side apart.

    Parameters
    ----------
    median : float
        Median of the product, above 0, any unit.
    factors : iterable of Range
        Each relative to its own median (p50 of any size).

    Returns
    -------
    Range
        In the unit of `median`.
    """
    below = above = 0.0
    for factor in factors:
        below += math.log(factor.p50 / factor.p10) ** 2
        above += math.log(factor.p90 / factor.p50) ** 2
    return Range(median * math.exp(-math.sqrt(below)), median, median * math.exp(math.sqrt(above)))


def comonotone_sum(ranges: Iterable[Range]) -> Range:
    """Sum of uncertain quantities that are large together, as one cause moves all: their percentiles add.

    Parameters
    ----------
    ranges : iterable of Range
        Summands of one unit.

    Returns
    -------
    Range
        In the same unit.

    References
    ----------
    Dhaene et al. 2002, The concept of comonotonicity in actuarial science and finance, theorem 6.
    """
    parts = list(ranges)
    return Range(sum(part.p10 for part in parts), sum(part.p50 for part in parts), sum(part.p90 for part in parts))


def comonotone_probability_below(limit: float, parts: Sequence[Range]) -> float:
    """Probability that the sum of quantities that are large together, each a two-piece log-normal one, is at or under a limit.

    Parameters
    ----------
    limit : float
        In the unit of the parts.
    parts : sequence of Range
        Summands of one unit, one at least.

    Returns
    -------
    float
        The probability at which their percentiles add up to the limit, from 0 to 1 [1].
    """
    uncertain = [part for part in parts if part.p10 < part.p90]
    left = limit - sum(part.p50 for part in parts if part.p10 == part.p90)
    if len(uncertain) < 2:
        return probability_below(left, uncertain[0] if uncertain else Range(0.0, 0.0, 0.0))
    low, high = SURE, 1 - SURE
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(percentile(part, middle) for part in uncertain) <= left else (low, middle)
    return low


def inverse(factor: Range) -> Range:
    """Range of 1 / x.

    Parameters
    ----------
    factor : Range
        Above 0.

    Returns
    -------
    Range
        In the inverse unit.
    """
    return Range(1 / factor.p90, 1 / factor.p50, 1 / factor.p10)


def percentile(quantity: Range, probability: float) -> float:
    """Value under which a two-piece log-normal quantity stays with a probability: through p10 and p50 below, p50 and p90 above.

    Parameters
    ----------
    quantity : Range
        Percentiles, above 0 or all 0.
    probability : float
        Between 0 and 1 [1].

    Returns
    -------
    float
        In the unit of `quantity`.
    """
    end = quantity.p90 if probability > 0.5 else quantity.p10
    if quantity.p50 <= 0 or end <= 0:
        return quantity.p50
    distance = abs(NormalDist().inv_cdf(probability)) / P90_Z_SCORE
    return quantity.p50 * math.exp(math.log(end / quantity.p50) * distance)


def probability_below(limit: float, quantity: Range) -> float:
    """Probability that a two-piece log-normal quantity is at or under a limit.

    Parameters
    ----------
    limit : float
        In the unit of `quantity`.
    quantity : Range
        Percentiles.

    Returns
    -------
    float
        From 0 to 1 [1].
    """
    if quantity.p10 == quantity.p90:
        return 1.0 if quantity.p50 <= limit else 0.0
    if limit <= 0:
        return 0.0
    distance = math.log(limit / quantity.p50)
    side = math.log(quantity.p90 / quantity.p50) if distance > 0 else math.log(quantity.p50 / quantity.p10)
    if side == 0:
        return 0.5 * (1 + math.copysign(1.0, distance)) if distance else 0.5
    return NormalDist().cdf(distance / side * P90_Z_SCORE)
