"""What an estimate's answer holds."""

from __future__ import annotations

from providers.offer import PRICINGS
from service.schemas.base import (
    AnyValue,
    Choice,
    Count,
    Day,
    Flag,
    FreeObject,
    Items,
    Moment,
    Number,
    Part,
    RangeSchema,
    Schema,
    Share,
    Text,
)
from service.schemas.training.request import MAX_BATCH_REQUESTS


class FlopsSchema(Schema):
    """Arithmetic of the whole run; `recompute` stands outside `total`."""

    per_token = Number(required=True, maximum=None)
    total = Number(required=True, maximum=1e40)
    petaflop_s_days = Number(required=True, maximum=1e40)
    forward = Number(required=True, maximum=1e40)
    backward = Number(required=True, maximum=1e40)
    recompute = Number(required=True, maximum=1e40)
    attention_share = Share(required=True)


class TokensSchema(Schema):
    """Tokens, which are patches for a vision transformer (or samples, see `unit`)."""

    raw = Number(required=True, maximum=1e40)
    effective = Number(required=True, maximum=1e40)
    trained = Number(required=True, maximum=1e40)
    unit = Text(required=True)
    quality = Number(required=True, maximum=1e40, allow_none=True)
    robustness = Number(required=True, maximum=1e40, allow_none=True)


class AlternativeSchema(Schema):
    """A layout that was searched and not taken; `slower_by` is the share of the taken one's rate that it loses, by the step model.

    One that does not fit is told only where it is faster than the one taken: its `slower_by` is below 0.
    """

    parallelism = FreeObject(required=True)
    tokens_per_s_per_accelerator = Number(required=True)
    step_time_s = Number(required=True)
    memory_gb = Number(required=True, description="What it needs on the fullest accelerator, in 1e9 bytes")
    fits = Flag(required=True)
    slower_by = Number(maximum=1, required=True)
    why = Text(required=True)


class ThroughputSchema(Schema):
    """Speed. What is no range is the p50; `source` is modelled, or caller.

    `alternatives` are the best layouts of other kinds than the one taken, the fastest first: of each other mesh, or, where that is
    fixed, of each other micro-batch, ZeRO stage and recomputation. None where the whole layout or the speed is the caller's.
    """

    tokens_per_s = Number(required=True)
    tokens_per_s_per_accelerator = Part(RangeSchema, required=True)
    tflops_per_accelerator = Number(required=True)
    mfu = Part(RangeSchema, required=True)
    hfu = Number(required=True)
    step_time_s = Number(required=True)
    sustained_share = Number(
        required=True,
        description="What a whole run sustains of this speed, interruptions apart, by published runs; time and cost are made with it",
    )
    bound_by = Choice(("compute", "memory", "network", "pipeline", "input", "launch"), required=True)
    parallelism = FreeObject(required=True)
    alternatives = Items(Part(AlternativeSchema), max_items=5, required=True)
    source = Choice(("modelled", "caller"), required=True)


class MemorySchema(Schema):
    """Memory of the fullest accelerator in GB of 1e9 bytes; `would_fit` says what would, where it does not fit."""

    per_accelerator_gb = Number(required=True)
    capacity_gb = Number(
        required=True, description="What a program may allocate; a data sheet's 80 GB are mostly 80 x 2^30 bytes, 85.9 here"
    )
    fits = Flag(required=True)
    breakdown_gb = FreeObject(required=True)
    would_fit = Items(Text(max_length=1000), max_items=10, required=True)


class ReliabilitySchema(Schema):
    """The whole job's failures. Goodput is useful time over wall-clock time."""

    mttf_hours = Number(required=True)
    expected_interruptions = Number(required=True)
    checkpoint_interval_minutes = Number(required=True)
    checkpoint_tb = Number(required=True)
    goodput = Share(required=True)


class FinishSchema(Schema):
    """Days on which the run ends."""

    p10 = Day(required=True)
    p50 = Day(required=True)
    p90 = Day(required=True)


class TimeSchema(Schema):
    """How long."""

    accelerator_hours = Part(RangeSchema, required=True)
    wall_clock_hours = Part(RangeSchema, required=True)
    steps = Number(required=True, maximum=1e40)
    finish = Part(FinishSchema, required=True, allow_none=True)
    deadline_probability = Share(required=True, allow_none=True)


