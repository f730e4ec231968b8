"""The best of many options: a cost's mean and quantiles, how much capacity to commit to, and how far a grid is from its best.

How much to commit: accelerators are needed in a varying number, and a slice of the fleet, the accelerators from one number to the next,
is needed in the share of hours in which the demand is above it. A way to have accelerators costs so much an hour whether used or not and
so much a used hour, a line over that share; each slice is had in the way whose line is lowest at its share. Of a reservation against
capacity on demand that is the newsvendor's critical ratio (Arrow, Harris and Marschak 1951): commit up to the demand's quantile of
1 - reserved / on demand. Of more ways it is the screening curve of power generation (Phillips et al. 1969). Exact, as slices do not
depend on one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.engine.numerics.ranges import P90_Z_SCORE

Floats = NDArray[np.float64]

# Grids in equal factors: how many points each narrowing has between its neighbours.
NARROWED_POINTS = 9
# To either side of the best, so many points show how rough a function is.
ROUGH_POINTS = 2


@dataclass(frozen=True, slots=True)
class SupplyOption:
    """A way to have an accelerator: USD an hour whether used or not, and USD a used hour (its work done, interruptions counted)."""

    name: str
    fixed_usd_per_hour: float
    usd_per_used_hour: float

    def usd_per_hour(self, used_share: float) -> float:
        """What one costs where it is used in that share of hours."""
        return self.fixed_usd_per_hour + self.usd_per_used_hour * used_share


@dataclass(frozen=True, slots=True)
class Slice:
    """Accelerators of the fleet that are best had in one way: those from `first` to `last`, needed in between these shares of hours."""

    way: SupplyOption
    first: float
    last: float
    used_share: float

    @property
    def usd_per_hour(self) -> float:
        """What the slice costs."""
        return (self.last - self.first) * self.way.usd_per_hour(self.used_share)


def lognormal_mean(quantity: Range) -> float:
    """The mean of a quantity that is log-normal to either side of its median, each side with its own spread.

    E[exp(s Z); Z > 0] = exp(s^2 / 2) Phi(s), and below 0 with -s for s.
    """
    if quantity.p50 <= 0:
        return quantity.p50
    low, high = _sigmas(quantity)
    phi = NormalDist().cdf
    return quantity.p50 * (math.exp(low**2 / 2) * phi(-low) + math.exp(high**2 / 2) * phi(high))


def lognormal_quantile(quantity: Range, share: float) -> float:
    """What that quantity stays below with a probability."""
    if quantity.p50 <= 0:
        return quantity.p50
    low, high = _sigmas(quantity)
    z = NormalDist().inv_cdf(share)
    return quantity.p50 * math.exp((low if z < 0 else high) * z)


def cheapest_by_use(ways: Sequence[SupplyOption]) -> list[tuple[float, SupplyOption]]:
    """The cheapest way by the share of hours in which an accelerator is used: from which share on each is, from 1 down to 0.

    Of equals the first. A way that is cheapest nowhere is left out.
    """
    share, best = 1.0, min(ways, key=lambda way: way.usd_per_hour(1.0))
    found = [(share, best)]
    while True:
        crossings = [(_crossing(best, way), way) for way in ways if way.fixed_usd_per_hour < best.fixed_usd_per_hour]
        below = [(at, way) for at, way in crossings if at <= share]
        if not below:
            return found
        share, best = max(below, key=lambda each: (each[0], -each[1].fixed_usd_per_hour))
        found.append((share, best))


def critical_ratio(committed: SupplyOption, flexible: SupplyOption) -> float:
    """The newsvendor's: the probability of enough capacity up to which committing is cheaper, 0 to 1."""
    return min(1.0, max(0.0, 1 - _crossing(flexible, committed)))


def cheapest_mix(ways: Sequence[SupplyOption], demand: Floats, weights: Floats) -> list[Slice]:
    """The slices of the fleet that serve all of a demand at the least mean cost: from its values, rising, and their probabilities."""
    used_above = 1 - np.cumsum(weights) / weights.sum()
    slices, first = [], 0.0
    ordered = cheapest_by_use(ways)
    for place, (_, way) in enumerate(ordered):
        until = ordered[place + 1][0] if place + 1 < len(ordered) else 0.0
        last = _committed(demand, used_above, until)
        if last > first:
            served = np.clip(demand, first, last) - first
            slices.append(Slice(way, first, last, float(np.average(served, weights=weights)) / (last - first)))
            first = last
    return slices


