"""Slack as the service sees it: requests that it signs, and a stand-in for its response URLs that checks messages by its limits."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support.servers import wait_for
from tests.unit.providers.misbehaving_server import Server, listening

Body = dict[str, Any]
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
WORKSPACE, CHANNEL, USER = "T0001", "C2147483705", "U2147483697"
LIMITS: Mapping[str, int] = {
    "section": 3000,
    "field": 2000,
    "fields": 10,
    "header": 150,
    "button": 75,
    "value": 2000,
    "url": 3000,
    "alt": 2000,
}
"""Most characters and entries by docs.slack.dev/reference/block-kit, read on 2026-11-23."""
MOST_BLOCKS = 50
RESPONSE_URL_USES = 5
"""Messages that a response URL takes, by docs.slack.dev/interactivity/handling-user-interaction, read on 2026-11-23."""
MOST_ELEMENTS = {"actions": 25, "context": 10}


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Slack's signature of a body, computed by hand."""
    return "v0=" + hmac.new(secret.encode(), b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()


def headers(now_s: float, body: bytes, secret: str = SECRET) -> dict[str, str]:
    """What Slack sends with a form."""
    stamp = str(int(now_s))
    return {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": signature(secret, stamp, body),
    }


def command_form(text: str, url: str, **more: str) -> dict[str, str]:
    """The fields of a slash command, as Slack's documentation lists them."""
    return {
        "token": "gIkuvaNzQIHg97ATvDxqgjtO",
        "team_id": WORKSPACE,
        "team_domain": "example",
        "channel_id": CHANNEL,
        "channel_name": "test",
        "user_id": USER,
        "user_name": "Steve",
        "command": "/outlay",
        "text": text,
        "api_app_id": "A123456",
        "is_enterprise_install": "false",
        "response_url": url,
        "trigger_id": "13345224609.738474920.8088930838d88f008e0",
        **more,
    }


def press_payload(action: str, value: str | None, url: str) -> Body:
    """The payload of a pressed button of an ephemeral message, which holds no message."""
    pressed = {"type": "button", "action_id": action, "block_id": "b", "action_ts": "1.2", "text": {"type": "plain_text", "text": "x"}}
    return {
        "type": "block_actions",
        "user": {"id": USER, "username": "steve", "team_id": WORKSPACE},
        "api_app_id": "A123456",
        "container": {"type": "message", "message_ts": "1.1", "channel_id": CHANNEL, "is_ephemeral": True},
        "team": {"id": WORKSPACE, "domain": "example"},
        "channel": {"id": CHANNEL, "name": "test"},
        "response_url": url,
        "actions": [pressed if value is None else pressed | {"value": value}],
    }


@dataclass
class Slack:
    """A workspace with the app installed: commands and pressed buttons go to the service, answers arrive at a stand-in."""

    app: Flask
    server: Server
    received: list[Body] = field(default_factory=list)
    sent: int = 0

    @property
    def client(self) -> FlaskClient:
        """A client of the service."""
        return self.app.test_client()

    def response_url(self) -> str:
        """A new response URL, as each request has one."""
        self.sent += 1
        uses = iter(range(RESPONSE_URL_USES))

        def take(handler: Any) -> None:
            assert next(uses, None) is not None, "a response URL is used too often"
            self.received.append(checked(json.loads(self.server.seen[-1][3])))
            handler.answer(b"ok")

        return self.server.on(take, f"/commands/T0001/{self.sent}/secret")

    def send(self, path: str, form: Mapping[str, str]) -> TestResponse:
        """A signed request."""
        body = urlencode(form).encode()
        now_s = self.app.extensions["context"].clock().timestamp()
        return self.client.post(path, data=body, headers=headers(now_s, body))

    def command(self, text: str, **more: str) -> Body:
        """The message that answers a command at its response URL."""
        return self._answer("/slack/commands", command_form(text, self.response_url(), **more))

    def press(self, message: Body, label: str) -> Body:
        """The message that answers a pressed button."""
        found = next(button for button in buttons(message) if button["text"]["text"] == label)
        payload = press_payload(found["action_id"], found["value"], self.response_url())
        return self._answer("/slack/interactions", {"payload": json.dumps(payload)})

    def _answer(self, path: str, form: Mapping[str, str]) -> Body:
        before = len(self.received)
        response = self.send(path, form)
        assert (response.status_code, response.data) == (200, b""), response.text
        wait_for(lambda: len(self.received) > before, f"the answer to {form}")
        return self.received[-1]


@contextmanager
def installed(app: Flask) -> Iterator[Slack]:
    """A workspace with the app installed."""
    with listening(Server()) as server:
        yield Slack(app, server)


def buttons(message: Body) -> list[Body]:
    """All buttons of a message."""
    return [element for block in message["blocks"] if block["type"] == "actions" for element in block["elements"]]


def texts(message: Body) -> str:
    """All texts of sections and notes."""
    parts = []
    for block in message["blocks"]:
        parts += [block["text"]["text"]] if "text" in block else []
        parts += [part["text"] for part in (*block.get("fields", ()), *(block.get("elements", ()) if block["type"] == "context" else ()))]
    return "\n".join(parts)


def checked(message: Body) -> Body:
    """The message, which keeps to the limits that Slack documents."""
    assert set(message) <= {"response_type", "replace_original", "text", "blocks"}
    assert message["response_type"] in ("ephemeral", "in_channel")
    assert 0 < len(message["text"]) <= 40_000
    assert 0 < len(message["blocks"]) <= MOST_BLOCKS
    for block in message["blocks"]:
        _CHECKS[block["type"]](block)
    return message


def _section(block: Body) -> None:
    assert "text" in block or "fields" in block
    _text(block["text"], "section")
    assert 0 < len(block.get("fields", [0])) <= LIMITS["fields"]
    for part in block.get("fields", ()):
        _text(part, "field")


def _text(part: Body, kind: str) -> None:
    assert part["type"] in ("mrkdwn", "plain_text")
    assert 0 < len(part["text"]) <= LIMITS[kind]


def _header(block: Body) -> None:
    assert block["text"]["type"] == "plain_text"
    _text(block["text"], "header")


def _image(block: Body) -> None:
    assert 0 < len(block["image_url"]) <= LIMITS["url"]
    assert 0 < len(block["alt_text"]) <= LIMITS["alt"]


def _context(block: Body) -> None:
    assert 0 < len(block["elements"]) <= MOST_ELEMENTS["context"]
    for part in block["elements"]:
        _text(part, "section")


def _actions(block: Body) -> None:
    assert 0 < len(block["elements"]) <= MOST_ELEMENTS["actions"]
    assert len({element["action_id"] for element in block["elements"]}) == len(block["elements"])
    for element in block["elements"]:
        assert element["type"] == "button"
        assert element["text"]["type"] == "plain_text"
        _text(element["text"], "button")
        assert len(element.get("value", "")) <= LIMITS["value"]
        assert len(element.get("url", "")) <= LIMITS["url"]


_CHECKS = {"section": _section, "header": _header, "image": _image, "context": _context, "actions": _actions}
