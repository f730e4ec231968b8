"""Request of a program: outcome, tiers, costs around them, risks and spend choices."""

from __future__ import annotations

from service.domain.programs.tiers import TIERS
from service.schemas.compound_fields import Items, OrWord, Part
from service.schemas.fields import Choice, Count, Day, NotNegative, Number, Schema, Share, Text
from service.schemas.programs.evaluation import EvaluationSchema
from service.schemas.programs.fields import MAX_NAMES, MAX_USD, OverheadField, short_name, usd_amount
from service.schemas.programs.gates import PlannedMidpointGateSchema, TierSchema
from service.schemas.programs.outcome import OutcomeSchema
from service.schemas.programs.risks import ProgramRiskSchema, RiskCorrelationField
from service.schemas.programs.runs import PartialEstimateSchema
from service.schemas.programs.schedule import ProgramScheduleSchema
from service.schemas.programs.serving import ProgramServingRequestSchema
from service.schemas.scaling.optimum_request import LawField
from service.schemas.training.machine import MAX_ACCELERATORS, MAX_HOURS
from service.schemas.training.request import MAX_PARAMS, NetworkSchema, PersonnelSchema, StorageSchema


class OverheadsSchema(Schema):
    """Work around the runs."""

    sweeps = OverheadField(description="Hyper-parameter sweeps that are not stated as runs, in shares of the runs' cost")
    data_pipeline = OverheadField(description="Iterations of the data pipeline, in shares of the runs' cost")
    evaluation = OverheadField(
        description="Evaluation on accelerators, in shares of the runs' cost; long contexts and multimodal suites need more"
    )
    debugging = OverheadField(description="Debugging, in shares of the runs' cost")
    reruns = OverheadField(description="Runs again after regressions or contamination, in shares of the runs' cost")


class ReservesSchema(Schema):
    """Money held back."""

    evaluation_and_debugging = Share(description="In shares of the runs' cost")
    contingency = OrWord(Share(), "from_risks", description="Relative to all but reserves, or computed from risks and spread")
    confidence = Number(minimum=0.5, maximum=0.999, description="Probability with which a computed contingency covers the estimate")


class ProgramStorageSchema(StorageSchema):
    """Storage of the whole program; replaces the runs' own."""

    checkpoints_kept = Count(
        minimum=0, maximum=100_000, suffixes=False, description="Checkpoints kept of each run; left out: 5, or by checkpoint_every_hours"
    )
    checkpoint_every_hours = Number(minimum=0.01, maximum=MAX_HOURS, description="Interval of the kept checkpoints of a run [h]")
    retention_months = NotNegative(maximum=1200, description="Retention after the program's end [months]")


class LabellingSchema(Schema):
    """Labels, ratings and demonstrations made by people."""

    items = Count(required=True, description="Items to label [count]")
    usd_per_item = NotNegative(required=True, maximum=1e6, description="Price of one item [USD]")
    tier = Choice(TIERS, description="Tier it is spent with; left out: the whole program")


class MixturePartSchema(Schema):
    """A part of the training mixture: high quality, robustness, hard negatives, …"""

    name = short_name(required=True, description="Name of the part")
    share = Share(required=True, description="Share of the trained tokens")
    unique_tokens = Count(description="Unique tokens of the part; left out: in proportion")


class ProgramDataSchema(Schema):
    """The program's data: tokens from the source to the model, a first target, and cost."""

    raw_tokens = Count(description="Tokens collected")
    filter_yield = Number(minimum=1e-6, maximum=1.0, description="Part of them that filtering leaves [1]")
    dedupe_yield = Number(minimum=1e-6, maximum=1.0, description="Part of those that deduplication leaves [1]")
    epochs = Number(minimum=1e-6, maximum=10_000, description="Times each token is trained on [1]")
    mixture = Items(Part(MixturePartSchema), max_items=50, description="Parts of the data")
    params = Count(maximum=MAX_PARAMS, description="Model size that a first token target is suggested for")
    complexity = Text(description="single_domain, technical_domain, several_domains or open_domain")
    generalisation = Text(description="in_distribution, broad or open_ended")
    purchase_usd = usd_amount(description="Cost of buying data [USD]")


