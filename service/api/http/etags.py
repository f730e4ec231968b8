"""ETags of large answers (RFC 9110)."""

from __future__ import annotations

from typing import Any

from flask import Response, request

ETAG: dict[str, Any] = {"ETag": {"schema": {"type": "string"}, "description": "Of exactly this answer; for If-None-Match"}}


def with_etag(response: Response) -> Response:
    """The response with an ETag of its bytes; a 304 without body where the client has it."""
    response.add_etag()
    response.make_conditional(request)
    return response
