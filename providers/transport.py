"""Connections with a deadline for the whole call, from name lookup to the last byte.

urllib3 bounds each wait separately: a silent resolver, a host of ten dead addresses or a server that sends one byte every few seconds
would hold a call for minutes.
"""

from __future__ import annotations

import http.client
import io
import math
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Thread
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, HTTPError
from urllib3.poolmanager import PoolManager, ProxyManager

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def deadline_at(deadline: float) -> Iterator[None]:
    """Context in which connections of a TimedAdapter end at `deadline` (time.monotonic) [s]."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def remaining_s() -> float:
    """Time until the deadline [s]. Raises TimeoutError when it has passed."""
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    return left


class _TimedFile(io.RawIOBase):
    """The reading end of a socket; a read waits for the socket's timeout, at most until the deadline."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._file = sock.makefile("rb", buffering=0)
        self._most_s = sock.gettimeout() or math.inf

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        wait = min(self._most_s, remaining_s())
        self._sock.settimeout(None if math.isinf(wait) else wait)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class _TimedSocket:
    """The part of a socket that http.client reads from."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedFile(self._sock))


class _TimedResponse(http.client.HTTPResponse):
    """A response whose head and body are read before the deadline."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(_TimedSocket(sock), *args, **kwargs)  # type: ignore[arg-type]  # it calls makefile and nothing else


class _TimedConnection(HTTPConnection):
    response_class = _TimedResponse

    def _new_conn(self) -> socket.socket:
        """A connected socket. A thread connects: name lookup has no timeout, and each address has its own."""
        connected: Future[socket.socket] = Future()
        Thread(target=_connect, args=(super()._new_conn, connected), daemon=True).start()
        try:
            return connected.result(min(self.timeout or math.inf, remaining_s(), 3600))
        except TimeoutError as error:
            if not connected.cancel():
                return connected.result()
            raise ConnectTimeoutError(self, f"no connection to {self.host} in time") from error


class _TimedTlsConnection(_TimedConnection, HTTPSConnection):
    pass


def _connect(connect: Any, connected: Future[socket.socket]) -> None:
    try:
        sock = connect()
    except (OSError, HTTPError, ValueError) as error:
        if connected.set_running_or_notify_cancel():
            connected.set_exception(error)
        return
    if connected.set_running_or_notify_cancel():
        connected.set_result(sock)
    else:
        sock.close()


class _TimedPool(HTTPConnectionPool):
    ConnectionCls = _TimedConnection


class _TimedTlsPool(HTTPSConnectionPool):
    ConnectionCls = _TimedTlsConnection


POOLS = {"http": _TimedPool, "https": _TimedTlsPool}


class TimedAdapter(HTTPAdapter):
    """Adapter of requests whose connections end at the deadline of `deadline_at`, through proxies too."""

    poolmanager: PoolManager

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """As in requests, with timed pools."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> ProxyManager:
        """As in requests, with timed pools."""
        manager: ProxyManager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = POOLS
        return manager
