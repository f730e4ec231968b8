"""What serving is asked with, and what its answer holds."""

from __future__ import annotations

from service.presets.serving import load_formats
from service.schemas.base import Choice, Count, Flag, FreeObject, Items, Number, Part, RangeSchema, Schema, Share, Text
from service.schemas.training.answer import AssumptionSchema, PriceSchema
from service.schemas.training.request import LEAST, MAX_ACCELERATORS, MAX_SEQ_LEN, EstimateRequestSchema, ModelSchema, PriceFilterSchema

FORMATS = tuple(load_formats())
MOST_NAMES = 100
MOST_COUNTS = 32
MOST_OPTIONS = 100
MOST = 1e40


class TrafficSchema(Schema):
    """The mean request, and how many there are: requests a second or tokens a month, prompts and answers together."""

    prompt_tokens = Count(required=True, maximum=MAX_SEQ_LEN, suffixes=False, description="Tokens that a request comes with")
    output_tokens = Count(required=True, maximum=MAX_SEQ_LEN, suffixes=False, description="Tokens that are generated for it")
    cached_share = Share(description="Part of the prompts that is found in a cache and not computed again")
    requests_per_s = Number(minimum=LEAST, maximum=1e9, description="Mean rate; left out: replicas are taken to be kept busy by others too")
    tokens_per_month = Count(description="In the place of requests_per_s; a month has 730 hours")
    lifetime_tokens = Count(description="Tokens served in the model's life")


class LatencySchema(Schema):
    """The longest latencies that are accepted, at the median and without queues; left out: any."""

    time_to_first_token_s = Number(minimum=LEAST, maximum=1e6)
    time_per_output_token_ms = Number(minimum=LEAST, maximum=1e9)


class ServingHardwareSchema(Schema):
    """What may be taken; left out: all."""

    accelerators = Items(Text(), min_items=1, max_items=MOST_NAMES, description="Names of GET /v1/accelerators, or aliases")
    counts = Items(
        Count(maximum=MAX_ACCELERATORS),
        min_items=1,
        max_items=MOST_COUNTS,
        description="Accelerators of one replica; powers of 2 and nodes",
    )


class TrainingRunSchema(EstimateRequestSchema):
    """A request as to POST /v1/estimate, without levers."""

    class Meta(Schema.Meta):
        """What marshmallow reads."""

        exclude = ("levers",)


class TrainingCostSchema(Schema):
    """What the model's training costs: one of both."""

    usd = Number(minimum=0.0, maximum=1e15)
    estimate = Part(TrainingRunSchema, description="Estimated at the same price_snapshot, where its price names no other")


class ServingRequestSchema(Schema):
    """A model to serve."""

    model = Part(ModelSchema, required=True)
    traffic = Part(TrafficSchema, required=True)
    latency = Part(LatencySchema)
    formats = Items(Choice(FORMATS), min_items=1, max_items=len(FORMATS), description="How weights may be stored; left out: bf16")
    hardware = Part(ServingHardwareSchema)
    price = Part(PriceFilterSchema)
    utilisation = Number(minimum=0.001, maximum=1.0, description="Mean over full load of the replicas, so the room for peaks")
    training = Part(TrainingCostSchema)
    levers = Flag(description="Also weigh quantising and distilling: see `levers` of the answer")
    limit = Count(maximum=MOST_OPTIONS, suffixes=False, description="Alternatives in the answer; left out: 10")


class ServingConfigurationSchema(Schema):
    """One replica. A dense model's groups of tensor ranks are stages of a pipeline; a mixture's share its experts over all accelerators."""

    accelerator = Text(required=True)
    accelerators = Count(required=True)
    parallelism = FreeObject(required=True, description="tensor, pipeline and data, whose product is accelerators; expert of a mixture")
    batch = Count(required=True, description="Sequences in flight")
    format = Choice(FORMATS, required=True)
    bits = Count(required=True)
    quality_loss_percent = Part(RangeSchema, required=True, allow_none=True, description="Of benchmark scores; null: as trained")


class ServingMemorySchema(Schema):
    """The fullest accelerator in GB of 1e9 bytes, every sequence in flight at its full length."""

    per_accelerator_gb = Number(required=True)
    capacity_gb = Number(required=True)
    fits = Flag(required=True)
    breakdown_gb = FreeObject(required=True)


