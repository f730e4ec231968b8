"""POST /v1/compare and /v1/approaches."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.budgets import uses
from service.schemas.comparison.answer import CompareAnswerSchema
from service.schemas.comparison.approaches import ApproachesAnswerSchema, ApproachesRequestSchema
from service.schemas.comparison.request import CompareRequestSchema
from service.serialization import to_builtins
from service.usecases.comparison import approaches as usecase_approaches
from service.usecases.comparison import compare as usecase_compare

blueprint = Blueprint("comparison", __name__, description="Offers and owned hardware for a workload; approaches to a task")

COMPARISON: dict[str, Any] = {
    "workload": {
        "model": {"params": "7B"},
        "data": {"tokens": "1T"},
        "training": {"method": "pretrain", "seq_len": 4096, "precision": "bf16"},
    },
    "candidates": {
        "accelerators": ["H100", "A100-80GB", "H200"],
        "counts": [64, 128, 256],
        "pricing": ["on_demand", "spot", "reserved_1y"],
    },
    "constraints": {"start": "2027-01-04", "deadline": "2027-06-30", "max_wall_clock_days": 60},
    "on_prem": [
        {
            "name": "dc1",
            "accelerator": "H100",
            "count": 128,
            "capex_usd_per_accelerator": 32000,
            "years": 4,
            "residual_share": 0.1,
            "cost_of_capital": 0.08,
            "utilisation": 0.7,
            "kw_per_accelerator": 1.3,
            "pue": 1.3,
            "usd_per_kwh": 0.09,
            "opex_share_per_year": 0.06,
        }
    ],
    "objective": "cost",
    "limit": 50,
}


@blueprint.route("/v1/compare", methods=["POST"])
@uses(costly=True)
@blueprint.arguments(CompareRequestSchema, example=COMPARISON)
@blueprint.response(200, CompareAnswerSchema)
def compare_options(request: dict[str, Any]) -> Response:
    """Compare clouds, kinds of pricing, accelerators, counts and owned hardware

    Every matching offer in every count is evaluated: whole instances, spot with the work lost to preemptions, reservations by whole terms.
    Work is bounded: each variant on each accelerator in each count, and on each owned machine, is 2 units for a dense model, and for
    experts 1 plus the number of divisors of their number; the limit is 600 units, about 5 s of CPU at most.

    Several ways to the same goal are compared with `"variants": [{"name": "whole", "workload": {}}, {"name": "adapters", "workload":
    {"training": {"method": "lora", "lora_rank": 16}}}]`, each the workload with its changes. The answer's `variants` has the best
    option of each: `{"name": "adapters", "best": "adapters:…", "cost_usd": 1200, "wall_clock_hours": 9.5, "feasible": 40}`.
    """
    return json_response(to_builtins(usecase_compare.compare(team_context(), request)))


APPROACHES: dict[str, Any] = {
    "model": {"preset": "llama-3.1-8b"},
    "task_tokens": "50M",
    "lifetime_inference_tokens": "1T",
    "hardware": {"accelerator": "H100", "count": 512},
    "price": {"usd_per_accelerator_hour": 2.5},
    "serving": {"prompt_tokens": 1500, "output_tokens": 400},
}


@blueprint.route("/v1/approaches", methods=["POST"])
@uses(costly=True)
@blueprint.arguments(ApproachesRequestSchema, example=APPROACHES)
@blueprint.response(200, ApproachesAnswerSchema)
def compare_approaches(request: dict[str, Any]) -> Response:
    """Compare six ways to the same task, from prompting to pre-training, over its lifetime

    Each approach is estimated on the fewest accelerators that hold it and finish within `max_days`, with up to some forty estimates in all:
    below 0.3 s of CPU for dense models, about 1 s for the costliest mixtures of experts.
    """
    return json_response(to_builtins(usecase_approaches.approaches(team_context(), request)))
