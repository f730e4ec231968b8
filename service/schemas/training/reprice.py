"""What a re-pricing is asked with, and what its answer holds."""

from __future__ import annotations

from service.schemas.compound_fields import Part
from service.schemas.derive import derive, schema_of
from service.schemas.fields import NotNegative, Schema, Text
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.resolution.limits import MAX_USD
from service.usecases.training import reprice as usecase

# A request of 1 MiB can name no more fields, a few bytes each.
MAX_CHANGES = 300_000


class RepriceRequestSchema(Schema):
    """A run now, and its earlier estimate. `levers` of the requests are not looked for."""

    request = Part(EstimateRequestSchema, required=True, description="The run as it is planned now")
    since = Text(required=True, description="The price_snapshot of the earlier answer")
    before = Part(EstimateRequestSchema, description="The run as it was planned then; left out: as it is now")
    before_total_usd = NotNegative(maximum=MAX_USD, description="cost.total_usd.p50 of the earlier answer, to tell the engine's part")


derive(usecase.MoveCause, limits={"changes": {"max_items": MAX_CHANGES}})
RepriceAnswerSchema = schema_of(usecase.RepriceAnswer)
