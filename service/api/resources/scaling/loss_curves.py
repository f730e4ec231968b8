"""POST /v1/loss-curves/extrapolate."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint, json_response
from service.schemas.scaling.loss_curves import CurveAnswerSchema, CurveRequestSchema
from service.serialization import to_builtins
from service.usecases.scaling.loss_curves import extrapolate_curve

blueprint = Blueprint("loss_curves", __name__, description="Forecast of a running training run, and advice")

# Made up, in the shape of the curves of Luo et al. 2025 (arXiv 2503.12811).
LOSSES = (3.42, 3.21, 3.1, 3.04, 2.985, 2.953, 2.921, 2.9, 2.876, 2.861, 2.847, 2.832)
EXAMPLE: dict[str, Any] = {
    "points": [{"tokens": (index + 1) * 1e9, "loss": loss} for index, loss in enumerate(LOSSES)],
    "schedule": {"decay": "cosine", "warmup_tokens": "500M", "final_share": 0.1},
    "plan": {"tokens": "20B", "loss": 2.78},
    "model": {"params": "400M"},
    "hardware": {"accelerator": "H100", "count": 8},
    "price": {"usd_per_accelerator_hour": 2.5},
}


@blueprint.route("/v1/loss-curves/extrapolate", methods=["POST"])
@blueprint.arguments(CurveRequestSchema, example=EXAMPLE)
@blueprint.response(200, CurveAnswerSchema)
def extrapolate(request: dict[str, Any]) -> Response:
    """Predict the end of a loss curve

    The learning-rate schedule is taken into account, with the fall that its decay has still to bring. Other ends stretch or compress the
    rest of the schedule. A curve takes some 0.2 s of CPU, one of 20,000 points 0.5 s; costs take one estimate for each end.
    """
    return json_response(to_builtins(extrapolate_curve(team_context(), request)))
