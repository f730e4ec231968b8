"""Who looks at a page: a session that an API key has begun, in a cookie that scripts cannot read; everybody where there are no keys.

References: RFC 6265bis (SameSite, HttpOnly, Secure); OWASP Cross-Site Request Forgery Prevention Cheat Sheet (HMAC of the session, Origin
and Fetch Metadata).
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime

from flask import Response, g, request

from service.api.http import auth, browser_guard, request_body
from service.api.http.errors import HttpError
from service.domain.metrics import KEYS_REFUSED
from service.domain.teams import EVERYBODY
from service.runtime import metrics
from service.usecases.keys import AuthenticationError
from service.usecases.web_sessions import begin_session, end_session, end_sessions_of, principal_of

COOKIE = "outlay_session"
SIGN_IN = "/sign-in"
"""The page that takes an API key, and leads back to the one that was asked for."""
TOKEN_FIELD = "csrf_token"  # noqa: S105 - a field's name
_PURPOSE = b"form of a page"
ATTEMPTS, ATTEMPT_WINDOW_S = 10, 60
"""Failed attempts to sign in that an address has."""


def admit() -> bool:
    """Find on whose behalf a page is asked for; whether it may be answered without signing in.

    Raises HttpError, BudgetUsedUp and StoreUnavailable.
    """
    if not auth.authenticator().needs_keys():
        auth.act_for(EVERYBODY)
        return True
    token = request.cookies.get(COOKIE)
    if not token:
        return False
    try:
        who = principal_of(auth.app_context(), auth.authenticator(), token)
    except AuthenticationError:
        return False
    g.web_session = token
    _check_form(token)
    auth.act_for(who)
    return True


def check_origin() -> None:
    """Raise HttpError 403 for a change that another site's page asks for."""
    if request.method not in browser_guard.SAFE_METHODS:
        browser_guard.check_origin(request)


def form_token() -> str:
    """What a form of the present session carries; empty where there are no sessions."""
    token = g.get("web_session", "")
    return _form_token(token) if token else ""


def sign_in(api_key: str) -> tuple[str, datetime]:
    """Begin a session: its token, and when it ends. Raises AuthenticationError, HttpError 429, and StoreUnavailable."""
    check_attempts()
    try:
        session, token = begin_session(auth.app_context(), auth.authenticator(), api_key)
    except AuthenticationError:
        count_failed()
        raise
    return token, session.expires_at


def count_failed() -> None:
    """Count a failed attempt of the present address."""
    metrics.count(KEYS_REFUSED, "invalid")
    auth.count_attempts(_attempts(), ATTEMPT_WINDOW_S, 1)


def sign_out(*, everywhere: bool) -> None:
    """End the present session, or all that were begun with its key."""
    if everywhere:
        end_sessions_of(auth.app_context(), auth.principal())
    elif token := g.get("web_session"):
        end_session(auth.app_context(), token)
    g.pop("web_session", None)


def set_cookie(response: Response, token: str, until: datetime) -> None:
    """Give the browser its session. Secure: browsers take it over TLS, and from this machine itself."""
    response.set_cookie(COOKIE, token, expires=until, secure=True, httponly=True, samesite="Lax", path="/")


def delete_cookie(response: Response) -> None:
    """Take the session from the browser."""
    response.delete_cookie(COOKIE, secure=True, httponly=True, samesite="Lax", path="/")


def _check_form(token: str) -> None:
    if request.method in browser_guard.SAFE_METHODS:
        return
    browser_guard.check_origin(request)
    if not hmac.compare_digest(request_body.read_form().get(TOKEN_FIELD, "").encode(), _form_token(token).encode()):
        raise HttpError(403, "This form is of an earlier session; open its page again and send it from there.")


def _form_token(token: str) -> str:
    return hmac.new(token.encode(), _PURPOSE, hashlib.sha256).hexdigest()


def check_attempts() -> None:
    """Raise HttpError 429 for an address with too many failed attempts to sign in."""
    failed, left_s = auth.count_attempts(_attempts(), ATTEMPT_WINDOW_S, 0)
    if failed >= ATTEMPTS:
        raise HttpError(429, "Too many attempts to sign in from this address.", headers={"Retry-After": str(max(1, round(left_s)))})


def _attempts() -> str:
    """What failed attempts of the present address are counted under."""
    return f"sign-in:{request.remote_addr}"
