"""What an optimisation is asked with, beside its base."""

from __future__ import annotations

from service.schemas.base import Choice, Count, Day, Items, Number, Part, Positive, Schema, Text
from service.schemas.comparison.request import MOST_PLANTS, CandidatesSchema, ConstraintsSchema, OnPremSchema
from service.schemas.fields import FreeObject
from service.schemas.training.request import MAX_PARAMS
from service.usecases.scenarios.optimisation.optimise import OBJECTIVES


class LimitsSchema(ConstraintsSchema):
    """What the best must keep to; as in POST /v1/compare."""

    max_loss = Positive(maximum=100.0, description="The loss to be reached; needs model_size, whose law says what it takes")


class StartsSchema(Schema):
    """When it may start: from the constraints' or the base's start on."""

    latest = Day(description="Left out: the same day")
    price_change_per_year = Number(minimum=-0.9, maximum=9.0, description="Of what is rented, such as -0.2; left out: 0")


class DemandSchema(Schema):
    """How much is needed at a time, to say how much of it to commit to."""

    accelerators = FreeObject(required=True, max_members=3, description="Their distribution over the hours, as in `distributions`")


class ModelSizeSchema(Schema):
    """Between which sizes the model may be; it takes the tokens that reach constraints.max_loss."""

    min_params = Count(required=True, maximum=MAX_PARAMS, description="Fewest parameters")
    max_params = Count(required=True, maximum=MAX_PARAMS, description="Most parameters")
    law = Text(description="Scaling law by name, such as hoffmann-3; left out: besiroglu")


class OptimizeSchema(Schema):
    """The fields that an optimisation takes."""

    objective = Choice(OBJECTIVES, description="optimize; left out: expected_cost")
    quantile = Number(minimum=0.01, maximum=0.99, description="optimize: of cost, for the objective cost_quantile")
    candidates = Part(CandidatesSchema, description="optimize; left out: all")
    constraints = Part(LimitsSchema, description="optimize")
    on_prem = Items(Part(OnPremSchema), max_items=MOST_PLANTS, description="optimize: owned hardware beside the offers")
    starts = Part(StartsSchema, description="optimize: how long it may wait")
    demand = Part(DemandSchema, description="optimize: what a fleet is bought for")
    model_size = Part(ModelSizeSchema, description="optimize: search the model's size too")
