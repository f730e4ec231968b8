"""POST /v1/reprice."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.resources.training.estimate import EXAMPLE as REQUEST
from service.schemas.training.reprice import RepriceAnswerSchema, RepriceRequestSchema
from service.serialization import to_builtins
from service.usecases.training import reprice as usecase

blueprint = Blueprint("reprice", __name__, description="What moved since an earlier estimate")

EXAMPLE: dict[str, Any] = {
    "request": REQUEST | {"data": {"tokens": "2.5T"}, "price": {"usd_per_accelerator_hour": 2.2}},
    "since": "snapshot-2026-09-20-dc2344eb",
    "before": REQUEST,
}


@blueprint.route("/v1/reprice", methods=["POST"])
@blueprint.arguments(RepriceRequestSchema, example=EXAMPLE)
@blueprint.response(200, RepriceAnswerSchema)
def reprice_estimate(request: dict[str, Any]) -> Response:
    """What moved since an earlier estimate: the engine, the prices or the workload

    The earlier request is estimated at the earlier prices, then at the present ones, then the present request is: each step has one cause.
    The present prices are the newest, or those of `request.price.snapshot`. Three estimates are made: below 3 s of CPU.
    """
    return json_response(to_builtins(usecase.reprice(team_context(), request)))
