"""HTTP calls of providers: bounded in time and size, no redirect to another host, retries of GET only."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from typing import Any, TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

import requests
from requests.auth import AuthBase
from urllib3.exceptions import HTTPError, InvalidHeader
from urllib3.util import Retry

from providers import strict_json
from providers.error_text import describe_error, is_cut_off, redact_request
from providers.offer import ProviderError
from providers.transport import TimedAdapter, deadline_at, remaining_s

USER_AGENT = "outlay (price catalogue)"
RETRIED_STATUSES = frozenset({429, 502, 503, 504})
MAX_REDIRECTS = 3
CHUNK_BYTES = 2**16
MAX_LINE_CHARS = 2**20
MAX_ERROR_DETAIL_CHARS = 200
RETRY_PAUSE_S = 0.5
"""Pause before the first retry where the source states none [s]; doubled for the second."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
PORTS = {"http": 80, "https": 443}
NETWORK_ERRORS = (OSError, HTTPError, UnicodeError)  # requests' own errors are OSErrors

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one call: time to connect, between two reads and in all [s], size after decompression [bytes], retries of a GET."""

    connect_s: float = 3.0
    read_s: float = 5.0
    total_s: float = 8.0
    max_bytes: int = 64 * 2**20
    retries: int = 2


DEFAULT_LIMITS = Limits()
BULK_LIMITS = Limits(total_s=300.0, max_bytes=2 * 2**30)
"""For files of hundreds of megabytes, read line by line in the background."""


class _RetryableError(ProviderError):
    """The source asked to retry later, or the connection was cut off. A GET may be retried."""

    def __init__(self, text: str, after_s: float | None = None) -> None:
        super().__init__(text)
        self.after_s = after_s


@dataclass(frozen=True)
class _Call:
    """One call: the request, its limits and its deadline."""

    request: requests.Request
    limits: Limits
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "deadline", time.monotonic() + self.limits.total_s)

    def error(self, what: str) -> ProviderError:
        """A ProviderError that names host and path but not the query, which may hold a key."""
        return ProviderError(self.text(what))

    def text(self, what: str) -> str:
        return f"{_host_and_path(str(self.request.url))}: {what}"

    def trouble(self, error: Exception) -> ProviderError:
        """A ProviderError for a network error, without the library's message, which holds addresses and headers."""
        if time.monotonic() >= self.deadline:
            return self.error(f"took longer than {self.limits.total_s:g} s in all")
        text = self.text(describe_error(error, self.limits.connect_s, self.limits.read_s))
        return _RetryableError(text) if is_cut_off(error) else ProviderError(text)


