"""gunicorn's threaded worker, answering what never reaches the application the way the application would.

Set as `worker_class = "service.api.http.gunicorn_worker.ProblemWorker"`, with `limit_request_field_size` at 16380 so
that an overlong request id is
refused by the application, with its reasons.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

from gunicorn import util  # type: ignore[import-untyped]
from gunicorn.http import errors  # type: ignore[import-untyped]
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

from service.api.http.errors import CONTENT_TYPE, problem_body
from service.api.http.request_body import STALL_S
from service.api.http.request_ids import HEADER, SECURITY_HEADERS, new_request_id
from service.schemas import strict_json


class StalledClientError(errors.ParseException):  # type: ignore[misc]  # gunicorn has no types
    """The headers did not arrive in time."""


# The first that fits counts; what is in none of them is our fault.
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (StalledClientError, 408),
    (errors.InvalidResponseHeader, 500),
    (errors.InvalidResponseHeaderName, 500),
    (errors.LimitRequestLine, 414),
    (errors.LimitRequestHeaders, 431),
    (errors.ExpectationFailed, 417),
    (errors.UnsupportedTransferCoding, 501),
    (errors.ParseException, 400),
)


class HeaderTimeoutParser:
    """A request parser that raises `StalledClientError` where the headers do not arrive in time."""

    def __init__(self, parser: Any) -> None:
        self._parser = parser

    def __next__(self) -> Any:
        try:
            return next(self._parser)
        except BlockingIOError:
            raise StalledClientError from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)


def _with_header_timeout(connection: Any, init: Callable[[], None]) -> Callable[[], None]:
    """The connection's `init`, its parser wrapped."""

    def initialise() -> None:
        init()
        if connection.parser is not None:
            connection.parser = HeaderTimeoutParser(connection.parser)

    return initialise


class ProblemWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """ThreadWorker with problem+json for requests that cannot be parsed, and a time limit for headers."""

    def handle(self, conn: Any) -> Any:
        """Serve one request; a connection that stalls within its headers frees its thread after 3 s."""
        # The application bounds the body by the socket's timeout; gunicorn waits for headers in blocking mode, where only this helps.
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(STALL_S), 0))
        if not conn.initialized:
            conn.init = _with_header_timeout(conn, conn.init)
        return super().handle(conn)

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: Exception) -> None:  # noqa: ARG002 - gunicorn's signature
        """Answer a request that could not be parsed."""
        request_id = new_request_id()
        status = next((status for kind, status in STATUSES if isinstance(exc, kind)), 500)
        fields = {"request_id": request_id, "status": status, "error": type(exc).__name__}
        if status == 500:
            self.log.error("cannot serve the request", exc_info=exc, extra={"fields": fields})
        else:
            self.log.warning("cannot read the request", extra={"fields": fields})
        try:
            util.write_nonblock(client, answer(status, request_id))
        except OSError:
            self.log.debug("the client has gone")


def answer(status: int, request_id: str) -> bytes:
    """A complete HTTP response with a problem as body."""
    body = problem_body(status, request_id=request_id)
    text = strict_json.dumps(body).encode()
    headers = [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(text))), (HEADER, request_id), ("Connection", "close")]
    lines = [f"HTTP/1.1 {status} {body['title']}", *(f"{name}: {value}" for name, value in (*headers, *SECURITY_HEADERS))]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + text
