"""POST /v1/ask."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import principal, team_context
from service.api.http.blueprint import Blueprint, json_response
from service.schemas.ask import AskAnswerSchema, AskRequestSchema, ask_body

blueprint = Blueprint("ask", __name__, description="Questions in words")

EXAMPLE: dict[str, Any] = {"text": "llama 3 70b, 15 trillion tokens on 2k h100s by next june", "answer": True}


@blueprint.route("/v1/ask", methods=["POST"])
@blueprint.arguments(AskRequestSchema, example=EXAMPLE)
@blueprint.response(200, AskAnswerSchema)
def ask_question(request: dict[str, Any]) -> Response:
    """Ask in words: an estimate, a comparison, a chance, a price, a status

    `understood.request` is what `understood.endpoint` takes, `understood.echo` says in words what was read, `assumptions` what could be
    read otherwise. What is not understood stands in `unclear`, with candidates; nothing is filled in. With `answer` the request is
    answered too, unless an entry of `unclear` is `blocking`. Reading takes below 5 ms, answering as long as at the endpoint itself.
    """
    return json_response(ask_body(team_context(), principal(), request["text"], with_answer=request["answer"]))