def refine_grid(values: Sequence[float], best: float, low: float, high: float, points: int = NARROWED_POINTS) -> list[float]:
    """Points in equal factors between the neighbours of the best of some tried values, within bounds, without those tried already."""
    tried = sorted(set(values))
    at = tried.index(best)
    below, above = tried[max(0, at - 1)], tried[min(len(tried) - 1, at + 1)]
    between = np.geomspace(max(low, below), min(high, above), points + 2).tolist()
    return [value for value in between if not any(math.isclose(value, known, rel_tol=1e-9) for known in tried)]


def minimise_on_grid(
    function: Callable[[Sequence[float]], Sequence[float]], tried: dict[float, float], low: float, high: float, rounds: int
) -> None:
    """Narrows a grid around the value at which the function is least, adding what it tries to `tried`."""
    for _ in range(rounds):
        best = min(tried, key=lambda value: (tried[value], value))
        new = refine_grid(list(tried), best, low, high)
        if not new:
            return
        tried.update(zip(new, function(new), strict=True))


def optimality_gap(tried: Mapping[float, float]) -> float:
    """By which share of the best the function may be lower between the points that were tried: what is convex, and what is rough.

    A convex function lies above the straight line through two of its points everywhere outside them. Beside the best point that line
    goes through the best and its neighbour on the other side. Without such a neighbour the one there is stands for it. A rough function,
    as of models in whole layers, may dip elsewhere as deep below its neighbours as the points next to the best do.
    """
    known = sorted((math.log(value), cost) for value, cost in tried.items() if math.isfinite(cost))
    at = min(range(len(known)), key=lambda place: known[place][1])
    least_found = known[at][1]
    sides = [side for side in (-1, 1) if 0 <= at + side < len(known)]
    convex = max((least_found - _secant_at(known, at, side) for side in sides), default=0.0)
    near = range(max(1, at - ROUGH_POINTS), min(len(known) - 1, at + ROUGH_POINTS + 1))
    return max(convex, 0.0, *(_dip(*known[place - 1 : place + 2]) for place in near)) / abs(least_found) if least_found else 0.0


def _dip(before: tuple[float, float], here: tuple[float, float], after: tuple[float, float]) -> float:
    """How far a point lies below the straight line through its neighbours."""
    share = (here[0] - before[0]) / (after[0] - before[0])
    return before[1] + share * (after[1] - before[1]) - here[1]


def _secant_at(known: Sequence[tuple[float, float]], at: int, side: int) -> float:
    """The highest of the straight lines that the function lies above, where they are lowest between the best and its neighbour."""
    here, there = known[at], known[at + side]
    width = abs(there[0] - here[0])
    lines = []
    if 0 <= at - side < len(known):
        other = known[at - side]
        lines.append(here[1] - (other[1] - here[1]) / abs(here[0] - other[0]) * width)
    if 0 <= at + 2 * side < len(known):
        beyond = known[at + 2 * side]
        lines.append(there[1] - (beyond[1] - there[1]) / abs(beyond[0] - there[0]) * width)
    return max(lines, default=2 * here[1] - there[1])


def _sigmas(quantity: Range) -> tuple[float, float]:
    """Standard deviations of the logarithm below and above the median."""
    return math.log(quantity.p50 / quantity.p10) / P90_Z_SCORE, math.log(quantity.p90 / quantity.p50) / P90_Z_SCORE


def _crossing(dearer_fixed: SupplyOption, other: SupplyOption) -> float:
    """The share of hours in use at which both cost the same; infinite where they never do."""
    fixed = dearer_fixed.fixed_usd_per_hour - other.fixed_usd_per_hour
    used = other.usd_per_used_hour - dearer_fixed.usd_per_used_hour
    return fixed / used if used else math.inf


def _committed(demand: Floats, used_above: Floats, until_share: float) -> float:
    """The number of accelerators up to which each is needed in more than that share of hours: a quantile of the demand."""
    return float(demand[np.searchsorted(-used_above, -until_share - 1e-12)]) if until_share > 0 else float(demand[-1])
