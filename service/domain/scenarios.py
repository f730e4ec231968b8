"""Distributions of request fields, the models that trials draw from, the aggregates of trials, and stored scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from service.domain.answer_fields import HIDDEN, MERGED, Doc
from service.domain.deliveries import MAX_URL_CHARACTERS, DeliveryState
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
    """Uniform distribution between two values."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Triangular:
    """Triangular distribution."""

    low: float
    mode: float
    high: float


@dataclass(frozen=True, slots=True)
class Pert:
    """Beta distribution between low and high with mean (low + 4 mode + high) / 6 (Malcolm et al. 1959; Vose's form, a + b = 6)."""

    low: float
    mode: float
    high: float


@dataclass(frozen=True, slots=True)
class Normal:
    """Normal distribution."""

    mean: float
    sd: float


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Log-normal distribution; `sigma` is the standard deviation of the natural logarithm."""

    median: float
    sigma: float


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Distribution with given p10, p50 and p90: log-normal on either side of the median, normal where p10 is 0."""

    range: Range


@dataclass(frozen=True, slots=True)
class Discrete:
    """Discrete distribution; the weights add up to 1."""

    values: tuple[float, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class QueueWait:
    """Hours a job waits in an M/M/c queue of `slots` servers: Poisson arrivals, exponential job times of mean `mean_hours`."""

    slots: int
    arrivals_per_hour: float
    mean_hours: float


Distribution = Uniform | Triangular | Pert | Normal | LogNormal | Percentiles | Discrete | QueueWait


@dataclass(frozen=True, slots=True)
class Regimes:
    """A price that switches between two multiples of the stated one; each lasts exponentially distributed hours with its own mean."""

    calm_factor: float
    scarce_factor: float
    calm_hours: float
    scarce_hours: float


@dataclass(frozen=True, slots=True)
class EvaluationLoad:
    """A run's own evaluation at its medians, once.

    `waited_hours`: in which the machine waits; `elapsed_hours`: until its results are approved. `other_usd`: what costs no machine.
    """

    waited_hours: float = 0.0
    elapsed_hours: float = 0.0
    accelerator_hours: float = 0.0
    other_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class SharedTerm:
    """A machine whose reserved terms several phases of a run use together: `run` with its price and term, and the phases by place."""

    run: Run
    phases: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunModel:
    """A run as trials simulate it.

    `useful_hours`: training alone at the median speed, in wall-clock hours of one repeat. `slowdown`: factor on it, median 1.
    `interval_hours`: planned time between checkpoints. `energy_mwh_per_hour`: per wall-clock hour. `run_equivalents`: repeats, in whole
    runs; `concurrency`: how many of them run at a time. `field_paths`: path of the uncertain request field for each estimate field that
    has a value per trial. `planned_tokens`: what a value of data.tokens is relative to; None: the run's own.
    `phases`: of a run in several, each as it is billed; the run itself is then that of the longest, with all of the data, and
    `shared_terms` are paid beside the phases.
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
    field_paths: Mapping[str, str] = field(default_factory=dict)
    evaluation: EvaluationLoad = EvaluationLoad()
    planned_tokens: float | None = None
    phases: tuple[RunModel, ...] = ()
    shared_terms: tuple[SharedTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class RiskModel:
    """An event that costs a share of its tier's run cost and an amount; `tier` None: of every tier that is reached.

    `activity`: of the network, that takes place where it happens; None: it takes no time.
    """

    probability: float
    cost_share: float
    usd: float
    tier: int | None
    field_path: str | None = None
    activity: str | None = None


@dataclass(frozen=True, slots=True)
class DrawnOverhead:
    """An overhead's activity, its planned share of the run cost [1], and the field whose value takes the share's place in a trial."""

    activity: str
    planned_share: float
    field_path: str


@dataclass(frozen=True, slots=True)
class TierModel:
    """A tier's runs and the costs on top of them. `drawn_overheads`: activities whose planned share of the run cost has a value per trial.

    `overhead_share`: overheads with a fixed share of the run cost; `overhead_field_paths`: fields whose values are further shares.
    `other_lines_usd`: the tier's own cost lines. `accruing_share`: its part of the program's costs that belong to no tier.
    `pass_probability` is that of one decision; a failed one has the tier repeated `repeats` times at most, each with `repeat_usd` beside
    its runs and overheads. `pivot_usd`: expected cost of the program that goes on where the gate is failed for good.
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
    drawn_overheads: tuple[DrawnOverhead, ...] = ()
    repeats: int = 0
    repeat_usd: float = 0.0
    pivot_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class RepeatModel:
    """An activity that repeats another, `source`, where a tier's gate is failed `number` times; it takes as long as that one."""

    activity: str
    source: str
    tier: int
    number: int


@dataclass(frozen=True, slots=True)
class ProgramModel:
    """A program as trials simulate it.

    `correlation`: of different runs' errors. `reserve_share`: evaluation and debugging, as a share of run cost. `accruing_usd`: cost lines
    of no tier; `accruing_usd_per_month`: added for each month that the program takes. `risk_mixing`: rows of the matrix that correlates
    the risks' normal scores; empty: they do not depend on each other.
    """

    tiers: tuple[TierModel, ...]
    network: ActivityNetwork
    correlation: float
    reserve_share: float
    accruing_usd: float
    accruing_usd_per_month: float
    risks: tuple[RiskModel, ...]
    risk_mixing: tuple[tuple[float, ...], ...] = ()
    repeats: tuple[RepeatModel, ...] = ()


@dataclass(frozen=True, slots=True)
class Targets:
    """Deadline [hours from the start] and budget [USD] whose probabilities are estimated; None: not stated."""

    deadline_hours: float | None = None
    budget_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Trials:
    """Outcomes of trials, one element each.

    `usd` ends where a failed gate ends the program; `completed_usd` and `hours` are those with all gates passed. `completed`: whether all
    gates are passed. `time_scores` and `cost_scores`: strength of each cause, in any unit.
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
    """Number of trials, and exact sums of their values and squared values, in counting units."""

    trials: int
    total: int
    squares: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """Number of trials in consecutive bins; `first` is the index of the first bin."""

    first: int
    counts: Ints


@dataclass(frozen=True, slots=True)
class QuantitySums:
    """Moments and histogram of one quantity over trials; `unit` is the size of a counting unit."""

    unit: Decimal
    moments: Moments
    histogram: Histogram


@dataclass(frozen=True, slots=True)
class GroupSums:
    """Number of trials and sum of their values [counting units] in each group of a cause's score."""

    trials: tuple[int, ...]
    totals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Attribution:
    """A quantity's sums by cause, over attributed trials.

    `largest_cause_counts`: in how many trials above the limit each cause contributed most.
    """

    moments: Moments
    causes: Mapping[str, GroupSums]
    largest_cause_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Sums over trials; aggregates of disjoint trials merge to the same bits in any order. `finish_days`: by day of finish."""

    trials: int
    quantities: Mapping[str, QuantitySums]
    counts: Mapping[str, int]
    finish_days: Histogram
    attributions: Mapping[str, Attribution]


@dataclass(frozen=True, slots=True)
class ScenarioRecord:
    """A stored scenario's state. `number` counts a team's scenarios; `review_at`: number of chunks before the next stopping check."""

    id: Annotated[str, Doc("Id of the scenario")]
    team: Annotated[str, HIDDEN]
    number: Annotated[int, HIDDEN]
    kind: Annotated[str, Doc("Kind of evaluation")]
    state: Annotated[JobState, Doc("State, which never goes back: queued, running, then one of the others")]
    units: Annotated[int, HIDDEN]
    units_done: Annotated[int, HIDDEN]
    chunks: Annotated[int, HIDDEN]
    chunks_begun: Annotated[int, HIDDEN]
    review_at: Annotated[int, HIDDEN]
    price_snapshot: Annotated[str, Doc("Price snapshot of all its evaluations")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    error: Annotated[str | None, Doc("Why it failed", max_length=2000)]
    created_at: Annotated[datetime, Doc("Time of submission")]
    updated_at: Annotated[datetime, Doc("Time of the last change")]
    expires_at: Annotated[datetime | None, Doc("Time of deletion, 30 days after its end")]


@dataclass(frozen=True, slots=True)
class EndNotice:
    """Who is told of a scenario's end, and how far that has come; state and attempts are null before the end."""

    host: Annotated[str, Doc("Host of the address", max_length=MAX_URL_CHARACTERS)]
    state: Annotated[DeliveryState | None, Doc("Whether the message has arrived; null before the end")]
    attempts: Annotated[int, Doc("Attempts so far")]
    last_error: Annotated[str | None, Doc("Why the last attempt failed; null: none failed", max_length=2000)]
    sent_at: Annotated[datetime | None, Doc("When the receiver accepted it")]


@dataclass(frozen=True, slots=True)
class ScenarioDetail:
    """A scenario's record with its request, who is told of its end and, once it has succeeded, its result. `target`: as stored."""

    row: Annotated[ScenarioRecord, MERGED]
    request: Annotated[Body, Doc("Request as sent")]
    result: Annotated[Body | None, Doc("Null until it has succeeded; see docs/reference/scenarios.md")]
    target: Annotated[Body | None, HIDDEN] = None
    notify: Annotated[EndNotice | None, Doc("Who is told of its end; null: nobody")] = None
