"""POST /v1/estimate and /v1/estimate/batch."""

from __future__ import annotations

import time
from typing import Any

from flask import Response, g

from service.api.http.auth import spend, team_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.budgets import uses
from service.api.http.errors import domain_error_body, problem_body
from service.api.http.request_body import LARGE_BODY_BYTES, body_limit
from service.domain.errors import DomainError
from service.schemas.base import pointers
from service.schemas.strict_json import pointer_of
from service.schemas.training.answer import BatchAnswerSchema, EstimateAnswerSchema
from service.schemas.training.presenters import answered, batch_answer
from service.schemas.training.request import BatchRequestSchema, EstimateRequestSchema, Unreadable

blueprint = Blueprint("estimate", __name__, description="What a training run takes, how long, what it costs")

REQUEST = EstimateRequestSchema()
EXAMPLE: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "2T"},
    "training": {"method": "pretrain", "seq_len": 4096, "global_batch_tokens": 4194304, "precision": "bf16"},
    "hardware": {"accelerator": "A100-80GB", "count": 1024},
    "price": {"usd_per_accelerator_hour": 2.0},
}
# A batch of the costliest requests would hold a thread for minutes.
BATCH_BUDGET_S = 20.0


@blueprint.route("/v1/estimate", methods=["POST"])
@uses("estimates")
@blueprint.arguments(EstimateRequestSchema, example=EXAMPLE)
@blueprint.response(200, EstimateAnswerSchema)
def estimate_run(request: dict[str, Any]) -> Response:
    """Estimate one training run

    Only `model`, `data` and `hardware` are required; what is assumed for the rest stands in `assumptions`.
    Where nobody sells the accelerator `price` and `cost.total_usd` are null and a warning says what to state. A filter that matches no
    offer is refused (422), as are questions about dollars alone, such as an optimum for a budget of dollars.
    The costliest single request takes below 1 s of CPU. With `levers` some twenty estimates are made: below 0.5 s for dense models, below
    1 s for published mixtures of experts, 2 s for the costliest shapes and machines.
    """
    spend("estimates", 1)
    return json_response(answered(team_context(), request))


@blueprint.route("/v1/estimate/batch", methods=["POST"])
@uses("estimates", costly=True)
@body_limit(LARGE_BODY_BYTES)
@blueprint.arguments(BatchRequestSchema, example={"requests": [EXAMPLE]})
@blueprint.response(200, BatchAnswerSchema)
def estimate_batch(request: dict[str, Any]) -> Response:
    """Estimate up to 1,000 runs

    Answers come in the order of the requests, each an estimate or a problem. What is not begun after 20 s is answered with a 503.
    """
    context = team_context()
    spend("estimates", len(request["requests"]))
    until_s = time.monotonic() + BATCH_BUDGET_S
    answers = [
        _attempt(context, index, entry) if time.monotonic() < until_s else _not_begun() for index, entry in enumerate(request["requests"])
    ]
    return json_response(batch_answer(answers, context.book().name))


def _attempt(context: Any, index: int, entry: dict[str, Any] | Unreadable) -> dict[str, Any]:
    """One entry's estimate, or its problem with pointers into the whole batch."""
    request_id = g.get("request_id", "")
    if isinstance(entry, Unreadable):
        return problem_body(422, errors=_below(index, pointers(entry.messages, REQUEST)), request_id=request_id)
    try:
        return answered(context, entry)
    except DomainError as problem:
        body = domain_error_body(problem, request_id)
        return body | {"errors": _below(index, body["errors"])}


def _not_begun() -> dict[str, Any]:
    detail = f"The batch has used its {BATCH_BUDGET_S:g} s before this request was begun; send the rest again."
    return problem_body(503, detail, request_id=g.get("request_id", ""))


def _below(index: int, errors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    prefix = pointer_of(("requests", index))
    return [entry | {"pointer": prefix + entry["pointer"]} for entry in errors]
