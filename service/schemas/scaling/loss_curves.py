"""What an extrapolation of a loss curve is asked with, and what it answers."""

from __future__ import annotations

from typing import get_args

from service.domain.scaling.loss_curves import Action, Decay, State
from service.schemas.base import Choice, Count, Items, NotNegative, Number, Part, RangeSchema, Schema, Share, Text
from service.schemas.scaling.law_fit import LEAST_LOSS, MOST_LOSS, FigureRangeSchema, figure
from service.schemas.training.answer import AssumptionSchema, PriceSchema
from service.schemas.training.request import (
    EfficiencySchema,
    EnergySchema,
    FailuresSchema,
    HardwareSchema,
    ModelSchema,
    NetworkSchema,
    OverheadSchema,
    PersonnelSchema,
    PriceFilterSchema,
    StorageSchema,
    TrainingSchema,
)

MOST_CURVE_POINTS = 20_000
MOST_RATES = 1000
MOST_ALTERNATIVES = 8
MOST_OPTIONS = MOST_ALTERNATIVES + 2


class CurvePointSchema(Schema):
    """The loss measured at a count of training tokens; null where it was no number."""

    tokens = NotNegative(required=True)
    loss = NotNegative(required=True, maximum=MOST_LOSS, allow_none=True)


class RateSchema(Schema):
    """The learning rate at a count of training tokens, in any unit; straight to the next."""

    tokens = Count(required=True, minimum=0)
    rate = NotNegative(required=True)


class LearningRateSchema(Schema):
    """The learning rate over the plan: a decay, or rates of the caller's own."""

    decay = Choice(get_args(Decay), description="What follows the warm-up")
    warmup_tokens = Count(minimum=0, description="Linear from 0 to the peak; left out: none")
    decay_tokens = Count(
        minimum=0, description="The decay's length, at the plan's end (warm-up, stable, decay); left out: all after warm-up"
    )
    final_share = Share(description="Of the peak, at the plan's end; left out: 0")
    rates = Items(
        Part(RateSchema), min_items=2, max_items=MOST_RATES, description="In the place of a decay, from 0 tokens to the plan's end"
    )
    relaxation_tokens = Number(minimum=1.0, description="How long a fall of the rate takes to count in full; left out: 1.25 % of the plan")


class CurvePlanSchema(Schema):
    """Where the run is to end, and at which loss."""

    tokens = Count(required=True)
    loss = Number(minimum=LEAST_LOSS, maximum=MOST_LOSS, description="In nats a token, as the points; advice is then about reaching it")


class CurveRequestSchema(Schema):
    """A run's loss so far, its learning rate and its plan. With model and hardware, what is left is priced as an estimate of its own."""

    points = Items(Part(CurvePointSchema), required=True, min_items=1, max_items=MOST_CURVE_POINTS)
    schedule = Part(LearningRateSchema, required=True)
    plan = Part(CurvePlanSchema, required=True)
    alternatives = Items(
        Count(), max_items=MOST_ALTERNATIVES, description="Other ends, in tokens; left out: quarters of what is left, up to twice the plan"
    )
    tolerance = Number(minimum=0.0, maximum=1.0, description="Without a loss in the plan: the share of it that a shorter run may lose")
    model = Part(ModelSchema)
    training = Part(TrainingSchema)
    hardware = Part(HardwareSchema)
    price = Part(PriceFilterSchema)
    efficiency = Part(EfficiencySchema)
    failures = Part(FailuresSchema)
    storage = Part(StorageSchema)
    network = Part(NetworkSchema)
    personnel = Part(PersonnelSchema)
    energy = Part(EnergySchema)
    overhead = Part(OverheadSchema)


class AgainstPlanSchema(Schema):
    """The foretold end against the plan's loss: what it is above it, and how likely at or under it."""

    planned_loss = figure()
    above = Part(FigureRangeSchema, required=True)
    probability = Share(required=True)


class AdviceSchema(Schema):
    """What to do: to end the run at so many tokens."""

    action = Choice(get_args(Action), required=True)
    tokens = figure()
    why = Text(required=True, max_length=1000)


class CurveOptionSchema(Schema):
    """An end of the run. Dollars and hours are of what is left, null where nothing is priced; `saves_usd` is over the plan."""

    action = Choice(get_args(Action), required=True)
    tokens = figure()
    tokens_left = figure()
    loss = Part(FigureRangeSchema, required=True)
    above_plan = Part(FigureRangeSchema, required=True)
    probability_of_target = Share(required=True, allow_none=True)
    usd = Part(RangeSchema, required=True, allow_none=True)
    saves_usd = Number(required=True, allow_none=True)
    accelerator_hours = Part(RangeSchema, required=True, allow_none=True)
    wall_clock_hours = Part(RangeSchema, required=True, allow_none=True)


class CurveAnswerSchema(Schema):
    """The loss at the plan's end, with its interval of 80 %, and what to do. `alpha`, `annealing`, `residual` are of the fitted curve."""

    final_loss = Part(FigureRangeSchema, required=True)
    against_plan = Part(AgainstPlanSchema, required=True, allow_none=True)
    advice = Part(AdviceSchema, required=True)
    options = Items(Part(CurveOptionSchema), max_items=MOST_OPTIONS, required=True)
    tokens = figure(description="Where the run is")
    done = Share(required=True, description="Of the plan")
    loss_now = figure()
    state = Choice(get_args(State), required=True)
    alpha = Part(FigureRangeSchema, required=True)
    annealing = Part(FigureRangeSchema, required=True, description="What decaying the rate to 0 takes off the loss")
    residual = figure()
    price = Part(PriceSchema, required=True, allow_none=True)
    price_snapshot = Text(required=True, allow_none=True)
    engine_version = Text(required=True)
    assumptions = Items(Part(AssumptionSchema), max_items=1000, required=True)
    warnings = Items(Text(max_length=5000), max_items=1000, required=True)
