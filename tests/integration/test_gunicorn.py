"""The HTTP shell under real gunicorn processes: what only sockets and several processes can show."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from service.api.http.web_worker.gunicorn_worker import QUEUED_PER_THREAD
from service.domain.metrics import REQUESTS_WAITING
from tests.support.patience import CLIENT_WAITS
from tests.support.probe_app import WAITS
from tests.support.servers import POLL_S, find_free_port

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120
"""Far longer than a busy machine takes [s]."""
HEAD_AND_BODY = ("service.api.http.web_worker.arriving_requests.HEAD_S", "service.api.http.request_body.STALL_S")
PARTS = ("service.api.http.metrics.DEADLINE_S", "service.api.resources.operations.health.DEADLINE_S")
ECHO = "/v1/probe/echo"
Start = Callable[..., "Server"]


class Server:
    """A gunicorn process on a loopback port of its own."""

    def __init__(
        self, folder: Path, workers: int, threads: int, drain_s: float, wait_s: float, own_thread: str = "", stall_s: float = PATIENCE_S
    ) -> None:
        self.port = find_free_port()
        self.folder = folder
        metrics = folder / "metrics"
        metrics.mkdir(exist_ok=True)
        waits = dict.fromkeys((*CLIENT_WAITS, *PARTS), PATIENCE_S) | dict.fromkeys(HEAD_AND_BODY, stall_s)
        self.environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(metrics), WAITS: json.dumps(waits), "PROBE_PIPES": str(folder)}
        self.command = [sys.executable, "-m", "gunicorn", "tests.support.probe_app:build()", f"--bind=127.0.0.1:{self.port}"]
        self.command += [
            f"--workers={workers}",
            f"--threads={threads}",
            "--worker-class=service.api.http.web_worker.gunicorn_worker.ProblemWorker",
        ]
        self.command += ["--limit-request-field_size=16380", "--no-control-socket"]
        self.command += [f"--graceful-timeout={PATIENCE_S}", f"--error-logfile={folder / 'errors.log'}", f"--config={folder / 'hooks.py'}"]
        (folder / "hooks.py").write_text(
            f"def post_fork(server, worker):\n    worker.drain_s, worker.wait_s = {drain_s}, {wait_s}\n"
            "from service.api.http.web_worker import gunicorn_worker\n"
            f"gunicorn_worker.OWN_THREAD_PATHS += ({own_thread.encode()!r},)\n"
        )
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start it and wait until it answers."""
        process = subprocess.Popen(self.command, cwd=ROOT, env=self.environment, stderr=subprocess.DEVNULL)
        eventually(lambda: self.get("/healthz")[0] == 200)
        return process

    def stop(self) -> int:
        """SIGTERM, and the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def connect(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        """Status and body of a GET."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as connection:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def send(self, *parts: bytes) -> tuple[int, dict[str, str], dict[str, object]]:
        """Status, headers and problem of what the server answers to raw bytes."""
        with self.connect() as connection:
            for part in parts:
                connection.sendall(part)
            return answer_on(connection)


def answer_on(connection: socket.socket) -> tuple[int, dict[str, str], dict[str, object]]:
    """The response that a connection holds, read as far as it says."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return answer.status, dict(answer.getheaders()), json.loads(answer.read())


def eventually(happened: Callable[[], bool]) -> None:
    """Ask until it has happened; fail when it does not within a time no healthy machine needs."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        with suppress(OSError):
            if happened():
                return
        time.sleep(POLL_S)  # the server needs the processor
    pytest.fail("it never happened")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers and stops them at the end."""
    servers: list[Server] = []

    def begin(workers: int = 1, threads: int = 2, drain_s: float = 0.0, wait_s: float = PATIENCE_S, **options: Any) -> Server:
        servers.append(Server(tmp_path, workers, threads, drain_s, wait_s, **options))
        return servers[-1]

    yield begin
    for server in servers:
        if server.process.poll() is None:
            server.process.terminate()
            server.process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server, of one worker with two threads, that those tests share which leave it as it was: each start takes seconds."""
    server = Server(tmp_path_factory.mktemp("running"), workers=1, threads=2, drain_s=0.0, wait_s=PATIENCE_S)
    yield server
    server.stop()


