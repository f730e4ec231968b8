"""A program's state as it is tracked: what is spent, earned and foretold, and what is to be decided. The names are the contract's.

A figure that can't be known is None, never 0, and an `UnknownFigure` says why. Definitions: docs/tracking.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from service.domain.programs.program import TierName
from service.domain.quantities import Range
from service.domain.tracking.events import Recommendation, Verdict
from service.domain.training.estimate import FinishDates

DriftQuantity = Literal["throughput", "price", "goodput", "failures"]
LossFinding = Literal["spike", "not_a_number", "plateau", "diverging"]
WindowName = Literal["whole", "28d", "7d", "24h"]
RunState = Literal["not_started", "running", "interrupted", "finished", "closed"]


@dataclass(frozen=True, slots=True)
class UnknownFigure:
    """Why a figure is None: `field` is its name in the block."""

    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class SpendLine:
    """What is spent on a line: `compute`, or what a `cost` event names."""

    line: str
    usd: float


@dataclass(frozen=True, slots=True)
class Spend:
    """What is spent to date, relaunches summed. `tokens` are those earned, that count in the surviving line.

    `usd` is the sum of what is known, `complete` False where a run's cost is not. `remaining_usd` are the funds left of the budget, below 0
    where they are overspent.
    """

    usd: float | None
    accelerator_hours: float | None
    tokens: float
    lines: tuple[SpendLine, ...] = ()
    complete: bool = True
    remaining_usd: float | None = None
    share_of_budget: float | None = None


@dataclass(frozen=True, slots=True)
class BurnWindow:
    """What is used up a day over a window of `hours` hours; `whole` is from the first event to the last, the others end now."""

    window: WindowName
    hours: float
    usd_per_day: float | None
    accelerator_hours_per_day: float | None
    tokens_per_day: float | None
    checkpoints_per_day: float | None


@dataclass(frozen=True, slots=True)
class BurnRate:
    """What is used up a day, from the first event to the last; `windows` has the same of the last days. None before time has passed."""

    usd_per_day: float | None
    accelerator_hours_per_day: float | None
    tokens_per_day: float | None
    checkpoints_per_day: float | None
    windows: tuple[BurnWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class EarnedValue:
    """Earned value by ANSI/EIA-748 and the PMI's Standard for Earned Value Management, with tokens as the measure of progress.

    `bac_usd` is the budget at completion, `tokens_share` the share of the planned tokens that is earned, `basis` how they are weighed.
    """

    pv_usd: float | None
    ev_usd: float | None
    ac_usd: float | None
    cpi: float | None
    spi: float | None
    eac_usd: float | None
    tcpi: float | None
    bac_usd: float | None
    cv_usd: float | None
    sv_usd: float | None
    vac_usd: float | None
    tokens_share: float | None
    basis: str
    unknown: tuple[UnknownFigure, ...] = ()


@dataclass(frozen=True, slots=True)
class CompletionForecast:
    """Cost at completion and the day it is done, p10-p50-p90, from the run's own history as far as there is one, and what is left."""

    cost_usd: Range | None
    finish: FinishDates | None
    remaining_hours: Range | None
    remaining_usd: Range | None
    remaining_accelerator_hours: Range | None
    basis: str
    unknown: tuple[UnknownFigure, ...] = ()


@dataclass(frozen=True, slots=True)
class Drift:
    """A lasting change of a run's rate: `change` is the signed share (-0.15: 15 % less), seen since `since`."""

    run: str
    quantity: DriftQuantity
    since: datetime
    change: float
    confidence: float


@dataclass(frozen=True, slots=True)
class InterruptionSummary:
    """Failures against their budget. `budgeted` is of the whole plan, `expected` what of it belongs to the work done so far.

    `probability` is that of so many or more by the budget's rate (Poisson). `downtime_hours` are run-hours, `lost_tokens` trained twice or
    left behind.
    """

    count: int
    budgeted: float | None
    expected: float | None
    probability: float | None
    downtime_hours: float
    lost_tokens: float
    causes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class GateStatus:
    """The half-spend gate. `due_usd` is the spend it is due at; `decided` a decision that closed it; `reasons` are in figures."""

    due: bool
    recommendation: Recommendation
    reasons: tuple[str, ...]
    due_usd: float | None = None
    metric: float | None = None
    pivot_to: str | None = None
    decided: Verdict | None = None
    decided_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CostDriver:
    """What one cause adds to the cost, or saves (below 0), in whole cents."""

    cause: str
    usd: Decimal


@dataclass(frozen=True, slots=True)
class CostDrivers:
    """Why the cost moved: `parts`, the largest first, add up to `usd` exactly. `comparison` says what is compared with what."""

    comparison: str
    usd: Decimal
    parts: tuple[CostDriver, ...]
    headline: str


@dataclass(frozen=True, slots=True)
class UtilisationStatus:
    """What the accelerators did against the plan, shares of 1. `share`: of their time in use, as utilisation events tell it."""

    mfu: float | None
    planned_mfu: float | None
    goodput: float | None
    planned_goodput: float | None
    share: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class CheckpointCadence:
    """Checkpoints against the plan's interval, downtime left out. `on_schedule` is None where no interval is planned or it is too early to
    say."""

    count: int
    bytes: int
    last_at: datetime | None
    interval_minutes: float | None
    longest_gap_minutes: float | None
    planned_interval_minutes: float | None
    on_schedule: bool | None


@dataclass(frozen=True, slots=True)
class LossAlarm:
    """Something wrong with the loss, in figures in `text`."""

    finding: LossFinding
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class LossProjection:
    """Where the loss will end at the planned tokens, by the extrapolation of `/v1/loss-curves`, against a planned loss if there is one."""

    loss: Range
    planned_loss: float | None
    probability_of_planned: float | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LossStatus:
    """The run's loss: the newest finite one [nats a token], its lowest hourly median, what is wrong with it, and where it will end."""

    last: float | None
    lowest: float | None
    state: Literal["falling", "flat", "diverging"] | None
    alarms: tuple[LossAlarm, ...]
    projection: LossProjection | None = None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run's own part of the program's status."""

    name: str
    tier: TierName | None
    state: RunState
    started_at: datetime | None
    last_event_at: datetime | None
    events: int
    planned_tokens: float | None
    spend: Spend
    burn_rate: BurnRate
    earned_value: EarnedValue
    forecast: CompletionForecast
    utilisation: UtilisationStatus
    drift: tuple[Drift, ...]
    interruptions: InterruptionSummary
    checkpoints: CheckpointCadence
    loss: LossStatus
    cost_drivers: CostDrivers | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProgramStatus:
    """The program as of `as_of` (inclusive). `goodput` is useful time over the runs' wall-clock time, weighed by their time."""

    name: str
    as_of: datetime
    spend: Spend
    burn_rate: BurnRate
    earned_value: EarnedValue
    forecast: CompletionForecast
    goodput: float | None
    drift: tuple[Drift, ...]
    interruptions: InterruptionSummary
    gate: GateStatus
    cost_drivers: CostDrivers | None
    deadline_missed: bool | None
    runs: tuple[RunStatus, ...]
    warnings: tuple[str, ...]
