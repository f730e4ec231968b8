"""/v1/results/{id}/links: links that open one result to whoever has them."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import app_context, needs, principal
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.idempotency import IDEMPOTENT, idempotency_record
from service.api.resources.results.results import known_result, server_address
from service.domain.results import ResultLink
from service.schemas.results.results import LinkRequestSchema, NewLinkSchema, ResultLinksSchema
from service.serialization import to_builtins
from service.usecases.results import links as usecase

Body = dict[str, Any]
blueprint = Blueprint("result_links", __name__, description="Links that open a kept result without an API key")

EXAMPLE: Body = {"expires_in_days": 30}


def known_link(result_id: str, link_id: str) -> None:
    """Raise NotFound where the team has no result of this id; whether it has the link is not disclosed."""
    del link_id
    known_result(result_id)


@blueprint.route("/v1/results/<result_id>/links", methods=["POST"])
@needs("write", known_result)
@blueprint.arguments(LinkRequestSchema, example=EXAMPLE)
@blueprint.response(201, NewLinkSchema)
@blueprint.doc(**IDEMPOTENT)
def create_result_link(given: Body, result_id: str) -> Response:
    """Create a link that opens a result to whoever has it, without an API key

    `url` is shown once: only a digest of its token is stored. The page shows the result and nothing else of the team. A result has at most
    100 links.
    """
    token = usecase.new_token()
    kept = idempotency_record(201, lambda link: to_builtins(link) | {"url": None})
    link: ResultLink = usecase.make_link(app_context(), principal(), result_id, token, given.get("expires_in_days"), kept)
    return json_response(to_builtins(link) | {"url": f"{server_address()}/r/{result_id}?token={token}"}, 201)


@blueprint.route("/v1/results/<result_id>/links", methods=["GET"])
@blueprint.response(200, ResultLinksSchema)
def list_result_links(result_id: str) -> Response:
    """The links that open a result, oldest first, without their tokens"""
    found = usecase.list_links(app_context(), principal(), result_id)
    return json_response({"items": [to_builtins(link) for link in found]})


@blueprint.route("/v1/results/<result_id>/links/<link_id>", methods=["DELETE"])
@needs("write", known_link)
@blueprint.response(204)
def revoke_result_link(result_id: str, link_id: str) -> Response:
    """Revoke a link: it opens nothing from now on"""
    usecase.revoke_link(app_context(), principal(), result_id, link_id)
    return Response(status=204)
