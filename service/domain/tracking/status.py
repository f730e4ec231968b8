"""Status of a tracked program: spend, earned value, forecast, drift, failures, gate. The names are the contract's.

An unknown figure is None, never 0, and an `UnknownFigure` gives the reason. Definitions: docs/reference/tracking.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal

from service.domain.answer_fields import Doc, share
from service.domain.programs.branches import GateDecision
from service.domain.programs.tiers import TIERS, TierName
from service.domain.quantities import Range
from service.domain.tracking.budget import BudgetBridge, EnergyUse
from service.domain.tracking.events import Recommendation, Verdict
from service.domain.tracking.gates import TierGateStatus
from service.domain.tracking.quality import GuardrailStatus, MetricQuality
from service.domain.tracking.risks import ReserveStatus, TrackedRisk
from service.domain.training.estimate import FinishDates

DriftQuantity = Literal["throughput", "price", "goodput", "failures", "tokens_per_day"]
DriftReference = Literal["itself", "plan"]
LossFinding = Literal["spike", "not_a_number", "plateau", "diverging"]
WindowName = Literal["whole", "28d", "7d", "24h"]
RunState = Literal["not_started", "running", "silent", "interrupted", "finished", "closed"]


@dataclass(frozen=True, slots=True)
class UnknownFigure:
    """Why a figure is None: `field` is its name in the block."""

    field: Annotated[str, Doc("Name of the figure in the block")]
    reason: Annotated[str, Doc("Why it is null", max_length=5000)]


@dataclass(frozen=True, slots=True)
class SpendLine:
    """Spend by line: `compute`, or the line of a `cost` event."""

    line: Annotated[str, Doc("compute, or the line of a cost event")]
    usd: Annotated[float, Doc("Cost; credits are negative", "USD")]


@dataclass(frozen=True, slots=True)
class Spend:
    """Spend to date, relaunches summed. `tokens` are those on the surviving line.

    `usd` is the sum of what is known, `complete` is False where the cost of a run is unknown. `remaining_usd` is budget less spend,
    negative when overspent.
    """

    usd: Annotated[float | None, Doc("Sum of what is known; null where nothing is", "USD")]
    accelerator_hours: Annotated[float | None, Doc("Accelerator-hours to date; null where unknown", "accelerator-hours")]
    tokens: Annotated[float, Doc("Tokens on the surviving line", "tokens")]
    lines: Annotated[tuple[SpendLine, ...], Doc("Cost by line")] = ()
    complete: Annotated[bool, Doc("false: the cost of a run is unknown, and `usd` is a partial sum")] = True
    remaining_usd: Annotated[float | None, Doc("Budget less spend, negative when overspent; null without a budget", "USD")] = None
    share_of_budget: Annotated[float | None, Doc("Spend over budget; null without a budget", "1")] = None


@dataclass(frozen=True, slots=True)
class BurnWindow:
    """Use a day over a window of `hours` hours; `whole` is from the first event to the last, the others end now."""

    window: Annotated[WindowName, Doc("whole: from the first event to the last; the others end now")]
    hours: Annotated[float, Doc("Length of the window; shorter for a young program", "h")]
    usd_per_day: Annotated[float | None, Doc("Cost a day; null where unknown", "USD per day")]
    accelerator_hours_per_day: Annotated[float | None, Doc("Accelerator-hours a day; null where unknown", "accelerator-hours per day")]
    tokens_per_day: Annotated[float | None, Doc("Tokens on the surviving line a day; null where unknown", "tokens per day")]
    checkpoints_per_day: Annotated[float | None, Doc("Checkpoints a day; null where unknown", "checkpoints per day")]


@dataclass(frozen=True, slots=True)
class PlannedBurnRate:
    """Use of a day as planned for the status's day: that of its week in the burn plan, or of a run's planned days; 0 outside them."""

    usd_per_day: Annotated[float | None, Doc("Planned cost of the day; null: not planned", "USD per day")]
    accelerator_hours_per_day: Annotated[float | None, Doc("Planned accelerator-hours; null: not planned", "accelerator-hours per day")]
    tokens_per_day: Annotated[float | None, Doc("Planned tokens; null: not planned", "tokens per day")]
    checkpoints_per_day: Annotated[float | None, Doc("Planned checkpoints; null: not planned", "checkpoints per day")]


@dataclass(frozen=True, slots=True)
class BurnRate:
    """Use a day from the first event to the last; `windows` has recent windows. None before time has passed."""

    usd_per_day: Annotated[float | None, Doc("Cost a day; null where unknown", "USD per day")]
    accelerator_hours_per_day: Annotated[float | None, Doc("Accelerator-hours a day; null where unknown", "accelerator-hours per day")]
    tokens_per_day: Annotated[float | None, Doc("Tokens on the surviving line a day; null where unknown", "tokens per day")]
    checkpoints_per_day: Annotated[float | None, Doc("Checkpoints a day; null where unknown", "checkpoints per day")]
    windows: Annotated[tuple[BurnWindow, ...], Doc("Burn rate by window", max_items=4)] = ()
    planned: Annotated[PlannedBurnRate | None, Doc("As planned for the day; null without a plan")] = None


@dataclass(frozen=True, slots=True)
class EarnedValue:
    """Earned value by ANSI/EIA-748 and the PMI's Standard for Earned Value Management, with tokens as the measure of progress.

    `bac_usd` is the budget at completion, `tokens_share` the share of the planned tokens that is done, `basis` how runs are weighted.
    """

    pv_usd: Annotated[float | None, Doc("Planned value until now", "USD")]
    ev_usd: Annotated[float | None, Doc("Earned value: budgeted cost of the work done", "USD")]
    ac_usd: Annotated[float | None, Doc("Actual cost; unknown while the cost of one run is", "USD")]
    cpi: Annotated[float | None, Doc("EV / AC: above 1, work costs less than planned", "1")]
    spi: Annotated[float | None, Doc("EV / PV: above 1, more is done than planned", "1")]
    eac_usd: Annotated[float | None, Doc("BAC / CPI: the measured work at its mean cost so far; a check, the forecast counts", "USD")]
    tcpi: Annotated[float | None, Doc("(BAC - EV) / (BAC - AC): the CPI needed for the rest", "1")]
    bac_usd: Annotated[float | None, Doc("Budget at completion", "USD")]
    cv_usd: Annotated[float | None, Doc("EV - AC", "USD")]
    sv_usd: Annotated[float | None, Doc("EV - PV", "USD")]
    vac_usd: Annotated[float | None, Doc("BAC - EAC", "USD")]
    tokens_share: Annotated[float | None, share("Part of the planned work that is done")]
    basis: Annotated[str, Doc("How runs are weighted")]
    unknown: Annotated[tuple[UnknownFigure, ...], Doc("Why figures of the block are null")] = ()


@dataclass(frozen=True, slots=True)
class CompletionForecast:
    """Cost at completion and finish date as p10, p50, p90, and what is left, from the history and the plan."""

    cost_usd: Annotated[Range | None, Doc("Cost at completion, spend included; null where unknown", "USD")]
    finish: Annotated[FinishDates | None, Doc("Day on which it is done; null where unknown")]
    remaining_hours: Annotated[Range | None, Doc("Wall-clock time left; null where unknown", "h")]
    remaining_usd: Annotated[Range | None, Doc("Cost of what is left; null where unknown", "USD")]
    remaining_accelerator_hours: Annotated[Range | None, Doc("Accelerator-hours left; null where unknown", "accelerator-hours")]
    basis: Annotated[str, Doc("Basis of the forecast", max_length=1000)]
    unknown: Annotated[tuple[UnknownFigure, ...], Doc("Why figures of the block are null")] = ()


@dataclass(frozen=True, slots=True)
class Drift:
    """A lasting change of a run's rate: `change` is a signed share (-0.15: 15 % less), present since `since`.

    `against` itself: relative to the run's own level before; against the plan: to the plan's median, beyond the plan's own range.
    """

    run: Annotated[str, Doc("Name of the run")]
    quantity: Annotated[DriftQuantity, Doc("What has changed")]
    since: Annotated[datetime, Doc("When the change began")]
    change: Annotated[float, Doc("Signed relative change: -0.15 is 15 % less", "1")]
    confidence: Annotated[float, share("Confidence that it is a lasting change")]
    against: Annotated[DriftReference, Doc("What it is compared with")] = "itself"


@dataclass(frozen=True, slots=True)
class InterruptionSummary:
    """Interruptions against the failure budget. `budgeted` is of the whole plan, `expected` for the work done so far.

    `probability` is the Poisson probability of at least this count. `downtime_hours` are run-hours, `lost_tokens` trained tokens that no
    longer count.
    """

    count: Annotated[int, Doc("Interruptions to date")]
    budgeted: Annotated[float | None, Doc("Failure budget of the whole plan; null without one", "count")]
    expected: Annotated[float | None, Doc("Part of the budget for the work done so far; null without one", "count")]
    probability: Annotated[float | None, share("Probability of at least this count at the budget's rate (Poisson); null without a budget")]
    downtime_hours: Annotated[float, Doc("Run-hours out of work", "h")]
    lost_tokens: Annotated[float, Doc("Tokens lost by rollbacks and branches", "tokens")]
    causes: Annotated[Mapping[str, int], Doc("Count by cause")]


@dataclass(frozen=True, slots=True)
class GateStatus:
    """The half-spend gate. `due_usd` is the spend at which it is due; `decided` a decision that closed it; `reasons` hold figures."""

    due: Annotated[bool, Doc("Whether the half-spend gate is due")]
    recommendation: Annotated[Recommendation, Doc("Recommended decision")]
    reasons: Annotated[tuple[str, ...], Doc("Reasons, with figures", max_length=5000)]
    due_usd: Annotated[float | None, Doc("Spend at which it is due; null without a budget", "USD")] = None
    metric: Annotated[float | None, Doc("Newest evaluation of the outcome's metric; null without one", "unit of the metric")] = None
    pivot_to: Annotated[str | None, Doc("What to do instead of continuing; null: not stated", max_length=1000)] = None
    decided: Annotated[Verdict | None, Doc("Decision event that closes the gate; null: none")] = None
    decided_at: Annotated[datetime | None, Doc("When it was decided; null: not yet")] = None
    decision: Annotated[GateDecision | None, Doc("Ways on with actual figures; null: decided, or the plan has none")] = None


@dataclass(frozen=True, slots=True)
class OverdueRun:
    """A run of the plan that should have begun. `late_days`: the delay beyond its float, which moves the program's end."""

    run: Annotated[str, Doc("Name of the run")]
    tier: Annotated[TierName | None, Doc("Tier of the run; null: none")]
    planned_start: Annotated[date, Doc("Day on which it should have begun")]
    days: Annotated[int, Doc("Days since then", "days", minimum=1)]
    late_days: Annotated[int, Doc("Days by which the program ends later for it: those beyond its float", "days")]


