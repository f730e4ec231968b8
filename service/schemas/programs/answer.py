"""What a program's answer holds."""

from __future__ import annotations

from service.domain import schedule as timing
from service.domain.programs import plan, program, schedule, spending, tokens
from service.domain.programs.program import TIERS
from service.schemas.base import Count, Items, Number, Part, RangeSchema, Schema, Share, Text
from service.schemas.derive import derive
from service.schemas.programs.fields import MAX_NAMES
from service.schemas.programs.runs import MAX_RUNS
from service.schemas.training.answer import AssumptionSchema, EstimateAnswerSchema
from service.usecases.programs.plan import ProgramComparison

MAX_ACTIVITIES = len(TIERS) * (MAX_RUNS + 1) + MAX_NAMES + 1
MAX_WEEKS = 100_000
MAX_TEXT_LENGTH = 5000


def _amount(description: str) -> Number:
    return Number(required=True, maximum=1e40, description=description)


class ProgramRangeSchema(RangeSchema):
    """A range without a usual bound."""

    p10 = _amount("10th percentile, in the unit of the range")
    p50 = _amount("Median, in the unit of the range")
    p90 = _amount("90th percentile, in the unit of the range")


class OutcomeAnswerSchema(Schema):
    """What the program is for, and the price of a point of it: the whole budget, and the planned runs' FLOPs, a point."""

    metric = Text(required=True, description="Name of the metric")
    baseline = Number(required=True, description="Value of the metric before the program [unit of the metric]")
    target = Number(required=True, description="Value of the metric that is aimed at [unit of the metric]")
    decision = Text(required=True, allow_none=True, max_length=500, description="What the outcome decides; null: not stated")
    evaluation_usd = Number(required=True, allow_none=True, description="Cost of measuring it; null: not stated [USD]")
    points = _amount("Improvement from baseline to target [points]")
    usd_per_point = _amount("Budget over the points [USD per point]")
    flops_per_point = _amount("Arithmetic of the planned runs over the points [FLOP per point]")


class ProgramRunAnswerSchema(Schema):
    """A run with its repeats; `run_equivalents` are whole runs' worth of work, `estimate` is of one run made once."""

    name = Text(required=True, description="Name of the run")
    repeat = Count(required=True, description="Stated repeats")
    runs = Count(required=True, description="Runs that are started: grid points x repeats x seeds")
    run_equivalents = _amount("Work of all of them in whole runs; less where some are stopped early [runs]")
    concurrency = Count(required=True, description="Runs at the same time")
    cost_usd = Number(required=True, description="Cost of all of them, in whole cents [USD]")
    usd = Part(ProgramRangeSchema, required=True, description="Cost of all of them [USD]")
    accelerator_hours = Part(ProgramRangeSchema, required=True, description="Accelerator-hours of all of them [accelerator-hours]")
    wall_clock_hours = Part(ProgramRangeSchema, required=True, description="Time on the clock until all of them are done [h]")
    flops = _amount("Training arithmetic of all of them [FLOP]")
    tokens = _amount("Tokens trained on by all of them [tokens]")
    tco2e = _amount("Emissions of all of them [t CO2e]")
    estimate = Part(EstimateAnswerSchema, required=True, description="Estimate of one run, made once")


