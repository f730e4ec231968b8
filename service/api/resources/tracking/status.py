"""GET /v1/track/programs/{id}/status."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import app_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.resources.tracking.programs import known_program
from service.schemas.fields import Choice, Moment, Schema
from service.schemas.tracking.presenters import status_body
from service.schemas.tracking.status import ProgramStatusSchema
from service.usecases.tracking.status import program_status

blueprint = Blueprint("track_status", __name__, description="Status of tracked programs")


class StatusQuerySchema(Schema):
    """Time of the status."""

    as_of = Moment(description="Status as of this time, inclusive; left out: now")
    project_losses = Choice(("true", "false"), description="true: project the final loss of each run, up to 1 s a run")


@blueprint.route("/v1/track/programs/<program_id>/status", methods=["GET"])
@blueprint.arguments(StatusQuerySchema, location="query")
@blueprint.response(200, ProgramStatusSchema)
def get_status(query: dict[str, Any], program_id: str) -> Response:
    """Status of a program: spend, earned value, forecast, drift, failures and gate

    An unknown figure is null, and its block gives the reason. A program of a million events takes less than 0.1 s.
    """
    tracked = program_status(
        app_context(),
        known_program(program_id),
        query.get("as_of"),
        with_loss_projections=query.get("project_losses") == "true",
    )
    return json_response(status_body(tracked))
