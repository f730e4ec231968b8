"""Takes one webhook, checks its signature and prints what it says. Usage: receive_webhook.py PORT, with the secret in WEBHOOK_SECRET."""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))


def is_genuine(headers, body: bytes) -> bool:
    """Whether the sender knows the secret, and sent this within five minutes."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(SECRET, signed, hashlib.sha256)).decode()
    recent = abs(time.time() - int(headers["webhook-timestamp"])) < 300
    return recent and any(hmac.compare_digest(expected, each) for each in headers["webhook-signature"].split())


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 to what is genuine; anything else is sent again later."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        genuine = is_genuine(self.headers, body)
        self.send_response(204 if genuine else 401)
        self.end_headers()
        if genuine:
            message = json.loads(body)
            print(message["type"], message["data"]["state"], message["data"]["progress"], flush=True)

    def log_message(self, *arguments) -> None:
        """Nothing but the messages is printed."""


port = int(sys.argv[1])
server = HTTPServer(("127.0.0.1", port), Receiver)
print(f"listening on port {port}", flush=True)
server.handle_request()
