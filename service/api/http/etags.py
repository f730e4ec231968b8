"""ETags of answers that are worth not sending twice (RFC 9110)."""

from __future__ import annotations

from typing import Any

from flask import Response, request

ETAG: dict[str, Any] = {"ETag": {"schema": {"type": "string"}, "description": "Of exactly this answer; for If-None-Match"}}


def with_etag(response: Response) -> Response:
    """The answer with an ETag of its bytes; a 304 without a body where the client has it already."""
    response.add_etag()
    response.make_conditional(request)
    return response
