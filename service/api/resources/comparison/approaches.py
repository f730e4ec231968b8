"""POST /v1/approaches."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint, json_response
from service.schemas.comparison.approaches import ApproachesAnswerSchema, ApproachesRequestSchema
from service.serialization import to_builtins
from service.usecases.comparison import approaches as usecase

blueprint = Blueprint("approaches", __name__, description="The same task by prompting, fine-tuning, distillation or pre-training")

EXAMPLE: dict[str, Any] = {
    "model": {"preset": "llama-3.1-8b"},
    "task_tokens": "50M",
    "lifetime_inference_tokens": "1T",
    "hardware": {"accelerator": "H100", "count": 512},
    "price": {"usd_per_accelerator_hour": 2.5},
    "serving": {"prompt_tokens": 1500, "output_tokens": 400},
}


@blueprint.route("/v1/approaches", methods=["POST"])
@blueprint.arguments(ApproachesRequestSchema, example=EXAMPLE)
@blueprint.response(200, ApproachesAnswerSchema)
def approaches(request: dict[str, Any]) -> Response:
    """Compare six ways to the same task, from prompting to pre-training, over its lifetime

    Each approach is estimated on the fewest accelerators that hold it and finish within `max_days`, with up to some forty estimates in all:
    below 0.3 s of CPU for dense models, about 1 s for the costliest mixtures of experts.
    """
    return json_response(to_builtins(usecase.approaches(team_context(), request)))
