"""One request to a running service, and its problem as an exception."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from service.remote.problems import RemoteProblem

TIMEOUT_S = 120.0
"""The longest answer is a comparison of all offers on a busy machine, of some tens of seconds."""
MAX_ANSWER_BYTES = 256 * 2**20
PAGE = 1000
"""Items asked for at once, the most that a list answers."""
UNAUTHORIZED = 401
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
SENT, FILE_TYPE = "application/json", "application/octet-stream"


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: the key is for the stated server alone."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Server:
    """A running service by the address of its root, with an API key where it needs one."""

    url: str
    key: str | None = field(default=None, repr=False)

    @property
    def sends_in_clear(self) -> bool:
        """Whether requests, with the key, pass a network unencrypted."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname not in LOOPBACK

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """The JSON answer of a GET. Raises RemoteProblem."""
        stated = {name: value for name, value in (query or {}).items() if value is not None}
        return self._read(self.send("GET", f"{path}?{urlencode(stated)}" if stated else path))

    def items(self, path: str, query: Mapping[str, Any] | None = None) -> list[Any]:
        """The items of all pages of a list. Raises RemoteProblem."""
        cursor, found = None, []
        while True:
            page = self.get(path, {**(query or {}), "limit": PAGE, "cursor": cursor})
            found += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def post(self, path: str, body: object) -> Any:
        """The JSON answer of a POST of a JSON body. Raises RemoteProblem."""
        return self._read(self.send("POST", path, json.dumps(body).encode()))

    def patch(self, path: str, body: object) -> Any:
        """The JSON answer of a PATCH of a JSON body to the newest version. Raises RemoteProblem."""
        return self._read(self.send("PATCH", path, json.dumps(body).encode(), more={"If-Match": "*"}))

    def post_file(self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS) -> Any:
        """The JSON answer of a POST of a file as it is. Raises RemoteProblem."""
        return self._read(self.send("POST", path, content, FILE_TYPE, headers))

    def delete(self, path: str) -> None:
        """DELETE. Raises RemoteProblem."""
        self.send("DELETE", path)

    def send(
        self, method: str, path: str, content: bytes | None = None, content_type: str = SENT, more: Mapping[str, str] = NO_HEADERS
    ) -> bytes:
        """The bytes of an answer; `more` are further headers of the request. Raises RemoteProblem."""
        headers = {"Accept": "*/*", "User-Agent": "outlay (command line)", **more}
        headers |= {"Content-Type": content_type} if content is not None else {}
        headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        request = Request(f"{self.url}{path}", data=content, headers=headers, method=method)  # noqa: S310 - checked by checked_url
        try:
            with build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as answer:
                body: bytes = answer.read(MAX_ANSWER_BYTES + 1)
        except HTTPError as error:
            raise self._refused(error) from error
        except (OSError, ValueError) as error:
            raise RemoteProblem(f"{self.url} cannot be reached: {getattr(error, 'reason', error)}") from error
        if len(body) > MAX_ANSWER_BYTES:
            raise RemoteProblem(f"{self.url}{path} answers more than {MAX_ANSWER_BYTES:,} bytes")
        return body

    def _read(self, content: bytes) -> Any:
        try:
            return json.loads(content)
        except ValueError as error:
            raise RemoteProblem(f"{self.url} answers no JSON and is not a service of Outlay") from error

    def _refused(self, error: HTTPError) -> RemoteProblem:
        """What the body of an error says, where it is a problem of the service."""
        try:
            problem = json.loads(error.read(MAX_ANSWER_BYTES))
            detail, errors = (
                str(problem["detail"]),
                tuple({"pointer": each["pointer"], "message": each["message"]} for each in problem.get("errors", ())),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            return RemoteProblem(f"{self.url} answers {error.code} {error.reason} and is not a service of Outlay", error.code)
        if error.code == UNAUTHORIZED:
            detail = f"{detail} `outlay login --server {self.url}` keeps one, OUTLAY_API_KEY states one."
        return RemoteProblem(detail, error.code, errors)


def checked_url(text: str) -> str:
    """The address of a server without a slash at its end. Raises ValueError where it is no http(s) address of a host."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{text!r} is no address of a server, such as https://outlay.example.com")
    return text.rstrip("/")