class ServingThroughputSchema(Schema):
    """A replica kept full with prompts and answers at once; `prefill_tokens_per_s` of one prompt that has it to itself."""

    output_tokens_per_s = Part(RangeSchema, required=True)
    input_tokens_per_s = Part(RangeSchema, required=True)
    requests_per_s = Part(RangeSchema, required=True)
    output_tokens_per_s_per_accelerator = Part(RangeSchema, required=True)
    prefill_tokens_per_s = Part(RangeSchema, required=True)
    bound_by = Choice(("memory", "compute"), required=True)


class ServingLatencySchema(Schema):
    """A replica kept full, without queues."""

    time_to_first_token_s = Part(RangeSchema, required=True)
    time_per_output_token_ms = Part(RangeSchema, required=True)
    request_s = Part(RangeSchema, required=True, description="From the request to its last token")


class FleetSchema(Schema):
    """What carries the stated rate: whole replicas in whole instances."""

    requests_per_s = Number(required=True, maximum=MOST)
    replicas = Part(RangeSchema, required=True)
    accelerators = Part(RangeSchema, required=True, description="Paid for")
    utilisation = Number(required=True, description="Of the replicas' full load, at the median")


class ServingCostSchema(Schema):
    """All that is paid over the tokens served: input and output tokens at their prices add up to it."""

    currency = Choice(("USD",), required=True)
    usd_per_million_input_tokens = Part(RangeSchema, required=True)
    usd_per_million_output_tokens = Part(RangeSchema, required=True)
    usd_per_million_tokens = Part(RangeSchema, required=True, description="Of prompts and answers as they come")
    usd_per_month = Part(RangeSchema, required=True, allow_none=True)


class ServingOptionSchema(Schema):
    """One way to serve the model; ranked by `usd_per_million_tokens`."""

    rank = Count(required=True)
    configuration = Part(ServingConfigurationSchema, required=True)
    memory = Part(ServingMemorySchema, required=True)
    throughput = Part(ServingThroughputSchema, required=True)
    latency = Part(ServingLatencySchema, required=True)
    fleet = Part(FleetSchema, required=True, allow_none=True, description="null: no rate of requests is stated")
    cost = Part(ServingCostSchema, required=True)
    price = Part(PriceSchema, required=True)


class LifetimeSchema(Schema):
    """The model's life; the total is with training where that is stated."""

    tokens = Number(required=True)
    months = Number(required=True, maximum=MOST, allow_none=True)
    serving_usd = Part(RangeSchema, required=True)
    training_usd = Part(RangeSchema, required=True, allow_none=True)
    total_usd = Part(RangeSchema, required=True)


class ServingLeverSchema(Schema):
    """One way to serve more cheaply on the best option's offer; null: never paid back, or rate or lifetime are not stated."""

    lever = Text(required=True)
    title = Text(required=True, max_length=1000)
    change = FreeObject(required=True, description="Fields of the request by their path")
    usd_per_million_tokens = Number(required=True)
    saves_usd_per_million_tokens = Number(required=True, description="Below 0: dearer")
    training_tokens = Number(required=True)
    training_usd = Number(required=True, description="At the best option's price")
    payback_tokens = Number(required=True, maximum=MOST, allow_none=True)
    payback_months = Number(required=True, maximum=MOST, allow_none=True)
    lifetime_saves_usd = Number(required=True, maximum=MOST, allow_none=True, description="After its training")
    quality_loss_percent = Part(RangeSchema, required=True, description="Of benchmark scores; below 0: something is won")
    risk = Text(required=True, max_length=1000)
    source = Text(required=True, max_length=1000)


class ServingAnswerSchema(Schema):
    """The cheapest option that fits and keeps the latencies, and of each other provider, accelerator and format the best."""

    best = Part(ServingOptionSchema, required=True)
    lifetime = Part(LifetimeSchema, required=True, allow_none=True)
    alternatives = Items(Part(ServingOptionSchema), max_items=MOST_OPTIONS, required=True)
    considered = Count(required=True, description="Options that can serve, the best among them")
    levers = Items(Part(ServingLeverSchema), max_items=100, required=True, allow_none=True, description="null: not asked for")
    price_snapshot = Text(required=True)
    engine_version = Text(required=True)
    assumptions = Items(Part(AssumptionSchema), max_items=1000, required=True)
    warnings = Items(Text(max_length=5000), max_items=100, required=True)
