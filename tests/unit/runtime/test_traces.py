"""Traces go to a receiver of OpenTelemetry's protocol where one is set, without what addresses hide."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from service.runtime import traces

ROOT = Path(__file__).parents[3]
TRACED = """
import json, os, sys
from contextlib import closing
from service import create_app
from service.config import load_settings
from service.queue import celery_app
from service.runtime import traces

settings = load_settings({name: value for name, value in os.environ.items() if name.startswith("OUTLAY_")})
app = create_app(settings)
context = app.extensions["context"]
with closing(context.store) as store:
    store.migrate()
    client = app.test_client()
    client.get("/healthz")
    client.get("/r/00000000-0000-0000-0000-000000000000?token=token-of-a-link")
    client.post("/v1/track/programs", json={"name": "secret name"})
    made = client.post("/v1/scenarios", json={"kind": "monte_carlo", "trials": 100, "base": {
        "model": {"preset": "llama-2-7b"}, "data": {"tokens": "2T"}, "hardware": {"accelerator": "A100-80GB", "count": 1024}}})
    assert made.status_code == 202, made.text
    context.queue.flush()
traces.flush()
with celery_app(settings).connection_for_read() as connection, connection.channel() as channel:
    print(json.dumps(channel.basic_get("jobs", no_ack=True).headers))
"""


class Receiver(ThreadingHTTPServer):
    """A collector of traces on a loopback port."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans: list[Any] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def named(self, name: str) -> Any:
        """The only span of that name."""
        found = [span for span in self.spans if span.name == name]
        assert len(found) == 1, sorted({span.name for span in self.spans})
        return found[0]


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """Keep the spans of an export."""
        sent = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.spans += [span for resource in sent.resource_spans for scope in resource.scope_spans for span in scope.spans]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Nothing on standard error."""


@dataclass(frozen=True)
class Traced:
    """What was received of a process that served some requests, and the headers of its message to the worker."""

    receiver: Receiver
    headers: dict[str, Any]


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """One process for all tests: its start takes seconds."""
    with closing(Receiver()) as receiver:
        yield Traced(receiver, serve_some(tmp_path_factory.mktemp("traced"), receiver))


def serve_some(folder: Path, receiver: Receiver) -> dict[str, Any]:
    """Headers of the message to the worker, after a process has served some requests."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OUTLAY_"))}
    env |= {"OUTLAY_DATA_DIR": str(folder), "OUTLAY_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.server_port}", "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
    done = subprocess.run([sys.executable, "-c", TRACED], env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    headers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return headers


def test_a_request_its_statements_and_its_job_are_one_trace(traced: Traced) -> None:
    """Statements are below their request, the message to the worker has its trace, and health is not traced."""
    receiver = traced.receiver
    request = receiver.named("POST /v1/scenarios")
    below = [span for span in receiver.spans if span.trace_id == request.trace_id and span.name == "INSERT"]
    assert below
    assert traced.headers["traceparent"].split("-")[1] == request.trace_id.hex()
    assert not [span for span in receiver.spans if "healthz" in span.name]


def test_spans_hold_no_values_and_no_queries(traced: Traced) -> None:
    """Neither tokens in addresses nor what is written to the database."""
    receiver = traced.receiver
    assert receiver.named("GET /r/<result_id>")
    sent = b"".join(span.SerializeToString() for span in receiver.spans)
    assert b"token-of-a-link" not in sent
    assert b"secret name" not in sent
    assert b"INSERT INTO track_programs" in sent


def test_nothing_is_traced_without_an_address() -> None:
    """And nothing is imported for it."""
    assert traces.start("outlay-web", {}) is False


def test_missing_packages_are_told_and_stop_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The extra was not installed."""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert traces.start("outlay-web", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}) is False
    assert "outlay[otel]" in caplog.text