@dataclass(frozen=True, slots=True)
class CostDriver:
    """Contribution of a cause to the cost [USD], in whole cents; negative where it saves."""

    cause: Annotated[str, Doc("What moves the cost")]
    usd: Annotated[Decimal, Doc("What the cause adds, in whole cents; negative where it saves", "USD")]


@dataclass(frozen=True, slots=True)
class CostDrivers:
    """Contributions to a cost difference, largest first; they add up to `usd` exactly. `comparison` names what is compared."""

    comparison: Annotated[str, Doc("What is compared with what", max_length=1000)]
    usd: Annotated[Decimal, Doc("Difference of the cost", "USD")]
    parts: Annotated[tuple[CostDriver, ...], Doc("Causes, the largest first; they add up to `usd` to the cent")]
    headline: Annotated[str, Doc("The difference in a sentence", max_length=5000)]


@dataclass(frozen=True, slots=True)
class UtilisationStatus:
    """Utilisation against the plan [1]. `share`: of the accelerators' time in use, from utilisation events."""

    mfu: Annotated[float | None, Doc("Model FLOPs utilisation; null where unknown", "1")]
    planned_mfu: Annotated[
        float | None, Doc("Planned MFU: of the steps where the run reports its own, else of the whole run; null without a plan", "1")
    ]
    goodput: Annotated[float | None, Doc("Useful time over wall-clock time; null where unknown", "1")]
    planned_goodput: Annotated[float | None, Doc("Planned goodput; null without a plan", "1")]
    share: Annotated[float | None, Doc("Part of the accelerators' time in use, by utilisation events; null without any", "1")]
    basis: Annotated[str, Doc("Source of `mfu`")]


