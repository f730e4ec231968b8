"""/v1/results: keep, list, read and delete results, and their signed records."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response, request, url_for

from service.api.http.auth import app_context, needs, principal, team_context
from service.api.http.blueprint import JSON, Blueprint, json_response
from service.api.http.errors import HttpError, response_name
from service.api.http.etags import ETAG, with_etag
from service.api.http.idempotency import IDEMPOTENT, idempotency_record
from service.api.http.paging import numbered_page
from service.api.resources.training.estimate import EXAMPLE as ESTIMATE
from service.domain.results import ResultDetail, ResultFilter
from service.formats.documents.results.render import MEDIA_TYPES, formats_of, render
from service.schemas.fields import Choice, Schema
from service.schemas.paging import page_schema
from service.schemas.results.older_results import completed
from service.schemas.results.presenters import entry_body, result_body
from service.schemas.results.results import KeepRequestSchema, ResultEntrySchema, ResultQuerySchema, ResultSchema
from service.serialization import to_json
from service.usecases.results import keep as usecase

Body = dict[str, Any]
blueprint = Blueprint("results", __name__, description="Answers that are kept: unchanging, listed, signed and shared")

EXAMPLE: Body = {"kind": "estimate", "request": ESTIMATE, "title": "Llama 2 7B on 1,024 A100", "expires_in_days": 365}
JOSE = "application/jose"
DOCUMENTS = {
    media_type.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
    for media_type in MEDIA_TYPES.values()
    if media_type != JSON
}


class ResultFormatSchema(Schema):
    """Format of a kept result."""

    format = Choice(tuple(MEDIA_TYPES), description="Left out: by Accept, else JSON")


def known_result(result_id: str) -> None:
    """Raise NotFound where the team has no result of this id."""
    usecase.check_result(app_context(), principal(), result_id)


@blueprint.route("/v1/results", methods=["POST"])
@needs("write")
@blueprint.arguments(KeepRequestSchema, example=EXAMPLE)
@blueprint.response(201, ResultSchema)
@blueprint.alt_response(507, response_name(507))
@blueprint.doc(**IDEMPOTENT)
def keep_result(asked: usecase.Question) -> Response:
    """Answer a question and keep the answer

    The answer never changes: it is kept as bytes, with its price snapshot and engine version, and a record of it is signed. It takes what
    the kind's own address takes, and some 5 ms more.
    """
    body = partial(result_body, server=server_address())
    made = usecase.keep(app_context(), team_context(), principal(), asked, idempotency_record(201, body, _url))
    return json_response(body(made), 201, {"Location": _url(made)})


@blueprint.route("/v1/results", methods=["GET"])
@blueprint.arguments(ResultQuerySchema, location="query")
@blueprint.response(200, page_schema(ResultEntrySchema))
def list_results(query: Body) -> Response:
    """The team's kept results without their answers, the newest first

    An expired result is not listed.
    """
    wanted = ResultFilter(**{name: query[name] for name in ResultFilter.__dataclass_fields__ if name in query})
    body = partial(entry_body, server=server_address())
    return numbered_page(query, partial(usecase.list_results, app_context(), principal(), wanted), body)


@blueprint.route("/v1/results/<result_id>", methods=["GET"])
@blueprint.arguments(ResultFormatSchema, location="query")
@blueprint.response(200, ResultSchema, headers=ETAG)
@blueprint.alt_response(406, "NotAcceptable")
@blueprint.doc(responses={200: {"content": DOCUMENTS}})
def get_result(query: Body, result_id: str) -> Response:
    """A kept result, with its answer as it was kept

    `format`, or Accept, selects a page, Markdown, a workbook, a chart or, where the kind has one, a PDF: up to 1 s of CPU. In JSON the
    answer is the last member, byte for byte as kept; `/r/{result_id}?format=json` returns these bytes alone.
    """
    found = usecase.find_result(app_context(), principal(), result_id)
    wanted = query.get("format") or _accepted_format(found)
    return with_etag(_whole_result(found) if wanted == "json" else result_document(found, wanted))


@blueprint.route("/v1/results/<result_id>", methods=["DELETE"])
@needs("write", known_result)
@blueprint.response(204)
def delete_result(result_id: str) -> Response:
    """Delete a kept result; its links open nothing from now on

    Records that were downloaded remain valid.
    """
    usecase.delete_result(app_context(), principal(), result_id)
    return Response(status=204)


@blueprint.route("/v1/results/<result_id>/record", methods=["GET"])
@blueprint.response(200, {"type": "string"}, content_type=JOSE, headers=ETAG)
def get_result_record(result_id: str) -> Response:
    """A kept result's record for an audit, as JWS (RFC 7515, compact serialization, EdDSA)

    Its payload has request, answer, prices used with their sources, price snapshot, engine version, time and SHA-256 digests. It was signed
    when the result was kept, by a key of /.well-known/jwks.json; `outlay verify` checks it.
    """
    record = usecase.signed_record(usecase.find_result(app_context(), principal(), result_id))
    return with_etag(Response(record, content_type=JOSE, headers={"Content-Disposition": f'attachment; filename="{result_id}.jws"'}))


def server_address() -> str:
    """What addresses begin with, as the client has addressed the service."""
    return request.url_root.rstrip("/")


def _whole_result(kept: ResultDetail) -> Response:
    """The result as JSON, with the answer's bytes as kept, so that whoever cuts them out finds the digest."""
    body = to_json({name: value for name, value in result_body(kept, server_address()).items() if name != "answer"})
    return Response(f'{body[:-1]},"answer":{kept.answer_json.decode()}}}', content_type=JSON)


def result_document(kept: ResultDetail, wanted: str) -> Response:
    """The answer in the wanted format. Raises UnavailableFormat."""
    response = Response(render(kept if wanted == "json" else completed(kept), wanted), content_type=MEDIA_TYPES[wanted])
    if wanted == "html":
        response.headers["Content-Security-Policy"] = page_policy()
    return response


def page_policy() -> str:
    """The Content-Security-Policy of a result's page."""
    from service.formats.documents.page import STYLES, content_policy

    return f"{content_policy(STYLES['result'])}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def _accepted_format(kept: ResultDetail) -> str:
    """The format that Accept prefers, JSON where it takes anything. Raises HttpError 406 where it takes none."""
    if not request.accept_mimetypes:
        return "json"
    names = {MEDIA_TYPES[name].partition(";")[0]: name for name in formats_of(kept.row.kind)}
    best = request.accept_mimetypes.best_match(list(names))
    if not best:
        raise HttpError(406, f"This can be had as {', '.join(names)}.")
    return names[best]


def _url(kept: ResultDetail) -> str:
    return url_for("results.get_result", result_id=kept.row.id)
