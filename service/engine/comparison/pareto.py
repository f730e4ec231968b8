"""Pareto front of options over cost, time and carbon, and their order."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def pareto_front(cost: FloatArray, hours: FloatArray, carbon: FloatArray) -> BoolArray:
    """Options that no other option dominates: none is as good in all three and better in one. Of equal options all are on the front.

    Parameters
    ----------
    cost, hours, carbon : (options,) float arrays
        Cost [USD], time [h], emissions [tCO2e]; any unit, lower is better.

    Returns
    -------
    (options,) bool array
    """
    candidates = np.flatnonzero(~_dominated_by_extremes(cost, hours, carbon))
    front = np.zeros(len(cost), dtype=bool)
    front[candidates] = _front(cost[candidates], hours[candidates], carbon[candidates])
    return front


def _dominated_by_extremes(cost: FloatArray, hours: FloatArray, carbon: FloatArray) -> BoolArray:
    """Options that the cheapest, the cleanest or the cheapest of the fastest dominates: most of them, without sorting."""
    dominated = np.zeros(len(cost), dtype=bool)
    if not len(dominated):
        return dominated
    fastest = np.flatnonzero(hours == hours.min())
    for best in (cost.argmin(), carbon.argmin(), fastest[cost[fastest].argmin()]):
        best_cost, best_hours, best_carbon = cost[best], hours[best], carbon[best]
        worse = (cost > best_cost) | (hours > best_hours) | (carbon > best_carbon)
        dominated |= worse & (cost >= best_cost) & (hours >= best_hours) & (carbon >= best_carbon)
    return dominated


def _front(cost: FloatArray, hours: FloatArray, carbon: FloatArray) -> BoolArray:
    """`pareto_front` by sorting: in order of hours, then cost, then carbon, every dominating option comes earlier."""
    order = np.lexsort((carbon, cost, hours))
    ordered = np.stack([hours[order], cost[order], carbon[order]])
    first = np.ones(len(order), dtype=bool)  # of options that are equal
    first[1:] = (np.diff(ordered) != 0).any(axis=0)
    on_front = np.zeros(int(first.sum()), dtype=bool)
    distinct_hours, distinct_cost, distinct_carbon = ordered[:, first]
    remaining = np.flatnonzero(_lowest_carbon_so_far(distinct_hours, distinct_carbon))
    on_front[remaining] = _undominated(distinct_cost[remaining].tolist(), distinct_carbon[remaining].tolist())
    front = np.zeros(len(order), dtype=bool)
    front[order] = on_front[np.cumsum(first) - 1]
    return front


def rank_options(feasible: BoolArray, objective: FloatArray, cost: FloatArray) -> IntArray:
    """Positions in order: feasible options first, then by objective, cost and input order; NaN last.

    Parameters
    ----------
    feasible : (options,) bool array
        Options that nothing rules out.
    objective : (options,) float array
        Lower is better; may be the same array as `cost`.
    cost : (options,) float array
        Cost [USD].

    Returns
    -------
    (options,) int array
    """
    order = np.argsort(cost, kind="stable") if objective is cost else np.lexsort((cost, objective))
    return np.concatenate([order[feasible[order]], order[~feasible[order]]])


def _lowest_carbon_so_far(hours: FloatArray, carbon: FloatArray) -> BoolArray:
    """Of sorted options, those with less carbon than every earlier one of the same hours: a fast filter."""
    rank = np.unique(carbon, return_inverse=True)[1]
    length = np.cumsum(np.diff(hours, prepend=hours[:1]) != 0)
    height = rank - length * (len(rank) + 1)  # every rank of a longer time lies below those of the shorter ones
    found: BoolArray = np.diff(np.minimum.accumulate(height), prepend=len(rank)) < 0
    return found


def _undominated(costs: list[float], carbons: list[float]) -> list[bool]:
    """Which sorted options no earlier one equals or beats in cost and carbon; the undominated ones form a staircase."""
    stairs_cost: list[float] = []
    stairs_carbon: list[float] = []
    found = []
    for cost, carbon in zip(costs, carbons, strict=True):
        at = bisect_right(stairs_cost, cost)
        undominated = at == 0 or stairs_carbon[at - 1] > carbon
        if undominated:
            end = at
            while end < len(stairs_carbon) and stairs_carbon[end] >= carbon:
                end += 1
            stairs_cost[at:end], stairs_carbon[at:end] = [cost], [carbon]
        found.append(undominated)
    return found
