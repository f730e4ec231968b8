"""/sign-out: of this service, and of the issuer that somebody has signed in with."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlsplit

from flask import Response
from werkzeug.wrappers import Response as BaseResponse

from service.api.http import sessions
from service.api.http.request_body import read_form
from service.web.blueprint import blueprint
from service.web.pages.openid import forget_id_token, sign_out_address
from service.web.rendering import page


@blueprint.post("/sign-out")
def sign_out() -> BaseResponse:
    """End this session, or all of this key, and lead to where that at the issuer ends"""
    sessions.sign_out(everywhere=read_form().get("everywhere") == "yes")
    address = sign_out_address()
    response = Response(status=HTTPStatus.SEE_OTHER, headers={"Location": sessions.SIGN_IN}) if address is None else _on_to(address)
    sessions.delete_cookie(response)
    forget_id_token(response)
    return response


def _on_to(address: str) -> Response:
    """A page that leads to the issuer by itself. A redirect would be refused: what a form is answered with stays here (form-action)."""
    response = page("signed_out.html", issuer=urlsplit(address).netloc, address=address)
    response.headers["Refresh"] = f"0; url={address}"
    return response