class PoolSchema(Schema):
    """Accelerators that runs share. Entries of one name add up."""

    name = short_name(description="Name of the pool; left out: the accelerator's")
    accelerator = Text(required=True, description="A name of GET /v1/accelerators, or any usual alias, case-blind")
    count = Count(required=True, maximum=MAX_ACCELERATORS, description="Accelerators")
    from_day = Day(data_key="from", description="First day on which they are there; left out: the program's first")
    to_day = Day(data_key="to", description="Last day on which they are there; left out: no end")


class SpendCurveSchema(Schema):
    """Return of spending on a choice, at rising amounts from 0 USD."""

    choice = short_name(required=True, description="Name of the spend choice")
    usd = Items(NotNegative(), required=True, min_items=2, max_items=200, description="Amounts spent on it, rising [USD]")
    gain = Items(Number(), required=True, min_items=2, max_items=200, description="Gain at each amount [unit of the curve]")
    loss_avoided_usd = Items(
        NotNegative(), required=True, min_items=2, max_items=200, description="Expected loss avoided at each amount [USD]"
    )
    unit = Text(required=True, max_length=40, description="Unit of the gain, equal for all curves")
    basis = Text(max_length=500, description="Where the curve comes from")


class SpendChoicesSchema(Schema):
    """Return of the next dollar on each choice; without curves by published ones."""

    budget_usd = NotNegative(description="Divided among the choices where stated")
    curves = Items(Part(SpendCurveSchema), min_items=1, max_items=20, description="Curves of the caller's own choices")
    law = LawField(description="Scaling law that published curves are made with")
    usd_per_gain = NotNegative(
        maximum=MAX_USD,
        description="Price of a unit of gain; left out: by gain_per_usd_of_loss, or the outcome's price of a point [USD per unit]",
    )
    gain_per_usd_of_loss = NotNegative(description="Value of an avoided loss [unit of the gain per USD]")


class ProgramRequestSchema(Schema):
    """A training program: the whole budget around an outcome."""

    name = short_name(required=True, description="Name of the program")
    outcome = Part(OutcomeSchema, description="What the program is for")
    midpoint_gate = Part(PlannedMidpointGateSchema, description="What is decided when half of the budget is spent")
    start = Day(description="Left out: as late as the deadline allows, or today")
    deadline = Day(description="Day on which the program must be done")
    defaults = Part(PartialEstimateSchema, description="Estimate fields that all runs share")
    tiers = Items(Part(TierSchema), required=True, min_items=1, max_items=len(TIERS), description="Runs by tier, each with its gate")
    overhead = Part(OverheadsSchema, description="Work around the runs")
    reserves = Part(ReservesSchema, description="Money held back")
    storage = Part(ProgramStorageSchema, description="Storage around the runs")
    network = Part(NetworkSchema, description="Of the whole program; replaces the runs' own")
    personnel = Part(PersonnelSchema, description="Of the whole program; replaces the runs' own")
    labelling = Part(LabellingSchema, description="Labelling of data")
    data = Part(ProgramDataSchema, description="Where the data comes from")
    schedule = Part(ProgramScheduleSchema, description="Calendar of the program")
    pools = Items(Part(PoolSchema), min_items=1, max_items=50, description="Accelerators that runs share; left out: the largest machine")
    evaluation = Part(EvaluationSchema, description="How the program evaluates: suites, checks, sign-offs")
    risks = Items(Part(ProgramRiskSchema), max_items=MAX_NAMES, description="What may happen and cost more")
    risk_correlation = RiskCorrelationField(
        description="Correlation of all risks, or of pairs [1]; where stated the contingency is simulated"
    )
    spend_choices = Part(SpendChoicesSchema, description="What more money may be spent on")
    serving = Part(ProgramServingRequestSchema, description="The model in service, beside the budget")
    correlation = Share(description="Correlation of the errors of the runs' estimates")


class ProgramDifferenceRequestSchema(Schema):
    """Two programs, for the difference of their budgets by cause."""

    before = Part(ProgramRequestSchema, required=True, description="The earlier program")
    after = Part(ProgramRequestSchema, required=True, description="The later program")