@dataclass(frozen=True, slots=True)
class CheckpointCadence:
    """Checkpoints against the planned interval, without downtime. `on_schedule` is None without a plan or when it is too early."""

    count: Annotated[int, Doc("Checkpoints to date")]
    bytes: Annotated[int, Doc("Size of those with a reported size", "bytes")]
    last_at: Annotated[datetime | None, Doc("Time of the last; null: none")]
    interval_minutes: Annotated[float | None, Doc("Mean interval; null where unknown", "min")]
    longest_gap_minutes: Annotated[float | None, Doc("Longest interval; null where unknown", "min")]
    planned_interval_minutes: Annotated[float | None, Doc("Planned interval; null without one", "min")]
    on_schedule: Annotated[bool | None, Doc("Whether the plan's interval is kept; null: no interval is planned, or it is too early")]


@dataclass(frozen=True, slots=True)
class LossAlarm:
    """A problem of the loss, with figures in `text`."""

    finding: Annotated[LossFinding, Doc("What is wrong with the loss")]
    at: Annotated[datetime, Doc("When it was found")]
    text: Annotated[str, Doc("The finding with figures", max_length=5000)]


@dataclass(frozen=True, slots=True)
class LossProjection:
    """Projected final loss at the planned tokens, by the extrapolation of `/v1/loss-curves`, against a planned loss if there is one."""

    loss: Annotated[Range, Doc("Projected loss at the planned tokens", "nats per token")]
    planned_loss: Annotated[float | None, Doc("Planned loss; null: not stated", "nats per token")]
    probability_of_planned: Annotated[float | None, share("Probability of ending at or below the planned loss; null: not stated")]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_length=5000)]


