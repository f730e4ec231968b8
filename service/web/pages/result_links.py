"""/results/{id}/links: share a kept result by links that open it to whoever has them."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response, redirect, url_for
from marshmallow import ValidationError
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import app_context, needs, principal
from service.api.http.request_body import read_form
from service.api.resources.results.results import known_result, server_address
from service.domain.errors import InvalidRequest
from service.schemas.results.results import LinkRequestSchema
from service.usecases.results import links as usecase
from service.usecases.results.keep import find_result
from service.web.blueprint import blueprint
from service.web.form_address import form_address
from service.web.forms import Fields, FormField, field_errors, filled, request_of
from service.web.rendering import page

DAYS = FormField("expires_in_days", "Opens for", "30; left out: until it is revoked", "days")
SCHEMA = LinkRequestSchema()


@blueprint.get("/results/<result_id>/links")
def show_result_links(result_id: str) -> Response:
    """The links of a result, and the form that makes one"""
    return _links_page(result_id, {}, {})


@blueprint.get("/results/<result_id>/again")
def ask_again(result_id: str) -> BaseResponse:
    """The form that takes the result's request, filled in: at today's prices, and to be changed"""
    found = find_result(app_context(), principal(), result_id)
    address = form_address(found.row.kind, found.request)
    if address is None:
        raise NotFound
    return redirect(address, HTTPStatus.SEE_OTHER)


@blueprint.post("/results/<result_id>/links")
@needs("write", known_result)
def make_result_link(result_id: str) -> Response:
    """Make a link; its address is shown once"""
    given = filled((DAYS.name, value) for value in (read_form().get(DAYS.name, ""),))
    token = usecase.new_token()
    try:
        usecase.make_link(app_context(), principal(), result_id, token, SCHEMA.load(request_of(given)).get(DAYS.name))
    except ValidationError as error:
        return _links_page(result_id, given, field_errors(error.messages, SCHEMA))
    except InvalidRequest as error:
        return _links_page(result_id, given, {"": error.message})
    return _links_page(result_id, {}, {}, made=f"{server_address()}/r/{result_id}?token={token}")


@blueprint.post("/results/<result_id>/links/<link_id>/revoke")
@needs("write", known_result)
def end_result_link(result_id: str, link_id: str) -> BaseResponse:
    """Revoke a link"""
    usecase.revoke_link(app_context(), principal(), result_id, link_id)
    return redirect(url_for("web.show_result_links", result_id=result_id), HTTPStatus.SEE_OTHER)


def _links_page(result_id: str, fields: Fields, errors: Fields, made: str = "") -> Response:
    """The page, with the address of a link that was just made, which no cache may keep."""
    found = find_result(app_context(), principal(), result_id)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.CREATED if made else HTTPStatus.OK
    content = {
        "result": found.row,
        "links": usecase.list_links(app_context(), principal(), result_id),
        "field": DAYS,
        "fields": fields,
        "errors": errors,
        "made": made,
        "may_write": principal().may("write"),
    }
    response = page("result_links.html", status, **content)
    if made:
        response.headers["Cache-Control"] = "no-store"
    return response
