"""A service of this machine that takes a run's events, counted by id, when its script says so."""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import ThreadingHTTPServer
from typing import Any

from tests.unit.providers.misbehaving_server import Handler, Script, Server, in_turn

PATH = "/v1/track/runs/main-7b/events"
RUN = "main-7b"


class Service(Server):
    """Keeps the events it has taken by their ids, as the real one does; `taken` counts how often each was sent."""

    def __init__(self, port: int = 0) -> None:
        ThreadingHTTPServer.__init__(self, ("127.0.0.1", port), Handler)
        self.scripts = {PATH: take}
        self.asked = Counter()
        self.seen = []
        self.over = threading.Event()
        self.events: dict[str, dict[str, Any]] = {}
        self.taken: Counter[str] = Counter()

    @property
    def url(self) -> str:
        """Its address, as a tracker is given it."""
        return f"http://{self.host}"

    def plays(self, *scripts: Script) -> None:
        """What it does from now on, one script a request; the last one for ever."""
        self.scripts[PATH] = in_turn(*scripts)

    def keep(self, body: bytes) -> list[dict[str, Any]]:
        """Take the events of a request."""
        events: list[dict[str, Any]] = json.loads(body)["events"]
        for event in events:
            assert self.events.setdefault(event["id"], event) == event
            self.taken[event["id"]] += 1
        return events

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a type, in the order they came."""
        return [event for event in self.events.values() if event["type"] == kind]


def body_of(handler: Handler) -> bytes:
    """The body of the request being answered."""
    return handler.server.seen[-1][3]


def take(handler: Handler) -> None:
    """Take everything."""
    events = _service(handler).keep(body_of(handler))
    handler.answer(_answer(len(events)))


def take_and_vanish(handler: Handler) -> None:
    """Take everything, and lose the answer on the way."""
    _service(handler).keep(body_of(handler))
    handler.close_connection = True


def problem(status: int, **headers: str) -> Script:
    """Answer with a problem."""
    return lambda handler: handler.answer(b'{"detail": "not now"}', status, **headers)


def hang(handler: Handler) -> None:
    """Answer nothing as long as anybody listens."""
    handler.drip(b"", b"")


def web_page(handler: Handler) -> None:
    """Be somebody else: a login page, with a status that says all is well."""
    handler.answer(b"<!doctype html><html>Log in</html>")


def picky(handler: Handler) -> None:
    """Refuse a batch that holds a loss of 13, as a schema refuses the whole request for one bad field."""
    body = body_of(handler)
    if b'"loss":13.0' in body:
        handler.answer(b'{"detail": "loss is unlucky"}', 422)
    else:
        take(handler)


def conflicting(handler: Handler) -> None:
    """Take all but the last event."""
    *others, last = json.loads(body_of(handler))["events"]
    _service(handler).keep(json.dumps({"events": others}).encode())
    handler.answer(_answer(len(others), [{"id": last["id"], "reason": "a conflict"}]))


def _service(handler: Handler) -> Service:
    assert isinstance(handler.server, Service)
    return handler.server


def _answer(accepted: int, rejected: list[dict[str, str]] | None = None) -> bytes:
    return json.dumps({"accepted": accepted, "duplicates": 0, "rejected": rejected or []}).encode()
