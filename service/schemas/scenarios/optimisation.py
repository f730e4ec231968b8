"""Request fields of an optimisation."""

from __future__ import annotations

from service.schemas.comparison.request import MOST_PLANTS, CandidatesSchema, ConstraintsSchema, OnPremSchema
from service.schemas.compound_fields import FreeObject, Items, Part
from service.schemas.fields import Choice, Count, Day, Number, Positive, Schema, Text
from service.schemas.training.request import MAX_PARAMS
from service.usecases.scenarios.optimisation.optimise import OBJECTIVES


class LimitsSchema(ConstraintsSchema):
    """Constraints of the best option; as in POST /v1/compare."""

    max_loss = Positive(maximum=100.0, description="Loss that the model must reach [nats/token]; needs model_size")


class StartsSchema(Schema):
    """Possible starts, from the start of the constraints or the base."""

    latest = Day(description="Last possible start; left out: the same day")
    price_change_per_year = Number(minimum=-0.9, maximum=9.0, description="Change of rental prices a year, such as -0.2; left out: 0 [1]")


class DemandSchema(Schema):
    """Demand of a fleet, for the commitment of capacity."""

    accelerators = FreeObject(
        required=True, max_members=3, description="Distribution of accelerators over the hours, as in `distributions`"
    )


class ModelSizeSchema(Schema):
    """Bounds of the model size; each size is trained on the tokens that reach constraints.max_loss."""

    min_params = Count(required=True, maximum=MAX_PARAMS, description="Fewest parameters")
    max_params = Count(required=True, maximum=MAX_PARAMS, description="Most parameters")
    law = Text(description="Scaling law by name, such as hoffmann-3; left out: besiroglu")


class OptimizeSchema(Schema):
    """Fields of an optimisation."""

    objective = Choice(OBJECTIVES, description="optimize: what is minimised; left out: expected_cost")
    quantile = Number(minimum=0.01, maximum=0.99, description="optimize: quantile of cost for the objective cost_quantile [1]")
    candidates = Part(CandidatesSchema, description="optimize: accelerators, counts and offers; left out: all")
    constraints = Part(LimitsSchema, description="optimize: constraints of the best option")
    on_prem = Items(Part(OnPremSchema), max_items=MOST_PLANTS, description="optimize: owned hardware besides the offers")
    starts = Part(StartsSchema, description="optimize: possible starts")
    demand = Part(DemandSchema, description="optimize: demand of a fleet")
    model_size = Part(ModelSizeSchema, description="optimize: bounds of the model size, which is searched too")
