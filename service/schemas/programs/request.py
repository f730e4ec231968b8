"""What a program is asked with: the outcome, its tiers, what is spent around them, risks and choices."""

from __future__ import annotations

from service.domain.programs.program import TIERS
from service.schemas.base import Choice, Count, Day, Items, NotNegative, Number, OrWord, Part, Schema, Share, Text
from service.schemas.programs.fields import MAX_NAME_LENGTH, MAX_NAMES, OverheadField, short_name, usd_amount
from service.schemas.programs.runs import PartialEstimateSchema, TierSchema
from service.schemas.programs.schedule import ProgramScheduleSchema
from service.schemas.scaling.optimum_request import LawField
from service.schemas.training.request import MAX_HOURS, MAX_PARAMS, NetworkSchema, PersonnelSchema, StorageSchema


class OutcomeSchema(Schema):
    """What the program is for."""

    metric = Text(required=True)
    baseline = Number(required=True)
    target = Number(required=True)
    point = Number(minimum=1e-9, description="How much of the metric is a point; left out: 0.01 where both values are shares, else 1")
    evaluation_usd = usd_amount(description="Evaluation and safety testing of the result")
    decision = Text(max_length=500)


class CriteriaSchema(Schema):
    """What must hold, all of it; CPI is the cost performance index."""

    metric_at_least = Number()
    cpi_at_least = NotNegative(maximum=100)
    cpi_below = NotNegative(maximum=100)


class MidpointGateSchema(Schema):
    """What is asked when a share of the budget is spent, decided up front."""

    at_spend_share = Share()
    continue_if = Part(CriteriaSchema, required=True)
    stop_if = Part(CriteriaSchema, load_default=dict)
    pivot_to = Text(max_length=500)


class OverheadsSchema(Schema):
    """Work around the runs."""

    sweeps = OverheadField(description="Hyper-parameter sweeps that are no runs of their own")
    data_pipeline = OverheadField(description="Iterations of the data pipeline")
    evaluation = OverheadField(description="Evaluation on accelerators; long contexts and multimodal suites take more than the published")
    debugging = OverheadField()
    reruns = OverheadField(description="After regressions or contamination")


class ReservesSchema(Schema):
    """Money held back."""

    evaluation_and_debugging = Share(description="Of what the runs cost")
    contingency = OrWord(Share(), "from_risks", description="Of all but reserves, or computed of the risks and the estimate's spread")
    confidence = Number(minimum=0.5, maximum=0.999, description="Probability with which a computed contingency covers the estimate")


class ProgramStorageSchema(StorageSchema):
    """What the whole program keeps; the runs' own storage is then left out."""

    checkpoints_kept = Count(
        minimum=0, maximum=100_000, suffixes=False, description="Of each run; left out: 5, or by checkpoint_every_hours"
    )
    checkpoint_every_hours = Number(minimum=0.01, maximum=MAX_HOURS, description="Of a run's checkpoints one is kept so often")
    retention_months = NotNegative(maximum=1200, description="After the program's end")


class LabellingSchema(Schema):
    """Labels, ratings and demonstrations that people make."""

    items = Count(required=True)
    usd_per_item = NotNegative(required=True, maximum=1e6)
    tier = Choice(TIERS)


class MixturePartSchema(Schema):
    """A part of what is trained on: high quality, robustness, hard negatives, …"""

    name = short_name(required=True)
    share = Share(required=True, description="Of the tokens trained on")
    unique_tokens = Count(description="Left out: in proportion")


class ProgramDataSchema(Schema):
    """The program's data: tokens from the source to the model, a first target, and what data cost."""

    raw_tokens = Count()
    filter_yield = Number(minimum=1e-6, maximum=1.0)
    dedupe_yield = Number(minimum=1e-6, maximum=1.0)
    epochs = Number(minimum=1e-6, maximum=10_000)
    mixture = Items(Part(MixturePartSchema), max_items=50)
    params = Count(maximum=MAX_PARAMS, description="Size of the model a first target is suggested for")
    complexity = Text(description="single_domain, technical_domain, several_domains or open_domain")
    generalisation = Text(description="in_distribution, broad or open_ended")
    purchase_usd = usd_amount()


class ProgramRiskSchema(Schema):
    """What may happen and what it costs."""

    name = Text(required=True)
    probability = Share(required=True)
    tier = Choice(TIERS)
    cost_share_of_tier = Share()
    cost_usd = usd_amount()
    addressed_by = Text(max_length=MAX_NAME_LENGTH, description="The spend choice that makes it less likely")


class SpendCurveSchema(Schema):
    """What spending on a choice brings, at rising amounts from 0 USD."""

    choice = short_name(required=True)
    usd = Items(NotNegative(), required=True, min_items=2, max_items=200)
    gain = Items(Number(), required=True, min_items=2, max_items=200)
    loss_avoided_usd = Items(NotNegative(), required=True, min_items=2, max_items=200)
    unit = Text(required=True, max_length=40, description="Of the gain, the same of all curves")
    basis = Text(max_length=500)


class SpendChoicesSchema(Schema):
    """Where the next dollar does most; without curves by published ones."""

    budget_usd = NotNegative(description="Divided among the choices where stated")
    curves = Items(Part(SpendCurveSchema), min_items=1, max_items=20)
    law = LawField(description="The scaling law published curves are made with")
    gain_per_usd_of_loss = NotNegative(description="What avoiding a dollar of loss counts in units of gain")


class ProgramRequestSchema(Schema):
    """A training program: the whole budget around an outcome."""

    name = short_name(required=True)
    outcome = Part(OutcomeSchema)
    midpoint_gate = Part(MidpointGateSchema)
    start = Day(description="Left out: as late as the deadline allows, or today")
    deadline = Day()
    defaults = Part(PartialEstimateSchema, description="What every run's estimate has in common")
    tiers = Items(Part(TierSchema), required=True, min_items=1, max_items=len(TIERS))
    overhead = Part(OverheadsSchema)
    reserves = Part(ReservesSchema)
    storage = Part(ProgramStorageSchema)
    network = Part(NetworkSchema, description="Of the whole program; the runs' own is then left out")
    personnel = Part(PersonnelSchema, description="Of the whole program; the runs' own is then left out")
    labelling = Part(LabellingSchema)
    data = Part(ProgramDataSchema)
    schedule = Part(ProgramScheduleSchema)
    risks = Items(Part(ProgramRiskSchema), max_items=MAX_NAMES)
    spend_choices = Part(SpendChoicesSchema)
    correlation = Share(description="Between the errors of the runs' estimates")


class ProgramDifferenceRequestSchema(Schema):
    """Two programs: what the later one costs more, and why."""

    before = Part(ProgramRequestSchema, required=True)
    after = Part(ProgramRequestSchema, required=True)
