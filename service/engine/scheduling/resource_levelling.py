"""Resource levelling: activities that share accelerators wait for each other where there are too few.

The parallel schedule generation scheme (Kelley 1963; Kolisch 1996) with every duration at its median decides who goes first: what can start
earliest, of equals the lowest priority number, then the order of the request. Each accelerator then goes from one activity to the next,
and every such hand-over becomes a predecessor (resource flow network, Artigues et al. 2003). The predecessors hold in every draw, an
earliest-start policy (Igelmund and Radermacher 1983): no draw uses more accelerators than there are, and the plan's order is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from heapq import heapify, heappop, heappush
from types import MappingProxyType

from service.domain.errors import InvalidRequest
from service.domain.schedule import AcceleratorPool, Activity, ActivityNetwork, PoolWait
from service.engine.scheduling.activity_network import OrderedNetwork, median_finish_hours, order_network
from service.engine.scheduling.calendar import HOURS_PER_DAY, TIME_TOLERANCE_HOURS, hours_until


@dataclass(frozen=True, slots=True)
class LevelledNetwork:
    """A network whose activities never need more than the pools hold, with its waits. `stated`: the network without the hand-overs.

    `after_end`: names of activities that, by medians, use accelerators after the end of their share of a pool, with the pool of each.
    """

    network: ActivityNetwork
    stated: ActivityNetwork
    waits: tuple[PoolWait, ...]
    after_end: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Units:
    """Accelerators that were last used by one activity (`owner`, None: by none yet), free from `free_hours` to `until_hours`."""

    count: int
    free_hours: float
    until_hours: float
    owner: int | None = None
    first: date | None = None


Taken = Sequence[tuple[_Units, int]]
"""Units that an activity takes, and how many of each."""


@dataclass(frozen=True, slots=True)
class _Start:
    """An activity's start [h] and the units that are free then; `in_time`: whether these last until it is over."""

    hours: float
    free: tuple[_Units, ...]
    in_time: bool = True


def level_resources(
    network: ActivityNetwork, pools: Sequence[AcceleratorPool], reserved_hours: Mapping[str, float] = MappingProxyType({})
) -> LevelledNetwork:
    """The network with a predecessor more for every hand-over of accelerators.

    Parameters
    ----------
    network : ActivityNetwork
        Activities that name a pool occupy `accelerators` of it from their start, with the queue before it, to their end.
    pools : sequence of AcceleratorPool
        With the accelerators that they hold, and from when to when.
    reserved_hours : mapping of str to float
        Start of activities that leave accelerators to others [h since the start], as `reserve_starts` gives it; none takes any before.

    Returns
    -------
    LevelledNetwork
        Waits are by medians [h].

    Raises
    ------
    InvalidRequest
        For an activity that needs more than its pool ever holds; as `order_network`.
    UnknownName
        As `order_network`.
    """
    if not any(activity.pool for activity in network.activities):
        return LevelledNetwork(network, network, (), ())
    return _Levelling(order_network(network), network, pools, reserved_hours).level()