def head(method: str, path: str, *lines: str) -> bytes:
    """The head of a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode("latin-1")


SILENT_BODY = head("POST", ECHO, "Content-Type: application/json", "Content-Length: 100") + b"{"
SILENT_HEAD = b"GET /healthz HTTP/1.1\r\n"


def is_problem(answer: tuple[int, dict[str, str], dict[str, object]], status: int) -> None:
    """The answer is a problem of that status, with its request id in header and body."""
    found, headers, body = answer
    assert (found, body["status"], headers["Content-Type"]) == (status, status, "application/problem+json")
    assert headers["X-Request-Id"] == body["request_id"]


def test_refusals_on_the_wire_are_problems(running: Server) -> None:
    """Chunked and 20 MB bodies, long ids, and what gunicorn itself cannot parse: all answered, all alike."""
    server = running
    content = "Content-Type: application/json"
    is_problem(server.send(head("POST", ECHO, content, "Transfer-Encoding: chunked"), b"2\r\n{}\r\n0\r\n\r\n"), 411)
    is_problem(server.send(head("POST", ECHO, content, "Content-Length: 20000000"), bytes(20_000_000)), 413)
    is_problem(server.send(head("GET", "/healthz", f"X-Request-Id: {'x' * 10_000}")), 400)
    is_problem(server.send(head("GET", "/healthz", "X-Request-Id: a\rb")), 400)
    is_problem(server.send(head("GET", "/healthz", f"X-Long: {'x' * 20_000}")), 431)
    is_problem(server.send(head("GET", f"/{'x' * 9000}")), 414)
    is_problem(server.send(b"NONSENSE\r\n\r\n"), 400)
    is_problem(server.send(head("POST", ECHO, content, "Content-Length: 4", "Content-Length: 5"), b"{}"), 400)


def silent_clients(server: Server, open_connections: ExitStack) -> list[socket.socket]:
    """Far more bodies and heads that do not go on than there are threads."""
    slow = []
    for begun in 20 * (SILENT_BODY, SILENT_HEAD):
        slow.append(open_connections.enter_context(server.connect()))
        slow[-1].sendall(begun)
    return slow


def test_slow_clients_hold_no_thread(running: Server) -> None:
    """A good request is answered while they are waited for, which takes longer than a request may wait for a thread."""
    with ExitStack() as open_connections:
        silent_clients(running, open_connections)
        assert running.get("/v1/probe/items")[0] == 200


def test_each_slow_client_learns_that_it_took_too_long(start: Start) -> None:
    with ExitStack() as open_connections:
        for connection in silent_clients(start(stall_s=3.0), open_connections):
            is_problem(answer_on(connection), 408)


def test_a_request_may_arrive_byte_by_byte_and_two_at_once(running: Server) -> None:
    """How a request is cut into packets does not matter, nor that the next one follows at once."""
    server = running
    body = b'{"method": "lora"}'
    request = head("POST", ECHO, "Content-Type: application/json", f"Content-Length: {len(body)}") + body
    last = request.replace(b"Host:", b"Connection: close\r\nHost:")
    with server.connect() as connection:
        for byte in request + request + last[:20]:
            connection.sendall(bytes([byte]))
        connection.sendall(last[20:])
        with connection.makefile("rb") as stream:
            answers = stream.read()
        assert (answers.count(b"HTTP/1.1 200 "), answers.count(b'"lora"')) == (3, 3)
    interim = request.replace(b"Host:", b"Expect: 100-continue\r\nHost:")
    with server.connect() as connection:
        connection.sendall(interim[: -len(body)])
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert answer_on(connection)[::2] == (200, {"method": "lora"})


def test_a_connection_serves_any_number_of_requests(running: Server) -> None:
    """More requests on one kept-alive connection than Python allows nested calls."""
    with closing(http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)) as connection:
        for _ in range(sys.getrecursionlimit() + 100):
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)


def test_a_full_server_refuses_at_once_and_still_answers_operators_and_slack(start: Start) -> None:
    """With all threads busy and the queue full, a request gets a 503 with Retry-After; health, metrics and Slack are answered."""
    server = start(workers=1, threads=1)
    release = server.folder / "release"
    for pipe in (server.folder / "entered", release):
        os.mkfifo(pipe)
    with ExitStack() as open_connections:
        held = [open_connections.enter_context(server.connect()) for _ in range(1 + QUEUED_PER_THREAD // 2)]
        held[0].sendall(head("GET", "/v1/probe/hold"))
        assert (server.folder / "entered").read_text() == "here"
        for connection in held[1:]:
            connection.sendall(head("GET", "/v1/probe/items"))
        full = f"{REQUESTS_WAITING.name} {QUEUED_PER_THREAD / 2}"  # before, this client's next request takes a place, and waits itself
        eventually(lambda: full in server.get("/metrics")[1].decode().splitlines())
        assert server.get("/v1/probe/items")[0] == 503
        refusal = server.send(head("GET", "/v1/probe/items"))
        is_problem(refusal, 503)
        assert refusal[1]["Retry-After"] == "1"
        assert [server.get(path)[0] for path in ("/healthz", "/readyz", "/metrics")] == [200] * 3
        is_problem(server.send(head("POST", "/slack/commands", "Content-Length: 2"), b"{}"), 404)
        is_problem(server.send(head("POST", "/slack/commands", "Content-Length: 2", "Expect: 100-continue"), b"{}"), 503)
        release.write_text("go")
        assert [answer_on(connection)[0] for connection in held] == [200] * len(held)


def test_the_queue_of_a_path_with_a_thread_of_its_own_is_bounded(start: Start) -> None:
    """Beyond it requests get a 503 with Retry-After at once; other paths are answered, and what waits is served."""
    server, too_many = start(own_thread="/v1/probe/hold"), 5
    for pipe in ("entered", "release"):
        os.mkfifo(server.folder / pipe)
    with ExitStack() as open_connections:
        held = [open_connections.enter_context(server.connect()) for _ in range(QUEUED_PER_THREAD + too_many)]
        for connection in held:
            connection.sendall(head("GET", "/v1/probe/hold"))
        eventually(lambda: len(select.select(held, [], [], 0)[0]) == too_many)
        refused = select.select(held, [], [], 0)[0]
        for connection in refused:
            refusal = answer_on(connection)
            is_problem(refusal, 503)
            assert refusal[1]["Retry-After"] == "1"
        assert [server.get(path)[0] for path in ("/healthz", "/v1/probe/items")] == [200] * 2
        for _ in range(QUEUED_PER_THREAD):
            assert (server.folder / "entered").read_text() == "here"
            (server.folder / "release").write_text("go")
        assert {answer_on(connection)[0] for connection in held if connection not in refused} == {200}


def test_a_request_that_waits_too_long_for_a_thread_is_refused(start: Start) -> None:
    """With a 503 and Retry-After, though there is a place in the queue and no thread gets free; what comes later is served."""
    server = start(workers=1, threads=1, wait_s=3.0)
    release = server.folder / "release"
    for pipe in (server.folder / "entered", release):
        os.mkfifo(pipe)
    with server.connect() as holding:
        holding.sendall(head("GET", "/v1/probe/hold"))
        assert (server.folder / "entered").read_text() == "here"
        refusal = server.send(head("GET", "/v1/probe/items"))
        is_problem(refusal, 503)
        assert refusal[1]["Retry-After"] == "1"
        release.write_text("go")
        assert answer_on(holding)[0] == 200
    eventually(lambda: server.get("/v1/probe/items")[0] == 200)  # on a busy machine this one may wait too long as well


def test_clients_that_keep_answered_connections_open_hold_nobody_up(running: Server) -> None:
    """The end of a connection is waited for beside other work: one after the other, these would take longer than the patience here."""
    with ExitStack() as open_connections:
        for _ in range(PATIENCE_S):
            connection = open_connections.enter_context(running.connect())
            connection.sendall(head("GET", "/healthz", "Connection: close"))
            assert answer_on(connection)[0] == 200
        assert running.get("/healthz")[0] == 200


def test_sums_are_right_over_processes_kills_and_restarts(start: Start) -> None:
    """Every request counts once, though workers are killed and the whole server comes back; the files do not grow in number."""
    server = start(workers=2)

    def counted() -> int:
        text = server.get("/metrics")[1].decode()
        line = re.search(r'_count\{.*"200".*/v1/probe/items"\} ([\d.]+)', text)
        return int(float(line[1])) if line else 0

    def ask(times: int) -> None:
        for _ in range(times):
            assert server.get("/v1/probe/items")[0] == 200

    ask(40)
    assert counted() == 40
    files = sorted(server.folder.glob("metrics/*.db"))
    for worker in workers_of(server.process.pid):
        os.kill(worker, signal.SIGKILL)
        eventually(lambda gone=worker: gone not in workers_of(server.process.pid) and len(workers_of(server.process.pid)) == 2)
    eventually(lambda: server.get("/healthz")[0] == 200)
    ask(30)
    assert counted() == 70
    assert server.stop() == 0
    server.process = server.start()
    ask(10)
    assert counted() == 80
    assert len(list(server.folder.glob("metrics/*.db"))) <= max(len(files), 2)


def workers_of(parent: int) -> list[int]:
    """The living worker processes of a gunicorn master."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, father = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(father) == parent and state != "Z":
            found.append(int(stat.parent.name))
    return found


