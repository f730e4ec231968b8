"""Mean and quantiles of a cost, and grid search with its optimality gap."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import NormalDist

import numpy as np

from service.domain.quantities import Range
from service.engine.numerics.ranges import P90_Z_SCORE

# Points of a refined grid between the neighbours of the best point, in equal factors.
REFINED_POINTS = 9
# Points to either side of the best whose dips measure how rough a function is.
ROUGHNESS_POINTS = 2
ROUNDS = 2
"""Number of refinements of a grid."""


def lognormal_mean(quantity: Range) -> float:
    """Mean of a quantity that is log-normal on either side of its median: E[exp(s Z); Z > 0] = exp(s^2 / 2) Φ(s), below 0 with -s.

    Parameters
    ----------
    quantity : Range
        p10, p50 and p90 [any unit].

    Returns
    -------
    float
        Mean; the median where that is 0 or less [the quantity's unit].
    """
    if quantity.p50 <= 0:
        return quantity.p50
    low, high = _sigmas(quantity)
    phi = NormalDist().cdf
    return quantity.p50 * (math.exp(low**2 / 2) * phi(-low) + math.exp(high**2 / 2) * phi(high))


def lognormal_quantile(quantity: Range, share: float) -> float:
    """Quantile of a quantity that is log-normal on either side of its median.

    Parameters
    ----------
    quantity : Range
        p10, p50 and p90 [any unit].
    share : float
        Probability [1].

    Returns
    -------
    float
        Quantile; the median where that is 0 or less [the quantity's unit].
    """
    if quantity.p50 <= 0:
        return quantity.p50
    low, high = _sigmas(quantity)
    z = NormalDist().inv_cdf(share)
    return quantity.p50 * math.exp((low if z < 0 else high) * z)


def refine_grid(values: Collection[float], best: float) -> list[float]:
    """New grid points between the neighbours of the best one, in equal factors.

    Parameters
    ----------
    values : collection of float
        Points tried so far, above 0 [any unit].
    best : float
        The best of them.

    Returns
    -------
    list of float
        Points that are not tried yet, ascending [the unit of `values`].
    """
    tried = sorted(set(values))
    index = tried.index(best)
    below, above = tried[max(0, index - 1)], tried[min(len(tried) - 1, index + 1)]
    between = np.geomspace(below, above, REFINED_POINTS + 2).tolist()
    return [value for value in between if not any(math.isclose(value, known, rel_tol=1e-9) for known in tried)]


def minimise_on_grid(function: Callable[[Sequence[float]], Sequence[float]], tried: dict[float, float]) -> None:
    """Refine a grid around the minimum of a function.

    Parameters
    ----------
    function : callable
        Values of the function at several points at once.
    tried : dict of float
        Value of the function by point; new points are added to it.
    """
    for _ in range(ROUNDS):
        best = min(tried, key=lambda value: (tried[value], value))
        new = refine_grid(tried, best)
        if not new:
            return
        tried.update(zip(new, function(new), strict=True))


def optimality_gap(tried: Mapping[float, float]) -> float:
    """Share of the best value by which the function may be lower between the points tried.

    A convex function lies above the straight line through two of its points everywhere outside them: next to the best point, the line
    through the best and its neighbour on the other side. Without such a neighbour the existing one stands for it. A rough function, such as
    of models in whole layers, may dip as deep below its neighbours as the points next to the best do. The larger of the two is returned.

    Parameters
    ----------
    tried : mapping of float
        Value of the function by point; infinite where it has none.

    Returns
    -------
    float
        Gap, as a share of the best value's magnitude [1].
    """
    points = sorted((math.log(value), cost) for value, cost in tried.items() if math.isfinite(cost))
    best = min(range(len(points)), key=lambda index: points[index][1])
    minimum = points[best][1]
    sides = [side for side in (-1, 1) if 0 <= best + side < len(points)]
    convex = max((minimum - _lower_bound(points, best, side) for side in sides), default=0.0)
    near = range(max(1, best - ROUGHNESS_POINTS), min(len(points) - 1, best + ROUGHNESS_POINTS + 1))
    return max(convex, 0.0, *(_dip(*points[index - 1 : index + 2]) for index in near)) / abs(minimum) if minimum else 0.0


def _dip(before: tuple[float, float], here: tuple[float, float], after: tuple[float, float]) -> float:
    """Distance of a point below the straight line through its neighbours."""
    share = (here[0] - before[0]) / (after[0] - before[0])
    return before[1] + share * (after[1] - before[1]) - here[1]


def _lower_bound(points: Sequence[tuple[float, float]], best: int, side: int) -> float:
    """Lower bound of a convex function between the best point and its neighbour: the highest secant, at its lowest end."""
    here, there = points[best], points[best + side]
    width = abs(there[0] - here[0])
    lines = []
    if 0 <= best - side < len(points):
        other = points[best - side]
        lines.append(here[1] - (other[1] - here[1]) / abs(here[0] - other[0]) * width)
    if 0 <= best + 2 * side < len(points):
        beyond = points[best + 2 * side]
        lines.append(there[1] - (beyond[1] - there[1]) / abs(beyond[0] - there[0]) * width)
    return max(lines, default=2 * here[1] - there[1])


def _sigmas(quantity: Range) -> tuple[float, float]:
    """Standard deviations of the logarithm below and above the median."""
    return math.log(quantity.p50 / quantity.p10) / P90_Z_SCORE, math.log(quantity.p90 / quantity.p50) / P90_Z_SCORE
