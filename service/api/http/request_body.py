"""Request bodies: size limits, codings, time limits, and strict JSON."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from io import BytesIO
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from flask import Flask, current_app, g, request
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.formparser import FormDataParser

from service.api.http.errors import HttpError
from service.schemas import strict_json

MIB = 1024 * 1024
DEFAULT_BODY_BYTES = MIB
LARGE_BODY_BYTES = 16 * MIB
STALL_S = 3.0
MAX_BODY_S = 30.0
READ_STEP_BYTES = 64 * 1024
MAX_DRAIN_BYTES = 64 * MIB
DRAIN_S = 2.0
FORM = "application/x-www-form-urlencoded"
FORM_WITH_FILES = "multipart/form-data"
MOST_FORM_FIELDS = 300

_View = TypeVar("_View", bound=Callable[..., Any])
_NO_CODING = {"Accept-Encoding": "identity"}


def body_limit(limit_bytes: int) -> Callable[[_View], _View]:
    """Mark a view as accepting bodies of up to `limit_bytes` instead of 1 MiB."""

    def mark(view: _View) -> _View:
        view.body_limit_bytes = limit_bytes  # type: ignore[attr-defined]
        return view

    return mark


def form_limit(most_fields: int) -> Callable[[_View], _View]:
    """Mark a view as accepting forms of up to so many fields instead of 300."""

    def mark(view: _View) -> _View:
        view.most_form_fields = most_fields  # type: ignore[attr-defined]
        return view

    return mark


def _view_limit(name: str, otherwise: int) -> int:
    """A limit that the present request's view is marked with."""
    limit: int = getattr(current_app.view_functions.get(request.endpoint or ""), name, otherwise)
    return limit


def register(app: Flask) -> None:
    """Refuse bodies of unknown length, with a content coding or too large, before any view runs."""
    app.before_request(_check_body)


def limit_bytes(endpoint: str | None, method: str) -> int:
    """Size limit of bodies of an endpoint of the current application."""
    view: Any = current_app.view_functions.get(endpoint or "")
    view = getattr(getattr(view, "view_class", None), method.lower(), view)
    limit: int = getattr(view, "body_limit_bytes", DEFAULT_BODY_BYTES)
    return limit


def read_json() -> Any:
    """The strictly parsed JSON body of the current request. Raises HttpError (408, 415) or BadJson (400)."""
    body = read_body()
    if body:
        _check_content_type()
    return strict_json.parse(body)


def read_form() -> dict[str, str]:
    """The fields of the form that the present request sends, the last of each name. Raises HttpError (400, 408, 415)."""
    if "form" not in g:
        g.form, g.files = _read_form()
    found: dict[str, str] = g.form
    return found


def read_files() -> dict[str, tuple[str, bytes]]:
    """Name and content of the files that the present request's form sends, by field. Raises as `read_form`."""
    read_form()
    found: dict[str, tuple[str, bytes]] = g.files
    return found


def _read_form() -> tuple[dict[str, str], dict[str, tuple[str, bytes]]]:
    if request.mimetype not in (FORM, FORM_WITH_FILES):
        raise HttpError(415, f"Send the form as {FORM}, or as {FORM_WITH_FILES}.")
    body, most_fields = read_body(), _view_limit("most_form_fields", MOST_FORM_FIELDS)
    try:
        if request.mimetype == FORM:
            return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=most_fields)), {}
        parser = FormDataParser(_in_memory, max_form_memory_size=len(body), max_form_parts=most_fields, silent=False)
        _, form, files = parser.parse(BytesIO(body), request.mimetype, len(body), request.mimetype_params)
    except (ValueError, RequestEntityTooLarge) as error:
        raise HttpError(400, "The form cannot be read.") from error
    fields = {name: values[-1] for name, values in form.lists()}
    return fields, {name: (file.filename or "", file.read()) for name, file in files.items() if file.filename}


def _in_memory(*_: Any, **__: Any) -> BytesIO:
    """Where a file of a form is read to: its size is bounded with that of the body."""
    return BytesIO()


def read_body() -> bytes:
    """The body of the current request, also in `g.body`. Raises HttpError: 408 stalled, 400 ended early."""
    g.body = _read_body()
    body: bytes = g.body
    return body


def _read_body() -> bytes:
    length = int(request.environ.get("CONTENT_LENGTH") or 0)
    if not length:
        return b""
    connection: socket.socket | None = request.environ.get("gunicorn.socket")
    if connection is None:
        return _read(length)
    usual = connection.gettimeout()
    connection.settimeout(STALL_S)
    try:
        return _read(length)
    finally:
        connection.settimeout(usual)


def _read(length: int) -> bytes:
    stream = request.environ["wsgi.input"]
    give_up_s = time.monotonic() + MAX_BODY_S
    parts: list[bytes] = []
    while length > 0:
        try:
            part = stream.read(min(length, READ_STEP_BYTES))
        except TimeoutError:
            raise HttpError(408) from None
        if not part:
            raise HttpError(400, "The body ended before its Content-Length.")
        parts.append(part)
        length -= len(part)
        if length and time.monotonic() > give_up_s:
            raise HttpError(408)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def drain() -> None:
    """Read and discard the rest of a refused body, within bounds, so that the client sees the answer."""
    length = request.environ.get("CONTENT_LENGTH") or "0"
    if length.isascii() and length.isdigit():
        _drain(int(length[:18]))


def _check_body() -> None:
    environ = request.environ
    if environ.get("HTTP_TRANSFER_ENCODING"):
        raise HttpError(411)
    if environ.get("HTTP_CONTENT_ENCODING", "").strip().lower() not in ("", "identity"):
        raise HttpError(415, "Bodies with a Content-Encoding are not taken; send them as they are.", headers=_NO_CODING)
    length = environ.get("CONTENT_LENGTH") or "0"
    if not (length.isascii() and length.isdigit()):
        raise HttpError(400, "Content-Length is not a number.")
    if len(length) > 4:  # shorter ones are below every limit
        _check_size(length)


def _check_size(length: str) -> None:
    limit = limit_bytes(request.endpoint, request.method)
    if len(length) > 18 or int(length) > limit:
        _drain(int(length[:18]))
        raise HttpError(413, f"The body is larger than the {limit:,} bytes that this address takes.")


def _drain(length: int) -> None:
    """Read and discard within bounds: a client that is still writing would see a broken connection instead of the answer."""
    connection: socket.socket | None = request.environ.get("gunicorn.socket")
    if connection is None or not 0 < length <= MAX_DRAIN_BYTES:
        return
    usual = connection.gettimeout()
    connection.settimeout(DRAIN_S / 4)
    give_up_s = time.monotonic() + DRAIN_S
    try:
        while time.monotonic() < give_up_s and request.environ["wsgi.input"].read(READ_STEP_BYTES):
            continue
    except TimeoutError:
        return
    finally:
        connection.settimeout(usual)


def _check_content_type() -> None:
    given = request.environ.get("CONTENT_TYPE", "")
    if given == "application/json":
        return
    kind = request.mimetype
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if not is_json or charset not in ("utf-8", "utf8"):
        raise HttpError(415)
