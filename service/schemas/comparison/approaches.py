"""Request and answer schemas of approaches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from service.domain.comparison.approaches import APPROACHES
from service.schemas.compound_fields import Items, Part
from service.schemas.derive import derive
from service.schemas.fields import Choice, Count, NotNegative, Number, Schema
from service.schemas.scaling.optimum_request import OptimalServingTermsSchema
from service.schemas.training.machine import HardwareSchema, PriceFilterSchema
from service.schemas.training.request import ModelSchema
from service.usecases.comparison import approaches as usecase

MOST_USD_PER_MILLION = 1e6
HOSTED = ("usd_per_million_input_tokens", "usd_per_million_output_tokens")


class PromptingSchema(Schema):
    """How an existing model is prompted: on the machine of `serving`, or by a hosted interface at a price."""

    model = Part(ModelSchema, description="Left out: the model of the request")
    demonstration_tokens = Count(minimum=0, maximum=10**7, description="In front of every request")
    usd_per_million_input_tokens = NotNegative(maximum=MOST_USD_PER_MILLION, description="Of a hosted model; with the next")
    usd_per_million_output_tokens = NotNegative(
        maximum=MOST_USD_PER_MILLION, description="Price of a hosted model's answers [USD per million tokens]"
    )

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
    price = Part(PriceFilterSchema, description="Price of accelerators")
    serving = Part(OptimalServingTermsSchema, description="How the model is served")
    epochs = Number(minimum=0.01, maximum=1000.0, description="Passes over the task's examples")
    domain_tokens = Count(maximum=10**15, description="Of the domain's text, for continued pre-training")
    distillation_tokens = Count(maximum=10**15, description="Tokens to distil on")
    pretraining_tokens = Count(maximum=10**15, description="Tokens to pre-train on")
    student = Part(ModelSchema, description="What is distilled into")
    prompting = Part(PromptingSchema, description="How an existing model is prompted")
    people_usd_per_hour = NotNegative(maximum=100_000, description="Cost of an hour of work [USD per hour]")
    max_days = Number(minimum=0.01, maximum=36_500.0, description="How long a run may take")
    approaches = Items(Choice(APPROACHES), min_items=1, max_items=len(APPROACHES), description="Left out: all")


ApproachesAnswerSchema = derive(usecase.ApproachesAnswer, limits={"approaches": {"max_items": len(APPROACHES)}})
