"""POST /v1/optimal, /v1/scaling-laws/fit and /v1/loss-curves/extrapolate."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.budgets import uses
from service.schemas.scaling.law_fit import LawFitAnswerSchema, LawFitRequestSchema
from service.schemas.scaling.loss_curves import CurveAnswerSchema, CurveRequestSchema
from service.schemas.scaling.optimum_answer import OptimalAnswerSchema
from service.schemas.scaling.optimum_request import OptimalRequestSchema
from service.serialization import to_builtins
from service.usecases.scaling import optimum as usecase
from service.usecases.scaling.law_fit import fit_scaling_law
from service.usecases.scaling.loss_curves import extrapolate_curve

blueprint = Blueprint("scaling", __name__, description="Compute-optimal sizes, scaling laws and loss curves")

OPTIMUM: dict[str, Any] = {
    "budget": {"usd": 1e6},
    "law": "besiroglu",
    "hardware": {"accelerator": "H100", "count": 256},
    "price": {"usd_per_accelerator_hour": 2.5},
    "lifetime_inference_tokens": "10T",
    "plan": {"params": "7B", "tokens": "2T"},
}


@blueprint.route("/v1/optimal", methods=["POST"])
@uses(costly=True)
@blueprint.arguments(OptimalRequestSchema, example=OPTIMUM)
@blueprint.response(200, OptimalAnswerSchema)
def find_optimum(request: dict[str, Any]) -> Response:
    """Compute-optimal training for a budget: size, tokens, loss, cost and days

    With `lifetime_inference_tokens` the answer is the cheapest model of training and serving together that is as good as the best one for
    the training budget: smaller, and trained for longer than the budget; `lifetime` has the savings.
    With `model` the size is given: `tokens` are what the budget affords it, `given_model` says how far they are from compute-optimal.
    The step model is evaluated for some thirty sizes: the costliest request takes some 1 s of CPU.
    """
    return json_response(to_builtins(usecase.optimal(team_context(), request)))


LAW_FIT: dict[str, Any] = {
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
@uses(costly=True)
@blueprint.arguments(LawFitRequestSchema, example=LAW_FIT)
@blueprint.response(200, LawFitAnswerSchema)
def fit_law(request: dict[str, Any]) -> Response:
    """Fit a scaling law to runs

    Intervals are of 80 %, over resamples of the runs; fewer than 6 distinct sizes, and losses that do not fall, are a 422. The same request
    has the same answer. 240 points take about 0.7 s of CPU, the costliest request (1,000 points that no law fits) some 4 s.
    """
    return json_response(to_builtins(fit_scaling_law(request)))


# Made up, in the shape of the curves of Luo et al. 2025 (arXiv 2503.12811).
LOSSES = (3.42, 3.21, 3.1, 3.04, 2.985, 2.953, 2.921, 2.9, 2.876, 2.861, 2.847, 2.832)
LOSS_CURVE: dict[str, Any] = {
    "points": [{"tokens": (index + 1) * 1e9, "loss": loss} for index, loss in enumerate(LOSSES)],
    "schedule": {"decay": "cosine", "warmup_tokens": "500M", "final_share": 0.1},
    "plan": {"tokens": "20B", "loss": 2.78},
    "model": {"params": "400M"},
    "hardware": {"accelerator": "H100", "count": 8},
    "price": {"usd_per_accelerator_hour": 2.5},
}


@blueprint.route("/v1/loss-curves/extrapolate", methods=["POST"])
@uses(costly=True)
@blueprint.arguments(CurveRequestSchema, example=LOSS_CURVE)
@blueprint.response(200, CurveAnswerSchema)
def extrapolate_loss_curve(request: dict[str, Any]) -> Response:
    """Predict the end of a loss curve

    The learning-rate schedule is taken into account, with the fall that its decay has still to bring. Other ends stretch or compress the
    rest of the schedule. A curve takes some 0.2 s of CPU, one of 20,000 points 0.5 s; costs take one estimate for each end.
    """
    return json_response(to_builtins(extrapolate_curve(team_context(), request)))
