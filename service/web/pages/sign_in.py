"""/sign-in and /sign-out."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlsplit

from flask import Response, request
from werkzeug.wrappers import Response as BaseResponse

from service.api.http import sessions
from service.api.http.request_body import read_form
from service.usecases.keys import AuthenticationError
from service.web.blueprint import blueprint
from service.web.rendering import page


@blueprint.get("/sign-in")
def show_sign_in() -> Response:
    """The form that takes an API key"""
    return page("sign_in.html", next=_own_page(request.args.get("next", "/")), error="")


@blueprint.post("/sign-in")
def sign_in() -> BaseResponse:
    """Begin a session and go on to the page that was asked for"""
    form = read_form()
    to = _own_page(form.get("next", "/"))
    try:
        token, until = sessions.sign_in(form.get("api_key", "").strip())
    except AuthenticationError as error:
        return page("sign_in.html", HTTPStatus.UNPROCESSABLE_ENTITY, next=to, error=str(error))
    response = Response(status=HTTPStatus.SEE_OTHER, headers={"Location": to})
    sessions.set_cookie(response, token, until)
    return response


@blueprint.post("/sign-out")
def sign_out() -> BaseResponse:
    """End this session, or all of this key"""
    sessions.sign_out(everywhere=read_form().get("everywhere") == "yes")
    response = Response(status=HTTPStatus.SEE_OTHER, headers={"Location": "/sign-in"})
    sessions.delete_cookie(response)
    return response


def _own_page(address: str) -> str:
    """The address where it is a page of this service, else the first one: nobody is led elsewhere after signing in."""
    parts = urlsplit(address)
    is_own = not parts.scheme and not parts.netloc and address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_own else "/"
