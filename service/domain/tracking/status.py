"""Status of a tracked program: spend, earned value, forecast, drift, failures, gate. The names are the contract's.

An unknown figure is None, never 0, and an `UnknownFigure` gives the reason. Definitions: docs/tracking.md.
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
    """Spend by line: `compute`, or the line of a `cost` event."""

    line: str
    usd: float


@dataclass(frozen=True, slots=True)
class Spend:
    """Spend to date, relaunches summed. `tokens` are those on the surviving line.

    `usd` is the sum of what is known, `complete` is False where the cost of a run is unknown. `remaining_usd` is budget less spend,
    negative when overspent.
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
    """Use a day over a window of `hours` hours; `whole` is from the first event to the last, the others end now."""

    window: WindowName
    hours: float
    usd_per_day: float | None
    accelerator_hours_per_day: float | None
    tokens_per_day: float | None
    checkpoints_per_day: float | None


@dataclass(frozen=True, slots=True)
class BurnRate:
    """Use a day from the first event to the last; `windows` has recent windows. None before time has passed."""

    usd_per_day: float | None
    accelerator_hours_per_day: float | None
    tokens_per_day: float | None
    checkpoints_per_day: float | None
    windows: tuple[BurnWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class EarnedValue:
    """Earned value by ANSI/EIA-748 and the PMI's Standard for Earned Value Management, with tokens as the measure of progress.

    `bac_usd` is the budget at completion, `tokens_share` the share of the planned tokens that is done, `basis` how runs are weighted.
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
    """Cost at completion and finish date as p10, p50, p90, and what is left, from the history and the plan."""

    cost_usd: Range | None
    finish: FinishDates | None
    remaining_hours: Range | None
    remaining_usd: Range | None
    remaining_accelerator_hours: Range | None
    basis: str
    unknown: tuple[UnknownFigure, ...] = ()


@dataclass(frozen=True, slots=True)
class Drift:
    """A lasting change of a run's rate: `change` is a signed share (-0.15: 15 % less), present since `since`."""

    run: str
    quantity: DriftQuantity
    since: datetime
    change: float
    confidence: float


@dataclass(frozen=True, slots=True)
class InterruptionSummary:
    """Interruptions against the failure budget. `budgeted` is of the whole plan, `expected` for the work done so far.

    `probability` is the Poisson probability of at least this count. `downtime_hours` are run-hours, `lost_tokens` trained tokens that no
    longer count.
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
    """The half-spend gate. `due_usd` is the spend at which it is due; `decided` a decision that closed it; `reasons` hold figures."""

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
    """Contribution of a cause to the cost [USD], in whole cents; negative where it saves."""

    cause: str
    usd: Decimal


@dataclass(frozen=True, slots=True)
class CostDrivers:
    """Contributions to a cost difference, largest first; they add up to `usd` exactly. `comparison` names what is compared."""

    comparison: str
    usd: Decimal
    parts: tuple[CostDriver, ...]
    headline: str


@dataclass(frozen=True, slots=True)
class UtilisationStatus:
    """Utilisation against the plan [1]. `share`: of the accelerators' time in use, from utilisation events."""

    mfu: float | None
    planned_mfu: float | None
    goodput: float | None
    planned_goodput: float | None
    share: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class CheckpointCadence:
    """Checkpoints against the planned interval, without downtime. `on_schedule` is None without a plan or when it is too early."""

    count: int
    bytes: int
    last_at: datetime | None
    interval_minutes: float | None
    longest_gap_minutes: float | None
    planned_interval_minutes: float | None
    on_schedule: bool | None


@dataclass(frozen=True, slots=True)
class LossAlarm:
    """A problem of the loss, with figures in `text`."""

    finding: LossFinding
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class LossProjection:
    """Projected final loss at the planned tokens, by the extrapolation of `/v1/loss-curves`, against a planned loss if there is one."""

    loss: Range
    planned_loss: float | None
    probability_of_planned: float | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LossStatus:
    """Loss of a run: last finite one [nats per token], lowest hourly median, alarms, and projected final loss."""

    last: float | None
    lowest: float | None
    state: Literal["falling", "flat", "diverging"] | None
    alarms: tuple[LossAlarm, ...]
    projection: LossProjection | None = None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Status of one run."""

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
    """Status of a program as of `as_of` (inclusive). `goodput` is useful time over wall-clock time of the runs [1]."""

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
