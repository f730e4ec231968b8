"""Request of a program: its tiers with their gates, the midpoint gate, and the programs that gates may pivot to."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError

from service.domain.programs.program import MAX_REPEATS_ON_FAIL
from service.domain.programs.tiers import TIERS
from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Choice, NotNegative, Number, OwnField, Schema, Share, Text
from service.schemas.programs.fields import MAX_DAYS, MAX_NAMES, short_name, usd_amount
from service.schemas.programs.outcome import OutcomeSchema
from service.schemas.programs.risks import ProgramRiskSchema
from service.schemas.programs.runs import MAX_RUNS, PartialEstimateSchema, ProgramRunSchema
from service.schemas.programs.schedule import ProgramScheduleSchema
from service.schemas.training.request import PersonnelSchema

MAX_PIVOT_RUNS = 50
COMMITTED = "Still to be paid if the program stops here, for example for a reserved machine; left out: 0 [USD]"
PIVOT = "Program to continue with instead; left out: none is proposed"


class CriteriaSchema(Schema):
    """Conditions that all hold; CPI is the cost performance index."""

    metric_at_least = Number(description="Lower bound of the outcome's metric [unit of the metric]")
    cpi_at_least = NotNegative(maximum=100, description="Lower bound of the cost performance index [1]")
    cpi_below = NotNegative(maximum=100, description="Upper bound of the cost performance index [1]")


class RepeatsField(OwnField):
    """How often: true is once, false never, or a number."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:  # noqa: ARG002
        if isinstance(value, bool):
            return int(value)
        if type(value) is not int or not 0 <= value <= MAX_REPEATS_ON_FAIL:
            raise ValidationError(f"must be true, false or a whole number from 0 to {MAX_REPEATS_ON_FAIL}")
        return value

    def openapi(self) -> dict[str, Any]:
        """A boolean or a number."""
        return {"anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 0, "maximum": MAX_REPEATS_ON_FAIL}]}


class PivotGateSchema(Schema):
    """The decision after a tier of a pivot, and its evidence."""

    decides = Text(required=True, max_length=500, description="What is decided")
    evidence = Text(max_length=1000, description="Evidence it is decided on")
    pass_probability = Share(description="Probability that the program goes on [1]")
    sign_off_days = NotNegative(maximum=MAX_DAYS, description="Working days until evaluation is signed off")
    sensitivity = Share(description="Probability that it is passed where going on is right; left out: 1, the evidence is never wrong [1]")
    specificity = Share(description="Probability that it is failed where going on is wrong; left out: 1 [1]")
    continue_if = Part(CriteriaSchema, description="Criteria to continue, all of which hold; agreed up front")
    stop_if = Part(CriteriaSchema, description="Criteria to stop, all of which hold; agreed up front")
    committed_usd = usd_amount(description=COMMITTED)
    repeat_on_fail = RepeatsField(
        description="Whether the tier is repeated where the gate is failed, or how many times at most; left out: false [count]"
    )


class PivotTierSchema(Schema):
    """A tier of a pivot with its runs."""

    tier = Choice(TIERS, required=True, description="Name of the tier")
    runs = Items(Part(ProgramRunSchema), required=True, min_items=1, max_items=MAX_PIVOT_RUNS, description="Runs of the tier")
    gate = Part(PivotGateSchema, description="What is decided after the tier")


class PivotSchema(Schema):
    """A program of its own that a gate may go on with: from the gate's day on, and as the program in what it leaves out.

    It takes defaults, outcome, deadline, overhead, reserves, storage, network, personnel, pools, correlation and calendar of the program,
    but not its milestones, risks, evaluation, labelling, data and serving.
    """

    name = short_name(required=True, description="Name of the pivot")
    tiers = Items(Part(PivotTierSchema), required=True, min_items=1, max_items=len(TIERS), description="Runs by tier, each with its gate")
    defaults = Part(PartialEstimateSchema, description="Estimate fields that all its runs share, laid over those of the program")
    outcome = Part(OutcomeSchema, description="What the pivot is for; left out: the program's outcome")
    personnel = Part(PersonnelSchema, description="People of the pivot; left out: the program's")
    schedule = Part(ProgramScheduleSchema, description="Calendar of the pivot; left out: the program's, without its milestones")
    risks = Items(Part(ProgramRiskSchema), max_items=MAX_NAMES, description="What may happen to the pivot; left out: nothing")


class GateSchema(PivotGateSchema):
    """The decision after a tier, and its evidence."""

    pivot = Part(PivotSchema, description=PIVOT)


class TierSchema(Schema):
    """A tier with its runs; tiers come in the order prototype, validation, production."""

    tier = Choice(TIERS, required=True, description="Name of the tier")
    runs = Items(Part(ProgramRunSchema), required=True, min_items=1, max_items=MAX_RUNS, description="Runs of the tier")
    gate = Part(GateSchema, description="What is decided after the tier")


class MidpointGateSchema(Schema):
    """The decision to make when a share of the budget is spent, with criteria fixed in advance."""

    at_spend_share = Share(description="Part of the budget at which it is due [1]")
    continue_if = Part(CriteriaSchema, required=True, description="Criteria to continue, all of which hold")
    stop_if = Part(CriteriaSchema, load_default=dict, description="Criteria to stop, all of which hold")
    pivot_to = Text(max_length=500, description="What to do instead otherwise")


class PlannedMidpointGateSchema(MidpointGateSchema):
    """The decision to make when a share of a plan's budget is spent, with criteria fixed in advance."""

    committed_usd = usd_amount(description=COMMITTED)
    pivot = Part(PivotSchema, description=PIVOT)
