"""A program's runs: what one run uses, and how often it is repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from service.domain.quantities import Range

COMPUTE_LINE = "compute"
"""The line of a run's cost that is accelerator-hours times their price."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A point of early stopping: at the share `at` of a whole run, the share `keep` of the candidates goes on."""

    at: float
    keep: float


@dataclass(frozen=True, slots=True)
class RunRepetition:
    """How often a run is made. Candidates are the points of its grid x repeats; each is trained with every seed.

    `grid`: number of values of each axis. `rungs`: shares of the run in rising order; candidates that go on continue from their checkpoint.
    `concurrency`: runs side by side.
    """

    repeat: int = 1
    grid: tuple[int, ...] = ()
    seeds: int = 1
    rungs: tuple[Rung, ...] = ()
    concurrency: int = 1

    @property
    def candidates(self) -> int:
        """Number of configurations tried."""
        return math.prod(self.grid) * self.repeat

    @property
    def runs(self) -> int:
        """Number of runs started."""
        return self.candidates * self.seeds


@dataclass(frozen=True, slots=True)
class RunCostLine:
    """A line of one run's cost, in whole cents."""

    line: str
    usd: Decimal


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """What training uses: cost, time, compute, tokens (repeats counted) and carbon."""

    usd: Range
    accelerator_hours: Range
    wall_clock_hours: Range
    flops: float
    tokens: float
    tco2e: float

    def scaled(self, factor: float) -> ResourceUse:
        """All quantities times a factor of 0 or more."""
        return ResourceUse(
            self.usd.scaled(factor),
            self.accelerator_hours.scaled(factor),
            self.wall_clock_hours.scaled(factor),
            self.flops * factor,
            self.tokens * factor,
            self.tco2e * factor,
        )


@dataclass(frozen=True, slots=True)
class RunReliability:
    """What failures take of one run. `lost_hours`: wall-clock hours that failures and checkpoints take; `goodput`: share of useful time."""

    interruptions: float
    lost_hours: float
    goodput: float
    checkpoint_interval_minutes: float


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run as it is estimated, made once, and how often it is repeated. `lines` add up to `use.usd.p50`, to the cent."""

    name: str
    accelerator: str
    lines: tuple[RunCostLine, ...]
    use: ResourceUse
    reliability: RunReliability
    repetition: RunRepetition = RunRepetition()
