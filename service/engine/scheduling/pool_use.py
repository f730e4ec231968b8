"""Use of a pool of accelerators by week, and what is wanted over what it holds, with every duration at its median."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from service.domain.programs.portfolio import PoolWeek
from service.domain.schedule import AcceleratorPool, ActivityNetwork
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.burn_plan import iso_week
from service.engine.scheduling.calendar import HOURS_PER_DAY, HOURS_PER_WEEK, finish_day, hours_until, start_day
from service.engine.scheduling.critical_path import forward_pass, median_durations

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PoolExcess:
    """Accelerators wanted over what a pool holds: at most at a time, in all [accelerator-hours], and from which day to which."""

    accelerators: int
    accelerator_hours: float
    first: date
    last: date


def occupied_hours(network: ActivityNetwork, pool: str) -> Floats:
    """Start, finish [h] and accelerators of every activity on a pool, by medians, (activities, 3)."""
    net = order_network(network)
    times = forward_pass(net, median_durations(net))
    rows = [row for row, activity in enumerate(net.activities) if activity.pool == pool]
    taken = [[times.starts[row, 0], times.finishes[row, 0], net.activities[row].accelerators] for row in rows]
    return np.array(taken, dtype=np.float64).reshape(-1, 3)


def pool_weeks(start: date, pool: AcceleratorPool, used: Floats, wanted: Floats) -> tuple[PoolWeek, ...]:
    """Averages over each week.

    Parameters
    ----------
    start : date
        Day from whose beginning hours are counted.
    pool : AcceleratorPool
        With its shares from day to day.
    used, wanted : (activities, 3) float array
        As `occupied_hours` gives them, of the plan and of the plan without waits.

    Returns
    -------
    tuple of PoolWeek
        Every week from the first use to the last [accelerators]; empty where nothing uses the pool.
    """
    both = np.concatenate((used, wanted))
    if not len(both):
        return ()
    first, last = start_day(start, float(both[:, 0].min())), finish_day(start, float(both[:, 1].max()))
    monday = first - timedelta(days=first.weekday())
    mondays = [monday + timedelta(weeks=week) for week in range((last - monday).days // 7 + 1)]
    edges = np.array([hours_until(start, day) for day in (*mondays, mondays[-1] + timedelta(weeks=1))])
    held = _held(start, pool)
    times = np.unique(np.concatenate((edges, *(rows[:, :2].ravel() for rows in (both, held)))).clip(edges[0], edges[-1]))
    levels = [_levels(times, rows) for rows in (held, used, wanted)]
    levels.append(np.maximum(levels[2] - levels[0], 0.0))
    of_week = np.searchsorted(edges, times[:-1], side="right") - 1
    means = [np.bincount(of_week, level * np.diff(times), len(mondays)) / HOURS_PER_WEEK for level in levels]
    return tuple(PoolWeek(iso_week(day), day, *(round(float(mean[week]), 2) for mean in means)) for week, day in enumerate(mondays))


def pool_excess(start: date, pool: AcceleratorPool, wanted: Floats) -> PoolExcess | None:
    """What is wanted over what the pool holds; None where it holds enough.

    Parameters
    ----------
    start : date
        Day from whose beginning hours are counted.
    pool : AcceleratorPool
        With its shares from day to day.
    wanted : (activities, 3) float array
        As `occupied_hours` gives them.

    Returns
    -------
    PoolExcess or None
        Accelerators and accelerator-hours over the pool.
    """
    if not len(wanted):
        return None
    held = _held(start, pool)
    times = np.unique(np.concatenate((wanted[:, :2].ravel(), held[:, :2].ravel())).clip(wanted[:, 0].min(), wanted[:, 1].max()))
    over = np.maximum(_levels(times, wanted) - _levels(times, held), 0.0)
    (where,) = np.nonzero(over)
    if not len(where):
        return None
    first, last = float(times[where[0]]), float(times[where[-1] + 1])
    return PoolExcess(round(float(over.max())), float(over @ np.diff(times)), start_day(start, first), finish_day(start, last))


def _held(start: date, pool: AcceleratorPool) -> Floats:
    """First hour, last hour and accelerators of each share, (shares, 3)."""
    far = hours_until(start, date.max)
    rows = [
        (
            -far if share.first is None else hours_until(start, share.first),
            far if share.last is None else hours_until(start, share.last) + HOURS_PER_DAY,
            share.count,
        )
        for share in pool.shares
    ]
    return np.array(rows, dtype=np.float64)


def _levels(times: Floats, rows: Floats) -> Floats:
    """Accelerators between each time and the next, (times - 1,)."""
    middles = (times[:-1] + times[1:]) / 2
    return np.asarray(((rows[:, :1] <= middles) & (middles < rows[:, 1:2])).T @ rows[:, 2])
