"""What can happen: distributions of a request's fields, what a trial of a run or a program is made of, and what trials add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.jobs import JobState
from service.domain.quantities import Range
from service.domain.schedule import ActivityNetwork
from service.domain.training.run import Run

Body = Mapping[str, Any]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Uniform:
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Triangular:
    low: float
    mode: float
    high: float


@dataclass(frozen=True, slots=True)
class Pert:
    """A beta distribution between low and high with mean (low + 4 mode + high) / 6 (Malcolm et al. 1959; Vose's form, a + b = 6)."""

    low: float
    mode: float
    high: float


@dataclass(frozen=True, slots=True)
class Normal:
    mean: float
    sd: float


@dataclass(frozen=True, slots=True)
class LogNormal:
    """`sigma` is the standard deviation of the natural logarithm."""

    median: float
    sigma: float


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Log-normal on either side of the median, or normal from 0 on where p10 is 0: as ranges are drawn everywhere."""

    range: Range


@dataclass(frozen=True, slots=True)
class Discrete:
    """One of some values; weights add up to 1."""

    values: tuple[float, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class QueueWait:
    """Hours that a job waits in a queue of `slots` equal places: jobs come as a Poisson process and take exponential times (M/M/c)."""

    slots: int
    arrivals_per_hour: float
    mean_hours: float


Distribution = Uniform | Triangular | Pert | Normal | LogNormal | Percentiles | Discrete | QueueWait


@dataclass(frozen=True, slots=True)
class Regimes:
    """A price that is one of two multiples of the stated one, each for exponential times of its own mean [h]: capacity calm or scarce."""

    calm_factor: float
    scarce_factor: float
    calm_hours: float
    scarce_hours: float


@dataclass(frozen=True, slots=True)
class RunModel:
    """What a trial of a run is made of.

    `useful_hours`: training alone, on the wall clock, at the median speed. `slowness`: the factor on it that runs like it took, p50 1.
    `interval_hours`: between checkpoints, as planned. `energy_mwh_per_hour`: of wall clock. `work`: whole runs' worth that repeats
    make, `lanes` of them at once. `fields`: paths of the fields that trials have values of their own for, by the field of an estimate.
    """

    name: str
    run: Run
    useful_hours: float
    slowdown: Range
    queue_hours: Range
    interval_hours: float
    checkpoint_tb: float
    energy_mwh_per_hour: float
    run_equivalents: float = 1.0
    concurrency: float = 1.0
    regimes: Regimes | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RiskModel:
    """An event that costs a share of what its tier's runs cost (all reached where None) and an amount."""

    probability: float
    cost_share: float
    usd: float
    tier: int | None
    field: str | None = None


@dataclass(frozen=True, slots=True)
class TierModel:
    """Runs, and what comes with them: overheads as a share of what they cost and as an amount, own lines, the part of what accrues.

    `overhead_fields`: fields whose values are further shares, beside `overhead_share`. `sign_off`: the gate's activity, None without gate.
    """

    runs: tuple[RunModel, ...]
    activities: tuple[str, ...]
    overhead_share: float
    overhead_usd: float
    other_lines_usd: float
    accruing_share: float
    pass_probability: float
    gate_field_path: str | None = None
    overhead_field_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramModel:
    """What a trial of a program is made of. `correlation`: of different runs' errors. Lines that belong to no tier cost `accruing_usd`, and
    `accruing_usd_per_month` for each month that the program takes.
    """

    tiers: tuple[TierModel, ...]
    network: ActivityNetwork
    correlation: float
    reserve_share: float
    accruing_usd: float
    accruing_usd_per_month: float
    risks: tuple[RiskModel, ...]


@dataclass(frozen=True, slots=True)
class Targets:
    """What trials are held against; None where nothing is asked. `deadline_hours` and days are counted from the start."""

    deadline_hours: float | None = None
    budget_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Trials:
    """What happened in each of many trials. `usd` is up to where a failed gate ended the program, `completed_usd` with all gates passed.

    `hours` are those of the whole, gates passed. `time_scores` and `cost_scores`: how hard each cause struck, in any unit.
    """

    usd: Floats
    completed_usd: Floats
    hours: Floats
    accelerator_hours: Floats
    completed: NDArray[np.bool_]
    time_scores: Mapping[str, Floats]
    cost_scores: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over trials of whole numbers of units, and of their squares: exact in any order."""

    trials: int
    total: int
    squares: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many trials fell into each of consecutive bins, from number `first` on."""

    first: int
    counts: Ints


@dataclass(frozen=True, slots=True)
class QuantitySums:
    """One quantity over all trials. A trial's value counts `unit` at a time."""

    unit: Decimal
    moments: Moments
    histogram: Histogram


@dataclass(frozen=True, slots=True)
class GroupSums:
    """Trials by how hard a cause struck: how many in each group, and their sums of units."""

    trials: tuple[int, ...]
    totals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Attribution:
    """One quantity by its causes, over the trials that were looked at; and how often each cause did most where a limit was passed."""

    moments: Moments
    causes: Mapping[str, GroupSums]
    largest_cause_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What trials add up to: tallies of disjoint trials add in any order to the same bits. `days`: over by the end of which day."""

    trials: int
    quantities: Mapping[str, QuantitySums]
    counts: Mapping[str, int]
    days: Histogram
    attributions: Mapping[str, Attribution]


@dataclass(frozen=True, slots=True)
class ScenarioRecord:
    """A scenario as it stands. `number` counts a team's scenarios; times are UTC."""

    id: str
    team: str
    number: int
    kind: str
    state: JobState
    units: int
    units_done: int
    chunks: int
    chunks_begun: int
    review_at: int
    price_snapshot: str
    engine_version: str
    error: str | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class ScenarioDetail:
    """A scenario with what was asked and, when it has succeeded, what has come of it."""

    row: ScenarioRecord
    request: Body
    result: Body | None
