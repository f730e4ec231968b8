"""POST /v1/optimal."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint, json_response
from service.schemas.scaling.optimum_answer import OptimalAnswerSchema
from service.schemas.scaling.optimum_request import OptimalRequestSchema
from service.serialization import to_builtins
from service.usecases.scaling import optimum as usecase

blueprint = Blueprint("optimal", __name__, description="Compute-optimal size and tokens for a budget")

EXAMPLE: dict[str, Any] = {
    "budget": {"usd": 1e6},
    "law": "besiroglu",
    "hardware": {"accelerator": "H100", "count": 256},
    "price": {"usd_per_accelerator_hour": 2.5},
    "lifetime_inference_tokens": "10T",
    "plan": {"params": "7B", "tokens": "2T"},
}


@blueprint.route("/v1/optimal", methods=["POST"])
@blueprint.arguments(OptimalRequestSchema, example=EXAMPLE)
@blueprint.response(200, OptimalAnswerSchema)
def optimal(request: dict[str, Any]) -> Response:
    """Compute-optimal training for a budget: size, tokens, loss, cost and days

    With `lifetime_inference_tokens` the answer is the cheapest model of training and serving together that is as good as the best one for
    the training budget: smaller, and trained for longer than the budget; `lifetime` has the savings.
    The step model is evaluated for some thirty sizes: the costliest request takes some 1 s of CPU.
    """
    return json_response(to_builtins(usecase.optimal(team_context(), request)))
