"""What the installed package does with a service in trouble: a server of this process answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

from outlay_sdk import Outlay, OutlayError, Refused, ScenarioFailed, Unavailable, Unreachable
from outlay_sdk.generated.models import AppendResult

Raised = TypeVar("Raised", bound=OutlayError)

AWAY = {"type": "/problems/unavailable", "title": "Unavailable", "status": 503, "detail": "the database is away", "request_id": "r1"}
SOON = {"Retry-After": "0"}
EXAMPLES = Path(__file__).parents[3] / "service" / "api" / "http" / "data" / "examples.json"
FAILED = json.loads(EXAMPLES.read_text(encoding="utf-8"))["getScenario"]["200"] | {
    "state": "failed",
    "error": "out of memory",
    "result": None,
}
ADDED: dict[str, Any] = {"accepted": 1, "duplicates": 0, "rejected": []}


@dataclass(slots=True)
class Answer:
    """What is answered once: None in place of a body closes the connection."""

    status: int
    body: object
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Service:
    """Its address, what it answers in turn, and the headers it was sent."""

    url: str
    answers: list[Answer] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def service_of(*answers: Answer) -> Iterator[Service]:
    """A service that gives these answers in turn."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.asked.append({name.lower(): text for name, text in self.headers.items()})
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = service.answers.pop(0)
            if answer.body is None:
                self.close_connection = True
                return
            content = answer.body.encode() if isinstance(answer.body, str) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, text in (answer.headers | {"Content-Length": str(len(content))}).items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815 - the base class's name

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service = Service(f"http://127.0.0.1:{server.server_port}", list(answers))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()


def add_event(service: Service, key: str | None = "secret") -> AppendResult:
    """Add one event to a run."""
    return Outlay(service.url, key).add_events("r1", [{"id": "e1"}])


def error_of(ask: Callable[[], object], kind: type[Raised]) -> Raised:
    """The exception that asking raises."""
    try:
        ask()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} is not raised")


def repeats_under_one_idempotency_key() -> None:
    """After 503, 429 and a broken connection the same request is sent, with the same idempotency key."""
    answers = (Answer(503, AWAY, SOON), Answer(429, AWAY, SOON), Answer(200, None), Answer(200, ADDED))
    with service_of(*answers) as service:
        assert add_event(service).accepted == 1
        assert len(service.asked) == 4
        assert len({headers["idempotency-key"] for headers in service.asked}) == 1
        assert {headers["authorization"] for headers in service.asked} == {"Bearer secret"}


def sends_no_empty_key() -> None:
    """Without a key there is no Authorization at all."""
    with service_of(Answer(200, ADDED)) as service:
        add_event(service, None)
        assert "authorization" not in service.asked[0]


def gives_up_in_the_end() -> None:
    """A service that stays away is Unavailable, with its problem; one that always hangs up is Unreachable."""
    with service_of(*[Answer(503, AWAY, SOON)] * 5) as service:
        assert error_of(lambda: add_event(service), Unavailable).request_id == "r1"
    with service_of(*[Answer(200, None)] * 5) as service:
        error_of(lambda: add_event(service), Unreachable)


def does_not_repeat_what_is_wrong() -> None:
    """Other errors are raised at once, those of a proxy without a problem."""
    for body in (AWAY | {"status": 500}, "<h1>Internal error</h1>", "[]"):
        with service_of(Answer(500, body)) as service:
            error = error_of(partial(add_event, service), Refused)
            assert (error.problem is None) == isinstance(body, str)
            assert len(service.asked) == 1


def raises_what_ended_a_scenario() -> None:
    """A scenario that failed says why."""
    with service_of(Answer(200, FAILED)) as service:
        error = error_of(lambda: Outlay(service.url).wait(FAILED["id"]), ScenarioFailed)
        assert str(error) == f"scenario {FAILED['id']} ended as failed: out of memory"


if __name__ == "__main__":
    for check in (
        repeats_under_one_idempotency_key,
        sends_no_empty_key,
        gives_up_in_the_end,
        does_not_repeat_what_is_wrong,
        raises_what_ended_a_scenario,
    ):
        check()
        print(check.__name__)
