"""GET /v1/track/programs/{id}/status and /report."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import app_context, principal
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.documents import document_content, document_response
from service.api.http.errors import response_name
from service.api.resources.tracking.programs import known_program
from service.formats.documents.render import REPORT_FORMATS
from service.schemas.fields import Choice, Moment, Schema, Text
from service.schemas.tracking.presenters import report_body, status_body
from service.schemas.tracking.report import TrackReportSchema
from service.schemas.tracking.status import ProgramStatusSchema
from service.usecases.tracking.report import MAX_AUTHOR, program_report
from service.usecases.tracking.status import program_status

blueprint = Blueprint("track_reports", __name__, description="Status and reports of tracked programs")


class StatusQuerySchema(Schema):
    """Time of the status."""

    as_of = Moment(description="Status as of this time, inclusive; left out: now")
    project_losses = Choice(("true", "false"), description="true: project the final loss of each run, up to 1 s a run")


@blueprint.route("/v1/track/programs/<program_id>/status", methods=["GET"])
@blueprint.arguments(StatusQuerySchema, location="query")
@blueprint.response(200, ProgramStatusSchema)
@blueprint.alt_response(409, response_name(409))
def get_program_status(query: dict[str, Any], program_id: str) -> Response:
    """Status of a program: spend, earned value, forecast, drift, failures and gate

    An unknown figure is null, and its block gives the reason. Of an archived program `as_of` is the end of an hour, or after its events,
    else 409. A program of a million events takes less than 0.1 s.
    """
    tracked = program_status(
        app_context(),
        known_program(program_id),
        query.get("as_of"),
        with_loss_projections=query.get("project_losses") == "true",
    )
    return json_response(status_body(tracked))


class ReportQuerySchema(Schema):
    """Time and format of the report."""

    as_of = Moment(description="Status as of this time, inclusive; left out: now")
    format = Choice(("json", *REPORT_FORMATS), description="Left out: by Accept, else JSON")
    author = Text(max_length=MAX_AUTHOR, description="Who the report is by; left out: the name of the API key")


@blueprint.route("/v1/track/programs/<program_id>/report", methods=["GET"])
@blueprint.arguments(ReportQuerySchema, location="query")
@blueprint.response(200, TrackReportSchema)
@blueprint.alt_response(406, "NotAcceptable")
@blueprint.alt_response(409, response_name(409))
@blueprint.doc(responses={200: {"content": document_content("report")}})
def get_program_report(query: dict[str, Any], program_id: str) -> Response:
    """A program's report, for a project review

    Headline, the budget's bridge to the forecast, calendar, earned value, gate, quality, energy, runs, unknown figures and assumptions.
    `format`, or Accept, selects a printable page with charts, PDF, Markdown, a workbook with formulas and charts, a calendar or CSV. Up to
    1 s of CPU for each of the eight newest unfinished runs with losses, and 1 s for the page's charts.
    """
    program = known_program(program_id)
    author = query.get("author") or principal().key_name or None
    body = report_body(program_report(app_context(), program, query.get("as_of"), author))
    return document_response("report", body, query.get("format"))
