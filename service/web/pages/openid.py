"""/sign-in/openid and /sign-in/callback: signing in with an OpenID Connect issuer, and the way to sign out there too."""

from __future__ import annotations

import logging
from http import HTTPStatus

from flask import Response, current_app, g, redirect, request
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from service.actor import act_as
from service.api.http import auth, sessions
from service.domain.audit import Actor
from service.usecases.openid import Attempt, Issuer, IssuerUnavailable, SignInRefused, finish_sign_in, new_attempt
from service.web.blueprint import blueprint
from service.web.pages.sign_in import own_page, sign_in_page

COOKIE, PATH = "outlay_sign_in", "/sign-in"
ATTEMPT_S = 600
"""How long somebody may take at the issuer [s]."""
LONGEST_ADDRESS = 2000
"""Characters of the page to go on to, which stands in a cookie."""
ID_TOKEN_COOKIE, SIGN_OUT = "outlay_id_token", "/sign-out"
"""The issuer's ID token, which nothing but signing out is sent: it says there whose session ends."""
LONGEST_ID_TOKEN, NO_HINT = 3800, "-"
"""Characters of an ID token that a cookie takes (RFC 6265, section 6.1: 4096 bytes in all), and what stands for a longer one."""
AWAY = "The issuer does not answer, or not as it should; begin again soon, or sign in with an API key."
log = logging.getLogger(__name__)


@blueprint.get("/sign-in/openid")
def start_openid() -> BaseResponse:
    """Lead to the issuer, which leads back"""
    asked = request.args.get("next", "/")
    attempt = new_attempt(own_page(asked) if len(asked) <= LONGEST_ADDRESS else "/")
    try:
        response: BaseResponse = redirect(_issuer().address(attempt), HTTPStatus.SEE_OTHER)
    except IssuerUnavailable as error:
        return _away(attempt.to, error)
    # Lax, not Strict: the issuer's page leads back, and the cookie must come along.
    response.set_cookie(COOKIE, f"{attempt.secret} {attempt.to}", ATTEMPT_S, path=PATH, secure=True, httponly=True, samesite="Lax")
    return response


@blueprint.get("/sign-in/callback")
def finish_openid() -> BaseResponse:
    """Begin the session of the person whom the issuer names, and go on to the page that was asked for"""
    issuer = _issuer()
    secret, _, to = request.cookies.get(COOKIE, "").partition(" ")
    attempt = Attempt(secret, own_page(to))
    sessions.check_attempts()
    act_as(Actor("http", address=request.remote_addr, request=g.request_id))
    try:
        session, token, id_token = finish_sign_in(auth.app_context(), issuer, attempt, request.args)
    except SignInRefused as error:
        sessions.count_failed()
        log.warning("a sign-in with the issuer is refused: %s", error)
        return _without_attempt(sign_in_page(attempt.to, HTTPStatus.FORBIDDEN, openid_error=str(error)))
    except IssuerUnavailable as error:
        sessions.count_failed()
        return _without_attempt(_away(attempt.to, error))
    response = Response(status=HTTPStatus.SEE_OTHER, headers={"Location": attempt.to})
    sessions.set_cookie(response, token, session.expires_at)
    hint = id_token if len(id_token) <= LONGEST_ID_TOKEN else NO_HINT
    response.set_cookie(ID_TOKEN_COOKIE, hint, expires=session.expires_at, path=SIGN_OUT, secure=True, httponly=True, samesite="Strict")
    return _without_attempt(response)


def sign_out_address() -> str | None:
    """Where the browser's session at the issuer ends; None where it was not begun there, or the issuer is away or has no such address."""
    hint = request.cookies.get(ID_TOKEN_COOKIE)
    if not hint or auth.app_context().settings.oidc_issuer is None:
        return None
    try:
        return _issuer().sign_out_address("" if hint == NO_HINT else hint, sessions.SIGN_IN)
    except IssuerUnavailable as error:
        log.warning("a session at the issuer is not ended: %s", error)
        return None


def forget_id_token(response: Response) -> None:
    """Take the issuer's ID token from the browser."""
    response.delete_cookie(ID_TOKEN_COOKIE, path=SIGN_OUT, secure=True, httponly=True, samesite="Strict")


def _issuer() -> Issuer:
    """The configured issuer. Raises NotFound where there is none."""
    if auth.app_context().settings.oidc_issuer is None:
        raise NotFound
    if "openid" not in current_app.extensions:
        current_app.extensions["openid"] = Issuer(auth.app_context().settings)
    found: Issuer = current_app.extensions["openid"]
    return found


def _away(to: str, error: IssuerUnavailable) -> Response:
    log.warning("the issuer of sign-ins cannot be used: %s", error)
    return sign_in_page(to, HTTPStatus.SERVICE_UNAVAILABLE, openid_error=AWAY)


def _without_attempt(response: Response) -> Response:
    response.delete_cookie(COOKIE, path=PATH, secure=True, httponly=True, samesite="Lax")
    return response
