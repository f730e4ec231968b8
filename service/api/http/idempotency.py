"""`Idempotency-Key` of requests that create something (draft-ietf-httpapi-idempotency-key-header-07): a repeat creates nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from flask import Flask, Response, current_app, g, request

from service.api.http.auth import principal
from service.api.http.errors import HttpError
from service.api.http.preconditions import versioned_response
from service.domain.idempotency import IdempotencyRecord, IdempotentReplay, StoredResponse

HEADER = "Idempotency-Key"
PATTERN = r'^"?[A-Za-z0-9._:/+=-]{1,200}"?$'
IDEMPOTENT: dict[str, Any] = {
    "parameters": [
        {
            "in": "header",
            "name": HEADER,
            "schema": {"type": "string", "pattern": PATTERN},
            "description": "An id of your own for what is to be made, such as a UUID, with or without quotes. Sent again within "
            "24 h with the same request it gets the first answer and makes nothing; with another request it is refused with 422",
        }
    ]
}
_ACCEPTED = re.compile(r'("?)([A-Za-z0-9._:/+=-]{1,200})\1')


def register(app: Flask) -> None:
    """Answer a repeated request with the first response."""
    app.register_error_handler(IdempotentReplay, _on_replay)


def idempotency_record(
    status: int, body: Callable[[Any], Mapping[str, Any]], location: Callable[[Any], str] | None = None
) -> IdempotencyRecord | None:
    """Idempotency record of the present request, stored with what it creates; None without the header.

    `status`, `body` and `location` make the response of what was created. Raises HttpError.
    """
    given = request.headers.get(HEADER)
    if given is None:
        return None
    found = _ACCEPTED.fullmatch(given)
    if found is None:
        raise HttpError(400, f"{HEADER} takes 1 to 200 letters, digits and ._:/+=-, with or without quotes around them.")
    context = current_app.extensions["context"]
    return IdempotencyRecord(
        principal().team,
        found[2],
        _digest(),
        context.clock(),
        lambda made: StoredResponse(status, body(made), location(made) if location else None),
    )


def _digest() -> str:
    """Digest of method, address and body."""
    asked = hashlib.sha256(f"{request.method} {request.full_path}\n".encode())
    asked.update(g.get("body", b""))
    return asked.hexdigest()


def _on_replay(repeated: IdempotentReplay) -> Response:
    answer = repeated.answer
    return versioned_response(answer.body, answer.status, answer.location)
