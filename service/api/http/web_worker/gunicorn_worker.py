"""gunicorn's threaded worker: no client, and no flood of requests, holds what others need.

Set as `worker_class = "service.api.http.web_worker.gunicorn_worker.ProblemWorker"`, with `limit_request_field_size` at 16380 so that an
overlong request id is refused by the application, with its reasons. TLS is a proxy's work: this worker reads plain HTTP.
"""

from __future__ import annotations

import select
import selectors
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from gunicorn import util  # type: ignore[import-untyped]
from gunicorn.http import errors  # type: ignore[import-untyped]
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

from service.api.http.errors import CONTENT_TYPE, problem_body
from service.api.http.request_ids import HEADER, SECURITY_HEADERS, new_request_id
from service.api.http.web_worker.arriving_requests import ARRIVED_S, ArrivingRequest
from service.api.http.web_worker.draining import IS_DRAINING
from service.api.http.web_worker.fair_queue import FairQueue
from service.domain.metrics import REQUESTS_REFUSED, REQUESTS_RUNNING, REQUESTS_WAITING, THREADS
from service.runtime import metrics
from service.schemas import strict_json

# The first that fits counts; what is in none of them is our fault.
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (errors.InvalidResponseHeader, 500),
    (errors.InvalidResponseHeaderName, 500),
    (errors.LimitRequestLine, 414),
    (errors.LimitRequestHeaders, 431),
    (errors.ExpectationFailed, 417),
    (errors.UnsupportedTransferCoding, 501),
    (errors.ParseException, 400),
)
REFUSALS = {408: "slow", 431: "long_head", 503: "overload"}
"""Why a request is refused, as metrics name it, by the status of the answer."""
OWN_THREAD_PATHS = (b"/healthz", b"/readyz", b"/metrics", b"/slack/commands", b"/slack/interactions")
"""Paths with a thread of their own each, so that supervisors are answered whatever the other threads do, and Slack within its 3 s.

They wait neither for the database nor for a client: a request of which more is to come is served by the other threads.
"""
QUEUED_PER_THREAD = 32
"""Requests that may wait for each thread; more are refused, for their answers would come too late to be of use. Clients take turns."""
WAIT_S = 5.0
"""How long a request waits for a thread [s]: then it is refused too, as costly requests are fewer than there are places."""
RETRY_AFTER_S = 1
MAX_SHARE_PER_ADDRESS = 0.5
"""Part of a worker's connections that one address may hold in the midst of sending requests."""
LEAVE_TO_OTHERS_S = 0.002
"""A worker whose threads are all busy waits this long before it accepts, so that an idle worker accepts instead."""
OTHERS_BUSY_S = 0.05
"""A worker that was left a connection takes the other ones for idle only after this time [s]: to wait before each connection of a flood
would leave the rest, those for health among them, in the kernel."""
SWITCH_S = 0.0001
"""How long a thread computes before the interpreter lets another one run [s], 5 ms by default.

The main thread gives the interpreter up at each of the several system calls of a connection, and waits for it behind all threads that
compute: by default it then accepts and refuses fewer connections than a client can open, and health waits with them in the kernel.
"""
NOTIFY_S = 1.0
"""How often the arbiter sees that a worker lives [s]; it ends one that it has not seen for gunicorn's `timeout`, 30 s here."""
STOP_S = 2.0
"""How long a stopping worker waits for a connection's first byte [s], as gunicorn does for kept-alive ones."""
LINGER_S = 2.0
"""How long a connection that is done waits for its client to close it, so that the answer is not lost to a reset [s]."""
READ_BYTES = 64 * 1024


class ProblemWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """ThreadWorker that gives a request to a thread once all of it has arrived, and refuses what it cannot serve in time.

    All methods but `handle` and `handle_error` run in the worker's main thread. `drain_s`: how long connections are still taken after
    SIGTERM [s]; `wait_s`: how long a request waits for a thread [s]; `notify_s`: how often it shows the arbiter that it lives [s].
    """

    alive: bool
    sockets: list[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.drain_s = 0.0
        self.wait_s = WAIT_S
        self.notify_s = NOTIFY_S
        self._stops_at_s: float | None = None
        self._lingering: dict[Any, float] = {}
        self._arriving: set[ArrivingRequest] = set()
        self._arriving_of: Counter[str] = Counter()
        self._queue: FairQueue[Any] = FairQueue(self.cfg.threads, self.cfg.threads * QUEUED_PER_THREAD)
        self._own_waiting: Counter[bytes] = Counter()
        self._others_busy_until_s = 0.0
        self._notify_at_s = 0.0

    def init_process(self) -> None:
        """Create the threads that paths have of their own, and run."""
        sys.setswitchinterval(SWITCH_S)
        metrics.set_gauge(THREADS, self.cfg.threads)
        self._own_threads = {path: ThreadPoolExecutor(max_workers=1) for path in OWN_THREAD_PATHS}
        super().init_process()

    def handle_exit(self, _signal: int, _frame: Any) -> None:
        """SIGTERM: not ready from now on; answers end their connections, and new connections are taken until `drain_s` has passed."""
        if self._stops_at_s is None:
            IS_DRAINING.set()
            self.max_keepalived = 0
            self._stops_at_s = time.monotonic() + self.drain_s
            self.method_queue.defer(self._stop_accepting_when_drained)

    def notify(self) -> None:
        """Show the arbiter that this worker lives, once in `notify_s`: gunicorn would do so, by a system call, after all events."""
        now_s = time.monotonic()
        if now_s >= self._notify_at_s:
            self._notify_at_s = now_s + self.notify_s
            super().notify()

    def accept(self, listener: Any) -> None:
        """Accept a connection, unless a worker with an idle thread is there first."""
        leaves = self._queue.is_busy and self.cfg.workers > 1 and time.monotonic() > self._others_busy_until_s
        if leaves:
            time.sleep(LEAVE_TO_OTHERS_S)
        before = self.nr_conns
        super().accept(listener)
        if leaves and self.nr_conns > before:
            self._others_busy_until_s = time.monotonic() + OTHERS_BUSY_S

    def enqueue_req(self, conn: Any) -> None:
        """Begin to collect the connection's next request; gunicorn calls it where it would give the connection to a thread."""
        address = _address(conn)
        if self._arriving_of[address] >= MAX_SHARE_PER_ADDRESS * self.worker_connections:
            metrics.count(REQUESTS_REFUSED, "address")
            self._close(conn)
            return
        if not conn.initialized:
            conn.data_ready = True
            conn.init()
        conn.sock.settimeout(0)
        arriving = ArrivingRequest(conn)
        self._arriving.add(arriving)
        self._arriving_of[address] += 1
        if early := conn.parser.unreader.take_buffered():
            arriving.add(early)
        self._read(arriving)
        if arriving in self._arriving:
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._read, arriving))
            arriving.is_watched = True

    def murder_pending(self) -> None:
        """Give up requests that arrive too slowly, or have waited too long; gunicorn calls it after all events, at least every second."""
        super().murder_pending()
        self._stop_accepting_when_drained()
        self._serve_next()
        metrics.set_gauge(REQUESTS_RUNNING, self._queue.running)
        metrics.set_gauge(REQUESTS_WAITING, self._queue.waiting)
        now_s = time.monotonic()
        for connection in [connection for connection, until_s in self._lingering.items() if now_s > until_s]:
            self._end(connection)
        for arriving in [arriving for arriving in self._arriving if self._gives_up(arriving, now_s)]:
            self._stop_reading(arriving)
            if arriving.data:
                self._refuse(arriving.connection, 408)
            else:
                self._close(arriving.connection)

    def handle(self, conn: Any) -> Any:
        """Serve a complete request; its time counts from its arrival, the wait for a thread included."""
        ARRIVED_S.set(conn.arrived_s)
        return super().handle(conn)

    def finish_request(self, conn: Any, fs: Future[Any]) -> None:
        """Keep the connection for its next request, or end it without waiting for its client as gunicorn does."""
        if fs.cancelled() or fs.exception() or not fs.result():
            self._linger(conn)
        else:
            super().finish_request(conn, fs)

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: Exception) -> None:  # noqa: ARG002 - gunicorn's signature
        """Answer a request that could not be parsed."""
        request_id = new_request_id()
        status = next((status for kind, status in STATUSES if isinstance(exc, kind)), 500)
        fields = {"request_id": request_id, "status": status, "error": type(exc).__name__}
        if status == 500:
            self.log.error("cannot serve the request", exc_info=exc, extra={"fields": fields})
        else:
            self.log.warning("cannot read the request", extra={"fields": fields})
        self._write(client, answer(status, request_id))

    def _read(self, arriving: ArrivingRequest, _fileobj: Any = None) -> None:
        """Take what the connection has sent; serve the request once it is complete."""
        data = b""
        if not arriving.is_complete:
            try:
                data = arriving.connection.sock.recv(READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                self.log.debug("the client has gone")
            if not data:
                self._stop_reading(arriving)
                self._close(arriving.connection)
                return
            arriving.add(data)
        if arriving.is_complete:
            self._stop_reading(arriving)
            self._serve(arriving)
        elif arriving.is_too_long:
            self._stop_reading(arriving)
            self._refuse(arriving.connection, 431)

    def _serve(self, arriving: ArrivingRequest) -> None:
        """Give a complete request to a thread, or let it wait for one, or refuse it where too many wait."""
        connection = arriving.connection
        connection.parser.unreader.unread(bytes(arriving.data))
        connection.arrived_s = arriving.last_byte_s
        path = arriving.path
        if path in self._own_threads and arriving.is_whole:
            self._serve_by_own_thread(path, connection)
        elif self._queue.offer(arriving.client or _address(connection), connection):
            self._serve_next()
        else:
            self._refuse(connection, 503)

    def _serve_by_own_thread(self, path: bytes, connection: Any) -> None:
        """Give a request to its path's thread, or refuse it where too many wait for that."""
        if self._own_waiting[path] >= QUEUED_PER_THREAD:
            self._refuse(connection, 503)
            return
        self._own_waiting[path] += 1
        self._start(self._own_threads[path], connection, partial(self._finish_own, path))

    def _serve_next(self) -> None:
        """Refuse requests that have waited too long, and start others, as long as there are threads for them."""
        latest_s = time.monotonic() - self.wait_s
        for connection in self._queue.drop(lambda waiting: waiting.arrived_s < latest_s):
            self._refuse(connection, 503)
        while taken := self._queue.take():
            client, connection = taken
            self._start(self.tpool, connection, partial(self._finish, client))

    def _start(self, threads: ThreadPoolExecutor, connection: Any, finish: Callable[[Any, Future[Any]], None]) -> None:
        served = threads.submit(self.handle, connection)
        served.add_done_callback(lambda done: self.method_queue.defer(finish, connection, done))

    def _finish(self, client: str, connection: Any, done: Future[Any]) -> None:
        self._queue.done(client)
        self.finish_request(connection, done)
        self._serve_next()

    def _finish_own(self, path: bytes, connection: Any, done: Future[Any]) -> None:
        self._own_waiting[path] -= 1
        self.finish_request(connection, done)

    def _gives_up(self, arriving: ArrivingRequest, now_s: float) -> bool:
        """Whether a request is late, or its connection has sent nothing while the worker is stopping."""
        return arriving.is_late(now_s) or (not self.alive and not arriving.data and now_s - arriving.began_s > STOP_S)

    def _stop_reading(self, arriving: ArrivingRequest) -> None:
        self._arriving.remove(arriving)
        address = _address(arriving.connection)
        self._arriving_of[address] -= 1
        if not self._arriving_of[address]:
            del self._arriving_of[address]
        if arriving.is_watched:
            self.poller.unregister(arriving.connection.sock)

    def _refuse(self, connection: Any, status: int) -> None:
        """Answer without the application, and close."""
        metrics.count(REQUESTS_REFUSED, REFUSALS[status])
        request_id = new_request_id()
        self.log.warning("request refused", extra={"fields": {"request_id": request_id, "status": status, "address": _address(connection)}})
        self._write(connection.sock, answer(status, request_id))
        self._linger(connection)

    def _stop_accepting_when_drained(self) -> None:
        """Accept what the kernel has accepted already, and close the listening sockets: what would wait there for longer would be reset.

        gunicorn then ends the worker with its last connection.
        """
        if not self.alive or self._stops_at_s is None or time.monotonic() < self._stops_at_s:
            return
        self.set_accept_enabled(False)
        for listener in self.sockets:
            waiting = select.poll()
            waiting.register(listener, select.POLLIN)
            while waiting.poll(0):
                super().accept(listener)
            listener.close()
        self.sockets = []
        self.alive = False

    def _linger(self, connection: Any) -> None:
        """Send the end of our side, and read on until the client closes its own: closing with unread data would reset the connection."""
        try:
            connection.sock.settimeout(0)
            connection.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection)
            return
        self._lingering[connection] = time.monotonic() + LINGER_S
        self.poller.register(connection.sock, selectors.EVENT_READ, partial(self._drop_input, connection))

    def _drop_input(self, connection: Any, _fileobj: Any) -> None:
        try:
            data = connection.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end(connection)

    def _end(self, connection: Any) -> None:
        del self._lingering[connection]
        self.poller.unregister(connection.sock)
        self._close(connection)

    def _close(self, connection: Any) -> None:
        self.nr_conns -= 1
        connection.close()

    def _write(self, client: socket.socket, data: bytes) -> None:
        try:
            util.write_nonblock(client, data)
        except OSError:
            self.log.debug("the client has gone")


def answer(status: int, request_id: str) -> bytes:
    """A complete HTTP response with a problem as body."""
    body = problem_body(status, request_id=request_id)
    text = strict_json.dumps(body).encode()
    headers = [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(text))), (HEADER, request_id), ("Connection", "close")]
    if status == 503:
        headers.append(("Retry-After", str(RETRY_AFTER_S)))
    lines = [f"HTTP/1.1 {status} {body['title']}", *(f"{name}: {value}" for name, value in (*headers, *SECURITY_HEADERS))]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + text


def _address(connection: Any) -> str:
    """The client's address; empty for a Unix socket."""
    client = connection.client
    return str(client[0]) if isinstance(client, tuple) else ""
