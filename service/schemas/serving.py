"""Request and answer schemas of serving."""

from __future__ import annotations

from service.domain.serving import answer as domain
from service.presets.serving import load_formats
from service.schemas.compound_fields import Items, Part
from service.schemas.derive import derive
from service.schemas.fields import Choice, Count, Flag, Number, Schema, Share, Text
from service.schemas.training.machine import LEAST, MAX_ACCELERATORS, MAX_SEQ_LEN, PriceFilterSchema
from service.schemas.training.request import EstimateRequestSchema, ModelSchema
from service.usecases.serving.serve import ServingAnswer

FORMATS = tuple(load_formats())
MOST_NAMES = 100
MOST_COUNTS = 32
MOST_OPTIONS = 100
MOST = 1e40


class TrafficSchema(Schema):
    """The mean request and their rate: requests a second, or tokens a month with prompts and answers together."""

    prompt_tokens = Count(required=True, maximum=MAX_SEQ_LEN, suffixes=False, description="Tokens that a request comes with")
    output_tokens = Count(required=True, maximum=MAX_SEQ_LEN, suffixes=False, description="Tokens that are generated for it")
    cached_share = Share(description="Part of the prompts that is found in a cache and not computed again")
    requests_per_s = Number(minimum=LEAST, maximum=1e9, description="Mean rate; left out: replicas are taken to be kept busy by others too")
    tokens_per_month = Count(description="In the place of requests_per_s; a month has 730 hours")
    lifetime_tokens = Count(description="Tokens served in the model's life")


class LatencySchema(Schema):
    """The longest latencies that are accepted, at the median and without queues; left out: any."""

    time_to_first_token_s = Number(minimum=LEAST, maximum=1e6, description="Longest time to the first token [s]")
    time_per_output_token_ms = Number(minimum=LEAST, maximum=1e9, description="Longest time between output tokens [ms]")


class ServingHardwareSchema(Schema):
    """Hardware to consider; left out: all."""

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
    """Cost of the model's training: one of both fields."""

    usd = Number(minimum=0.0, maximum=1e15, description="Stated cost of the training [USD]")
    estimate = Part(TrainingRunSchema, description="Estimated at the same price_snapshot, where its price names no other")


class ServingRequestSchema(Schema):
    """A model to serve."""

    model = Part(ModelSchema, required=True, description="Model that is served")
    traffic = Part(TrafficSchema, required=True, description="Requests to be answered")
    latency = Part(LatencySchema, description="Longest latencies that are accepted; left out: any")
    formats = Items(Choice(FORMATS), min_items=1, max_items=len(FORMATS), description="How weights may be stored; left out: bf16")
    hardware = Part(ServingHardwareSchema, description="Accelerators that may be taken; left out: all")
    price = Part(PriceFilterSchema, description="Price that is stated, or which offers may be taken")
    utilisation = Number(minimum=0.001, maximum=1.0, description="Ratio of mean to full load of the replicas, so the room for peaks")
    training = Part(TrainingCostSchema, description="Cost of the model's training")
    levers = Flag(description="Also weigh quantising and distilling: see `levers` of the answer")
    limit = Count(maximum=MOST_OPTIONS, suffixes=False, description="Number of alternatives in the answer; left out: 10")


derive(domain.ServingConfiguration, limits={"format": {"choices": FORMATS}})
ServingAnswerSchema = derive(ServingAnswer, limits={"alternatives": {"max_items": MOST_OPTIONS}})