def test_sigterm_lets_a_request_in_flight_finish(start: Start) -> None:
    """The answer arrives whole although it was still being worked on when the order to stop came, and the exit is clean."""
    server = start(drain_s=0.5)
    entered, release = server.folder / "entered", server.folder / "release"
    for pipe in (entered, release):
        os.mkfifo(pipe)
    with server.connect() as connection:
        connection.sendall(head("GET", "/v1/probe/hold"))
        assert entered.read_text() == "here"
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: "Handling signal: term" in (server.folder / "errors.log").read_text())
        release.write_text("go")
        status, _, body = answer_on(connection)
    assert (status, body) == (200, {"released": "go"})
    assert server.process.wait(PATIENCE_S) == 0


def test_readiness_goes_before_connections_do(start: Start) -> None:
    """After SIGTERM new connections are still taken: they learn that this process is not ready, and get no kept-alive connection."""
    server = start(workers=2, drain_s=PATIENCE_S)
    with server.connect() as before, server.connect() as during:
        before.sendall(head("GET", "/v1/probe/items"))
        assert answer_on(before)[1]["Connection"] == "keep-alive"
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: server.get("/readyz")[0] == 503)
        for connection in (before, during):
            connection.sendall(head("GET", "/v1/probe/items"))
            status, headers, _ = answer_on(connection)
            assert (status, headers["Connection"]) == (200, "close")
    for worker in workers_of(server.process.pid):  # its drain takes longer than any test
        os.kill(worker, signal.SIGKILL)


