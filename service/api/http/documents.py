"""Answers as documents: the format by the query or by Accept, and the page's policy."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from service.api.http.blueprint import json_response
from service.api.http.errors import HttpError
from service.formats.documents.render import JSON, Document, accepted_types, content_policy, render


def document_content(document: Document) -> dict[str, Any]:
    """Content of an answer other than JSON, for the specification."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {media_type: binary for media_type in accepted_types(document).values() if media_type != JSON}


def document_response(document: Document, body: dict[str, Any], wanted: str | None) -> Response:
    """The answer in the wanted format, else by Accept. Raises HttpError 406 where Accept takes none."""
    wanted = wanted or _accepted_format(document)
    if wanted == "json":
        return json_response(body)
    content, media_type = render(document, body, wanted)
    response = Response(content, content_type=media_type)
    if wanted == "html":
        response.headers["Content-Security-Policy"] = f"{content_policy(document)}; frame-ancestors 'none'"
    return response


def _accepted_format(document: Document) -> str:
    """The format that Accept prefers, JSON where it takes anything."""
    types = accepted_types(document)
    best = request.accept_mimetypes.best_match(list(types.values())) if request.accept_mimetypes else JSON
    if not best:
        raise HttpError(406, f"This can be had as {', '.join(types.values())}.")
    return next(name for name, media_type in types.items() if media_type == best)
