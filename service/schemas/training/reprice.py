"""What a re-pricing is asked with, and what its answer holds."""

from __future__ import annotations

from service.schemas.base import AnyValue, Choice, Items, NotNegative, Number, Part, Schema, Text
from service.schemas.training.answer import AssumptionSchema, PriceSchema
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.training.estimate import MAX_USD

# A request of 1 MiB can name no more fields, a few bytes each.
MOST_CHANGES = 300_000


class RepriceRequestSchema(Schema):
    """A run now, and its earlier estimate. `levers` of the requests are not looked for."""

    request = Part(EstimateRequestSchema, required=True, description="The run as it is planned now")
    since = Text(required=True, description="The price_snapshot of the earlier answer")
    before = Part(EstimateRequestSchema, description="The run as it was planned then; left out: as it is now")
    before_total_usd = NotNegative(maximum=MAX_USD, description="cost.total_usd.p50 of the earlier answer, to tell the engine's part")


class StandingSchema(Schema):
    """An estimate in short. What is an uncertain quantity in a whole one is its p50."""

    total_usd = Number(required=True)
    wall_clock_hours = Number(required=True)
    accelerator_hours = Number(required=True)
    price = Part(PriceSchema, required=True)
    price_snapshot = Text(required=True)
    engine_version = Text(required=True)


class FieldChangeSchema(Schema):
    """A field by its path, with both values; null: not stated."""

    field = Text(required=True, max_length=100_000)
    before = AnyValue(required=True, allow_none=True)
    now = AnyValue(required=True, allow_none=True)


class CauseSchema(Schema):
    """One cause of the move; above 0 it makes the run dearer.

    `price`: the earlier request at the present prices over the same at the earlier ones, with the present request's `price`, stated or
    asked for, where the earlier machine is sold so.
    `workload`: the present request over the earlier one at the present prices. `engine` is there where before_total_usd was stated: the
    earlier request at the earlier prices today over that.
    """

    cause = Choice(("engine", "price", "workload"), required=True)
    usd = Number(required=True)
    detail = Text(required=True, max_length=5000)
    changes = Items(Part(FieldChangeSchema), max_items=MOST_CHANGES, required=True, description="Fields of the price or of the request")


class MovedSchema(Schema):
    """From the earlier total, as stated or else as computed today, to the present one. The causes add up to `usd`, to the cent."""

    from_usd = Number(required=True)
    to_usd = Number(required=True)
    usd = Number(required=True)
    causes = Items(Part(CauseSchema), max_items=3, required=True)


class RepriceAnswerSchema(Schema):
    """Then and now. `before` is computed with the present engine; assumptions and warnings are those of `now`."""

    before = Part(StandingSchema, required=True)
    now = Part(StandingSchema, required=True)
    moved = Part(MovedSchema, required=True)
    price_snapshot = Text(required=True)
    engine_version = Text(required=True)
    assumptions = Items(Part(AssumptionSchema), max_items=1000, required=True)
    warnings = Items(Text(max_length=5000), max_items=100, required=True)
