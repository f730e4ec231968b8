"""Requests that the specification shows, as a test client sends them: JSON, files, and forms that Slack signs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from slack_sdk.signature import SignatureVerifier

from service.domain.quantities import Range
from service.formats.slack.range_url import range_url
from service.slack.signatures import SIGNATURE_HEADER, TIMESTAMP_HEADER

SLACK_SECRET = "exampleexampleexample"  # noqa: S105 - of a service that answers nobody
ANY_VERSION = {"If-Match": "*"}
QUERIES: Mapping[str, Mapping[str, str]] = {
    "importEvents": {"kind": "sacct", "run": "{run_id}"},
    "showResultPage": {"format": "json"},
}
"""Query parameters without which an operation has no example."""
SLACK_FORMS: Mapping[str, Mapping[str, str]] = {
    "takeSlackCommand": {"text": "help"},
    "takeSlackInteraction": {"payload": '{"type": "view_closed"}'},
}


def request_of(described: Mapping[str, Any], made: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """What the test client's `open` takes for an operation of the specification; `made` has ids by the names of path parameters."""
    name = described["operationId"]
    headers = {"X-Request-Id": name, **(ANY_VERSION if "If-Match" in _parameters(described) else {})}
    if name in SLACK_FORMS:
        form = _slack_form(SLACK_FORMS[name], now)
        return form | {"headers": headers | form["headers"]}
    body = example_body(described)
    content = {"data": body, "content_type": "text/plain"} if isinstance(body, str) else {"json": body}
    return {"query_string": _query(described, made, now), "headers": headers, **content}


def example_body(described: Mapping[str, Any]) -> Any:
    """The example of an operation's request; None where it has no body."""
    contents = described.get("requestBody", {}).get("content", {})
    return next((content["example"] for content in contents.values() if "example" in content), None)


def _query(described: Mapping[str, Any], made: Mapping[str, str], now: datetime) -> dict[str, str]:
    """One entry of a list, the parameters that an operation needs, or the figures of a picture."""
    name = described["operationId"]
    if name == "drawSlackRange":
        return dict(parse_qsl(urlsplit(range_url("", SLACK_SECRET, Range(1e6, 2e6, 3e6), None, now)).query))
    if "limit" in _parameters(described):
        return {"limit": "1"}
    return {key: value.format_map(made) for key, value in QUERIES.get(name, {}).items()}


def _parameters(described: Mapping[str, Any]) -> list[str]:
    return [given.get("name", "") for given in described.get("parameters", [])]


def _slack_form(form: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """A form as Slack sends and signs it."""
    body, at = urlencode(form), str(round(now.timestamp()))
    signature = SignatureVerifier(SLACK_SECRET).generate_signature(timestamp=at, body=body) or ""
    headers = {TIMESTAMP_HEADER: at, SIGNATURE_HEADER: signature}
    return {"data": body, "headers": headers, "content_type": "application/x-www-form-urlencoded"}
