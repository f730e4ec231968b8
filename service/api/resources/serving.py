"""POST /v1/serving."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.budgets import uses
from service.schemas.serving import ServingAnswerSchema, ServingRequestSchema
from service.serialization import to_builtins
from service.usecases.serving import serve as usecase

blueprint = Blueprint("serving", __name__, description="Serving of a model: configuration, speed and cost")

EXAMPLE: dict[str, Any] = {
    "model": {"preset": "llama-3.1-70b"},
    "traffic": {"prompt_tokens": 1500, "output_tokens": 400, "requests_per_s": 20, "lifetime_tokens": "1T"},
    "latency": {"time_to_first_token_s": 2, "time_per_output_token_ms": 60},
    "formats": ["bf16", "fp8"],
    "hardware": {"accelerators": ["H100", "H200", "MI300X"]},
    "training": {"usd": 2_000_000},
    "levers": True,
}


@blueprint.route("/v1/serving", methods=["POST"])
@uses(costly=True)
@blueprint.arguments(ServingRequestSchema, example=EXAMPLE)
@blueprint.response(200, ServingAnswerSchema)
def plan_serving(request: dict[str, Any]) -> Response:
    """Plan and price the serving of a model

    The cheapest accelerators, format, parallelism and batch that carry the requests within their latency, the cost of a million tokens, a
    month and a lifetime, and the same on other offers. Decoder-only transformers. Where nothing fits or is fast enough a 422 names
    alternatives. The costliest request takes 0.4 s of CPU, plus the estimate where `training.estimate` is stated.
    """
    return json_response(to_builtins(usecase.serve(team_context(), request)))
