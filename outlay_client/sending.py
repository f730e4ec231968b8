"""Sends one batch of events over HTTP."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlsplit

TIMEOUT_S = 10.0
"""Timeout of connecting, and between two reads of an answer [s]."""
MAX_ANSWER_BYTES = 2**20
MAX_WAIT_S = 300.0
REFUSED = frozenset({400, 413, 415, 422})
"""Statuses that reject the events themselves. All others are temporary (an expired key, an unavailable service)."""
HTTP_ERRORS = (OSError, http.client.HTTPException, ValueError)


@dataclass(frozen=True, slots=True)
class Sent:
    """Result of a batch: `accepted` when it is durable, `refused` when it never will be; otherwise it is sent again.

    `rejected` are single events that were not accepted, with the reason; `wait_s` is the pause that the service asked for [s].
    """

    accepted: bool = False
    refused: bool = False
    reason: str = ""
    wait_s: float = 0.0
    rejected: tuple[dict[str, str], ...] = ()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: a key is sent to the configured address only."""

    def redirect_request(self, *_: Any) -> None:
        """No request."""


class EventEndpoint:
    """Address of the events of one run."""

    def __init__(self, url: str, run_id: str, key: str | None) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise ValueError(f"the service's address is {url!r}; it must be like https://outlay.example.com")
        if not run_id:
            raise ValueError("the run's id is empty; it is the `id` that POST /v1/track/programs/{id}/runs answered with")
        self.url = f"{url.rstrip('/')}/v1/track/runs/{quote(run_id, safe='')}/events"
        self.headers = {"Content-Type": "application/json", "User-Agent": "outlay-client"}
        if key:
            self.headers["Authorization"] = f"Bearer {key}"
        self._opener = urllib.request.build_opener(_NoRedirect)

    def send(self, lines: Sequence[bytes]) -> Sent:
        """Send events, each a line of JSON. Never raises."""
        body = b'{"events":[' + b",".join(line.rstrip(b"\n") for line in lines) + b"]}"
        request = urllib.request.Request(self.url, body, self.headers, method="POST")  # noqa: S310 - http and https alone, see above
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                return _parse_answer(json.loads(answer.read(MAX_ANSWER_BYTES)))
        except urllib.error.HTTPError as error:
            with error:
                return _parse_refusal(error)
        except HTTP_ERRORS as error:
            return Sent(reason=f"{type(error).__name__}: {error}")


def _parse_answer(answer: Any) -> Sent:
    """A 2xx counts only with the service's own answer: a proxy may answer 200 as well."""
    if not isinstance(answer, dict) or not isinstance(answer.get("accepted"), int):
        return Sent(reason="the answer is not the service's: is this its address?")
    rejected = [each for each in answer.get("rejected") or () if isinstance(each, dict) and "id" in each]
    return Sent(accepted=True, rejected=tuple({"id": str(each["id"]), "reason": str(each.get("reason"))} for each in rejected))


def _parse_refusal(error: urllib.error.HTTPError) -> Sent:
    reason = f"{error.code} {error.reason}{_detail(error)}"
    return Sent(refused=error.code in REFUSED, reason=reason, wait_s=_wait_s(error.headers.get("Retry-After")))


def _detail(error: urllib.error.HTTPError) -> str:
    """Detail of a problem+json answer, if it is one."""
    try:
        problem = json.loads(error.read(MAX_ANSWER_BYTES))
    except HTTP_ERRORS:
        return ""
    if not isinstance(problem, dict):
        return ""
    parts = [problem.get("detail"), *(problem.get("errors") or ())[:1]]
    return "".join(f": {str(each)[:300]}" for each in parts if each)


def _wait_s(header: str | None) -> float:
    """Seconds of a Retry-After header, a number or a date; 0 without one."""
    if not header:
        return 0.0
    try:
        return min(max(float(header), 0.0), MAX_WAIT_S)
    except ValueError:
        return _until_s(header)


def _until_s(header: str) -> float:
    try:
        left = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
    return min(max(left, 0.0), MAX_WAIT_S)
