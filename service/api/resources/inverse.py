"""POST /v1/estimate/inverse."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.budgets import uses
from service.schemas.programs.inverse import InverseAnswerSchema, InverseRequestSchema
from service.serialization import to_builtins
from service.usecases.programs import inverse as usecase

blueprint = Blueprint("inverse", __name__, description="The most within a budget, a machine and a deadline")

EXAMPLE: dict[str, Any] = {
    "find": "repeats",
    "budget": {"usd": 50000, "days": 14},
    "accelerators": 256,
    "model": {"params": "1B"},
    "data": {"tokens": "20B"},
    "hardware": {"accelerator": "H100", "count": 32},
    "price": {"usd_per_accelerator_hour": 2.5},
}


@blueprint.route("/v1/estimate/inverse", methods=["POST"])
@uses("estimates", costly=True)
@blueprint.arguments(InverseRequestSchema, example=EXAMPLE)
@blueprint.response(200, InverseAnswerSchema)
def invert_estimate(body: dict[str, Any]) -> Response:
    """The most ablations, sweep points or context within a budget, and the shortest refresh

    Every value that is tried is estimated as a whole, some twenty of them; `limit` says what the next one exceeds.
    """
    return json_response(to_builtins(usecase.invert_estimate(team_context(), body)))
