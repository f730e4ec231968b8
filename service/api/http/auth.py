"""Authentication, authorisation and rate limits.

Every address under /v1/ needs an API key as soon as one exists (RFC 6750, bearer tokens); the others are open. A view states its scope
with `needs`; the default is `read` for GET, HEAD, OPTIONS and POST and `write` otherwise. A POST that changes data must state its scope.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from flask import Flask, Response, current_app, g, request

from service.actor import act_as
from service.api.http import browser_guard, budgets, request_body
from service.api.http.errors import HttpError
from service.context import AppContext
from service.domain.audit import SERVICE, Actor
from service.domain.budgets import BudgetUsedUp
from service.domain.errors import DomainError
from service.domain.metrics import KEYS_REFUSED, RATE_LIMITED
from service.domain.teams import Principal, Scope
from service.runtime import logs, metrics
from service.usecases.keys import AuthenticationError, Authenticator
from service.usecases.resolution.feedback import FeedbackCache, context_for_team

PREFIX = "/v1/"
SCHEME = "apiKey"
POLICY = "default"
HEADERS: dict[str, str] = {
    "RateLimit-Policy": "Requests (q) of the API key allowed in a window of w seconds, and a work budget of the team that is used up; "
    "absent without keys",
    "RateLimit": "Requests left (r), and in how many seconds all of them are back (t); absent without keys",
}
"""draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4: structured fields, a list of named policies with their parameters."""

_View = TypeVar("_View", bound=Callable[..., Any])


def needs(scope: Scope, look: Callable[..., object] | None = None) -> Callable[[_View], _View]:
    """Mark a view as needing `scope`.

    `look`, called with the view's arguments, raises NotFound where the principal may not know of the addressed object: so that a 403
    discloses no more than a read.
    """

    def mark(view: _View) -> _View:
        view.scope, view.look = scope, look  # type: ignore[attr-defined]
        view._apidoc = {**getattr(view, "_apidoc", {}), "scope": scope}  # type: ignore[attr-defined]  # noqa: SLF001 - flask-smorest's place
        return view

    return mark


def scope_by_method(method: str) -> Scope:
    """Scope of a view that states none. POST is also the method of calculations."""
    return "read" if method.upper() in ("GET", "HEAD", "OPTIONS", "POST") else "write"


def principal() -> Principal:
    """Principal of the present request."""
    found: Principal = g.principal
    return found


def app_context() -> AppContext:
    """Context of the application, with what all teams share."""
    context: AppContext = current_app.extensions["context"]
    return context


def team_context() -> AppContext:
    """Context of the request's team, with its own prices and the outcomes of its finished runs."""
    return context_for_team(app_context(), current_app.extensions["feedback"], principal())


def authenticator() -> Authenticator:
    """The application's authenticator."""
    found: Authenticator = current_app.extensions["authenticator"]
    return found


def count_attempts(name: str, window_s: int, amount: int) -> tuple[int, float]:
    """Count attempts under a name: the count in its window, and the window's remaining time [s]."""
    return budgets.count(app_context(), name, window_s, amount)


def spend(name: budgets.Budget, amount: int) -> None:
    """Count what the present request uses of its team's work budget."""
    budgets.spend(app_context(), principal(), name, amount)


def register(app: Flask) -> None:
    """Install authentication; after request ids, before body parsing."""
    app.extensions["authenticator"] = Authenticator(app.extensions["context"])
    app.extensions["feedback"] = FeedbackCache(app.extensions["context"].store)
    budgets.register(app)
    app.before_request(_admit)
    app.after_request(_add_rate_limit_headers)
    app.teardown_request(_forget_actor)


def _admit() -> None:
    if not request.path.startswith(PREFIX):
        return
    try:
        authenticate()
    except (HttpError, DomainError):
        request_body.drain()
        raise


def _forget_actor(_error: BaseException | None) -> None:
    """The thread goes on with other work, which is not the request's."""
    act_as(SERVICE)


def authenticate() -> None:
    """Find the principal of the present request, count the request, and check its scope and its team's work budgets.

    Raises HttpError, BudgetUsedUp and StoreUnavailable.
    """
    try:
        found = authenticator().admit(_token())
    except AuthenticationError as error:
        challenge = 'Bearer error="invalid_token"' if error.shown else "Bearer"
        metrics.count(KEYS_REFUSED, "invalid" if error.shown else "missing")
        raise HttpError(401, str(error), headers={"WWW-Authenticate": challenge}) from error
    act_for(found)


def act_for(found: Principal) -> None:
    """Answer the present request on behalf of a principal: count it, check its scope and its team's work budgets.

    Raises HttpError, BudgetUsedUp and StoreUnavailable.
    """
    g.principal = found
    logs.bind(key=found.key, team=found.team)
    act_as(Actor("http", found.key, address=request.remote_addr, request=g.request_id))
    if found.key is None:
        browser_guard.check(request, app_context().settings)
        return
    _count(found.key)
    view = _view()
    _check_scope(view)
    budgets.admit(app_context(), found, view)


def _token() -> str | None:
    scheme, _, token = request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _count(key: str) -> None:
    context = app_context()
    quota, window_s = context.settings.quota
    counted, left_s = budgets.count(context, budgets.request_key(key), window_s)
    back_s = max(1, math.ceil(left_s))
    g.allowance = f'"{POLICY}";r={max(0, quota - counted)};t={back_s}'
    if counted > quota:
        metrics.count(RATE_LIMITED)
        raise HttpError(429, f"This API key may make {quota:,} requests in {window_s:,} s.", headers={"Retry-After": str(back_s)})


def _view() -> Any:
    """The function that answers the present request; None where there is none."""
    view: Any = current_app.view_functions.get(request.endpoint or "")
    return getattr(getattr(view, "view_class", None), request.method.lower(), view)


def _check_scope(view: Any) -> None:
    scope: Scope = getattr(view, "scope", None) or scope_by_method(request.method)
    if view is None or g.principal.may(scope):
        return
    if look := getattr(view, "look", None):
        look(**(request.view_args or {}))
    metrics.count(KEYS_REFUSED, "scope")
    challenge = f'Bearer error="insufficient_scope", scope="{scope}"'
    raise HttpError(403, f"This needs an API key with the scope {scope}.", headers={"WWW-Authenticate": challenge})


def _add_rate_limit_headers(response: Response) -> Response:
    if allowance := g.get("allowance"):
        quota, window_s = app_context().settings.quota
        policies, left = [f'"{POLICY}";q={quota};w={window_s}'], [allowance]
        used_up: BudgetUsedUp | None = g.get("used_up")
        if used_up is not None and used_up.budget.window_s is not None:
            budget = used_up.budget
            policies.append(f'"{budget.name}";q={budget.limit};w={budget.window_s}')
            left.append(f'"{budget.name}";r=0;t={used_up.back_s}')
        response.headers["RateLimit-Policy"] = ", ".join(policies)
        response.headers["RateLimit"] = ", ".join(left)
    return response