class Http:
    """HTTP client of providers. Every failure is a ProviderError that names the host and the cause.

    Parameters
    ----------
    limits : Limits
        Bounds of each call.
    configured : collection of str
        Addresses set by the operator: their hosts may be called by plain http, as loopback may.
    sleep : callable
        Waits before a retry [s].
    """

    def __init__(
        self, limits: Limits = DEFAULT_LIMITS, *, configured: Collection[str] = (), sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.limits = limits
        self.sleep = sleep
        self.plain_http_origins = frozenset(origin(urlsplit(url)) for url in configured)
        self.session = requests.Session()
        self.session.headers["User-Agent"] = USER_AGENT
        self.session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        for scheme in PORTS:
            self.session.mount(f"{scheme}://", TimedAdapter())

    def get_json(
        self, url: str, *, headers: Mapping[str, str] | None = None, params: Mapping[str, str] | None = None, auth: AuthBase | None = None
    ) -> object:
        """JSON answer of a GET; numbers with a fraction are Decimal. Raises ProviderError."""
        return self._json(_request("GET", url, headers=headers, params=params, auth=auth))

    def post_json(self, url: str, body: object, *, headers: Mapping[str, str] | None = None, auth: AuthBase | None = None) -> object:
        """JSON answer of a POST of a JSON body; never retried. Raises ProviderError."""
        return self._json(_request("POST", url, headers=headers, json=body, auth=auth))

    def post_form(self, url: str, fields: Mapping[str, str], *, auth: AuthBase | None = None) -> str:
        """Text answer of a POST of form fields (token endpoints, AWS query APIs); never retried. Raises ProviderError."""
        return self._text(_request("POST", url, data=fields, auth=auth))

    def get_text(self, url: str, *, headers: Mapping[str, str] | None = None, params: Mapping[str, str] | None = None) -> str:
        """Text answer of a GET, decoded as UTF-8. Raises ProviderError."""
        return self._text(_request("GET", url, headers=headers, params=params))

    def lines(self, url: str, *, limits: Limits = BULK_LIMITS) -> Iterator[str]:
        """Lines of a large UTF-8 text file as they arrive, without line ends. Raises ProviderError, also midway."""
        call = _Call(_request("GET", url), limits)
        answer = self._with_retries(call, lambda: self._open(call))
        try:
            yield from _split_lines(call, _read_chunks(call, answer))
        finally:
            answer.close()

    def _json(self, request: requests.Request) -> object:
        call = _Call(request, self.limits)
        body = self._with_retries(call, lambda: self._body(call))
        try:
            return strict_json.loads(body)
        except ValueError as error:
            raise call.error(_json_error(body, error)) from None

    def _text(self, request: requests.Request) -> str:
        call = _Call(request, self.limits)
        body = self._with_retries(call, lambda: self._body(call))
        if _is_html(body):
            raise call.error("answered with a web page where data was expected")
        try:
            return body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise call.error(f"answered with text that is not UTF-8 (byte {error.start})") from None

    def _with_retries(self, call: _Call, attempt: Callable[[], T]) -> T:
        """Result of `attempt`; a GET is retried while retries and time are left."""
        repeats = call.limits.retries if call.request.method == "GET" else 0
        for number in range(repeats):
            try:
                return attempt()
            except _RetryableError as retryable:
                pause = RETRY_PAUSE_S * 2**number if retryable.after_s is None else retryable.after_s
                if time.monotonic() + pause >= call.deadline:
                    raise ProviderError(f"{retryable} (to wait {pause:g} s is longer than the call may take)") from None
                self.sleep(pause)
        return attempt()

    def _body(self, call: _Call) -> bytes:
        answer = self._open(call)
        try:
            return b"".join(_read_chunks(call, answer))
        finally:
            answer.close()

    def _open(self, call: _Call) -> requests.Response:
        """Answer of status 200 with unread body; redirects within the host are followed."""
        request = call.request
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._send(call, request)
            target = self.session.get_redirect_target(answer)
            if target is None:
                return _check_answer(call, answer)
            answer.close()
            request = _follow_redirect(call, request, target)
        raise call.error(f"redirects more than {MAX_REDIRECTS} times")

    def _send(self, call: _Call, request: requests.Request) -> requests.Response:
        """Answer to one request. Session.send would read the whole body of a redirect, whatever its size."""
        try:
            prepared = self.session.prepare_request(request)
            self._check_address(call, str(prepared.url))
            found: Any = self.session.merge_environment_settings(prepared.url, {}, stream=True, verify=None, cert=None)
            timeout = (call.limits.connect_s, call.limits.read_s)
            with deadline_at(call.deadline):
                return self.session.get_adapter(str(prepared.url)).send(prepared, timeout=timeout, **found)
        except NETWORK_ERRORS as error:
            raise call.trouble(error) from None

    def _check_address(self, call: _Call, url: str) -> None:
        """Raises ProviderError for plain http to a host that is neither loopback nor configured by the operator."""
        address = urlsplit(url)
        if address.scheme != "https" and address.hostname not in LOOPBACK and origin(address) not in self.plain_http_origins:
            raise call.error("plain http is allowed for loopback and configured addresses only")


def _request(method: str, url: str, *, auth: AuthBase | None = None, **parts: Any) -> requests.Request:
    """A request with an explicit `auth`: without one, requests overwrites the Authorization header from ~/.netrc."""
    return requests.Request(method, url, auth=auth or _no_auth, **parts)


def _no_auth(prepared: requests.PreparedRequest) -> requests.PreparedRequest:
    return prepared


def _host_and_path(url: str) -> str:
    """Host and path of an address, without login and query."""
    try:
        address = urlsplit(url)
    except ValueError:
        return "an address that is none"
    return f"{address.netloc.rpartition('@')[2]}{address.path}"


def origin(address: SplitResult) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of an address. Raises ValueError for an invalid port."""
    return address.scheme, address.hostname, address.port or PORTS.get(address.scheme)


def _follow_redirect(call: _Call, request: requests.Request, target: str) -> requests.Request:
    """The request at its new address. Raises ProviderError for a POST, another host, and https to http."""
    if request.method != "GET":
        raise call.error("redirects a POST, which is not followed")
    before = urlsplit(str(request.url))
    url = urljoin(str(request.url), target)
    after = urlsplit(url)
    to_tls = (origin(before), origin(after)) == (("http", before.hostname, 80), ("https", before.hostname, 443))
    if origin(before) != origin(after) and not to_tls:
        raise call.error(f"redirects to another host, {after.scheme}://{after.netloc.rpartition('@')[2]}, which is not followed")
    return requests.Request("GET", url, headers=request.headers, auth=request.auth)


def _check_answer(call: _Call, answer: requests.Response) -> requests.Response:
    """The answer if its status is 200 and its size within limits. Raises ProviderError."""
    length = getattr(answer.raw, "length_remaining", None)
    if answer.status_code == HTTPStatus.OK and (length is None or length <= call.limits.max_bytes):
        return answer
    try:
        if answer.status_code == HTTPStatus.OK:
            raise call.error(_size_error(call, f"{length} bytes"))
        what = f"answered {_status_text(answer.status_code)}{_error_detail(call, answer)}"
        raise _RetryableError(call.text(what), _retry_after_s(answer)) if answer.status_code in RETRIED_STATUSES else call.error(what)
    finally:
        answer.close()


def _status_text(code: int) -> str:
    known = code in HTTPStatus._value2member_map_
    return f"{code} {HTTPStatus(code).phrase}" if known else str(code)


def _error_detail(call: _Call, answer: requests.Response) -> str:
    """Start of the error's body, with everything secret that was sent removed."""
    try:
        body = next(_read_chunks(call, answer), b"")
    except ProviderError:
        return ""  # the status has been said; what breaks off after it adds nothing
    text = " ".join(body.decode("utf-8", errors="replace").split())
    if not text or _is_html(body):
        return ""
    return f": {redact_request(text, answer.request)[:MAX_ERROR_DETAIL_CHARS]}"


def _retry_after_s(answer: requests.Response) -> float | None:
    """Seconds of a Retry-After header, a number or a date; None where it is missing or invalid."""
    try:
        return Retry().get_retry_after(answer.raw)
    except (InvalidHeader, ValueError, OverflowError):
        return None


def _read_chunks(call: _Call, answer: requests.Response) -> Iterator[bytes]:
    """The decompressed body in chunks. Raises ProviderError where it is cut off, too large or too slow."""
    got = 0
    while piece := _read_chunk(call, answer):
        got += len(piece)
        if got > call.limits.max_bytes:
            raise call.error(_size_error(call, "unpacked"))
        yield piece


def _read_chunk(call: _Call, answer: requests.Response) -> bytes:
    """The next chunk as soon as it arrives: `read1` does not wait for a full block, as `read` and `iter_content` do."""
    try:
        with deadline_at(call.deadline):
            remaining_s()  # unpacking what has arrived takes time too
            piece: bytes = answer.raw.read1(CHUNK_BYTES, decode_content=True)
            return piece
    except NETWORK_ERRORS as error:
        raise call.trouble(error) from None


def _size_error(call: _Call, what: str) -> str:
    return f"answered with more than the {call.limits.max_bytes} bytes that are taken ({what})"


def _split_lines(call: _Call, pieces: Iterator[bytes]) -> Iterator[str]:
    """Lines of UTF-8 text. str.splitlines would also split at form feeds and U+2028, inside a field."""
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    rest, first = "", True
    for piece in pieces:
        if first and _is_html(piece):
            raise call.error("answered with a web page where data was expected")
        *whole, rest = (rest + _decode(call, decode, piece)).split("\n")
        if len(rest) > MAX_LINE_CHARS:
            raise call.error(f"answered with a line of more than {MAX_LINE_CHARS} characters")
        yield from (line.removesuffix("\r") for line in whole)
        first = False
    rest += _decode(call, decode, b"", final=True)
    if rest:
        yield rest.removesuffix("\r")


def _decode(call: _Call, decode: Any, piece: bytes, *, final: bool = False) -> str:
    try:
        return str(decode(piece, final))
    except UnicodeDecodeError:
        raise call.error("answered with text that is not UTF-8") from None


def _is_html(body: bytes) -> bool:
    return body[:100].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def _json_error(body: bytes, error: ValueError) -> str:
    if not body.strip():
        return "answered with nothing where JSON was expected"
    if _is_html(body):
        return "answered with a web page where JSON was expected"
    return f"answered with what is no JSON: {error}"
