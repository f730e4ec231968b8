"""Request schema of a compute-optimal model."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, fields

from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Count, Day, Number, OwnField, Schema, Share, Text
from service.schemas.serving import LatencySchema
from service.schemas.training.machine import EfficiencySchema, PriceFilterSchema
from service.schemas.training.request import MAX_PARAMS, ModelSchema, RunSectionsSchema

# From a model of a few parameters to a thousand times the largest run there was.
LEAST_FLOPS, MOST_FLOPS = 1e12, 1e30
MOST_SPENT = 1e13
MOST_DAYS = 36_500
LEAST_PLANNED = 1000
MOST_DRAWS = 1000
MOST_TOKENS_A_REQUEST = 1e7


def _factor(description: str) -> Number:
    return Number(required=True, minimum=1e-6, maximum=1e18, description=description)


def _exponent(description: str) -> Number:
    return Number(required=True, minimum=0.01, maximum=5.0, description=description)


class OptimalBudgetSchema(Schema):
    """What may be spent on training: one of these, or several, of which the tightest counts.

    All but FLOPs need hardware; hours and dollars are the estimate's medians.
    """

    flops = Number(minimum=LEAST_FLOPS, maximum=MOST_FLOPS, description="6 x parameters x tokens")
    usd = Number(minimum=1.0, maximum=MOST_SPENT, description="The whole bill of an estimate, storage and people too where stated")
    accelerator_hours = Number(minimum=0.1, maximum=MOST_SPENT, description="Accelerator-hours")
    days = Number(minimum=0.01, maximum=MOST_DAYS, description="On the wall clock, with all accelerators")
    deadline = Day(description="Last day; counted from schedule.start, or today, without schedule.queue_hours")


class OptimalLawSchema(Schema):
    """L = E + A / N^alpha + B / D^beta in nats a token, N parameters and D tokens."""

    E = Number(required=True, minimum=0.0, maximum=100.0, description="Loss of an infinite model on infinite data [nats per token]")
    A = _factor("Coefficient of the parameters' term")
    B = _factor("Coefficient of the tokens' term")
    alpha = _exponent("Exponent of the parameters [1]")
    beta = _exponent("Exponent of the tokens [1]")
    largest_params = Number(minimum=1.0, description="Of the largest run it was fitted to: beyond it a warning says so")
    largest_tokens = Number(minimum=1.0, description="Training tokens of the largest fitted run [tokens]")
    draws = Items(
        Items(Number(minimum=0.0), min_items=5, max_items=5),
        min_items=20,
        max_items=MOST_DRAWS,
        description="Rows of E, A, B, alpha and beta as a fit's bootstrap gives them; left out: the law is taken as sure",
    )


class LawField(OwnField):
    """A law's name, or a law of the caller's own."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.name_field, self.own = Text(), fields.Nested(OptimalLawSchema)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        if not isinstance(value, str | dict):
            raise ValidationError("must be a law's name, or an object with E, A, B, alpha and beta")
        return self.own.deserialize(value) if isinstance(value, dict) else self.name_field.deserialize(value)

    def openapi(self) -> dict[str, Any]:
        """A name, or the object in place."""
        known = self.own.schema.fields
        numbers = {name: field.openapi() | dict(field.metadata) for name, field in known.items() if isinstance(field, Number)}
        row = {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 5, "maxItems": 5}
        draws = {"type": "array", "items": row, "minItems": 20, "maxItems": MOST_DRAWS} | dict(known["draws"].metadata)
        own = {
            "type": "object",
            "properties": {**numbers, "draws": draws},
            "required": [name for name, field in known.items() if field.required],
            "additionalProperties": False,
        }
        return {"anyOf": [self.name_field.openapi(), own]}


class OptimalServingTermsSchema(Schema):
    """Who serves the lifetime's tokens; left out: the accelerator of training at its price."""

    accelerator = Text(description="A name of GET /v1/accelerators, or an alias")
    price = Part(PriceFilterSchema, description="Price of serving")
    format = Text(description="How weights are stored: bf16, fp8, int8, int4, nvfp4")
    prompt_tokens = Number(minimum=0.0, maximum=MOST_TOKENS_A_REQUEST, description="Of the mean request")
    output_tokens = Number(minimum=1.0, maximum=MOST_TOKENS_A_REQUEST, description="Tokens generated for a request")
    load_factor = Share(description="Ratio of mean to full load")
    latency = Part(LatencySchema, description="Longest latencies that are accepted: sizes that keep to neither are ruled out")
    tokens_per_day = Number(minimum=1.0, maximum=1e18, description="Tokens served a day, with `months` for lifetime_inference_tokens")
    months = Number(minimum=0.01, maximum=1200.0, description="Time that the model is served [months of 730 h]")


class OptimalPlanSchema(Schema):
    """A plan of the caller's own."""

    params = Count(required=True, minimum=LEAST_PLANNED, maximum=MAX_PARAMS, description="Planned size")
    tokens = Count(required=True, minimum=LEAST_PLANNED, description="Planned training tokens")


class OptimalRequestSchema(RunSectionsSchema):
    """A budget, a scaling law, and optionally the machine: then dollars and hours are those of an estimate with the same sections."""

    budget = Part(OptimalBudgetSchema, required=True, description="What may be spent on training")
    model = Part(
        ModelSchema, description="Model that is trained: its size is given, and tokens are what the budget affords; left out: the best size"
    )
    law = LawField(
        description="besiroglu (the default), hoffmann-1, hoffmann-2, hoffmann-3, kaplan, muennighoff, llama-3, krajewski-moe, …, or an own"
    )
    lifetime_inference_tokens = Count(description="Tokens served over the model's life, prompts and answers together")
    serving = Part(OptimalServingTermsSchema, description="How the lifetime's tokens are served")
    max_unique_tokens = Count(
        minimum=LEAST_PLANNED, description="Training longer repeats data, which is worth less (Muennighoff et al. 2023)"
    )
    plan = Part(OptimalPlanSchema, description="A plan to compare with the optimum")
    efficiency = Part(EfficiencySchema, description="Speed measured by the caller, of every size, in place of the step model")

    class Meta(Schema.Meta):
        """What marshmallow reads."""

        exclude = ("data",)
