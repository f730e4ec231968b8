"""The shipped nginx file before a real service: TLS, slow clients, kept connections, addresses, Slack and large bodies."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from service.config import Settings, to_env
from service.container import build_context
from service.usecases.keys import make_key
from tests.integration.test_serve import ROOT, spaced_in, status
from tests.support.patience import PATIENT_GUNICORN
from tests.support.servers import DEADLINE_S, find_free_port, missing, wait_for
from tests.support.slack import SECRET, headers

SHIPPED = ROOT / "deploy" / "nginx" / "outlay.conf"
AROUND = """daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; {user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    include {folder}/outlay.conf;
}}
"""
MIB = 1024 * 1024
CLIENT = "127.0.0.2"
"""Address that test clients connect from, so that they are told apart from the proxy."""


@dataclass(frozen=True, slots=True)
class Proxied:
    """A service behind nginx: ports of both servers of the file, and an API key."""

    https: int
    http: int
    trusting: ssl.SSLContext
    key: str

    def connect(self) -> ssl.SSLSocket:
        """A TLS connection from the client's address."""
        plain = socket.create_connection(("127.0.0.1", self.https), timeout=DEADLINE_S, source_address=(CLIENT, 0))
        return self.trusting.wrap_socket(plain, server_hostname="localhost")

    def open(self) -> http.client.HTTPSConnection:
        """An HTTP connection from the client's address."""
        return http.client.HTTPSConnection("localhost", self.https, context=self.trusting, timeout=DEADLINE_S, source_address=(CLIENT, 0))

    def ask(self, method: str, path: str, body: bytes | None = None, **more: str) -> tuple[int, bytes]:
        """Status and body of one request with the key."""
        sent = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"} | more
        with closing(self.open()) as connection:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.read()


@contextmanager
def running(command: list[str], folder: Path, env: dict[str, str]) -> Iterator[None]:
    """A process as long as the block lasts."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """A service with one key behind nginx with the shipped file."""
    nginx, openssl = (shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in ("nginx", "openssl"))
    if nginx is None or openssl is None:
        missing("nginx and openssl")
    folder = tmp_path_factory.mktemp("nginx")
    settings = replace(spaced_in(folder), slack_signing_secret=SECRET, trusted_proxies=("127.0.0.1",), drain_seconds=0)
    context = build_context(settings)
    with closing(context.store) as store:
        settings.data_dir.mkdir()
        store.migrate()
        token = make_key(context, "team", "proxied", ["read", "write", "admin"], "never")[1]
    gunicorn = [sys.executable, *PATIENT_GUNICORN]
    environment = {**os.environ, **to_env(settings), "PYTHONPATH": str(ROOT)}
    found = Proxied(find_free_port(), find_free_port(), _certified(openssl, folder), token)
    _configure(folder, found, settings)
    with running(gunicorn, folder, environment), running([nginx, "-p", str(folder), "-c", str(folder / "nginx.conf")], folder, environment):
        wait_for(lambda: status(settings, "/healthz") == 200, "the service to answer")
        wait_for(lambda: _listens(found.https), "nginx to listen")
        yield found


def _certified(openssl: str, folder: Path) -> ssl.SSLContext:
    """A certificate for localhost, and the client's context that trusts it."""
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    places = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    subprocess.run([openssl, *made, *places], check=True, capture_output=True, timeout=DEADLINE_S)
    return ssl.create_default_context(cafile=folder / "certificate.pem")


def _configure(folder: Path, found: Proxied, settings: Settings) -> None:
    """The shipped file with the places that it says are to be set, and ports that need no privilege."""
    text = SHIPPED.read_text(encoding="utf-8")
    for shipped, here in {
        "127.0.0.1:8080": f"127.0.0.1:{settings.port}",
        "outlay.example.com": "localhost",
        "/etc/nginx/outlay/": f"{folder}/",
        "listen 443 ": f"listen 127.0.0.1:{found.https} ",
        "listen 80;": f"listen 127.0.0.1:{found.http};",
    }.items():
        assert shipped in text
        text = text.replace(shipped, here)
    (folder / "outlay.conf").write_text(text, encoding="utf-8")
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder, user=user), encoding="utf-8")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_slow_clients_do_not_reach_the_service(proxied: Proxied) -> None:
    """Dozens of unfinished heads and bodies, and others are answered; nginx gives an unfinished head up by itself."""
    body = b"POST /v1/estimate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
    with ExitStack() as stack:
        slow = [stack.enter_context(proxied.connect()) for _ in range(60)]
        for number, connection in enumerate(slow):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHo" if number % 2 else body)
        assert [proxied.ask("GET", path)[0] for path in ("/healthz", "/v1/offers?limit=1")] == [200, 200]
        assert slow[1].recv(1000)[:12] in (b"", b"HTTP/1.1 408")


def test_a_connection_is_kept_for_many_requests(proxied: Proxied) -> None:
    """On both sides of the proxy, beyond the time and number after which the service gives a connection up."""
    with closing(proxied.open()) as connection:
        for _ in range(200):
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)


def test_the_clients_address_is_what_the_proxy_saw(proxied: Proxied) -> None:
    """The audit trail has it, whatever the client claims."""
    program = b'{"name": "p", "budget_usd": 1}'
    claimed = {"X-Forwarded-For": "203.0.113.9"}
    assert proxied.ask("POST", "/v1/track/programs", program, **claimed)[0] == 201
    entries = json.loads(proxied.ask("GET", "/v1/audit")[1])["items"]
    assert {entry["address"] for entry in entries if entry["via"] == "http"} == {CLIENT}


def test_signed_requests_of_slack_pass_unchanged(proxied: Proxied) -> None:
    """A signature holds behind the proxy, and a changed one does not."""
    body = b"command=%2Foutlay&text=help&team_id=T1&channel_id=C1&user_id=U1&response_url=http%3A%2F%2F127.0.0.1%3A9%2F"
    signed = headers(time.time(), body)
    assert proxied.ask("POST", "/slack/commands", body, **signed)[0] == 200
    assert proxied.ask("POST", "/slack/commands", body + b"x", **signed)[0] == 401


def test_large_bodies_are_taken_up_to_the_routes_limit(proxied: Proxied) -> None:
    """15 MiB reach the service, which takes them for its workers; beyond 16 MiB the proxy refuses."""
    path = "/v1/track/imports?kind=sacct"
    status_, answer = proxied.ask("POST", path, bytes(15 * MIB), **{"Content-Type": "text/plain"})
    assert (status_, b'"state"' in answer) == (202, True)
    assert proxied.ask("POST", path, bytes(17 * MIB), **{"Content-Type": "text/plain"})[0] == 413


def test_plain_http_leads_to_tls_and_metrics_stay_inside(proxied: Proxied) -> None:
    """A redirection that keeps the method, and 403 for what is for operators."""
    with closing(http.client.HTTPConnection("127.0.0.1", proxied.http, timeout=DEADLINE_S)) as connection:
        connection.request("POST", "/v1/estimate", b"{}", {"Host": "localhost"})
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Location"]) == (308, "https://localhost/v1/estimate")
    assert proxied.ask("GET", "/metrics")[0] == 403
