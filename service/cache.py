"""A cache that never raises: Redis when configured, else the process's memory."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from service.config import Settings
from service.serialization import to_json

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)

TIMEOUT_S = 0.25
"""With redis-py's defaults a GET on a hung server takes a minute."""
BREAKER_S = 5.0
"""Pause after a failure of Redis [s], so that an outage costs one timeout and not one for each request."""
MEMORY_ENTRIES = 10_000
MEMORY_BYTES = 64 * 2**20
"""Of all values in one process: pages keep answers and pictures for a minute, each up to a megabyte."""
COUNT = """
local counted = redis.call("INCRBY", KEYS[1], ARGV[2])
if redis.call("PTTL", KEYS[1]) < 0 then redis.call("EXPIRE", KEYS[1], ARGV[1]) end
return {counted, redis.call("PTTL", KEYS[1])}
"""
"""One round trip; the counter always has an expiry."""
COUNTERS_DIR = "_OUTLAY_COUNTERS_DIR"
"""Variable that `outlay serve` sets for its processes: the directory of a FileCounter."""
_COUNT = struct.Struct("<dq")
_Answer = TypeVar("_Answer")


class Cache(Protocol):
    """Bytes by key with a time to live. No method raises because of the cache."""

    def get(self, key: str) -> bytes | None:
        """The value, or None where it is unknown, expired or the cache is unavailable."""

    def set(self, key: str, value: bytes, ttl_s: float) -> None:
        """Store `value` for `ttl_s` seconds, if possible."""

    def count(self, key: str, window_s: int, amount: int = 1) -> tuple[int, float] | None:
        """Add `amount` to `key`'s count: the count in its window, and the window's remaining time [s].

        The first count begins a window. None where the cache is unavailable.
        """

    def ping(self) -> bool:
        """Whether the cache answers right now."""


class MemoryCache:
    """The embedded cache in one process's memory; the least recently used entry is dropped first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """The value, or None where it is unknown or expired."""
        with self._lock:
            until, value = self._entries.get(key, (0.0, b""))
            if until <= self._clock():
                self._drop(key)
                return None
            self._entries.move_to_end(key)
            return value

    def set(self, key: str, value: bytes, ttl_s: float) -> None:
        """Store `value` for `ttl_s` seconds."""
        with self._lock:
            self._keep(key, self._clock() + ttl_s, value)

    def count(self, key: str, window_s: int, amount: int = 1) -> tuple[int, float]:
        """Add `amount` to `key`'s count: the count in its window, and the window's remaining time [s]."""
        with self._lock:
            now = self._clock()
            until, value = self._entries.get(key, (0.0, b""))
            until, counted = (until, int(value) + amount) if until > now else (now + window_s, amount)
            self._keep(key, until, str(counted).encode())
            # A sum of two clock readings may be rounded up.
            return counted, min(until - now, window_s)

    def _keep(self, key: str, until: float, value: bytes) -> None:
        self._drop(key)
        if len(value) > MEMORY_BYTES:
            return
        self._entries[key] = (until, value)
        self._bytes += len(value)
        while len(self._entries) > MEMORY_ENTRIES or self._bytes > MEMORY_BYTES:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: str) -> None:
        _, value = self._entries.pop(key, (0.0, b""))
        self._bytes -= len(value)

    def ping(self) -> bool:
        """True: memory is always available."""
        return True


class FileCounter:
    """Counts over the processes of one machine, in a file for each key. The directory should be in memory."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock  # of the machine, not of a process

    def count(self, key: str, window_s: int, amount: int = 1) -> tuple[int, float]:
        """Add `amount` to `key`'s count: the count in its window, and the window's remaining time [s].

        Raises OSError where the directory is away.
        """
        path = self._directory / hashlib.sha256(key.encode()).hexdigest()
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            content = os.pread(handle, _COUNT.size, 0)
            until, counted = _COUNT.unpack(content) if len(content) == _COUNT.size else (0.0, 0)
            now = self._clock()
            until, counted = (until, counted + amount) if until > now else (now + window_s, amount)
            os.pwrite(handle, _COUNT.pack(until, counted), 0)
            return counted, min(until - now, window_s)
        finally:
            os.close(handle)


class RedisCache:
    """The shared cache. A failure opens a circuit breaker for `BREAKER_S` seconds, in which Redis is not called."""

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._clock = clock
        self._closed_until = 0.0
        self._client: Redis | None = None

    def get(self, key: str) -> bytes | None:
        """The value, or None where it is unknown, expired or Redis fails."""
        found = self._try(lambda redis: redis.get(f"outlay:{key}"), None)
        return found if isinstance(found, bytes) else None

    def set(self, key: str, value: bytes, ttl_s: float) -> None:
        """Store `value` for `ttl_s` seconds (whole milliseconds, at least one), if Redis works."""
        self._try(lambda redis: redis.set(f"outlay:{key}", value, px=max(1, round(ttl_s * 1000))), None)

    def count(self, key: str, window_s: int, amount: int = 1) -> tuple[int, float] | None:
        """Add `amount` to `key`'s count over all processes: the count in its window, and the window's remaining time [s]; None if Redis
        fails."""
        found = self._try(lambda redis: redis.eval(COUNT, 1, f"outlay:{key}", window_s, amount), None)
        return (int(found[0]), int(found[1]) / 1000) if isinstance(found, list) else None

    def ping(self) -> bool:
        """Whether Redis answers; False without a call while the breaker is open."""
        return self._try(lambda redis: bool(redis.ping()), other=False)

    def _try(self, ask: Callable[[Redis], _Answer], other: _Answer) -> _Answer:
        from redis.exceptions import RedisError

        if self._clock() < self._closed_until:
            return other
        try:
            return ask(self._connected())
        except (RedisError, OSError) as error:
            self._closed_until = self._clock() + BREAKER_S
            log.warning("cache out of reach, going on without it for %s s: %s", BREAKER_S, error)
            return other

    def _connected(self) -> Redis:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        if self._client is None:
            limits = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S, "retry": Retry(NoBackoff(), 0)}
            self._client = Redis.from_url(self._url, **limits)
        return self._client


def remembered(cache: Cache, key: str, ttl_s: float, make: Callable[[], Any]) -> Any:
    """What JSON holds of a value, kept under `key` or else made now and kept for `ttl_s` seconds."""
    kept = cache.get(key)
    if kept is None:
        kept = to_json(make()).encode()
        cache.set(key, kept, ttl_s)
    return json.loads(kept)


def make_cache(settings: Settings) -> Cache:
    """The cache of these settings."""
    return RedisCache(settings.redis_url) if settings.redis_url else MemoryCache()
