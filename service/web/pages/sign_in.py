"""/sign-in."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlsplit

from flask import Response, request
from werkzeug.wrappers import Response as BaseResponse

from service.api.http import auth, sessions
from service.api.http.request_body import read_form
from service.usecases.keys import AuthenticationError
from service.web.blueprint import blueprint
from service.web.rendering import page


@blueprint.get("/sign-in")
def show_sign_in() -> Response:
    """The form that takes an API key"""
    return sign_in_page(request.args.get("next", "/"))


def sign_in_page(to: str, status: int = HTTPStatus.OK, *, error: str = "", openid_error: str = "") -> Response:
    """The form, with what is wrong with a key, or with a sign-in by an issuer."""
    issuer = urlsplit(auth.app_context().settings.oidc_issuer or "").netloc
    said = {"error": error, "openid_error": openid_error}
    return page("sign_in.html", status, next=own_page(to), has_openid=bool(issuer), issuer=issuer, **said)


@blueprint.post("/sign-in")
def sign_in() -> BaseResponse:
    """Begin a session and go on to the page that was asked for"""
    form = read_form()
    to = own_page(form.get("next", "/"))
    try:
        token, until = sessions.sign_in(form.get("api_key", "").strip())
    except AuthenticationError as error:
        return sign_in_page(to, HTTPStatus.UNPROCESSABLE_ENTITY, error=str(error))
    response = Response(status=HTTPStatus.SEE_OTHER, headers={"Location": to})
    sessions.set_cookie(response, token, until)
    return response


def own_page(address: str) -> str:
    """The address where it is a page of this service, else the first one: nobody is led elsewhere after signing in."""
    parts = urlsplit(address)
    is_own = not parts.scheme and not parts.netloc and address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_own else "/"
