"""The blueprint of all pages: who asks, the page's policy, and errors as pages."""

from __future__ import annotations

from http import HTTPStatus

from flask import Blueprint, Response, redirect, request, url_for
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from service.api.http import sessions
from service.api.http.errors import KNOWN, HttpError
from service.domain.errors import DomainError
from service.web.rendering import page

blueprint = Blueprint("web", __name__, template_folder=None, static_folder=None)

OPEN_TO_ALL = frozenset({"web.get_asset", "web.show_sign_in", "web.sign_in", "web.start_openid", "web.finish_openid"})
"""Endpoints that need no session."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""All that a page loads comes from this service; nothing is inline, nothing is evaluated."""


@blueprint.before_request
def _admit() -> BaseResponse | None:
    if request.endpoint in OPEN_TO_ALL:
        sessions.check_origin()
        return None
    return None if sessions.admit() else _to_sign_in()


@blueprint.after_request
def add_page_headers(response: Response) -> Response:
    """The response with the policy of pages."""
    response.headers.setdefault("Content-Security-Policy", POLICY)
    response.headers.setdefault("Cache-Control", "private, no-cache")
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


@blueprint.errorhandler(DomainError)
def _domain_error(error: DomainError) -> Response:
    return error_page(error.status, error.message, error.title)


@blueprint.errorhandler(HttpError)
def _http_error(error: HttpError) -> Response:
    response = error_page(error.status, str(error))
    response.headers.update(error.headers or {})
    return response


@blueprint.errorhandler(HTTPException)
def _werkzeug_error(error: HTTPException) -> Response | HTTPException:
    return error if error.code is None or error.code < HTTPStatus.BAD_REQUEST else error_page(error.code, "")


def error_page(status: int, detail: str, title: str = "", *, request_id: str = "") -> Response:
    """A page that says what went wrong and what to do. `request_id`: of an error of the service, to quote."""
    known_title, known_detail = KNOWN.get(status, ("Error", ""))
    said = sentence_case(detail or known_detail)
    quoted = request_id if status >= HTTPStatus.INTERNAL_SERVER_ERROR else ""
    return page("error.html", status, title=title or known_title, detail=said, request_id=quoted)


def sentence_case(text: str) -> str:
    """A message as a sentence of its own."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"


def _to_sign_in() -> BaseResponse:
    """The way to sign in and back to the page that was asked for."""
    asked = request.full_path.rstrip("?") if request.method == "GET" else "/"
    return redirect(url_for("web.show_sign_in", next=asked), HTTPStatus.SEE_OTHER)
