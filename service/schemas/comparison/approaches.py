"""What approaches are asked with, and what their answer holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from service.domain.comparison.approaches import APPROACHES
from service.schemas.base import Choice, Count, Flag, FreeObject, Items, NotNegative, Number, Part, RangeSchema, Schema, Text
from service.schemas.scaling.optimum_request import OptimalServingTermsSchema
from service.schemas.training.answer import AssumptionSchema, PriceSchema
from service.schemas.training.request import HardwareSchema, ModelSchema, PriceFilterSchema

MOST_USD_PER_MILLION = 1e6
HOSTED = ("usd_per_million_input_tokens", "usd_per_million_output_tokens")


class PromptingSchema(Schema):
    """How an existing model is prompted: on the machine of `serving`, or by a hosted interface at a price."""

    model = Part(ModelSchema, description="Left out: the model of the request")
    demonstration_tokens = Count(minimum=0, maximum=10**7, description="In front of every request")
    usd_per_million_input_tokens = NotNegative(maximum=MOST_USD_PER_MILLION, description="Of a hosted model; with the next")
    usd_per_million_output_tokens = NotNegative(maximum=MOST_USD_PER_MILLION)

    @validates_schema(skip_on_field_errors=True)
    def _both_prices(self, data: Mapping[str, Any], **_: Any) -> None:
        stated = [name for name in HOSTED if name in data]
        if len(stated) == 1:
            missing = next(name for name in HOSTED if name not in data)
            raise ValidationError("a hosted model has both prices, of input and of output", missing)


class ApproachesRequestSchema(Schema):
    """A task that a model is to do: what there is to learn from, what is served over the lifetime, and the machine."""

    model = Part(ModelSchema, required=True, description="What is adapted, and the size that is pre-trained")
    task_tokens = Count(required=True, maximum=10**15, description="Tokens of the task's own examples")
    lifetime_inference_tokens = Count(required=True, description="Prompts and answers together, without demonstrations")
    hardware = Part(HardwareSchema, required=True, description="`count` is the most that is taken: each approach takes the fewest in time")
    price = Part(PriceFilterSchema)
    serving = Part(OptimalServingTermsSchema)
    epochs = Number(minimum=0.01, maximum=1000.0, description="Passes over the task's examples")
    domain_tokens = Count(maximum=10**15, description="Of the domain's text, for continued pre-training")
    distillation_tokens = Count(maximum=10**15)
    pretraining_tokens = Count(maximum=10**15)
    student = Part(ModelSchema, description="What is distilled into")
    prompting = Part(PromptingSchema)
    people_usd_per_hour = NotNegative(maximum=100_000)
    max_days = Number(minimum=0.01, maximum=36_500.0, description="How long a run may take")
    approaches = Items(Choice(APPROACHES), min_items=1, max_items=len(APPROACHES), description="Left out: all")


class NeedsSchema(Schema):
    """What it needs, in words, and in figures."""

    data = Text(required=True, max_length=1000)
    accelerators = Text(required=True, max_length=1000)
    people = Text(required=True, max_length=1000)
    trained_tokens = Number(required=True, maximum=1e40)
    accelerator_count = Count(required=True, minimum=0)
    memory_gb = Number(required=True, allow_none=True, description="On the fullest accelerator in training")
    people_hours = Number(required=True)


class ApproachTrainingSchema(Schema):
    """The run with its people; `request` may be sent to POST /v1/estimate."""

    usd = Part(RangeSchema, required=True)
    accelerator_hours = Part(RangeSchema, required=True)
    wall_clock_hours = Part(RangeSchema, required=True)
    request = FreeObject(required=True)


class ApproachServingSchema(Schema):
    """The lifetime's requests; `prompt_tokens` with demonstrations, of which engines keep the keys and values."""

    usd = Part(RangeSchema, required=True)
    usd_per_request = Part(RangeSchema, required=True)
    prompt_tokens = Number(required=True)
    params = Number(required=True, allow_none=True)
    hosted = Flag(required=True)


class ApproachSchema(Schema):
    """One approach. `total_usd`: training with its people, and serving; null where it cannot be done, and `reasons` say why.

    `pays_back_at_tokens`: tokens served from which on it is cheaper than prompting; null: never, or prompting is not compared.
    """

    rank = Count(required=True)
    approach = Choice(APPROACHES, required=True)
    title = Text(required=True)
    feasible = Flag(required=True)
    reasons = Items(Text(max_length=5000), max_items=10, required=True)
    total_usd = Part(RangeSchema, required=True, allow_none=True)
    training = Part(ApproachTrainingSchema, required=True, allow_none=True)
    people_usd = Number(required=True)
    serving = Part(ApproachServingSchema, required=True, allow_none=True)
    pays_back_at_tokens = Number(required=True, maximum=1e40, allow_none=True)
    needs = Part(NeedsSchema, required=True)
    gives = Text(required=True, max_length=1000)
    risk = Text(required=True, max_length=1000)
    source = Text(required=True, max_length=1000)


class ApproachesAnswerSchema(Schema):
    """The approaches by their total's p50, those that cannot be done last. `price` is that of training."""

    approaches = Items(Part(ApproachSchema), max_items=len(APPROACHES), required=True)
    requests = Number(required=True)
    price = Part(PriceSchema, required=True)
    serving_price = Part(PriceSchema, required=True)
    price_snapshot = Text(required=True)
    engine_version = Text(required=True)
    assumptions = Items(Part(AssumptionSchema), max_items=1000, required=True)
    warnings = Items(Text(max_length=5000), max_items=100, required=True)
