"""Messages for failed calls: the cause in a few words, without secrets."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, urlsplit

import requests
from urllib3.exceptions import DecodeError, HTTPError, InvalidHeader

CUT_OFF = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
PUBLIC_HEADERS = frozenset({"user-agent", "accept", "accept-encoding", "connection", "content-length", "content-type"})
MIN_SECRET_CHARS = 8
BAD_HEADER = "a header or credential has a character that headers cannot contain"


def is_cut_off(error: BaseException) -> bool:
    """Whether the other side closed an open connection."""
    return isinstance(_cause(error), CUT_OFF)


def describe_error(error: BaseException, connect_s: float, read_s: float) -> str:
    """Cause of an error of requests or urllib3. Their own messages hold the address with its query, and headers.

    Parameters
    ----------
    error : BaseException
        What was raised.
    connect_s, read_s : float
        Time limits of the call [s], for the message.

    Returns
    -------
    str
        The cause, without address and headers.
    """
    cause = _cause(error)
    words: tuple[tuple[type[BaseException], str], ...] = (
        (requests.ConnectTimeout, f"no connection within {connect_s:g} s"),
        (InvalidHeader, "the answer's headers contradict each other"),
        (requests.exceptions.InvalidHeader, BAD_HEADER),
        (UnicodeError, BAD_HEADER),
        (TimeoutError, f"no answer within {read_s:g} s"),
        (ssl.SSLCertVerificationError, f"its certificate was not accepted: {getattr(cause, 'verify_message', '')}"),
        (socket.gaierror, "its name was not found"),
        (http.client.IncompleteRead, "the answer broke off"),
        (DecodeError, "the answer cannot be unpacked"),
        (OSError, f"the connection failed: {getattr(cause, 'strerror', None) or type(cause).__name__}"),
    )
    matching = (said for kind, said in words if isinstance(error, kind) or isinstance(cause, kind))
    return next(matching, f"the call failed: {type(cause).__name__}")


def _cause(error: BaseException) -> BaseException:
    """The innermost network error in the chain of causes."""
    while isinstance(inner := error.__cause__ or error.__context__, OSError | HTTPError | http.client.HTTPException):
        error = inner
    return error


def redact_request(text: str, request: requests.PreparedRequest) -> str:
    """The text without secrets of the request: values of headers, query, form fields and JSON body."""
    return redact(text, _secrets(request))


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, plain or percent-encoded."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "…").replace(quote(secret, safe=""), "…")
    return text


def _secrets(request: requests.PreparedRequest) -> set[str]:
    body = request.body.decode("utf-8", errors="replace") if isinstance(request.body, bytes) else str(request.body or "")
    fields = parse_qsl(urlsplit(str(request.url)).query) + (_string_members(body) if body.startswith("{") else parse_qsl(body))
    sent = [value for name, value in request.headers.items() if name.lower() not in PUBLIC_HEADERS]
    words = [word for value in sent for word in str(value).split()]
    return {value for value in [*(value for _, value in fields), *words] if len(value) >= MIN_SECRET_CHARS}


def _string_members(body: str) -> list[tuple[str, str]]:
    """Names and values of the texts in a JSON object."""
    return [(name, value) for name, value in json.loads(body).items() if isinstance(value, str)]
