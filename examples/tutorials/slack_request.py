"""Sends /outlay as Slack does, signed, and prints the card that comes back. Usage: slack_request.py SERVER CHANNEL WORDS

The secret is OUTLAY_SLACK_SIGNING_SECRET. The service answers to a port of this machine, which OUTLAY_ALLOW_PRIVATE_WEBHOOKS=1 lets it do.
"""

import hashlib
import hmac
import json
import os
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

WORKSPACE, USER = "T0123ABCD", "U0123ABCD"
PATIENCE_S = 30


def signed(body: bytes, secret: str) -> dict[str, str]:
    """Slack's headers: the time, and the HMAC-SHA-256 of version, time and body."""
    stamp = str(int(time.time()))
    digest = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


def lines(message: dict[str, Any]) -> Iterator[str]:
    """The texts, pictures and buttons of a message."""
    for block in message.get("blocks", [{"text": {"text": message["text"]}}]):
        for part in (block.get("text"), *block.get("fields", ()), *block.get("elements", ())):
            if part is not None and part.get("type") != "button":
                yield part["text"]
        if "image_url" in block:
            yield f"(picture: {block['alt_text']})"
        buttons = [part["text"]["text"] for part in block.get("elements", ()) if part.get("type") == "button"]
        if buttons:
            yield " ".join(f"[{label}]" for label in buttons)


class Receiver(BaseHTTPRequestHandler):
    """Prints a message that arrives."""

    def do_POST(self) -> None:
        """Take one message."""
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        print("\n".join(lines(message)))

    def log_message(self, *_: object) -> None:
        """Print messages alone."""


def main(server: str, channel: str, words: str) -> None:
    """Send one command and wait for its card."""
    with HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        receiver.timeout = PATIENCE_S
        url = f"http://127.0.0.1:{receiver.server_port}/card"
        form = {"team_id": WORKSPACE, "channel_id": channel, "user_id": USER, "command": "/outlay", "text": words, "response_url": url}
        body = urlencode(form).encode()
        try:
            with urlopen(Request(f"{server}/slack/commands", body, signed(body, os.environ["OUTLAY_SLACK_SIGNING_SECRET"]))) as answer:
                at_once = answer.read()
        except HTTPError as error:
            print(error.code, json.load(error)["detail"])
            return
        if at_once:
            print("\n".join(lines(json.loads(at_once))))
        else:
            receiver.handle_request()


if __name__ == "__main__":
    main(*sys.argv[1:])
