"""What a program's answer holds."""

from __future__ import annotations

from typing import Any

from service.domain.programs.plan import CAUSES
from service.domain.programs.program import TIERS
from service.schemas.base import Choice, Count, Day, Flag, Items, Number, Part, RangeSchema, Schema, Share, Text
from service.schemas.programs.fields import MAX_NAMES
from service.schemas.programs.runs import MAX_RUNS
from service.schemas.training.answer import AssumptionSchema, EstimateAnswerSchema, FinishSchema

MAX_ACTIVITIES = len(TIERS) * (MAX_RUNS + 1) + MAX_NAMES + 1
MAX_WEEKS = 100_000
MAX_TEXT_LENGTH = 5000


def _amount(**options: object) -> Number:
    return Number(required=True, maximum=1e40, **options)  # type: ignore[arg-type]


def _tier(**options: Any) -> Choice:
    return Choice(TIERS, required=True, **options)


class ProgramRangeSchema(RangeSchema):
    """A range without a usual bound."""

    p10 = _amount()
    p50 = _amount()
    p90 = _amount()


class OutcomeAnswerSchema(Schema):
    """What the program is for, and the price of a point of it: the whole budget, and the planned runs' FLOPs, a point."""

    metric = Text(required=True)
    baseline = Number(required=True)
    target = Number(required=True)
    decision = Text(required=True, allow_none=True, max_length=500)
    evaluation_usd = Number(required=True, allow_none=True)
    points = _amount()
    usd_per_point = _amount()
    flops_per_point = _amount()


class EnvelopeSchema(Schema):
    """The budget in three, which add up to total_usd.p50: prototype and validation; production and the other lines; reserves."""

    exploration_usd = Number(required=True)
    committed_usd = Number(required=True)
    reserve_usd = Number(required=True)


class ProgramRunAnswerSchema(Schema):
    """A run with its repeats; `run_equivalents` are whole runs' worth of work, `estimate` is of one run made once."""

    name = Text(required=True)
    repeat = Count(required=True)
    runs = Count(required=True)
    run_equivalents = _amount()
    concurrency = Count(required=True)
    cost_usd = Number(required=True)
    usd = Part(ProgramRangeSchema, required=True)
    accelerator_hours = Part(ProgramRangeSchema, required=True)
    wall_clock_hours = Part(ProgramRangeSchema, required=True)
    flops = _amount()
    tokens = _amount()
    tco2e = _amount()
    estimate = Part(EstimateAnswerSchema, required=True)


class FailureBudgetSchema(Schema):
    """What failures may take of a tier before the plan is off."""

    expected_interruptions = _amount()
    lost_accelerator_hours = _amount()
    goodput = Share(required=True, maximum=1.0 + 1e-9)
    checkpoint_interval_minutes = _amount()
    rollback_allowance_accelerator_hours = _amount(description="Work redone after rollbacks, paid of overheads and reserves")
    rollback_allowance_usd = Number(required=True, description="What the allowance's compute costs at the runs' own prices")


class GateAnswerSchema(Schema):
    """A gate, when it is decided, and what the decision costs: the tier, and all spent up to it, reserves not counted."""

    decides = Text(required=True, max_length=500)
    evidence = Text(required=True, allow_none=True, max_length=1000)
    pass_probability = Share(required=True)
    sign_off_days = Number(required=True)
    cost_to_decide_usd = Number(required=True)
    spent_usd = Number(required=True)
    reached_probability = Share(required=True)
    statement = Text(required=True, max_length=MAX_TEXT_LENGTH)
    earliest = Day(required=True, description="With every duration at its p10")
    date = Part(FinishSchema, required=True)


class TierAnswerSchema(Schema):
    """A tier: its cost is that of its runs, overheads stand beside it; wall-clock hours are of its runs one after another."""

    tier = _tier()
    cost_usd = Number(required=True)
    overhead_usd = Number(required=True)
    usd = Part(ProgramRangeSchema, required=True)
    accelerator_hours = Part(ProgramRangeSchema, required=True)
    wall_clock_hours = Part(ProgramRangeSchema, required=True)
    flops = _amount()
    tokens = _amount()
    tco2e = _amount()
    runs = Items(Part(ProgramRunAnswerSchema), max_items=MAX_RUNS, required=True)
    failures = Part(FailureBudgetSchema, required=True)
    gate = Part(GateAnswerSchema, required=True, allow_none=True)


class OverheadAnswerSchema(Schema):
    """Work around the runs; `share` is of what the runs cost that it is counted on, those of `tier`, or of all where that is null."""

    line = Text(required=True)
    tier = _tier(allow_none=True)
    usd = Number(required=True)
    share = _amount()
    basis = Text(required=True, max_length=MAX_TEXT_LENGTH)


