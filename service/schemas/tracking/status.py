"""Schema of a tracked program's status; `service.domain.tracking.status` has the same fields."""

from __future__ import annotations

from typing import get_args

from service.domain.programs.program import TIERS
from service.domain.tracking.events import Recommendation, Verdict
from service.domain.tracking.status import DriftQuantity, LossFinding, RunState, WindowName
from service.schemas.base import Choice, Count, Flag, FreeObject, Items, Moment, Number, Part, RangeSchema, Schema, Share, Text
from service.schemas.training.answer import FinishSchema

MOST = 10_000
WORDS = 5000
LOSS_STATES = ("falling", "flat", "diverging")


class StatusCostLineSchema(Schema):
    """Spend on a line."""

    line = Text(required=True, description="compute, or the line of a cost event")
    usd = Number(required=True, description="[USD]; credits are negative")


class StatusSpendSchema(Schema):
    """Spend to date, relaunches summed."""

    usd = Number(required=True, allow_none=True, description="Sum of what is known [USD]; null where nothing is")
    accelerator_hours = Number(required=True, allow_none=True)
    tokens = Number(required=True, description="Tokens on the surviving line")
    lines = Items(Part(StatusCostLineSchema), required=True, max_items=MOST)
    complete = Flag(required=True, description="false: the cost of a run is unknown, and `usd` is a partial sum")
    remaining_usd = Number(required=True, allow_none=True, description="Budget less spend [USD]; negative when overspent")
    share_of_budget = Number(required=True, allow_none=True)


class StatusBurnWindowSchema(Schema):
    """Use a day, over a window."""

    window = Choice(get_args(WindowName), required=True, description="whole: from the first event to the last; the others end now")
    hours = Number(required=True, description="Length of the window [hours]; shorter for a young program")
    usd_per_day = Number(required=True, allow_none=True)
    accelerator_hours_per_day = Number(required=True, allow_none=True)
    tokens_per_day = Number(required=True, allow_none=True, description="Earned ones")
    checkpoints_per_day = Number(required=True, allow_none=True)


class StatusBurnRateSchema(Schema):
    """Use a day from the first event to the last; null before time has passed."""

    usd_per_day = Number(required=True, allow_none=True)
    accelerator_hours_per_day = Number(required=True, allow_none=True)
    tokens_per_day = Number(required=True, allow_none=True, description="Earned ones")
    checkpoints_per_day = Number(required=True, allow_none=True)
    windows = Items(Part(StatusBurnWindowSchema), required=True, max_items=len(get_args(WindowName)))


class StatusUnknownSchema(Schema):
    """Why a figure is null."""

    field = Text(required=True, description="Name of the figure in the block")
    reason = Text(required=True, max_length=WORDS)


class StatusEarnedValueSchema(Schema):
    """Earned value (ANSI/EIA-748) with tokens as the measure of progress; null where unknown, and `unknown` gives the reason."""

    pv_usd = Number(required=True, allow_none=True, description="Planned value until now [USD]")
    ev_usd = Number(required=True, allow_none=True, description="Earned value: budgeted cost of the work done [USD]")
    ac_usd = Number(required=True, allow_none=True, description="Actual cost [USD]; unknown while the cost of one run is")
    cpi = Number(required=True, allow_none=True, description="EV / AC [1]: above 1, work costs less than planned")
    spi = Number(required=True, allow_none=True, description="EV / PV [1]: above 1, more is done than planned")
    eac_usd = Number(required=True, allow_none=True, description="BAC / CPI [USD]: estimate at completion at the present CPI")
    tcpi = Number(required=True, allow_none=True, description="(BAC - EV) / (BAC - AC) [1]: the CPI needed for the rest")
    bac_usd = Number(required=True, allow_none=True, description="Budget at completion [USD]")
    cv_usd = Number(required=True, allow_none=True, description="EV - AC [USD]")
    sv_usd = Number(required=True, allow_none=True, description="EV - PV [USD]")
    vac_usd = Number(required=True, allow_none=True, description="BAC - EAC [USD]")
    tokens_share = Share(required=True, allow_none=True, description="Share of the planned work that is done [1]")
    basis = Text(required=True, description="How runs are weighted")
    not_known = Items(Part(StatusUnknownSchema), required=True, max_items=MOST, data_key="unknown")


