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

blueprint = Blueprint("track_report", __name__, description="Reports of tracked programs")


class ReportQuerySchema(Schema):
    """Time and format of the report."""

    as_of = Moment(description="Status as of this time, inclusive; left out: now")
    format = Choice(tuple(ACCEPTED), description="Left out: by Accept, else JSON")


@blueprint.route("/v1/track/programs/<program_id>/report", methods=["GET"])
@blueprint.arguments(ReportQuerySchema, location="query")
@blueprint.response(200, TrackReportSchema)
@blueprint.alt_response(404, response_name(404))
@blueprint.doc(responses={200: {"content": DOCUMENTS}})
def get_report(query: dict[str, Any], program_id: str) -> Response:
    """A program's report, for a project review

    Headline, spend, earned value, forecast, gate, failures, runs, unknown figures and assumptions. `format`, or Accept, selects a printable
    page with plots, Markdown, a workbook with formulas, a calendar or CSV. Up to 1 s of CPU for each of the eight newest unfinished runs
    with losses, and 1 s for the page's plots.
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
