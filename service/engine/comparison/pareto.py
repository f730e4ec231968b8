"""Options beside one another: which no other option beats on cost, time and carbon together, and in which order they stand."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def pareto_front(cost: FloatArray, hours: FloatArray, carbon: FloatArray) -> BoolArray:
    """Options that no other equals or beats in all three and beats in one; of equal options all."""
    worth = np.flatnonzero(~_plainly_beaten(cost, hours, carbon))
    front = np.zeros(len(cost), dtype=bool)
    front[worth] = _front(cost[worth], hours[worth], carbon[worth])
    return front


def _plainly_beaten(cost: FloatArray, hours: FloatArray, carbon: FloatArray) -> BoolArray:
    """Options that the cheapest, the cleanest or the cheapest of the fastest beats: most of them, and without sorting any."""
    beaten = np.zeros(len(cost), dtype=bool)
    if not len(beaten):
        return beaten
    fastest = np.flatnonzero(hours == hours.min())
    for best in (cost.argmin(), carbon.argmin(), fastest[cost[fastest].argmin()]):
        usd, time, emitted = cost[best], hours[best], carbon[best]
        worse = (cost > usd) | (hours > time) | (carbon > emitted)
        beaten |= worse & (cost >= usd) & (hours >= time) & (carbon >= emitted)
    return beaten


def _front(cost: FloatArray, hours: FloatArray, carbon: FloatArray) -> BoolArray:
    """`pareto_front` by sorting: in order of hours, then cost, then carbon, what beats an option stands before it."""
    order = np.lexsort((carbon, cost, hours))
    ordered = np.stack([hours[order], cost[order], carbon[order]])
    first = np.ones(len(order), dtype=bool)  # of options that are equal
    first[1:] = (np.diff(ordered) != 0).any(axis=0)
    kept = np.zeros(int(first.sum()), dtype=bool)
    time, usd, emitted = ordered[:, first]
    candidates = np.flatnonzero(_cleaner_than_cheaper(time, emitted))
    kept[candidates] = _unbeaten(usd[candidates].tolist(), emitted[candidates].tolist())
    front = np.zeros(len(order), dtype=bool)
    front[order] = kept[np.cumsum(first) - 1]
    return front


def rank_options(feasible: BoolArray, objective: FloatArray, cost: FloatArray) -> IntArray:
    """Positions in order: feasible ones first, then the lower objective, then the lower cost, then as they came. NaN stands last."""
    order = np.argsort(cost, kind="stable") if objective is cost else np.lexsort((cost, objective))
    return np.concatenate([order[feasible[order]], order[~feasible[order]]])


def _cleaner_than_cheaper(hours: FloatArray, carbon: FloatArray) -> BoolArray:
    """Of ordered options those with less carbon than all before them that take as long: most fall here, at once."""
    rank = np.unique(carbon, return_inverse=True)[1]
    length = np.cumsum(np.diff(hours, prepend=hours[:1]) != 0)
    height = rank - length * (len(rank) + 1)  # every rank of a longer time lies below those of the shorter ones
    found: BoolArray = np.diff(np.minimum.accumulate(height), prepend=len(rank)) < 0
    return found


def _unbeaten(costs: list[float], carbons: list[float]) -> list[bool]:
    """Which of the options, in order, none before equals or beats in both. Those that are cheapest for their carbon make a staircase."""
    stairs_cost: list[float] = []
    stairs_carbon: list[float] = []
    found = []
    for cost, carbon in zip(costs, carbons, strict=True):
        at = bisect_right(stairs_cost, cost)
        unbeaten = at == 0 or stairs_carbon[at - 1] > carbon
        if unbeaten:
            end = at
            while end < len(stairs_carbon) and stairs_carbon[end] >= carbon:
                end += 1
            stairs_cost[at:end], stairs_carbon[at:end] = [cost], [carbon]
        found.append(unbeaten)
    return found
