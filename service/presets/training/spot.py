"""How often spot capacity is taken back, and how often it can be had. The data are in `data/spot.toml`."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from service.domain.quantities import Range
from service.presets.documents import build, load_document


@dataclass(frozen=True, slots=True)
class SpotPreemptions:
    """Preemptions of one node of spot capacity [1/h], and who says so."""

    per_node_hour: Range
    source: str


@dataclass(frozen=True, slots=True)
class SpotSet:
    """Traces of instances that were requested together.

    Attributes
    ----------
    instances, traces : int
        Instances of a set, and how many sets were traced.
    share_of_time : float
        Time in which all of them could be had [1].
    losses_per_hour : float
        Losses of a full set [1/h].
    hours_until_back : float
        Mean time until all can be had again [h].
    """

    instances: int
    traces: int
    share_of_time: float
    losses_per_hour: float
    hours_until_back: float


@functools.cache
def spot_preemptions() -> SpotPreemptions:
    """Preemptions where the caller states none."""
    row = load_document("spot")["preemptions_per_node_hour"]
    return SpotPreemptions(build(Range, row), row["source"])


@dataclass(frozen=True, slots=True)
class SpotCapacity:
    """Share of the time in which spot capacity can be had [1], and who says so."""

    share_of_time: Range
    source: str


@functools.cache
def spot_capacity() -> SpotCapacity:
    """Share of the time where the caller states none."""
    row = load_document("spot")["share_of_time"]
    return SpotCapacity(build(Range, row), row["source"])


@functools.cache
def spot_sets() -> tuple[SpotSet, ...]:
    """Traced sets, the smallest first."""
    return tuple(build(SpotSet, row) for row in load_document("spot")["set"])
