"""Durations drawn by chance: log-normal or normal on either side of the median, some of the error shared by all.

Draws come in pairs of opposite deviations: the end of a network rises with every duration, so that a pair's two errors tend to cancel and
never add (Hammersley and Morton 1956).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from service.domain.quantity import Range
from service.domain.schedule import Activity
from service.engine.linked_network import LONGEST_HOURS, Linked
from service.engine.uncertainty import P90_DEVIATIONS
from service.engine.work_calendar import MOMENT_HOURS

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Scores = TypeVar("Scores", Floats, Singles, Floats | Singles)
# A probability's standard error is then half a point at most on any network, and a fifth where runs share their error.
DRAWS = 10_000


@dataclass(frozen=True, slots=True)
class Deviations:
    """Standard normal deviations of activities by name, one a draw; `common` are those that they share in part.

    Seven digits are plenty for what chance decides; moments are counted with more.
    """

    own: Mapping[str, Singles]
    common: Singles


def deviations(activities: Iterable[Activity], generator: np.random.Generator, draws: int = DRAWS) -> Deviations:
    """Draws for activities and their queues, whose order means nothing, in pairs of opposites: an odd number is made even.

    What activities share decides most where they share anything: it is not left to chance but has one draw in each of as many equally
    probable strata as there are pairs (Latin hypercube in one dimension, McKay et al. 1979).
    """
    ordered, pairs = sorted({name for activity in activities for name in _drawn_names(activity)}), -(-draws // 2)
    half = generator.standard_normal((len(ordered), pairs), dtype=np.float32)
    own = np.empty((len(ordered), 2 * pairs), dtype=np.float32)
    own[:, :pairs] = half
    np.negative(half, out=own[:, pairs:])
    common = _normal_scores(pairs)
    return Deviations(dict(zip(ordered, own, strict=True)), np.concatenate((common, -common)))


def drawn_hours(net: Linked, drawn: Deviations) -> Floats:
    """Queues and durations [open h]: log-normal on either side of the median; normal, and not below 0, where the range reaches 0.

    Raises KeyError for an activity that was not drawn.
    """
    hours = np.empty((len(net.activities), drawn.common.size))
    for row, activity in enumerate(net.activities):
        hours[row] = _drawn(activity, drawn)
    return hours


@lru_cache(maxsize=4)
def _normal_scores(count: int) -> Singles:
    """Middles of the equally probable strata of a standard normal quantity."""
    scores = np.array([NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)], dtype=np.float32)
    scores.flags.writeable = False
    return scores


def _drawn_names(activity: Activity) -> tuple[str, ...]:
    """What an activity's draws are kept under, those of its queue apart."""
    return (activity.name,) if _is_certain(activity.queue_hours) else (activity.name, _queue_name(activity))


def _is_certain(hours: Range) -> bool:
    return hours.p10 == hours.p90


def _queue_name(activity: Activity) -> str:
    """No activity has a name of two lines."""
    return f"{activity.name}\nqueue"


def _drawn(activity: Activity, drawn: Deviations) -> Floats | float:
    """The activity's queue and duration in each draw [open h]."""
    hours, queue, share = activity.hours, activity.queue_hours, activity.common_share
    waited = queue.p50 if _is_certain(queue) else _quantile(queue, drawn.own[_queue_name(activity)])
    if _is_certain(hours):
        return waited + hours.p50
    own = drawn.own[activity.name]
    mixed = own if share == 0 else np.float32(math.sqrt(share)) * drawn.common + np.float32(math.sqrt(1 - share)) * own
    return waited + _quantile(hours, mixed)


def _quantile(hours: Range, z: Singles) -> Floats:
    """The duration z standard deviations from the median, each side with its own, from 0 to the longest."""
    if hours.p10 < MOMENT_HOURS:
        normal = hours.p50 + two_sided(z, hours.p50 - hours.p10, hours.p90 - hours.p50).astype(np.float64)
        return np.asarray(np.clip(normal, 0.0, LONGEST_HOURS))
    logarithms = two_sided(z, math.log(hours.p50 / hours.p10), math.log(hours.p90 / hours.p50))
    return hours.p50 * np.exp(np.minimum(logarithms, np.float32(math.log(LONGEST_HOURS / hours.p50)))).astype(np.float64)


def two_sided(z: Scores, below: float, above: float) -> Scores:
    """Scores times the distance to the 90th percentile above the median, and to the 10th below it; in the scores' own precision."""
    low, high = z * z.dtype.type(below / P90_DEVIATIONS), z * z.dtype.type(above / P90_DEVIATIONS)
    found: Scores = np.asarray(np.maximum(low, high) if above > below else np.minimum(low, high))
    return found
