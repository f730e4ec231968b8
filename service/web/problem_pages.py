"""Problems as pages, where a person's browser asks: an address that is not there, a kept result of another team, an error."""

from __future__ import annotations

import json

from flask import Flask, Response, request

from service.api.http.errors import CONTENT_TYPE
from service.web.blueprint import add_page_headers, error_page

PROGRAMS_ONLY = ("/v1/", "/slack/", "/healthz", "/readyz", "/metrics", "/.well-known/")
"""Addresses that programs ask, and people who look at what they get: problems stay as they are."""


def register(app: Flask) -> None:
    """Show problems of `app` as pages to browsers."""
    app.after_request(_as_page)


def _as_page(response: Response) -> Response:
    if response.mimetype != CONTENT_TYPE or request.path.startswith(PROGRAMS_ONLY) or not _asks_for_page():
        return response
    problem = json.loads(response.get_data())
    page = error_page(response.status_code, problem["detail"], problem["title"], request_id=problem["request_id"])
    kept = [(name, value) for name, value in response.headers if name not in ("Content-Type", "Content-Length")]
    for name, value in kept:
        page.headers.setdefault(name, value)
    return add_page_headers(page)


def _asks_for_page() -> bool:
    """Whether pages are rather taken than JSON."""
    accepted = request.accept_mimetypes
    return accepted["text/html"] > accepted["application/json"]
