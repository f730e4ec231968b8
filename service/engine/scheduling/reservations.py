"""Starts of activities by rank: those of a lower rank leave accelerators to those of a higher one.

The serial schedule generation scheme (Kelley 1963; Kolisch 1996) over ranks, the parallel one within a rank, every duration at its median.
What comes later is placed where it fits without moving what is placed already, the backfilling of batch schedulers (Mu'alem and Feitelson
2001): by medians no activity is later because of one of a lower rank.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence

from service.domain.schedule import AcceleratorPool, ActivityNetwork
from service.engine.scheduling.activity_network import OrderedNetwork, median_finish_hours, order_network
from service.engine.scheduling.calendar import HOURS_PER_DAY, TIME_TOLERANCE_HOURS, hours_until


def reserve_starts(network: ActivityNetwork, pools: Sequence[AcceleratorPool], ranks: Mapping[str, int]) -> dict[str, float]:
    """Start of every activity that needs accelerators, rank by rank.

    Parameters
    ----------
    network : ActivityNetwork
        Activities whose predecessors are of their own rank, or of a lower number.
    pools : sequence of AcceleratorPool
        Accelerators that they share.
    ranks : mapping of str to int
        Rank of each activity by name; the lowest number is placed first.

    Returns
    -------
    dict of str to float
        Hours since the beginning of the network's start [h]; empty where all ranks are equal, which then wait for each other in turn.

    Raises
    ------
    InvalidRequest, UnknownName
        As `order_network`.
    """
    if len(set(ranks.values())) < 2:
        return {}
    net = order_network(network)
    profiles = {pool.name: _Profile(pool, network, ends_count=True) for pool in pools}
    endless = {pool.name: _Profile(pool, network, ends_count=False) for pool in pools}
    order = {activity.name: place for place, activity in enumerate(network.activities)}
    finishes: dict[int, float] = {}
    starts: dict[str, float] = {}
    for rank in sorted(set(ranks.values())):
        waiting = {row for row, activity in enumerate(net.activities) if ranks[activity.name] == rank}
        while waiting:
            eligible = [row for row in waiting if all(before in finishes for before in net.predecessors[row])]
            found = {row: _earliest_start(net, row, finishes, profiles, endless) for row in eligible}
            row = min(eligible, key=lambda row: (found[row], net.activities[row].priority, order[net.activities[row].name]))
            activity, start = net.activities[row], found[row]
            finishes[row] = median_finish_hours(net, row, start)
            if activity.pool:
                starts[activity.name] = start
                for profile in (profiles[activity.pool], endless[activity.pool]):
                    profile.reserve(start, finishes[row], activity.accelerators)
            waiting.discard(row)
    return starts


def _earliest_start(
    net: OrderedNetwork, row: int, finishes: Mapping[int, float], profiles: Mapping[str, _Profile], endless: Mapping[str, _Profile]
) -> float:
    """When an activity can start [h]; what no pool ever holds is left to the levelling, which says so."""
    activity = net.activities[row]
    ready = max([net.earliest_hours[row], *(finishes[before] for before in net.predecessors[row])])
    if not activity.pool:
        return ready
    for profile in (profiles[activity.pool], endless[activity.pool]):
        start = profile.earliest_start(ready, activity.accelerators, lambda hours: median_finish_hours(net, row, hours))
        if start is not None:
            return start
    return ready


class _Profile:
    """Free accelerators of a pool over time: `free[i]` from `times[i]` to `times[i + 1]` [h]."""

    def __init__(self, pool: AcceleratorPool, network: ActivityNetwork, *, ends_count: bool) -> None:
        self.times, self.free = [0.0], [0]
        for share in pool.shares:
            first = 0.0 if share.first is None else max(0.0, hours_until(network.start, share.first))
            last = math.inf if share.last is None or not ends_count else hours_until(network.start, share.last) + HOURS_PER_DAY
            self.reserve(first, last, -share.count)

    def reserve(self, start_hours: float, finish_hours: float, count: int) -> None:
        """Take accelerators from a start to a finish; below 0 adds them."""
        if finish_hours <= start_hours:
            return
        first, last = self._split(start_hours), len(self.times) if math.isinf(finish_hours) else self._split(finish_hours)
        for place in range(first, last):
            self.free[place] -= count

    def earliest_start(self, ready_hours: float, count: int, finish_of: Callable[[float], float]) -> float | None:
        """The first hour from which on enough are free until the finish; None where there are never enough."""
        hours, place = ready_hours, bisect_right(self.times, ready_hours) - 1
        while True:
            last = max(place + 1, bisect_left(self.times, finish_of(hours) - TIME_TOLERANCE_HOURS))
            blocked = next((at for at in range(place, last) if self.free[at] < count), None)
            if blocked is None:
                return hours
            following = next((at for at in range(blocked, len(self.times)) if self.free[at] >= count), None)
            if following is None:
                return None
            hours, place = self.times[following], following

    def _split(self, hours: float) -> int:
        """Index of the part that begins at this hour, made where there is none."""
        place = bisect_left(self.times, hours)
        if place == len(self.times) or self.times[place] != hours:
            self.times.insert(place, hours)
            self.free.insert(place, self.free[place - 1])
        return place
