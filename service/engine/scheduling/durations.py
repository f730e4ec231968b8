"""Durations drawn by chance: log-normal or normal on either side of the median, some of the error shared by all.

Draws come in pairs of opposite deviations: the end of a network rises with every duration, so that a pair's two errors tend to cancel and
never add (Hammersley and Morton 1956).
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
# A probability's standard error is then half a point at most on any network, and a fifth where runs share their error.
DRAWS = 10_000
# Of a seed so many activities' draws are remembered, in powers of two: 20 MB at the most.
MIN_CACHED, MAX_CACHED = 64, 512


@dataclass(frozen=True, slots=True)
class DurationDraws:
    """Standard normal deviations of activities by name, one a draw; `common` are those that they share in part.

    Seven digits are plenty for what chance decides; moments are counted with more.
    """

    own: Mapping[str, Singles]
    common: Singles


def draw_deviations(activities: Iterable[Activity], generator: np.random.Generator, draws: int = DRAWS) -> DurationDraws:
    """Draws for activities and their queues, whose order means nothing, in pairs of opposites: an odd number is made even.

    What activities share decides most where they share anything: it is not left to chance but has one draw in each of as many equally
    probable strata as there are pairs (Latin hypercube in one dimension, McKay et al. 1979).
    """
    ordered, pairs = _draw_names(activities), -(-draws // 2)
    return _antithetic(ordered, generator.standard_normal((len(ordered), pairs), dtype=np.float32))


def draw_seeded(activities: Iterable[Activity], seed: int) -> DurationDraws:
    """`draw_deviations` of a new generator with that seed."""
    ordered, pairs = _draw_names(activities), DRAWS // 2
    if len(ordered) > MAX_CACHED:
        return _antithetic(ordered, _normals(seed, len(ordered), pairs))
    kept = max(MIN_CACHED, 1 << (len(ordered) - 1).bit_length())
    return _antithetic(ordered, _cached_normals(seed, kept, pairs)[: len(ordered)])


def _antithetic(ordered: Sequence[str], half: Singles) -> DurationDraws:
    """Half of the draws, one row a name, and their opposites."""
    pairs = half.shape[1]
    own = np.empty((len(ordered), 2 * pairs), dtype=np.float32)
    own[:, :pairs] = half
    np.negative(half, out=own[:, pairs:])
    common = _stratified_normals(pairs)
    return DurationDraws(dict(zip(ordered, own, strict=True)), np.concatenate((common, -common)))


def sample_durations(net: OrderedNetwork, drawn: DurationDraws) -> Floats:
    """Queues and durations [open h]: log-normal on either side of the median; normal, and not below 0, where the range reaches 0.

    Raises KeyError for an activity that was not drawn.
    """
    hours = np.empty((len(net.activities), drawn.common.size))
    for row, activity in enumerate(net.activities):
        np.add(_sample_queue(activity, drawn), _sample_duration(activity, drawn), out=hours[row])
    return hours


def _draw_names(activities: Iterable[Activity]) -> list[str]:
    """What is drawn, in the order of names."""
    return sorted({name for activity in activities for name in _activity_draw_names(activity)})


def _normals(seed: int, rows: int, pairs: int) -> Singles:
    return np.random.default_rng(seed).standard_normal((rows, pairs), dtype=np.float32)


@lru_cache(maxsize=4)
def _cached_normals(seed: int, rows: int, pairs: int) -> Singles:
    """`_normals`, remembered: the first rows are the same however many follow."""
    found = _normals(seed, rows, pairs)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=4)
def _stratified_normals(count: int) -> Singles:
    """Middles of the equally probable strata of a standard normal quantity."""
    scores = np.array([NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)], dtype=np.float32)
    scores.flags.writeable = False
    return scores


def _activity_draw_names(activity: Activity) -> tuple[str, ...]:
    """What an activity's draws are kept under, those of its queue apart."""
    return (activity.name,) if _is_certain(activity.queue_hours) else (activity.name, _queue_name(activity))


def _is_certain(hours: Range) -> bool:
    return hours.p10 == hours.p90


def _queue_name(activity: Activity) -> str:
    """No activity has a name of two lines."""
    return f"{activity.name}\nqueue"


def _sample_queue(activity: Activity, drawn: DurationDraws) -> Floats | float:
    """The activity's queue in each draw [open h]."""
    queue = activity.queue_hours
    return queue.p50 if _is_certain(queue) else _capped_values(queue, drawn.own[_queue_name(activity)])


def _sample_duration(activity: Activity, drawn: DurationDraws) -> Floats | float:
    """The activity's duration in each draw [open h]."""
    hours, share = activity.hours, activity.common_share
    if _is_certain(hours):
        return hours.p50
    own = drawn.own[activity.name]
    mixed = own if share == 0 else np.float32(math.sqrt(share)) * drawn.common + np.float32(math.sqrt(1 - share)) * own
    return _capped_values(hours, mixed)


def _capped_values(hours: Range, z: Singles) -> Floats:
    """The durations at the scores, up to the longest."""
    found = range_quantiles(hours, z)
    return np.minimum(found, MAX_DURATION_HOURS, out=found)
