"""/programs/{id}/pivot: what going on with a gate's pivot changes, and the button that does it."""

from __future__ import annotations

from datetime import date
from http import HTTPStatus
from typing import Any

from flask import Response, redirect, request, url_for
from marshmallow import ValidationError
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import app_context, needs, principal, team_context
from service.api.http.budgets import uses
from service.api.http.request_body import read_form
from service.domain.errors import DomainError, VersionConflictError
from service.domain.tracking.records import ProgramRecord
from service.schemas.tracking.plan import plan_of
from service.usecases.tracking.pivot import POINTER, body_of_pivot, pivot_plan, switch_to_pivot
from service.usecases.tracking.status import program_status
from service.web.asking import refused_field
from service.web.blueprint import blueprint
from service.web.forms import Fields, FormField, field_errors, filled
from service.web.pages.programs import known_program
from service.web.plan_change import difference_to
from service.web.plan_fields import CHANGE
from service.web.rendering import page

GATE, DAY = "pivot_at", "pivot_from"
DAY_FIELD = FormField(DAY, "From", kind="date")
Body = dict[str, Any]


@blueprint.get("/programs/<program_id>/pivot")
@uses(costly=True)
@needs("write", known_program)
def show_pivot(program_id: str) -> Response:
    """What going on with the pivot changes, before it is done"""
    return _confirm(known_program(program_id), filled(request.args.items()))


@blueprint.post("/programs/<program_id>/pivot")
@uses(costly=True)
@needs("write", known_program)
def follow_pivot(program_id: str) -> BaseResponse:
    """Go on with the pivot, where the program is as it was when that was shown"""
    program, sent = known_program(program_id), filled(read_form().items())
    try:
        given = _given(sent)
    except ValidationError:
        return _confirm(program, sent)
    if sent.get("version") != str(program.version):
        return _confirm(program, sent, is_late=True)
    try:
        changed = switch_to_pivot(app_context(), principal(), program, given, _plan(program, given))
    except VersionConflictError:
        return _confirm(known_program(program_id), sent, is_late=True)
    address = url_for("web.show_versions", program_id=program_id, before=program.version, after=changed.version)
    return redirect(address, HTTPStatus.SEE_OTHER)


def _given(sent: Fields) -> Body:
    """The gate, and the day from which its pivot runs: today where none is stated."""
    given: Body = CHANGE.load({name: sent[name] for name in (GATE, DAY) if name in sent})
    return {DAY: _today()} | given


def _plan(program: ProgramRecord, given: Body) -> Body:
    """Request and answer of the pivot's plan from a day on. Raises DomainError."""
    return plan_of(team_context(), pivot_plan(program, given.get(GATE, ""), given[DAY]), POINTER)


def _today() -> date:
    return app_context().clock().date()


def _confirm(program: ProgramRecord, sent: Fields, *, is_late: bool = False) -> Response:
    """The page that asks: what changes, which runs are closed, and from which day."""
    errors: dict[str, str] = {}
    content: Body = {"difference": None, "pivot": "its pivot", "runs": []}
    try:
        given = _given(sent)
        plan, found = _plan(program, given), program_status(app_context(), program)
        content = {
            "difference": difference_to(program, body_of_pivot(found, given, plan)),
            "pivot": plan["request"]["name"],
            "runs": [run.name for run in found.runs if run.body["state"] == "open"],
        }
    except ValidationError as error:
        errors = field_errors(error.messages, CHANGE)
    except DomainError as error:
        errors = refused_field(error)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.CONFLICT if is_late else HTTPStatus.OK
    fields = {DAY: _today().isoformat()} | {name: sent[name] for name in (GATE, DAY) if name in sent}
    shown = content | {"program": program, "fields": fields, "errors": errors, "is_late": is_late and not errors, "day_field": DAY_FIELD}
    return page("programs/pivot.html", status, **shown)
