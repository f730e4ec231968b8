"""A program's runs: what one run uses, and how often it is repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from service.domain.answer_fields import Doc
from service.domain.quantities import Range
from service.domain.training.estimate import COMPUTE_LINE

NO_TIME = Range(0.0, 0.0, 0.0)


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

    usd: Annotated[Range, Doc("Cost of the runs", "USD", nullable=True)]
    accelerator_hours: Annotated[Range, Doc("Accelerator-hours of the runs", "accelerator-hours")]
    wall_clock_hours: Annotated[Range, Doc("Time on the clock, one run after another", "h")]
    flops: Annotated[float, Doc("Training arithmetic", "FLOP", maximum=1e40)]
    tokens: Annotated[float, Doc("Tokens trained on, with every epoch", "tokens", maximum=1e40)]
    tco2e: Annotated[float, Doc("Emissions, in tonnes of CO2 equivalent", "t CO2e", maximum=1e40)]

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
    """A run as it is estimated, made once, and how often it is repeated. `lines` add up to `use.usd.p50`, to the cent.

    `overhead_share`: work around it by its own request, in its cost already, that takes its machine as long as its share says.
    `evaluation_hours`: until its own evaluation is over and approved, in its cost already.
    It occupies `accelerators` of its `pool`; of runs that wait for a pool the lowest `priority` number goes first.
    One that is not `priced`, as nobody sells its accelerator, has the lines that need no price.
    """

    name: str
    accelerator: str
    lines: tuple[RunCostLine, ...]
    use: ResourceUse
    reliability: RunReliability
    repetition: RunRepetition = RunRepetition()
    priced: bool = True
    overhead_share: float = 0.0
    evaluation_hours: Range = NO_TIME
    accelerators: int = 1
    pool: str = ""
    priority: int = 0

    @property
    def occupied(self) -> int:
        """Accelerators that it needs at once, runs side by side included."""
        return self.accelerators * min(self.repetition.concurrency, self.repetition.runs)

    @property
    def compute_usd(self) -> Decimal:
        """Cost of one run's accelerator-hours [USD]."""
        return sum((line.usd for line in self.lines if line.line == COMPUTE_LINE), Decimal(0))
