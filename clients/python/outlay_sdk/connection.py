"""The connection to a service: its key, requests that are sent again, and errors as exceptions."""

from __future__ import annotations

import os
from importlib.metadata import version
from uuid import uuid4

import httpx
from httpx_retries import Retry, RetryTransport

from outlay_sdk.errors import Unreachable, refusal
from outlay_sdk.generated import AuthenticatedClient

SERVER, KEY = "OUTLAY_SERVER", "OUTLAY_API_KEY"
DEFAULT_SERVER = "http://127.0.0.1:8080"
TIMEOUT_S = 120.0
"""The longest answer is a comparison of all offers on a busy machine, of some tens of seconds."""
IDEMPOTENCY_KEY = "Idempotency-Key"
RETRY = Retry(
    total=4,
    backoff_factor=0.25,
    total_timeout=120.0,
    # a POST computes, or creates under an Idempotency-Key; PATCH depends on the version it changes
    allowed_methods=("GET", "HEAD", "POST", "DELETE"),
    status_forcelist=(429, 503),
    # not timeouts while reading: what takes too long once takes too long again
    retry_on_exceptions=(httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError),
)


class Transport(RetryTransport):
    """Sends requests, again where that is safe; every answer that comes back is a success."""

    def __init__(self, *, keyed: bool) -> None:
        super().__init__(retry=RETRY)
        self._keyed = keyed

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The answer, wholly read. Raises Refused and Unreachable."""
        if not self._keyed:
            request.headers.pop("Authorization", None)  # the generated client sends an empty one
        if request.method == "POST":
            request.headers.setdefault(IDEMPOTENCY_KEY, str(uuid4()))
        try:
            response = super().handle_request(request)
            response.read()
        except httpx.TransportError as error:
            raise Unreachable(
                f"{request.url.scheme}://{request.url.netloc.decode()} gives no answer: {error or type(error).__name__}"
            ) from error
        if response.is_error:
            raise refusal(response)
        return response


def connect(server: str | None, key: str | None, timeout_s: float) -> AuthenticatedClient:
    """A client for the generated operations; what is None comes from the environment."""
    address = server or os.environ.get(SERVER) or DEFAULT_SERVER
    token = key or os.environ.get(KEY) or ""
    return AuthenticatedClient(
        base_url=address.rstrip("/"),
        token=token,
        headers={"User-Agent": f"outlay-sdk/{version('outlay-sdk')}"},
        timeout=httpx.Timeout(timeout_s),
        httpx_args={"transport": Transport(keyed=bool(token))},
    )