class ReservesAnswerSchema(Schema):
    """The shares that the reserves were made with; their amounts are lines."""

    evaluation_and_debugging = Share(required=True, description="Of what the runs cost")
    contingency = Share(
        required=True, allow_none=True, description="Of all but reserves; null: computed of the risks and the estimate's spread"
    )
    confidence = Share(required=True, description="Probability with which a computed contingency covers the estimate")


class BudgetLineSchema(Schema):
    """A line of the budget, in whole cents."""

    line = Text(required=True)
    usd = Number(required=True)
    basis = Text(required=True, max_length=MAX_TEXT_LENGTH)


class RiskAnswerSchema(Schema):
    """A risk with what it costs where it happens, and on average."""

    name = Text(required=True)
    probability = Share(required=True)
    tier = _tier(allow_none=True)
    cost_share_of_tier = Share(required=True)
    cost_usd = Number(required=True)
    addressed_by = Text(required=True, allow_none=True)
    loss_usd = Number(required=True)
    expected_loss_usd = Number(required=True)


class ProgramEndingSchema(Schema):
    """Where the program may end, how probably, and what is spent by then; `stopped_at` null: it is completed."""

    stopped_at = _tier(allow_none=True)
    probability = Share(required=True)
    usd = Number(required=True)


class CriteriaAnswerSchema(Schema):
    """What must hold; null: not asked."""

    metric_at_least = Number(required=True, allow_none=True)
    cpi_at_least = Number(required=True, allow_none=True)
    cpi_below = Number(required=True, allow_none=True)


class MidpointAnswerSchema(Schema):
    """The midpoint gate: what is asked, and when by the burn plan."""

    at_spend_share = Share(required=True)
    continue_if = Part(CriteriaAnswerSchema, required=True)
    stop_if = Part(CriteriaAnswerSchema, required=True)
    pivot_to = Text(required=True, allow_none=True, max_length=500)
    date = Day(required=True, description="First working day of the week in which its share of the budget is spent")
    at_usd = Number(required=True)
    tier = _tier(description="The first that is not over by then")


class CalendarEntrySchema(Schema):
    """A run, a gate, a milestone or the release; `start` and `finish` are medians."""

    what = Text(required=True)
    kind = Choice(("run", "gate", "milestone", "release"), required=True)
    tier = _tier(allow_none=True)
    start = Day(required=True)
    finish = Day(required=True)
    finish_range = Part(FinishSchema, required=True)
    float_hours = _amount(description="How much later it may end without the program's end moving")
    criticality = Share(required=True, description="Probability that the program's end waits for it")


class LatestStartSchema(Schema):
    """Backwards from the deadline; null where no start has the target probability."""

    start = Day(required=True, allow_none=True)
    probability = Share(required=True)
    best_probability = Share(required=True)


class DeadlineOptionSchema(Schema):
    """What a change does to the deadline, and what it costs more than the plan (below 0: saves)."""

    lever = Choice(("accelerators", "scope", "start"), required=True)
    change = Text(required=True, max_length=1000)
    probability = Share(required=True)
    probability_gain = Number(required=True)
    price_usd = Number(required=True)
    usd_per_point = Number(required=True, allow_none=True, description="Of probability gained")
    reaches_target = Flag(required=True, description="Whether the target probability is reached")


class ProgramScheduleAnswerSchema(Schema):
    """The program in time."""

    start = Day(required=True)
    deadline = Day(required=True, allow_none=True)
    critical_path = Items(Text(max_length=1000), max_items=MAX_ACTIVITIES, required=True)
    calendar = Items(Part(CalendarEntrySchema), max_items=MAX_ACTIVITIES, required=True)
    finish = Part(FinishSchema, required=True)
    deadline_probability = Share(required=True, allow_none=True)
    target_probability = Share(required=True, allow_none=True)
    latest_start = Part(LatestStartSchema, required=True, allow_none=True)
    deadline_options = Items(Part(DeadlineOptionSchema), max_items=100, required=True, description="Where the deadline is at risk")


class BurnWeekSchema(Schema):
    """What is planned for one ISO 8601 week. Weeks add up to the budget, reserves too, to the cent."""

    week = Text(required=True)
    monday = Day(required=True)
    tokens = _amount()
    accelerator_hours = _amount()
    usd = Number(required=True)
    checkpoints = _amount()


class ReportingSchema(Schema):
    """How often the program reports."""

    every_days = Count(required=True)
    first = Day(required=True)
    reports = Count(required=True)