@pytest.mark.soak
def test_sigterm_resets_no_connection(start: Start) -> None:
    """Under clients that connect anew and clients that keep their connections: each request is answered whole, or no connection is made."""
    outcomes: Counter[str] = Counter()
    server = start(workers=2, drain_s=1.0)
    for round_number in range(4):
        if round_number:
            server.process = server.start()
        stopped = threading.Event()
        clients = [threading.Thread(target=_ask_on, args=(server, outcomes, stopped, number % 2 == 0), daemon=True) for number in range(8)]
        for client in clients:
            client.start()
        eventually(lambda done=100 * (round_number + 1): outcomes["answered"] >= done)
        assert server.stop() == 0
        stopped.set()
        for client in clients:
            client.join(PATIENCE_S)
    assert set(outcomes) <= {"answered", "refused"}, outcomes


def _ask_on(server: Server, outcomes: Counter[str], stopped: threading.Event, keep: bool) -> None:
    """Ask until the server is gone; count what happens by its kind."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    while not stopped.is_set():
        try:
            connection.request("GET", "/healthz", headers={} if keep else {"Connection": "close"})
            outcomes["answered" if connection.getresponse().read() else "empty"] += 1
        except ConnectionRefusedError:
            outcomes["refused"] += 1
            connection.close()
            stopped.wait(POLL_S)
        except (OSError, http.client.HTTPException) as error:
            outcomes[type(error).__name__] += 1
            connection.close()
    connection.close()
