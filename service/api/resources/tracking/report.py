"""GET /v1/track/programs/{id}/report."""

from __future__ import annotations

from typing import Any

from flask import Response, current_app

from service.api.http.blueprint import Blueprint, json_response
from service.api.http.errors import response_name
from service.api.resources.programs import ACCEPTED, DOCUMENTS, accepted_format, document
from service.api.resources.tracking.programs import known_program
from service.schemas.base import Choice, Moment, Schema
from service.schemas.tracking.presenters import report_body
from service.schemas.tracking.report import TrackReportSchema
from service.usecases.tracking.report import program_report

blueprint = Blueprint("track_report", __name__, description="What is sent upward of tracked programs")


class ReportQuerySchema(Schema):
    """Of which moment, and how it is to be written."""

    as_of = Moment(description="What had happened by then, that moment included; left out: now")
    format = Choice(tuple(ACCEPTED), description="Left out: what Accept asks for, JSON where it does not say")


@blueprint.route("/v1/track/programs/<program_id>/report", methods=["GET"])
@blueprint.arguments(ReportQuerySchema, location="query")
@blueprint.response(200, TrackReportSchema)
@blueprint.alt_response(404, response_name(404))
@blueprint.doc(responses={200: {"content": DOCUMENTS}})
def get_report(query: dict[str, Any], program_id: str) -> Response:
    """A program's report, as a page to send upward

    The headline in figures, spending, earned value, forecast, gate, failures, runs, what is not known and what is assumed. `format`, or
    Accept, gives it as a page with plots that prints, Markdown, a workbook with formulas, a calendar or CSV. Up to a second of CPU for
    each unfinished run with losses, the newest eight of them, and one for the page's plots.
    """
    program = known_program(program_id)
    wanted = query.get("format") or accepted_format()
    body = report_body(program_report(current_app.extensions["context"], program, query.get("as_of")))
    return json_response(body) if wanted == "json" else _document(body, wanted)


def _document(body: dict[str, Any], wanted: str) -> Response:
    from service.formats.documents.report import render
    from service.formats.documents.report.html import content_policy

    content, kind = render(body, wanted)  # type: ignore[arg-type]  # the schema takes its formats only
    return document(content, kind, content_policy() if wanted == "html" else None)
