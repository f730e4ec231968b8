"""A request id on every response, in every log line and in every problem; one log line a request."""

from __future__ import annotations

import logging
import os
import re
import time

from flask import Flask, Response, g, request
from werkzeug.datastructures import Headers

from service.api.http.errors import HttpError
from service.api.http.web_worker.arriving_requests import ARRIVED_S
from service.runtime import logs, metrics

HEADER = "X-Request-Id"
PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"
_ACCEPTED = re.compile(PATTERN[1:-1])
_log = logging.getLogger("service.requests")

LOGGED_IDS = frozenset({"program_id", "run_id", "rule_id", "scenario_id", "result_id", "link_id", "import_id"})
MAX_ID_CHARACTERS = 64

SECURITY_HEADERS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)


def new_request_id() -> str:
    """96 random bits, in hex."""
    return os.urandom(12).hex()


def register(app: Flask) -> None:
    """Give every request of `app` its id and its log line; register before anything else that reads a request."""
    app.before_request(_begin)
    app.after_request(_finish)
    app.teardown_request(_forget)


def _begin() -> None:
    g.started_s = ARRIVED_S.get() or time.monotonic()
    wanted = request.environ.get("HTTP_X_REQUEST_ID")
    accepted = wanted is not None and _ACCEPTED.fullmatch(wanted) is not None
    g.request_id = wanted if accepted else new_request_id()
    logs.begin(request_id=g.request_id, address=request.remote_addr or "", **_object_ids())
    if wanted is not None and not accepted:
        raise HttpError(400, f"{HEADER} takes 1 to 64 letters, digits and ._:- and starts with a letter or a digit.")


def _forget(_error: BaseException | None) -> None:
    """What the thread writes next does not belong to this request."""
    logs.begin()


def _object_ids() -> dict[str, str]:
    """Ids of what the address names; the rest of an address may be secret."""
    return {name: str(value)[:MAX_ID_CHARACTERS] for name, value in (request.view_args or {}).items() if name in LOGGED_IDS}


def _finish(response: Response) -> Response:
    duration_s = time.monotonic() - g.started_s
    response.headers[HEADER] = g.request_id
    _add_missing(response.headers)
    route = request.url_rule.rule if request.url_rule is not None else metrics.UNMATCHED
    metrics.observe_request(request.method, route, response.status_code, duration_s)
    if _log.isEnabledFor(logging.INFO):
        fields = {"method": request.method, "route": route, "status": response.status_code, "duration_ms": round(duration_s * 1e3, 3)}
        _log.info("request", extra={"fields": fields})
    return response


def _add_missing(headers: Headers) -> None:
    """Add the security headers that a view has not set; `setdefault` looks through all of them for each."""
    given = {name.lower() for name in headers.keys()}  # noqa: SIM118 - these are no mapping
    for name, value in SECURITY_HEADERS:
        if name.lower() not in given:
            headers.add(name, value)