class StatusForecastSchema(Schema):
    """Cost at completion and finish, from the runs' histories and the plan."""

    cost_usd = Part(RangeSchema, required=True, allow_none=True, description="Cost at completion, spend included [USD]")
    finish = Part(FinishSchema, required=True, allow_none=True)
    remaining_hours = Part(RangeSchema, required=True, allow_none=True, description="Wall-clock time left [hours]")
    remaining_usd = Part(RangeSchema, required=True, allow_none=True)
    remaining_accelerator_hours = Part(RangeSchema, required=True, allow_none=True)
    basis = Text(required=True, max_length=1000, description="Basis of the forecast")
    not_known = Items(Part(StatusUnknownSchema), required=True, max_items=MOST, data_key="unknown")


class StatusDriftSchema(Schema):
    """A lasting change of a run's rate."""

    run = Text(required=True, description="The run's name")
    quantity = Choice(get_args(DriftQuantity), required=True)
    since = Moment(required=True)
    change = Number(required=True, description="Signed share: -0.15 is 15 % less")
    confidence = Share(required=True)


class StatusInterruptionsSchema(Schema):
    """Interruptions against the failure budget."""

    count = Count(required=True, minimum=0, suffixes=False)
    budgeted = Number(required=True, allow_none=True, description="Of the whole plan")
    expected = Number(required=True, allow_none=True, description="Share of the budget for the work done so far")
    probability = Share(required=True, allow_none=True, description="Of at least this count at the budget's rate (Poisson) [1]")
    downtime_hours = Number(required=True, description="Run-hours")
    lost_tokens = Number(required=True, description="Tokens lost by rollbacks and branches")
    causes = FreeObject(required=True, description="Count by cause")


class StatusGateSchema(Schema):
    """The half-spend gate, assessed by criteria decided up front."""

    due = Flag(required=True)
    recommendation = Choice(get_args(Recommendation), required=True)
    reasons = Items(Text(max_length=WORDS), required=True, max_items=MOST, description="With figures")
    due_usd = Number(required=True, allow_none=True, description="Spend at which it is due [USD]")
    metric = Number(required=True, allow_none=True, description="The newest evaluation of the outcome's metric")
    pivot_to = Text(required=True, allow_none=True, max_length=1000)
    decided = Choice(get_args(Verdict), required=True, allow_none=True, description="By a decision event, which closes the gate")
    decided_at = Moment(required=True, allow_none=True)


class StatusWhyPartSchema(Schema):
    """Contribution of one cause to the cost."""

    cause = Text(required=True)
    usd = Number(required=True, description="[USD], in whole cents; negative where it saves")


class StatusWhySchema(Schema):
    """Contributions to a cost difference."""

    comparison = Text(required=True, max_length=1000, description="What is compared with what")
    usd = Number(required=True)
    parts = Items(
        Part(StatusWhyPartSchema), required=True, max_items=MOST, description="The largest first; they add up to `usd` to the cent"
    )
    headline = Text(required=True, max_length=WORDS)


class StatusUtilisationSchema(Schema):
    """Utilisation of the accelerators against the plan, in shares of 1."""

    mfu = Number(required=True, allow_none=True, description="Model FLOPs utilisation")
    planned_mfu = Number(
        required=True, allow_none=True, description="Of the plan's steps where the run reports its MFU, else of the whole run"
    )
    goodput = Number(required=True, allow_none=True, description="Useful time over wall-clock time [1]")
    planned_goodput = Number(required=True, allow_none=True)
    share = Number(required=True, allow_none=True, description="Share of the accelerators' time in use, by utilisation events [1]")
    basis = Text(required=True, description="Source of `mfu`")


class StatusCheckpointsSchema(Schema):
    """Checkpoints against the planned interval, without downtime."""

    count = Count(required=True, minimum=0, suffixes=False)
    bytes = Count(required=True, minimum=0, suffixes=False, description="Of those with a reported size")
    last_at = Moment(required=True, allow_none=True)
    interval_minutes = Number(required=True, allow_none=True, description="Mean interval [minutes]")
    longest_gap_minutes = Number(required=True, allow_none=True)
    planned_interval_minutes = Number(required=True, allow_none=True)
    on_schedule = Flag(required=True, allow_none=True, description="null: no interval is planned, or it is too early")