class _Levelling:
    """One pass of the schedule generation scheme. Activities are rows of the ordered network."""

    def __init__(
        self, net: OrderedNetwork, network: ActivityNetwork, pools: Sequence[AcceleratorPool], reserved_hours: Mapping[str, float]
    ) -> None:
        self._net, self._network = net, network
        self._order = {activity.name: place for place, activity in enumerate(network.activities)}
        self._rows = {activity.name: row for row, activity in enumerate(net.activities)}
        self._reserved_hours = reserved_hours
        self._units = {pool.name: list(_pool_units(pool, network.start)) for pool in pools}
        self._finishes: dict[int, float] = {}
        self._before: list[int] = [0] * len(net.activities)
        self._added: dict[int, tuple[int, ...]] = {}
        self._first_days: dict[int, date] = {}
        self._waits: list[PoolWait] = []
        self._after_end: list[tuple[str, str]] = []

    def level(self) -> LevelledNetwork:
        """Start what can start earliest until everything is started."""
        followers = _followers(self._net)
        waiting = [self._key(row, self._ready_hours(row)) for row, predecessors in enumerate(self._net.predecessors) if not predecessors]
        heapify(waiting)
        while waiting:
            row = heappop(waiting)[-1]
            start = self._earliest_start(row)
            key = self._key(row, start.hours)
            if waiting and key > waiting[0]:  # Starts only get later as others take accelerators: what is first now is first.
                heappush(waiting, key)
                continue
            self._begin(row, start)
            for other in followers[row]:
                if all(before in self._finishes for before in self._net.predecessors[other]):
                    heappush(waiting, self._key(other, self._ready_hours(other)))
        activities = tuple(self._levelled(activity) for activity in self._network.activities)
        levelled = replace(self._network, activities=activities)
        return LevelledNetwork(levelled, self._network, tuple(self._waits), tuple(self._after_end))

    def _key(self, row: int, hours: float) -> tuple[float, int, int, int]:
        """What is started first: by hours, then priority, then the order of the request."""
        activity = self._net.activities[row]
        return hours, activity.priority, self._order[activity.name], row

    def _ready_hours(self, row: int) -> float:
        """When nothing but accelerators is waited for."""
        return max([self._net.earliest_hours[row], *(self._finishes[before] for before in self._net.predecessors[row])])

    def _earliest_start(self, row: int) -> _Start:
        activity, ready = self._net.activities[row], self._ready_hours(row)
        if not activity.pool:
            return _Start(ready, ())
        units, ready = self._units[activity.pool], max(ready, self._reserved_hours.get(activity.name, 0.0))
        for until_counts in (True, False):
            for hours in sorted({ready, *(unit.free_hours for unit in units if unit.free_hours > ready)}):
                needed_until = median_finish_hours(self._net, row, hours) if until_counts else -math.inf
                free = [u for u in units if u.free_hours <= hours and u.until_hours >= needed_until - TIME_TOLERANCE_HOURS]
                if sum(unit.count for unit in free) >= activity.accelerators:
                    return _Start(hours, tuple(free), until_counts)
        held = sum(unit.count for unit in units)
        raise InvalidRequest(
            f"{activity.name!r} needs {activity.accelerators:,} accelerators at once, but the pool {activity.pool} has {held:,}:"
            " enlarge the pool, or run fewer in parallel",
            activity.pointer,
        )

    def _take(self, row: int, free: Sequence[_Units], needed: int) -> Iterator[tuple[_Units, int]]:
        """Units of those that the activity follows anyway first, then the ones that became free last."""
        earlier = self._earlier(row)
        for unit in sorted(free, key=lambda unit: (unit.owner is not None and not earlier >> unit.owner & 1, -unit.free_hours)):
            if needed <= 0:
                return
            taken = min(unit.count, needed)
            needed -= taken
            yield unit, taken

    def _earlier(self, row: int) -> int:
        """Bits of the activities that one follows."""
        bits = 0
        for before in self._net.predecessors[row]:
            bits |= self._before[before] | 1 << before
        return bits

    def _begin(self, row: int, start: _Start) -> None:
        activity, ready, earlier = self._net.activities[row], self._ready_hours(row), self._earlier(row)
        taken = tuple(self._take(row, start.free, activity.accelerators))
        self._finishes[row] = median_finish_hours(self._net, row, start.hours)
        owners = {unit.owner for unit, _ in taken if unit.owner is not None and not earlier >> unit.owner & 1}
        self._added[row] = tuple(sorted(owners))
        self._before[row] = earlier
        for owner in owners:
            self._before[row] |= self._before[owner] | 1 << owner
        days = [unit.first for unit, _ in taken if unit.first is not None]
        if days:
            self._first_days[row] = max(days)
        if start.hours > ready + TIME_TOLERANCE_HOURS:
            self._note_wait(activity, taken, start.hours, ready)
        if not start.in_time:
            self._after_end.append((activity.name, activity.pool))
        if activity.pool:
            self._hand_over(row, taken)

    def _note_wait(self, activity: Activity, taken: Taken, start_hours: float, ready: float) -> None:
        others = {unit.owner for unit, _ in taken if unit.owner is not None and unit.free_hours > ready}
        names = tuple(self._net.activities[owner].name for owner in sorted(others))
        free = sum(unit.count for unit in self._units[activity.pool] if unit.free_hours <= ready)
        self._waits.append(PoolWait(activity.name, names, activity.pool, start_hours - ready, max(1, activity.accelerators - free)))

    def _hand_over(self, row: int, taken: Taken) -> None:
        """The taken units become free again when the activity is over."""
        units = self._units[self._net.activities[row].pool]
        by_end: dict[float, int] = {}
        for unit, count in taken:
            unit.count -= count
            by_end[unit.until_hours] = by_end.get(unit.until_hours, 0) + count
        units[:] = [unit for unit in units if unit.count]
        units += [_Units(count, self._finishes[row], until, row) for until, count in by_end.items()]

    def _levelled(self, activity: Activity) -> Activity:
        row = self._rows[activity.name]
        added = tuple(self._net.activities[owner].name for owner in self._added[row])
        day = self._first_days.get(row)
        if day is not None:
            activity = replace(activity, not_before=day if activity.not_before is None else max(day, activity.not_before))
        return replace(activity, predecessors=(*activity.predecessors, *added)) if added else activity


def _followers(net: OrderedNetwork) -> Mapping[int, list[int]]:
    followers: dict[int, list[int]] = {row: [] for row in range(len(net.activities))}
    for row, predecessors in enumerate(net.predecessors):
        for before in set(predecessors):
            followers[before].append(row)
    return followers


def _pool_units(pool: AcceleratorPool, start: date) -> Iterator[_Units]:
    for share in pool.shares:
        first = None if share.first is None or share.first <= start else share.first
        free = 0.0 if first is None else hours_until(start, first)
        until = math.inf if share.last is None else hours_until(start, share.last) + HOURS_PER_DAY
        yield _Units(share.count, free, until, first=first)
