"""POST /v1/scaling-laws/fit."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.blueprint import Blueprint, json_response
from service.schemas.scaling.law_fit import LawFitAnswerSchema, LawFitRequestSchema
from service.serialization import to_builtins
from service.usecases.scaling.law_fit import fit_scaling_law

blueprint = Blueprint("scaling_laws", __name__, description="Scaling laws from the caller's own runs")

EXAMPLE: dict[str, Any] = {
    "points": [
        {"params": "70.4M", "tokens": "299.9B", "loss": 2.504},
        {"params": "162.3M", "tokens": "299.9B", "loss": 2.186},
        {"params": "405.3M", "tokens": "299.9B", "loss": 1.971},
        {"params": "1.01B", "tokens": "299.9B", "loss": 1.876},
        {"params": "111M", "tokens": "2.2B", "loss": 2.566},
        {"params": "256M", "tokens": "5.1B", "loss": 2.299},
        {"params": "590M", "tokens": "11.8B", "loss": 2.184},
        {"params": "1.3B", "tokens": "26.3B", "loss": 1.996},
        {"params": "2.7B", "tokens": "53B", "loss": 1.834},
    ],
    "form": "chinchilla",
    "predict": [{"params": "13B", "tokens": "257B"}],
    "design": {"flops": 1e21, "target": {"params": "13B", "tokens": "257B"}},
}


@blueprint.route("/v1/scaling-laws/fit", methods=["POST"])
@blueprint.arguments(LawFitRequestSchema, example=EXAMPLE)
@blueprint.response(200, LawFitAnswerSchema)
def fit(request: dict[str, Any]) -> Response:
    """Fit a scaling law to runs

    Intervals are of 80 %, over resamples of the runs; fewer than 6 distinct sizes, and losses that do not fall, are a 422. The same request
    has the same answer. 240 points take about 0.7 s of CPU, the costliest request (1,000 points that no law fits) some 4 s.
    """
    return json_response(to_builtins(fit_scaling_law(request)))