class PartTokensSchema(Schema):
    """A part of the mixture in tokens."""

    name = Text(required=True)
    trained = _amount()
    unique = _amount()
    epochs = _amount()
    effective = _amount()
    marginal_worth = _amount(description="What one more of its tokens is worth, 1 being a new one")


class TokenFlowSchema(Schema):
    """Tokens from the source to the model; `trained` counts repeats, `effective` what they are worth in unique ones."""

    raw = _amount()
    filtered = _amount()
    deduplicated = _amount()
    trained = _amount()
    effective = _amount()
    epochs = _amount()
    parts = Items(Part(PartTokensSchema), max_items=100, required=True)


class SuggestedTokensSchema(Schema):
    """A first target of tokens to train on, and the raw ones it takes."""

    p10 = _amount()
    p50 = _amount()
    p90 = _amount()
    tokens_per_param = _amount()
    raw_needed = _amount()
    basis = Text(required=True, max_length=MAX_TEXT_LENGTH)


class ProgramTokensSchema(Schema):
    """The program's data."""

    flow = Part(TokenFlowSchema, required=True, allow_none=True)
    suggested = Part(SuggestedTokensSchema, required=True, allow_none=True)
    worthwhile_epochs = _amount(description="After so many a further token is worth too little")


class SpendChoiceSchema(Schema):
    """A spend choice; null: nothing is known beyond what is spent on it, or no budget is stated."""

    choice = Text(required=True)
    gain_per_usd = Number(required=True, allow_none=True)
    loss_avoided_per_usd = Number(required=True, allow_none=True)
    unit = Text(required=True)
    basis = Text(required=True, max_length=MAX_TEXT_LENGTH)
    allocated_usd = Number(required=True, allow_none=True)


class SpendChoicesAnswerSchema(Schema):
    """Spend choices, most gain for the next dollar first, and what dividing the budget brings."""

    choices = Items(Part(SpendChoiceSchema), max_items=20, required=True)
    budget_usd = Number(required=True, allow_none=True)
    gain = Number(required=True, allow_none=True)
    loss_avoided_usd = Number(required=True, allow_none=True)


class ProgramAnswerSchema(Schema):
    """The whole budget: `lines` add up to `total_usd.p50` to the cent, and so do the envelope and the burn plan."""

    name = Text(required=True)
    outcome = Part(OutcomeAnswerSchema, required=True, allow_none=True)
    total_usd = Part(ProgramRangeSchema, required=True, description="p50: the budget with every gate passed; p10, p90: of what it costs")
    expected_usd = Number(required=True, description="The mean over the gate tree")
    completion_probability = Share(required=True)
    envelope = Part(EnvelopeSchema, required=True)
    tiers = Items(Part(TierAnswerSchema), max_items=len(TIERS), required=True)
    overhead = Items(Part(OverheadAnswerSchema), max_items=MAX_NAMES, required=True)
    reserves = Part(ReservesAnswerSchema, required=True)
    lines = Items(Part(BudgetLineSchema), max_items=MAX_NAMES, required=True)
    risks = Items(Part(RiskAnswerSchema), max_items=MAX_NAMES, required=True)
    endings = Items(Part(ProgramEndingSchema), max_items=len(TIERS) + 1, required=True)
    midpoint_gate = Part(MidpointAnswerSchema, required=True, allow_none=True)
    schedule = Part(ProgramScheduleAnswerSchema, required=True)
    burn_plan = Items(Part(BurnWeekSchema), max_items=MAX_WEEKS, required=True)
    reporting = Part(ReportingSchema, required=True)
    tokens = Part(ProgramTokensSchema, required=True, allow_none=True)
    spend_choices = Part(SpendChoicesAnswerSchema, required=True, allow_none=True)
    price_snapshot = Text(required=True)
    engine_version = Text(required=True)
    assumptions = Items(Part(AssumptionSchema), max_items=2000, required=True)
    warnings = Items(Text(max_length=MAX_TEXT_LENGTH), max_items=1000, required=True)


class DifferenceCauseSchema(Schema):
    """What one cause adds, or saves."""

    cause = Choice(CAUSES, required=True)
    usd = Number(required=True)


class ProgramDifferenceSchema(Schema):
    """The later budget less the earlier one: `causes`, the largest first, add up to it to the cent."""

    before_usd = Number(required=True)
    after_usd = Number(required=True)
    usd = Number(required=True)
    causes = Items(Part(DifferenceCauseSchema), max_items=len(CAUSES), required=True)
    headline = Text(required=True, max_length=1000)
    before_price_snapshot = Text(required=True, description="What the earlier program is priced by")
    price_snapshot = Text(required=True, description="What the later one is priced by")
    engine_version = Text(required=True)