@dataclass(frozen=True, slots=True)
class LossStatus:
    """Loss of a run: last finite one [nats per token], lowest hourly median, alarms, and projected final loss."""

    last: Annotated[float | None, Doc("Last finite loss; null: none", "nats per token")]
    lowest: Annotated[float | None, Doc("Lowest hourly median; null: none", "nats per token")]
    state: Annotated[Literal["falling", "flat", "diverging"] | None, Doc("How the loss moves; null where unknown")]
    alarms: Annotated[tuple[LossAlarm, ...], Doc("What is wrong with the loss")]
    projection: Annotated[LossProjection | None, Doc("Loss at the planned tokens; null unless requested and known")] = None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Status of one run."""

    name: Annotated[str, Doc("Name of the run")]
    tier: Annotated[TierName | None, Doc("Tier of the run; null: none")]
    state: Annotated[RunState, Doc("State by its events; silent: no event for far longer than usual")]
    started_at: Annotated[datetime | None, Doc("Time of its first event; null: none")]
    last_event_at: Annotated[datetime | None, Doc("Time of its last event; null: none")]
    events: Annotated[int, Doc("Number of events, as corrected")]
    planned_tokens: Annotated[float | None, Doc("Planned tokens; null: not stated", "tokens")]
    spend: Annotated[Spend, Doc("Spend to date, against the run's planned cost")]
    burn_rate: Annotated[BurnRate, Doc("What is used up a day")]
    earned_value: Annotated[EarnedValue, Doc("Progress and cost against the plan")]
    forecast: Annotated[CompletionForecast, Doc("Cost and end of the run")]
    utilisation: Annotated[UtilisationStatus, Doc("What the accelerators do against the plan")]
    drift: Annotated[tuple[Drift, ...], Doc("Lasting changes of rates")]
    interruptions: Annotated[InterruptionSummary, Doc("Interruptions against the failure budget")]
    checkpoints: Annotated[CheckpointCadence, Doc("Checkpoints against the planned interval")]
    loss: Annotated[LossStatus, Doc("Training loss")]
    quality: Annotated[tuple[MetricQuality, ...], Doc("Evaluation metrics, in the order of their names")]
    cost_drivers: Annotated[CostDrivers | None, Doc("Cost to date against the plan for the same work; null without a plan")]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_length=5000)]


@dataclass(frozen=True, slots=True)
class ProgramStatus:
    """Status of a program as of `as_of` (inclusive). `goodput` is useful time over wall-clock time of the runs [1]."""

    name: Annotated[str, Doc("Name of the program")]
    as_of: Annotated[datetime, Doc("Status as of this time, inclusive")]
    spend: Annotated[Spend, Doc("Spend to date, against the budget")]
    burn_rate: Annotated[BurnRate, Doc("What is used up a day")]
    earned_value: Annotated[EarnedValue, Doc("Progress and cost against the plan")]
    forecast: Annotated[CompletionForecast, Doc("Cost and end of the program")]
    budget: Annotated[BudgetBridge, Doc("From the budget to the forecast, by part")]
    energy: Annotated[EnergyUse | None, Doc("Energy and emissions compared with the plan; null without planned ones")]
    goodput: Annotated[float | None, Doc("Time of work that still counts, over the runs' wall-clock time; null where unknown", "1")]
    quality: Annotated[tuple[MetricQuality, ...], Doc("Evaluation metrics of all runs")]
    guardrails: Annotated[tuple[GuardrailStatus, ...], Doc("Metrics that must keep a floor", max_items=100)]
    drift: Annotated[tuple[Drift, ...], Doc("Lasting changes of rates")]
    interruptions: Annotated[InterruptionSummary, Doc("Interruptions against the failure budget")]
    gate: Annotated[GateStatus, Doc("The half-spend gate")]
    tier_gates: Annotated[tuple[TierGateStatus, ...], Doc("Gates of the plan's tiers", max_items=len(TIERS))]
    risks: Annotated[tuple[TrackedRisk, ...], Doc("The plan's risks and those that notes name", max_items=1000)]
    reserve: Annotated[ReserveStatus | None, Doc("What risks leave of the reserve; null where neither a plan nor a risk is known")]
    cost_drivers: Annotated[CostDrivers | None, Doc("Cost at completion against the plan; null without a plan")]
    overdue: Annotated[tuple[OverdueRun, ...], Doc("Runs that should have begun and have not, the longest overdue first", max_items=10000)]
    deadline_missed: Annotated[bool | None, Doc("Whether the median finish is after the deadline; null without a deadline")]
    runs: Annotated[tuple[RunStatus, ...], Doc("Runs in the order of creation")]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_length=5000)]
