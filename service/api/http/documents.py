"""Answers as documents: the format by the query or by Accept, and the page's policy."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from service.api.http.blueprint import json_response
from service.api.http.errors import HttpError
from service.formats.documents.render import JSON, MEDIA_TYPES, Document, content_policy, render

DOCUMENT_CONTENT: dict[str, Any] = {
    media_type: {"schema": {"type": "string", "format": "binary"}} for media_type in MEDIA_TYPES.values() if media_type != JSON
}
"""Content of an answer other than JSON, for the specification."""


def document_response(document: Document, body: dict[str, Any], wanted: str | None) -> Response:
    """The answer in the wanted format, else by Accept. Raises HttpError 406 where Accept takes none."""
    wanted = wanted or _accepted_format()
    if wanted == "json":
        return json_response(body)
    content, media_type = render(document, body, wanted)
    response = Response(content, content_type=media_type)
    if wanted == "html":
        response.headers["Content-Security-Policy"] = f"{content_policy(document)}; frame-ancestors 'none'"
    return response


def _accepted_format() -> str:
    """The format that Accept prefers, JSON where it takes anything."""
    best = request.accept_mimetypes.best_match(list(MEDIA_TYPES.values())) if request.accept_mimetypes else JSON
    if not best:
        raise HttpError(406, f"This can be had as {', '.join(MEDIA_TYPES.values())}.")
    return next(name for name, media_type in MEDIA_TYPES.items() if media_type == best)
