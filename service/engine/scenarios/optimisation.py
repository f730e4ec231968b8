"""Mean and quantiles of a cost, the cheapest mix of capacity for a varying demand, and grid search with its optimality gap.

Capacity: a slice of the fleet, the accelerators from one number to the next, is needed in the share of hours in which the demand is above
it. A supply option has a fixed cost per hour and a cost per used hour: a line over that share. Each slice takes the option whose line is
lowest at its share. For a reservation against capacity on demand that is the newsvendor's critical ratio (Arrow, Harris and Marschak 1951):
commit up to the demand's quantile of 1 - reserved / on demand. For more options it is the screening curve of power generation (Phillips
et al. 1969). The result is exact, as slices do not depend on one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from service.domain.quantities import Range
from service.domain.scenarios import Floats
from service.engine.numerics.ranges import P90_Z_SCORE

# Points of a refined grid between the neighbours of the best point, in equal factors.
REFINED_POINTS = 9
# Points to either side of the best whose dips measure how rough a function is.
ROUGHNESS_POINTS = 2
ROUNDS = 2
"""Number of refinements of a grid."""


@dataclass(frozen=True, slots=True)
class SupplyOption:
    """A way to get an accelerator: fixed cost [USD/h], used or not, and cost of a used hour [USD/h], interruptions included."""

    name: str
    fixed_usd_per_hour: float
    usd_per_used_hour: float

    def usd_per_hour(self, used_share: float) -> float:
        """Cost of an accelerator that is used in this share of hours [USD/h]."""
        return self.fixed_usd_per_hour + self.usd_per_used_hour * used_share


@dataclass(frozen=True, slots=True)
class Slice:
    """Accelerators `first` to `last` of the fleet, which one supply option serves; `used_share`: mean share of hours in use."""

    option: SupplyOption
    first: float
    last: float
    used_share: float

    @property
    def usd_per_hour(self) -> float:
        """Cost of the slice [USD/h]."""
        return (self.last - self.first) * self.option.usd_per_hour(self.used_share)


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


def cheapest_by_use(options: Sequence[SupplyOption]) -> list[tuple[float, SupplyOption]]:
    """Lower envelope of supply options over the share of hours in use (screening curve).

    Parameters
    ----------
    options : sequence of SupplyOption
        Options; of equal ones the first is taken.

    Returns
    -------
    list of (float, SupplyOption)
        Share of hours in use up to which each option is cheapest [1], from 1 down; options that are cheapest nowhere are left out.

    References
    ----------
    Phillips et al. 1969, screening curves of power generation.
    """
    share, best = 1.0, min(options, key=lambda option: option.usd_per_hour(1.0))
    envelope = [(share, best)]
    while True:
        crossings = [(_crossing(best, option), option) for option in options if option.fixed_usd_per_hour < best.fixed_usd_per_hour]
        below = [(crossing, option) for crossing, option in crossings if crossing <= share]
        if not below:
            return envelope
        share, best = max(below, key=lambda pair: (pair[0], -pair[1].fixed_usd_per_hour))
        envelope.append((share, best))


def critical_ratio(committed: SupplyOption, flexible: SupplyOption) -> float:
    """Newsvendor's critical ratio: the quantile of the demand up to which committing is cheaper.

    Parameters
    ----------
    committed, flexible : SupplyOption
        Option with a fixed cost, and option on demand [USD/h].

    Returns
    -------
    float
        Probability, 0 to 1 [1].

    References
    ----------
    Arrow, Harris and Marschak 1951.
    """
    return min(1.0, max(0.0, 1 - _crossing(flexible, committed)))


def cheapest_mix(options: Sequence[SupplyOption], demand: Floats, weights: Floats) -> list[Slice]:
    """Slices of the fleet that serve all of a demand at the least mean cost.

    Parameters
    ----------
    options : sequence of SupplyOption
        Ways to get an accelerator.
    demand : (values,) float array
        Values of the demand, ascending [accelerators].
    weights : (values,) float array
        Probability of each value, up to a factor [1].

    Returns
    -------
    list of Slice
        From accelerator 0 up.

    References
    ----------
    Arrow, Harris and Marschak 1951; Phillips et al. 1969.
    """
    used_above = 1 - np.cumsum(weights) / weights.sum()
    slices, first = [], 0.0
    envelope = cheapest_by_use(options)
    for position, (_, option) in enumerate(envelope):
        until = envelope[position + 1][0] if position + 1 < len(envelope) else 0.0
        last = _last_accelerator(demand, used_above, until)
        if last > first:
            served = np.clip(demand, first, last) - first
            slices.append(Slice(option, first, last, float(np.average(served, weights=weights)) / (last - first)))
            first = last
    return slices


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


def _crossing(dearer_fixed: SupplyOption, other: SupplyOption) -> float:
    """Share of hours in use at which both cost the same; infinite where they never do."""
    fixed = dearer_fixed.fixed_usd_per_hour - other.fixed_usd_per_hour
    used = other.usd_per_used_hour - dearer_fixed.usd_per_used_hour
    return fixed / used if used else math.inf


def _last_accelerator(demand: Floats, used_above: Floats, until_share: float) -> float:
    """Number of accelerators up to which each is needed in more than this share of hours: a quantile of the demand."""
    return float(demand[np.searchsorted(-used_above, -until_share - 1e-12)]) if until_share > 0 else float(demand[-1])
