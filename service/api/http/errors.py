"""Every 4xx and 5xx as RFC 9457 problem+json."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from flask import Flask, Response, g
from marshmallow import ValidationError
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RoutingException

from service.domain.budgets import BudgetUsedUp
from service.domain.errors import DomainError, UnknownName
from service.domain.metrics import BUDGETS_USED_UP
from service.runtime import metrics
from service.schemas.base import pointers
from service.schemas.strict_json import MAX_ERRORS, BadJson, dumps

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_S = 5

_log = logging.getLogger(__name__)

# Titles are our own: the standard library's phrases, and with them the types, differ between Python versions.
KNOWN: dict[int, tuple[str, str]] = {
    400: ("Bad request", "The request cannot be understood."),
    401: ("Unauthorized", "This needs a valid API key."),
    403: ("Forbidden", "This API key may not do that."),
    404: ("Not found", "There is nothing at this address."),
    405: ("Method not allowed", "This address does not take this method; the Allow header lists those it does."),
    406: ("Not acceptable", "No representation of this has an accepted content type."),
    408: ("Request timeout", "The body did not arrive in time."),
    409: ("Conflict", "The request conflicts with the present state."),
    411: ("Length required", "Send the body with a Content-Length; chunked bodies are not taken."),
    412: ("Precondition failed", "It has changed since you read it; read it again."),
    413: ("Content too large", "The body is larger than this address takes."),
    414: ("URI too long", "The address is too long."),
    415: ("Unsupported media type", "Send the body as application/json in UTF-8, without a Content-Encoding."),
    417: ("Expectation failed", "The Expect header is not supported."),
    421: ("Misdirected request", "The service is not known under this name."),
    422: ("Invalid request", "The request is well formed but cannot be answered; see errors."),
    428: ("Precondition required", "Say with If-Match which version is meant."),
    429: ("Too many requests", "Too many requests; see Retry-After."),
    431: ("Request header fields too large", "The request's headers are too large."),
    500: ("Internal error", "Something went wrong here. Quote the request id when you report it."),
    501: ("Not implemented", "This way of sending a request is not taken."),
    507: ("Insufficient storage", "The team's storage is used up."),
    503: ("Unavailable", "The service cannot answer right now; try again."),
}


class HttpError(Exception):
    """A request refused by the HTTP layer, before any use case; `errors` are `{"pointer", "message"}` entries."""

    def __init__(
        self, status: int, detail: str = "", *, errors: list[dict[str, Any]] | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors
        self.headers = headers


def problem(
    status: int,
    detail: str = "",
    *,
    title: str = "",
    kind: str = "",
    errors: list[dict[str, Any]] | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    """The problem+json response for `status`; `kind` is the last part of its stable `type`, `more` are extension members."""
    body = problem_body(status, detail, title=title, kind=kind, errors=errors, request_id=g.get("request_id", "")) | more
    response = Response(dumps(body), status, content_type=CONTENT_TYPE)
    for name, value in (headers or {}).items():
        response.headers[name] = value
    return response


def problem_body(
    status: int, detail: str = "", *, title: str = "", kind: str = "", errors: list[dict[str, Any]] | None = None, request_id: str = ""
) -> dict[str, Any]:
    """Members of a problem; also an entry of a batch's answers instead of an estimate."""
    title = title or KNOWN.get(status, ("Error", ""))[0]
    if errors and len(errors) == 1 and not detail:
        detail = f"{errors[0]['pointer']}: {errors[0]['message']}".removeprefix(": ")
    body: dict[str, Any] = {
        "type": f"/problems/{kind or slug(title)}",
        "title": title,
        "status": status,
        "detail": detail or KNOWN.get(status, (title, title))[1],
        "request_id": request_id,
    }
    return body | {"errors": errors[:MAX_ERRORS]} if errors else body


def domain_error_body(error: DomainError, request_id: str = "") -> dict[str, Any]:
    """Members of a problem that a use case raised; its type is the class's name."""
    kind = slug(re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(error).__name__))
    if isinstance(error, BudgetUsedUp):
        return problem_body(error.status, error.message, title=error.title, kind=kind, request_id=request_id) | {
            "budget": asdict(error.budget)
        }
    entry: dict[str, Any] = {"pointer": error.pointer, "message": error.message}
    if isinstance(error, UnknownName) and error.near:
        entry["near"] = list(error.near)
    return problem_body(error.status, error.message, title=error.title, kind=kind, errors=[entry], request_id=request_id)


def response_name(status: int) -> str:
    """Name of a status's problem among the specification's components, for `alt_response(404, response_name(404))`."""
    return "".join(word.capitalize() for word in KNOWN[status][0].split())


def slug(words: str) -> str:
    """'Not Found' as 'not-found'."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def register(app: Flask) -> None:
    """Handle every error of `app` with a problem. Register after flask-smorest, whose handlers these replace."""
    from sqlalchemy.exc import InterfaceError, OperationalError
    from sqlalchemy.exc import TimeoutError as PoolTimeout

    from service.domain.errors import StoreUnavailable

    app.register_error_handler(HttpError, _on_http_error)
    app.register_error_handler(BadJson, _on_bad_json)
    app.register_error_handler(DomainError, _on_domain_error)
    app.register_error_handler(ValidationError, _on_validation_error)
    app.register_error_handler(HTTPException, _on_http_exception)
    for away in (StoreUnavailable, OperationalError, InterfaceError, PoolTimeout):
        app.register_error_handler(away, _on_store_unavailable)
    app.register_error_handler(Exception, _on_unexpected)


def _on_http_error(error: HttpError) -> Response:
    return problem(error.status, error.detail, errors=error.errors, headers=error.headers)


def _on_bad_json(error: BadJson) -> Response:
    return problem(400, error.detail, title="Malformed JSON", errors=error.errors)


def _on_domain_error(error: DomainError) -> Response:
    body = domain_error_body(error, g.get("request_id", ""))
    response = Response(dumps(body), error.status, content_type=CONTENT_TYPE)
    if isinstance(error, BudgetUsedUp) and error.back_s is not None:
        g.used_up = error
        metrics.count(BUDGETS_USED_UP, error.budget.name)
        response.headers["Retry-After"] = str(error.back_s)
    return response


def _on_validation_error(error: ValidationError) -> Response:
    return problem(422, errors=pointers(error.messages))


def _on_http_exception(error: HTTPException) -> Response | HTTPException:
    if isinstance(error, RoutingException) or error.code is None or error.code < 400:
        return error
    data: Mapping[str, Any] = getattr(error, "data", None) or {}
    kept = {name: value for name, value in error.get_headers() if name.lower() not in ("content-type", "content-length")}
    return problem(error.code, headers=kept | dict(data.get("headers") or {}))


def _on_store_unavailable(error: Exception) -> Response:
    # One line without traceback: there is one for each request of an outage. Below the first line SQLAlchemy quotes the statement.
    reason = str(error).partition("\n")[0]
    _log.error("the database cannot be used", extra={"fields": {"error": type(error).__name__, "reason": reason}})
    message: str = getattr(error, "public_message", "The database cannot be reached right now; try again.")
    return problem(503, message, headers={"Retry-After": str(RETRY_AFTER_S)})


def _on_unexpected(error: Exception) -> Response:
    _log.error("unexpected error", exc_info=error)
    return problem(500)
