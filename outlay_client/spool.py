"""Events on disk until they are acknowledged: files of at most 1,000 lines, each removed once the service has stored it.

Written lines reach the operating system at once and survive the process. They are synced to disk (fsync) when anything but progress is
written and when a file is full; a power failure may lose progress that the operating system had not yet written.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_LINES = 1000
"""Most events of a request."""
LINES, LOCK, REJECTED = ".jsonl", ".lock", "rejected.jsonl"
FREED = 0.9
"""Share of the size limit that thinning reduces to, so that it does not run for every event."""
PROGRESS = b'"type":"progress"'
MAX_REJECTED_BYTES = 16 * 2**20


@dataclass(slots=True, eq=False)
class Segment:
    """Events in the order of arrival: in a file, or in memory (`lines`) where no file can be written."""

    count: int
    size: int
    path: Path | None = None
    lines: list[bytes] | None = None

    def read(self) -> list[bytes]:
        """Its complete lines, without one that was cut off when its process was killed. Raises OSError."""
        if self.lines is not None or self.path is None:
            return self.lines or []
        return [line for line in self.path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


class Spool:
    """Segments of one process for one run. Not thread-safe: callers hold a lock.

    Files of ended processes of the same run are taken over; files of running processes are locked.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self.owner = f"{time.time_ns():016x}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.sealed: deque[Segment] = deque()
        self.active: Segment | None = None
        self.in_flight: Segment | None = None
        self.error = ""
        self._file = -1
        self._lock = -1
        self._number = 0

    @property
    def count(self) -> int:
        """Number of waiting events."""
        return sum(segment.count for segment in self._segments())

    @property
    def size(self) -> int:
        """Size of waiting events [bytes]."""
        return sum(segment.size for segment in self._segments())

    def _segments(self) -> list[Segment]:
        return [*self.sealed, self.active] if self.active else list(self.sealed)

    def open(self) -> None:
        """Create the folder and take over files of ended processes. Where the folder cannot be used, `error` gives the reason."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = _locked(self.folder / f"{self.owner}{LOCK}")
            self._adopt()
        except OSError as error:
            self.error = str(error)

    def append(self, lines: Sequence[bytes]) -> None:
        """Store events on disk, or in memory while that cannot be written. Thins the oldest progress above the size limit."""
        for begin in range(0, len(lines), MAX_LINES):
            self._append(lines[begin : begin + MAX_LINES])
        if self.size > self.max_bytes:
            self._thin()

    def take(self) -> Segment | None:
        """The oldest waiting events, no longer appended to; they stay until removed."""
        if not self.sealed:
            self._seal()
        self.in_flight = self.sealed[0] if self.sealed else None
        return self.in_flight

    def remove(self, segment: Segment) -> None:
        """Remove acknowledged events."""
        self.sealed.remove(segment)
        if segment.path is not None:
            _removed(segment.path)  # otherwise the next process sends it again, and the service counts it once

    def reject(self, lines: Sequence[bytes]) -> None:
        """Store rejected events for inspection. Raises OSError."""
        path = self.folder / REJECTED
        if path.exists() and path.stat().st_size > MAX_REJECTED_BYTES:
            raise OSError(f"{path} is full")
        with path.open("ab") as file:
            file.writelines(lines)

    def close(self) -> None:
        """Give up the files: what still waits in them is the next process's."""
        self._seal()
        if self._lock >= 0:
            if not any(segment.path for segment in self.sealed):
                _removed(self.folder / f"{self.owner}{LOCK}")
            os.close(self._lock)
            self._lock = -1

    def _append(self, lines: Sequence[bytes]) -> None:
        if self.active and self.active.count + len(lines) > MAX_LINES:
            self._seal()
        if not self._written(lines):
            if self.active and self.active.path:
                self._seal()
            self.active = self.active or Segment(0, 0, lines=[])
            self.active.lines = [*(self.active.lines or ()), *lines]
        assert self.active is not None
        self.active.count += len(lines)
        self.active.size += sum(map(len, lines))

    def _written(self, lines: Sequence[bytes]) -> bool:
        """Whether the lines were written to the active segment's file. A segment begun in memory stays there; the next one tries the disk
        again."""
        if self._lock < 0 or (self.active is not None and self.active.path is None):
            return False
        try:
            if self.active is None:
                self._begin()
            _write(self._file, b"".join(lines))
            if any(PROGRESS not in line for line in lines):
                os.fsync(self._file)
        except OSError as error:
            self.error = str(error)
            self._cut_back()
            return False
        self.error = ""
        return True

    def _begin(self) -> None:
        path = self.folder / f"{self.owner}-{self._number:06d}{LINES}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._number += 1
        self.active = Segment(0, 0, path=path)

    def _cut_back(self) -> None:
        """Truncate a partial write, so that its lines are in memory only."""
        if self._file >= 0 and self.active is not None:
            with contextlib.suppress(OSError):  # readers skip a cut-off line, and ids of complete lines count once
                os.ftruncate(self._file, self.active.size)

    def _seal(self) -> None:
        if self._file >= 0:
            with contextlib.suppress(OSError):  # best effort: the lines can be read either way
                os.fsync(self._file)
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = -1
        active, self.active = self.active, None
        if active and active.count:
            self.sealed.append(active)
        elif active and active.path:
            _removed(active.path)

    def _thin(self) -> None:
        """Drop every other progress event, oldest files first, until the size is within the limit. Other events are never dropped."""
        self._seal()
        for segment in list(self.sealed)[:-1]:
            if self.size <= self.max_bytes * FREED:
                return
            if segment is not self.in_flight:  # being sent, and perhaps stored already
                self._thin_one(segment)

    def _thin_one(self, segment: Segment) -> None:
        try:
            kept = _thinned(segment.read())
            if segment.path is not None:
                _replace(segment.path, kept)
        except OSError as error:
            self.error = str(error)
            return
        if segment.path is None:
            segment.lines = kept
        segment.count, segment.size = len(kept), sum(map(len, kept))
        if not kept:
            self.remove(segment)

    def _adopt(self) -> None:
        """Take over the files of ended processes: their locks are free."""
        left = {path.name.rsplit("-", 1)[0] for path in self.folder.glob(f"*-*{LINES}")}
        left |= {path.name.removesuffix(LOCK) for path in self.folder.glob(f"*{LOCK}")}
        for owner in sorted(left - {self.owner}):
            lock = _locked(self.folder / f"{owner}{LOCK}")
            if lock >= 0:
                for path in sorted(self.folder.glob(f"{owner}-*{LINES}")):
                    self._take_over(path)
                (self.folder / f"{owner}{LOCK}").unlink(missing_ok=True)
                os.close(lock)

    def _take_over(self, path: Path) -> None:
        own = self.folder / f"{self.owner}-{self._number:06d}{LINES}"
        self._number += 1
        path.rename(own)
        segment = Segment(0, own.stat().st_size, path=own)
        segment.count = len(segment.read())
        self.sealed.append(segment)


def _locked(path: Path) -> int:
    """File descriptor with the lock of this file, -1 where another process holds it. Raises OSError.

    The lock ends with its process and that process's forks.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return -1
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)  # another process has removed the file


def _removed(path: Path) -> None:
    with contextlib.suppress(OSError):  # a leftover file loses nothing
        path.unlink(missing_ok=True)


def _write(descriptor: int, data: bytes) -> None:
    """Write all data. Raises OSError, possibly after a partial write."""
    while data:
        data = data[os.write(descriptor, data) :]


def _thinned(lines: Sequence[bytes]) -> list[bytes]:
    """The lines without every other progress line: the first of two, and a last single one."""
    progress = itertools.count()
    return [line for line in lines if PROGRESS not in line or next(progress) % 2]


def _replace(path: Path, lines: Sequence[bytes]) -> None:
    """Replace the file's lines atomically. Raises OSError."""
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