class CostLineSchema(Schema):
    """One line of the bill, in whole cents."""

    line = Text(required=True)
    usd = Number(required=True)
    basis = Text(required=True, max_length=1000)


class CostSchema(Schema):
    """Money. The lines add up to the total's p50."""

    currency = Choice(("USD",), required=True)
    total_usd = Part(RangeSchema, required=True)
    lines = Items(Part(CostLineSchema), max_items=100, required=True)
    usd_per_million_tokens = Number(required=True)


class EnergyAnswerSchema(Schema):
    """Energy and carbon, at the median hours."""

    mwh = Number(required=True)
    tco2e = Number(required=True)
    pue = Number(required=True)
    grid_gco2_per_kwh = Number(required=True)
    watts_per_accelerator = Number(required=True)


class PriceSchema(Schema):
    """The price an answer was made with; `source` is "caller" where the caller stated it, and the offer's fields are null."""

    usd_per_accelerator_hour = Number(required=True)
    source = Text(required=True, max_length=1000)
    stale = Flag(required=True)
    provider = Text(required=True, allow_none=True)
    region = Text(required=True, allow_none=True)
    pricing = Choice(PRICINGS, required=True, allow_none=True)
    observed_at = Moment(required=True, allow_none=True)
    instance_type = Text(required=True, allow_none=True)
    accelerator = Text(required=True, allow_none=True)
    accelerators_per_instance = Count(required=True)
    market = Choice(("list", "marketplace", "auction_floor"), required=True, allow_none=True)
    availability = Choice(("unknown", "listed", "offered", "advisory", "live"), required=True, allow_none=True)
    list_usd_per_accelerator_hour = Number(required=True, allow_none=True, description="Before discounts; null where none was taken")
    discounts = Text(required=True, allow_none=True, max_length=5000, description="Which were taken off the list price, in their order")


class AssumptionSchema(Schema):
    """A value the caller did not choose, and why it is that."""

    field = Text(required=True)
    value = AnyValue(required=True, allow_none=True)
    source = Text(required=True, max_length=5000)


class LeverSchema(Schema):
    """One change worth making. What it saves is the difference of two whole estimates at their medians; below 0 it costs that much more."""

    lever = Text(required=True, description="The kind of change")
    title = Text(required=True, max_length=1000)
    change = FreeObject(required=True, description="Fields of the request by their path; null: leave the field out")
    saves_usd = Number(required=True)
    saves_days = Number(required=True, description="Of wall-clock time")
    saves_tco2e = Number(required=True)
    total_usd = Number(required=True, description="What the changed run costs")
    wall_clock_days = Number(required=True, description="How long the changed run takes")
    risk = Text(required=True, max_length=1000)
    source = Text(required=True, max_length=1000)


class EstimateAnswerSchema(Schema):
    """What a run takes, how long, what it costs."""

    flops = Part(FlopsSchema, required=True)
    tokens = Part(TokensSchema, required=True)
    throughput = Part(ThroughputSchema, required=True)
    memory = Part(MemorySchema, required=True)
    reliability = Part(ReliabilitySchema, required=True)
    time = Part(TimeSchema, required=True)
    cost = Part(CostSchema, required=True)
    energy = Part(EnergyAnswerSchema, required=True)
    price = Part(PriceSchema, required=True)
    price_snapshot = Text(required=True)
    engine_version = Text(required=True)
    assumptions = Items(Part(AssumptionSchema), max_items=1000, required=True)
    warnings = Items(Text(max_length=5000), max_items=100, required=True)
    levers = Items(
        Part(LeverSchema),
        max_items=100,
        description="Where asked for: single changes that save money, time or carbon, the most dollars first; at most three of a kind. Send"
        " the request with a change and this price_snapshot to have its whole estimate",
    )


class BatchAnswerSchema(Schema):
    """Answers in the order of the requests, each an estimate or a problem (told by its `status`)."""

    answers = Items(FreeObject(), max_items=MAX_BATCH_REQUESTS, required=True)
    price_snapshot = Text(required=True)
    engine_version = Text(required=True)
