"""What a program's answer holds."""

from __future__ import annotations

from service.domain.programs import branches, outcome, plan, program, risks, schedule, spending
from service.domain.programs.tiers import TIERS
from service.schemas.compound_fields import Part
from service.schemas.derive import derive
from service.schemas.fields import Count, Number, Text
from service.schemas.older import OLDER
from service.schemas.programs.fields import MAX_NAMES
from service.schemas.programs.runs import MAX_RUNS
from service.schemas.serving import ServingAnswerSchema  # noqa: F401  (describes the options of serving first)
from service.schemas.training.answer import EstimateAnswerSchema
from service.schemas.training.evaluation_answer import ProgramRangeSchema
from service.usecases.programs.network import MAX_REPEATED
from service.usecases.programs.plan import ProgramAnswer, ProgramComparison

# Runs, gates, sign-offs and suites of each tier, with its repeats; milestones and the release.
MAX_ACTIVITIES = len(TIERS) * (MAX_RUNS + 2 + MAX_NAMES) + len(TIERS) * MAX_REPEATED + MAX_NAMES + 1
# Suites and sign-offs in each tier, checks, and all else.
MAX_LINES = 2 * len(TIERS) * MAX_NAMES + 2 * MAX_NAMES

for part in (outcome.Guardrail, outcome.ValuePoint, outcome.OutcomeMetric, outcome.ServingSaving):
    derive(part, f"{part.__name__}Answer")
derive(risks.Mitigation, "MitigationAnswer")
OutcomeAnswerSchema = derive(
    plan.OutcomeBlock,
    "OutcomeAnswer",
    extra={"evaluation_usd": Number(required=True, allow_none=True, description="Cost of measuring it; null: not stated [USD]")},
)
derive(
    plan.RunBlock,
    "ProgramRunAnswer",
    ranges=ProgramRangeSchema,
    extra={
        "name": Text(required=True, description="Name of the run"),
        "repeat": Count(required=True, description="Stated repeats"),
        "runs": Count(required=True, description="Runs that are started: grid points x repeats x seeds"),
        "concurrency": Count(required=True, description="Runs at the same time"),
        "estimate": Part(EstimateAnswerSchema, required=True, description="Estimate of one run, made once"),
    },
)
derive(branches.GateBranch, ranges=ProgramRangeSchema)
DECISION = Part(
    derive(branches.GateDecision),
    required=True,
    allow_none=True,
    description="Continue, pivot and stop with their figures; null: a price is not known",
)
DECISION.metadata = {**DECISION.metadata, OLDER: None}
derive(plan.GateBlock, "GateAnswer", more=schedule.GateDates, extra={"decision": DECISION})
derive(plan.TierBlock, "TierAnswer", ranges=ProgramRangeSchema, limits={"runs": {"max_items": MAX_RUNS}})
derive(program.Reserves, "ReservesAnswer")
MidpointAnswerSchema = derive(program.MidpointGate, "MidpointAnswer", more=schedule.MidpointDate, extra={"decision": DECISION})
derive(
    schedule.ProgramSchedule,
    "ProgramScheduleAnswer",
    limits={"critical_path": {"max_items": MAX_ACTIVITIES}, "calendar": {"max_items": MAX_ACTIVITIES}},
)
derive(spending.SpendChoices, "SpendChoicesAnswer")
ProgramAnswerSchema = derive(
    ProgramAnswer,
    ranges=ProgramRangeSchema,
    limits={name: {"max_items": MAX_NAMES} for name in ("overhead", "risks")} | {"lines": {"max_items": MAX_LINES}},
    parts={"outcome": OutcomeAnswerSchema},
    extra={
        "midpoint_gate": Part(MidpointAnswerSchema, required=True, allow_none=True, description="The midpoint gate; null: none is stated")
    },
)
ProgramDifferenceSchema = derive(ProgramComparison, "ProgramDifference")