EnvelopeSchema = derive(plan.Envelope, "Envelope")
derive(plan.FailureBudget, "FailureBudget")
derive(plan.GateBlock, "GateAnswer", more=schedule.GateDates)
TierAnswerSchema = derive(
    plan.TierBlock,
    "TierAnswer",
    ranges=ProgramRangeSchema,
    limits={"runs": {"max_items": MAX_RUNS}},
    parts={"runs": ProgramRunAnswerSchema},
)
OverheadAnswerSchema = derive(plan.OverheadBlock, "OverheadAnswer")
ReservesAnswerSchema = derive(program.Reserves, "ReservesAnswer")
BudgetLineSchema = derive(plan.BudgetLine, "BudgetLine")
RiskAnswerSchema = derive(plan.RiskBlock, "RiskAnswer")
ProgramEndingSchema = derive(plan.ProgramEnding, "ProgramEnding")
derive(program.GateCriteria, "CriteriaAnswer")
MidpointAnswerSchema = derive(program.MidpointGate, "MidpointAnswer", more=schedule.MidpointDate)
derive(schedule.CalendarEntry, "CalendarEntry")
derive(timing.LatestStart, "LatestStart")
derive(timing.DeadlineOption, "DeadlineOption")
ProgramScheduleAnswerSchema = derive(
    schedule.ProgramSchedule,
    "ProgramScheduleAnswer",
    limits={"critical_path": {"max_items": MAX_ACTIVITIES}, "calendar": {"max_items": MAX_ACTIVITIES}},
)
BurnWeekSchema = derive(timing.BurnWeek, "BurnWeek")
ReportingSchema = derive(schedule.ReportingPlan, "Reporting")
derive(tokens.PartTokens, "PartTokens")
derive(tokens.TokenFlow, "TokenFlow")
derive(tokens.SuggestedTokens, "SuggestedTokens")
ProgramTokensSchema = derive(tokens.ProgramTokens, "ProgramTokens")
derive(spending.SpendChoice, "SpendChoice")
SpendChoicesAnswerSchema = derive(spending.SpendChoices, "SpendChoicesAnswer")


class ProgramAnswerSchema(Schema):
    """The whole budget: `lines` add up to `total_usd.p50` to the cent, and so do the envelope and the burn plan."""

    name = Text(required=True, description="Name of the program")
    outcome = Part(OutcomeAnswerSchema, required=True, allow_none=True, description="What the program is for; null: not stated")
    total_usd = Part(
        ProgramRangeSchema, required=True, description="p50: the budget with every gate passed; p10, p90: of what it costs [USD]"
    )
    expected_usd = Number(required=True, description="Mean cost over the gate tree [USD]")
    completion_probability = Share(required=True, description="Probability that every gate is passed [1]")
    envelope = Part(EnvelopeSchema, required=True, description="The budget in three")
    tiers = Items(Part(TierAnswerSchema), max_items=len(TIERS), required=True, description="Tiers in their order")
    overhead = Items(Part(OverheadAnswerSchema), max_items=MAX_NAMES, required=True, description="Work around the runs")
    reserves = Part(ReservesAnswerSchema, required=True, description="Shares that the reserves are made with")
    lines = Items(
        Part(BudgetLineSchema), max_items=MAX_NAMES, required=True, description="Lines of the budget; they add up to the p50 of total_usd"
    )
    risks = Items(Part(RiskAnswerSchema), max_items=MAX_NAMES, required=True, description="Risks with their cost")
    endings = Items(Part(ProgramEndingSchema), max_items=len(TIERS) + 1, required=True, description="Where the program may end")
    midpoint_gate = Part(MidpointAnswerSchema, required=True, allow_none=True, description="The midpoint gate; null: none is stated")
    schedule = Part(ProgramScheduleAnswerSchema, required=True, description="The program in time")
    burn_plan = Items(
        Part(BurnWeekSchema), max_items=MAX_WEEKS, required=True, description="Planned spend by week; adds up to the budget to the cent"
    )
    reporting = Part(ReportingSchema, required=True, description="How often the program reports")
    tokens = Part(ProgramTokensSchema, required=True, allow_none=True, description="The program's data; null: none is stated")
    spend_choices = Part(
        SpendChoicesAnswerSchema, required=True, allow_none=True, description="Where money does most; null: none are stated"
    )
    price_snapshot = Text(required=True, description="Name of the price snapshot the answer is made with")
    engine_version = Text(required=True, description="Version of the engine and its data")
    assumptions = Items(
        Part(AssumptionSchema), max_items=2000, required=True, description="Values the caller did not state, with the reason for each"
    )
    warnings = Items(
        Text(max_length=MAX_TEXT_LENGTH), max_items=1000, required=True, description="What to check before relying on the answer"
    )


derive(plan.VarianceCause, "DifferenceCause")
ProgramDifferenceSchema = derive(ProgramComparison, "ProgramDifference")