class StatusLossAlarmSchema(Schema):
    """A problem of the loss."""

    finding = Choice(get_args(LossFinding), required=True)
    at = Moment(required=True)
    text = Text(required=True, max_length=WORDS, description="With figures")


class StatusLossEndSchema(Schema):
    """Projected final loss at the planned tokens, by the extrapolation of /v1/loss-curves."""

    loss = Part(RangeSchema, required=True, description="[nats per token]")
    planned_loss = Number(required=True, allow_none=True)
    probability_of_planned = Share(required=True, allow_none=True, description="Of ending at or below the planned loss [1]")
    warnings = Items(Text(max_length=WORDS), required=True, max_items=MOST)


class StatusLossSchema(Schema):
    """The run's training loss [nats a token]."""

    last = Number(required=True, allow_none=True, description="Last finite loss [nats per token]")
    lowest = Number(required=True, allow_none=True, description="Lowest hourly median [nats per token]")
    state = Choice(LOSS_STATES, required=True, allow_none=True)
    alarms = Items(Part(StatusLossAlarmSchema), required=True, max_items=MOST)
    projection = Part(StatusLossEndSchema, required=True, allow_none=True, description="null unless requested and known")


class RunStatusSchema(Schema):
    """Status of a run."""

    id = Text(required=True)
    name = Text(required=True)
    tier = Choice(TIERS, required=True, allow_none=True)
    state = Choice(get_args(RunState), required=True)
    started_at = Moment(required=True, allow_none=True, description="Its first event")
    last_event_at = Moment(required=True, allow_none=True)
    events = Count(required=True, minimum=0, suffixes=False, description="Number of events, as corrected")
    planned_tokens = Number(required=True, allow_none=True)
    spend = Part(StatusSpendSchema, required=True, description="Its budget is its planned cost")
    burn_rate = Part(StatusBurnRateSchema, required=True)
    earned_value = Part(StatusEarnedValueSchema, required=True)
    forecast = Part(StatusForecastSchema, required=True)
    utilisation = Part(StatusUtilisationSchema, required=True)
    drift = Items(Part(StatusDriftSchema), required=True, max_items=MOST)
    interruptions = Part(StatusInterruptionsSchema, required=True)
    checkpoints = Part(StatusCheckpointsSchema, required=True)
    loss = Part(StatusLossSchema, required=True)
    cost_drivers = Part(StatusWhySchema, required=True, allow_none=True, description="The cost to date against the plan for the same work")
    warnings = Items(Text(max_length=WORDS), required=True, max_items=MOST)


class ProgramStatusSchema(Schema):
    """Status of a program. An unknown figure is null, never 0; docs/tracking.md defines each."""

    name = Text(required=True)
    as_of = Moment(required=True, description="Status as of this time, inclusive")
    spend = Part(StatusSpendSchema, required=True)
    burn_rate = Part(StatusBurnRateSchema, required=True)
    earned_value = Part(StatusEarnedValueSchema, required=True)
    forecast = Part(StatusForecastSchema, required=True)
    goodput = Number(required=True, allow_none=True, description="Time of work that still counts, over the runs' wall-clock time")
    drift = Items(Part(StatusDriftSchema), required=True, max_items=MOST)
    interruptions = Part(StatusInterruptionsSchema, required=True)
    gate = Part(StatusGateSchema, required=True)
    cost_drivers = Part(StatusWhySchema, required=True, allow_none=True, description="The cost at completion against the plan")
    deadline_missed = Flag(required=True, allow_none=True, description="null without a deadline")
    runs = Items(Part(RunStatusSchema), required=True, max_items=MOST, description="In the order of creation")
    warnings = Items(Text(max_length=WORDS), required=True, max_items=MOST)
    price_snapshot = Text(required=True, allow_none=True, description="Price snapshot of the plan")
    engine_version = Text(required=True)
