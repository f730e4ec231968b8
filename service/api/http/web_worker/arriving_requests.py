"""Requests while they arrive: their bytes are collected without a thread until head and body are complete.

A thread that reads from a socket waits as long as the client likes; a client that sends a byte now and then would hold it. Here a slow
client holds a buffer and a file descriptor, for a limited time.
"""

from __future__ import annotations

import hashlib
import re
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from service.api.http import request_body

ARRIVED_S: ContextVar[float | None] = ContextVar("ARRIVED_S", default=None)
"""When the request that this thread serves was complete, by the monotonic clock [s]; None where it was not collected here."""
HEAD_S = 5.0
"""From a connection's first chance to send to the end of its request's head [s]."""
MAX_HEAD_BYTES = 64 * 1024
MAX_BUFFERED_BODY_BYTES = request_body.MIB
"""Longer bodies are read by the thread that serves the request."""
HEAD_END = b"\r\n\r\n"
_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,7})[ \t]*(?=\r\n)", re.IGNORECASE)
_AUTHORIZATION = re.compile(rb"\r\nauthorization:[ \t]*([^\r\n]+)", re.IGNORECASE)
_OF_BODIES = re.compile(rb"\r\n(?:content-length|transfer-encoding|expect):", re.IGNORECASE)
_EXPECT = re.compile(rb"\r\nexpect:", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class ArrivingRequest:
    """The bytes of one request so far.

    Attributes
    ----------
    connection : gunicorn's connection
    began_s, last_byte_s : float
        When the connection was ready for the request, and when it last sent something, by the monotonic clock [s].
    data : bytearray
        All bytes so far, of a request that follows at once too.
    length : int or None
        Bytes of head and body together; None while the head is incomplete. A body that is not waited for counts 0.
    is_watched : bool
        Whether the worker waits for more of it; most requests are there as a whole when they are first read.
    """

    connection: Any
    began_s: float = field(default_factory=time.monotonic)
    last_byte_s: float = 0.0
    data: bytearray = field(default_factory=bytearray)
    length: int | None = None
    is_watched: bool = False

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        searched = max(len(self.data) - len(HEAD_END) + 1, 0)
        self.data += data
        self.last_byte_s = time.monotonic()
        if self.length is None:
            end = self.data.find(HEAD_END, searched)
            self.length = None if end < 0 else end + len(HEAD_END) + _awaited_body_bytes(bytes(self.data[: end + 2]))

    @property
    def is_complete(self) -> bool:
        """Whether head and body are there."""
        return self.length is not None and len(self.data) >= self.length

    @property
    def is_whole(self) -> bool:
        """Whether nothing more of a complete request is to come: no body that was not waited for."""
        head = bytes(self.data[: self.data.find(HEAD_END) + 2])
        said, stated = _OF_BODIES.findall(head), _CONTENT_LENGTH.findall(head)
        return not said or (len(said) == len(stated) == 1 and int(stated[0]) <= MAX_BUFFERED_BODY_BYTES)

    @property
    def is_too_long(self) -> bool:
        """Whether the head exceeds every limit."""
        return self.length is None and len(self.data) > MAX_HEAD_BYTES

    @property
    def path(self) -> bytes:
        """Path of the request line, without its query; empty where there is none."""
        words = bytes(self.data[:256]).split(b" ", 2)
        return words[1].partition(b"?")[0] if len(words) == 3 else b""

    @property
    def client(self) -> str:
        """A digest of the API key that the head states; empty where it states none."""
        stated = _AUTHORIZATION.search(bytes(self.data[: self.data.find(HEAD_END) + 2]))
        return hashlib.sha256(stated[1]).hexdigest() if stated else ""

    def is_late(self, now_s: float) -> bool:
        """Whether the client has taken longer than it may."""
        if self.length is None:
            return now_s - self.began_s > HEAD_S
        return now_s - self.last_byte_s > request_body.STALL_S or now_s - self.began_s > request_body.MAX_BODY_S


def _awaited_body_bytes(head: bytes) -> int:
    """Length of the body to wait for; 0 where it is long, unknown, or sent only after an interim answer."""
    stated = _CONTENT_LENGTH.findall(head)
    if len(stated) != 1 or _EXPECT.search(head):
        return 0
    length = int(stated[0])
    return length if length <= MAX_BUFFERED_BODY_BYTES else 0
