"""Versions, ETags and If-Match (RFC 9110): of two writers of one version, one gets 412."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from flask import Response, request

from service.api.http.blueprint import json_response
from service.api.http.errors import HttpError
from service.domain.errors import VersionConflictError

VERSIONED: dict[str, Any] = {"ETag": {"schema": {"type": "string"}, "description": "Its version; for If-Match and If-None-Match"}}
IF_MATCH: dict[str, Any] = {
    "parameters": [
        {
            "in": "header",
            "name": "If-Match",
            "required": True,
            "schema": {"type": "string"},
            "description": "The ETag of the version that is to be changed; `*` for whichever is the newest",
        }
    ]
}
MISSING_IF_MATCH = 'Say with If-Match which version is to be changed: the ETag of what you read, such as "3", or * for the newest.'
OLD_VERSION = "It has changed since you read it: it is at version {version} now."


class _Versioned(Protocol):
    @property
    def version(self) -> int: ...


_V = TypeVar("_V", bound=_Versioned)


def versioned_response(body: Mapping[str, Any], status: int = 200, location: str | None = None) -> Response:
    """The JSON response with its version as ETag; a 304 without body where the client has it."""
    response = json_response(body, status, {"Location": location} if location else None)
    if "version" in body:
        response.set_etag(str(body["version"]))
    if request.method == "GET" and not request.if_match:
        response.make_conditional(request)
    return response


@contextmanager
def check_if_match(row: _V) -> Iterator[_V]:
    """Context of a change to the version named by If-Match. Raises HttpError: 428 without the header, 412 where it is not the newest."""
    if not request.if_match:
        raise HttpError(428, MISSING_IF_MATCH)
    if str(row.version) not in request.if_match:
        raise HttpError(412, OLD_VERSION.format(version=row.version))
    try:
        yield row
    except VersionConflictError:
        raise HttpError(412) from None
