"""Request and answer schemas of loss-curve extrapolation."""

from __future__ import annotations

from typing import get_args

from service.domain.scaling.loss_curves import Decay
from service.schemas.base import RangeSchema
from service.schemas.compound_fields import Items, Part
from service.schemas.derive import derive
from service.schemas.fields import Choice, Count, NotNegative, Number, Schema, Share
from service.schemas.scaling.law_fit import LEAST_LOSS, MOST_LOSS, FigureRangeSchema
from service.schemas.training.request import RunSectionsSchema
from service.usecases.scaling import loss_curves as usecase

MOST_CURVE_POINTS = 20_000
MOST_RATES = 1000
MOST_ALTERNATIVES = 8
MOST_OPTIONS = MOST_ALTERNATIVES + 2
PRICED = ("usd", "accelerator_hours", "wall_clock_hours")


class CurvePointSchema(Schema):
    """The loss measured at a count of training tokens; null where it was not a number."""

    tokens = NotNegative(required=True, description="Training tokens [tokens]")
    loss = NotNegative(
        required=True, maximum=MOST_LOSS, allow_none=True, description="Measured loss; null where it was no number [nats per token]"
    )


class RateSchema(Schema):
    """The learning rate at a count of training tokens, in any unit, linear to the next."""

    tokens = Count(required=True, minimum=0, description="Training tokens")
    rate = NotNegative(required=True, description="Learning rate, in any unit")


class LearningRateSchema(Schema):
    """The learning rate over the plan: a decay, or the caller's own rates."""

    decay = Choice(get_args(Decay), description="What follows the warm-up")
    warmup_tokens = Count(minimum=0, description="Linear from 0 to the peak; left out: none")
    decay_tokens = Count(
        minimum=0, description="The decay's length, at the plan's end (warm-up, stable, decay); left out: all after warm-up"
    )
    final_share = Share(description="Of the peak, at the plan's end; left out: 0")
    rates = Items(Part(RateSchema), min_items=2, max_items=MOST_RATES, description="In place of a decay, from 0 tokens to the plan's end")
    relaxation_tokens = Number(minimum=1.0, description="How long a fall of the rate takes to count in full; left out: 1.25 % of the plan")


class CurvePlanSchema(Schema):
    """Where the run is to end, and at which loss."""

    tokens = Count(required=True, description="Training tokens at the planned end")
    loss = Number(minimum=LEAST_LOSS, maximum=MOST_LOSS, description="In nats a token, as the points; advice is then about reaching it")


class CurveRequestSchema(RunSectionsSchema):
    """A run's loss so far, its learning rate and its plan. With model and hardware the rest of the run is priced by an estimate."""

    points = Items(Part(CurvePointSchema), required=True, min_items=1, max_items=MOST_CURVE_POINTS, description="Losses measured so far")
    schedule = Part(LearningRateSchema, required=True, description="Learning rate over the plan")
    plan = Part(CurvePlanSchema, required=True, description="Planned end")
    alternatives = Items(
        Count(), max_items=MOST_ALTERNATIVES, description="Other ends, in tokens; left out: quarters of what is left, up to twice the plan"
    )
    tolerance = Number(minimum=0.0, maximum=1.0, description="Without a loss in the plan: the share of it that a shorter run may lose")

    class Meta(Schema.Meta):
        """What marshmallow reads."""

        exclude = ("data",)


derive(usecase.LossAgainstPlan, ranges=FigureRangeSchema)
derive(usecase.CurveOption, ranges=FigureRangeSchema, parts=dict.fromkeys(PRICED, RangeSchema))
CurveAnswerSchema = derive(usecase.CurveAnswer, ranges=FigureRangeSchema, limits={"options": {"max_items": MOST_OPTIONS}})
