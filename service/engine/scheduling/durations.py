"""Random durations: log-normal or normal on either side of the median, with part of the error shared by all activities.

Draws come in pairs of opposite deviations: the end of a network rises with every duration, so the errors of a pair tend to cancel and never
add (antithetic variates, Hammersley and Morton 1956).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.domain.schedule import Activity
from service.engine.numerics.quantiles import range_quantiles
from service.engine.scheduling.activity_network import MAX_DURATION_HOURS, OrderedNetwork

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
# The standard error of a probability is then half a point at most on any network, and a fifth where runs share their error.
DRAWS = 10_000
# Activities whose draws are cached for a seed, in powers of two: 20 MB at most.
MIN_CACHED, MAX_CACHED = 64, 512
# The inverse of the normal distribution is not defined at 0; no draw is as rare.
MIN_PROBABILITY = 1e-15


@dataclass(frozen=True, slots=True)
class DurationDraws:
    """Standard normal deviations: `own` of each activity by name, (draws,) each; `common` (draws,) that all share in part.

    Single precision is enough for the deviations; times are computed in double precision.
    """

    own: Mapping[str, Singles]
    common: Singles


def draw_deviations(activities: Iterable[Activity], seed: int, draws: int = DRAWS) -> DurationDraws:
    """Deviations of activities and their queues.

    Parameters
    ----------
    activities : iterable of Activity
        Their order does not matter.
    seed : int
        Seed of the activities' own deviations.
    draws : int
        Number of draws; an odd number is made even.

    Returns
    -------
    DurationDraws
        The shared deviation has one draw in each of `draws` / 2 equally probable strata.

    References
    ----------
    Latin hypercube in one dimension: McKay et al. 1979.
    """
    names, pairs = _draw_names(activities), -(-draws // 2)
    if len(names) > MAX_CACHED:
        return _antithetic(names, _normals(seed, len(names), pairs))
    rows = max(MIN_CACHED, 1 << (len(names) - 1).bit_length())
    return _antithetic(names, _cached_normals(seed, rows, pairs)[: len(names)])


def sample_durations(net: OrderedNetwork, draws: DurationDraws) -> Floats:
    """Durations with queues in each draw.

    Parameters
    ----------
    net : OrderedNetwork
        Activities with durations and queues by percentiles.
    draws : DurationDraws
        Deviations of these activities.

    Returns
    -------
    (activities, draws) float array
        Log-normal on either side of the median; normal and at least 0 where the range reaches 0 [open h].

    Raises
    ------
    KeyError
        For an activity without draws.
    """
    hours = np.empty((len(net.activities), draws.common.size))
    for row, activity in enumerate(net.activities):
        if not activity.proportional_to:
            hours[row] = _sample_duration(activity, draws)
    add_proportional_hours(net, hours)
    for row, activity in enumerate(net.activities):
        hours[row] += _sample_queue(activity, draws)
        if activity.probability < 1:
            hours[row] *= _occurrence_scores(activity, draws) < NormalDist().inv_cdf(max(activity.probability, MIN_PROBABILITY))
    return hours


def add_proportional_hours(net: OrderedNetwork, hours: Floats) -> None:
    """Set the rows of activities that follow others' durations, by those durations; (activities, draws), without queues [open h]."""
    rows = {activity.name: row for row, activity in enumerate(net.activities)}
    for row, activity in enumerate(net.activities):
        if activity.proportional_to:
            hours[row] = sum(factor * hours[rows[name]] for name, factor in activity.proportional_to)
            np.minimum(hours[row], MAX_DURATION_HOURS, out=hours[row])


def _antithetic(names: Sequence[str], half: Singles) -> DurationDraws:
    """Half of the draws, one row a name, and their opposites."""
    pairs = half.shape[1]
    own = np.empty((len(names), 2 * pairs), dtype=np.float32)
    own[:, :pairs] = half
    np.negative(half, out=own[:, pairs:])
    common = stratified_normals(pairs)
    return DurationDraws(dict(zip(names, own, strict=True)), np.concatenate((common, -common)))


def _draw_names(activities: Iterable[Activity]) -> list[str]:
    """Sorted names of everything that is drawn: activities, and queues that are not certain."""
    names = set()
    for activity in activities:
        names.add(activity.name)
        if not _is_certain(activity.queue_hours):
            names.add(_queue_name(activity))
        if activity.probability < 1:
            names.add(_occurrence_name(activity.name))
    return sorted(names)


def _normals(seed: int, rows: int, pairs: int) -> Singles:
    return np.random.default_rng(seed).standard_normal((rows, pairs), dtype=np.float32)


@lru_cache(maxsize=4)
def _cached_normals(seed: int, rows: int, pairs: int) -> Singles:
    """`_normals`, cached: the first rows do not depend on how many follow."""
    normals = _normals(seed, rows, pairs)
    normals.flags.writeable = False
    return normals


@lru_cache(maxsize=4)
def stratified_normals(count: int) -> Singles:
    """Middles of `count` equally probable strata of a standard normal variable."""
    middles = np.array([NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)], dtype=np.float32)
    middles.flags.writeable = False
    return middles


def _is_certain(hours: Range) -> bool:
    return hours.p10 == hours.p90


def _queue_name(activity: Activity) -> str:
    """Name of a queue's draws; no activity's name has two lines."""
    return f"{activity.name}\nqueue"


def _occurrence_name(activity: str) -> str:
    """Name of the draws that decide whether an activity takes place."""
    return f"{activity}\noccurrence"


def _occurrence_scores(activity: Activity, draws: DurationDraws) -> Singles:
    """Standard normal deviations that decide whether it takes place, alike where activities happen together."""
    if not activity.occurs_with:
        return draws.own[_occurrence_name(activity.name)]
    parts = [np.float32(weight) * draws.own[_occurrence_name(name)] for name, weight in activity.occurs_with]
    return np.asarray(np.sum(parts, axis=0))


def _sample_queue(activity: Activity, draws: DurationDraws) -> Floats | float:
    """The activity's queue in each draw [open h]."""
    queue = activity.queue_hours
    return queue.p50 if _is_certain(queue) else _capped_values(queue, draws.own[_queue_name(activity)])


def _sample_duration(activity: Activity, draws: DurationDraws) -> Floats | float:
    """The activity's duration in each draw [open h]."""
    hours, share = activity.hours, activity.common_share
    if _is_certain(hours):
        return hours.p50
    own = draws.own[activity.name]
    mixed = own if share == 0 else np.float32(math.sqrt(share)) * draws.common + np.float32(math.sqrt(1 - share)) * own
    return _capped_values(hours, mixed)


def _capped_values(hours: Range, z: Singles) -> Floats:
    """Durations at standard normal deviations z, at most the longest [open h]."""
    values = range_quantiles(hours, z)
    return np.minimum(values, MAX_DURATION_HOURS, out=values)
