"""The two threads of a tracker: one writes events from the queue to disk, one sends them from disk to the service."""

from __future__ import annotations

import json
import logging
import os
import random
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from urllib.parse import quote

from outlay_client.encode import PendingEvent, event_line
from outlay_client.sending import EventEndpoint, Sent
from outlay_client.spool import MAX_LINES, Segment, Spool

log = logging.getLogger("outlay_client")

Queued = PendingEvent | threading.Event | None
"""An event, a mark to set when all events before it are acknowledged, or the end."""
BATCH_S = 2.0
"""Time that an event waits for others of its batch [s]."""
FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 60.0
CLOSING_S = 1.0
"""Time for the threads to end [s]."""


def default_folder(run_id: str, buffer_dir: Path | None = None) -> Path:
    """Folder of a run's waiting events: in `buffer_dir`, else in OUTLAY_BUFFER_DIR, else in the user's state directory."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")  # noqa: PTH111, PTH118 - never raises
    base = buffer_dir or Path(os.environ.get("OUTLAY_BUFFER_DIR") or os.path.join(state, "outlay", "events"))  # noqa: PTH118
    return base / quote(run_id, safe="")


class Sender:
    """Writes and sends the events of a queue. Starts threads, raises nothing, logs each kind of error once."""

    def __init__(self, endpoint: EventEndpoint, folder: Path, queue: SimpleQueue[Queued], max_bytes: int) -> None:
        self.dropped = 0
        self._endpoint = endpoint
        self._queue = queue
        self._spool = Spool(folder, max_bytes)
        self._changed = threading.Condition()
        self._flush_requested = self._closed = False
        self._waiters: list[threading.Event] = []
        self._logged: set[str] = set()
        self._threads = [threading.Thread(target=run, name=f"outlay-{run.__name__}", daemon=True) for run in (self._write, self._send)]

    def start(self) -> None:
        """Start the threads; without them events stay in the queue, which is bounded."""
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError as error:
            self._log_once("threads", f"no thread can be started ({error}): nothing is sent")

    def flush(self, timeout: float) -> bool:
        """Wait until the events now in the queue are acknowledged, also while the disk hangs; returns whether they are."""
        acknowledged = threading.Event()
        self._queue.put(acknowledged)
        return acknowledged.wait(timeout)

    def close(self, timeout: float) -> None:
        """Flush, end the threads and release the files. Waits for a hanging disk no longer than CLOSING_S."""
        done = self.flush(timeout)
        self._closed = True
        self._queue.put(None)
        if self._threads[0].is_alive():
            self._threads[0].join(CLOSING_S)
        if not self._changed.acquire(timeout=CLOSING_S):
            log.warning("the disk with %s hangs: the run's next process sends its events", self._spool.folder)
            return
        try:
            self._changed.notify_all()
            if not done:
                log.warning("%d events are not sent; they stay in %s for the run's next process", self._spool.count, self._spool.folder)
            self._spool.close()
        finally:
            self._changed.release()

    def _write(self) -> None:
        """Thread: writes the queue's events to segments, until the end."""
        with self._changed:
            self._spool.open()
        self._log_disk_errors()
        while True:
            queued = self._queued()
            lines = [self._line(event) for event in queued if isinstance(event, PendingEvent)]
            with self._changed:
                self._spool.append(lines)
                marks = [mark for mark in queued if isinstance(mark, threading.Event)]
                self._flush_requested = self._flush_requested or bool(marks)
                self._waiters += marks
                self._release_waiters()
                self._changed.notify_all()
            self._log_disk_errors()
            if None in queued:
                return

    def _release_waiters(self) -> None:
        """Release all waiting callers once everything is acknowledged."""
        if not self._spool.count:
            while self._waiters:
                self._waiters.pop().set()

    def _queued(self) -> list[Queued]:
        """The contents of the queue, once it has any."""
        queued = [self._queue.get()]
        with suppress(Empty):
            while len(queued) < MAX_LINES:
                queued.append(self._queue.get_nowait())
        return queued

    def _line(self, event: PendingEvent) -> bytes:
        line, invalid = event_line(event)
        if invalid:
            self._log_once("values", f"{', '.join(invalid)} of an event left out: not a valid number, time or text")
        return line

    def _log_disk_errors(self) -> None:
        if self._spool.error:
            self._log_once("disk", f"events cannot be written to {self._spool.folder} ({self._spool.error}): they stay in memory")
        if self.dropped:
            self._log_once("dropped", "the disk is too slow: progress events are dropped")

    def _send(self) -> None:
        """Thread: sends batches, oldest first; a batch that was not accepted is sent again after a pause."""
        failures = 0
        while True:
            with self._changed:
                segment = self._next()
                if segment is None:
                    return
            sent = self._send_segment(segment)
            failures = 0 if sent.accepted else failures + 1
            if not sent.accepted:
                self._pause(failures, sent)

    def _next(self) -> Segment | None:
        """The next batch, once it is full or has waited long enough; None at the end."""
        self._changed.wait_for(lambda: self._closed or self._spool.count)
        self._changed.wait_for(lambda: self._closed or self._flush_requested or self._spool.count >= MAX_LINES, BATCH_S)
        if self._spool.count <= MAX_LINES:
            self._flush_requested = False
        return None if self._closed else self._spool.take()

    def _pause(self, failures: int, sent: Sent) -> None:
        """Wait as long as the service asked, else exponentially longer up to a minute; a waiting caller gets one attempt at once."""
        pause = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 20)) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads callers
        self._log_once(f"http {sent.reason[:3]}", f"the service does not accept events ({sent.reason}): they are stored and sent later")
        with self._changed:
            # a caller that arrived during the failed attempt gets an attempt of its own
            self._changed.wait_for(lambda: self._closed or self._flush_requested, max(pause, sent.wait_s))
            self._flush_requested = False

    def _send_segment(self, segment: Segment) -> Sent:
        """Send a batch. A refused batch is halved until the refused events are isolated."""
        try:
            lines = [line for line in segment.read() if _is_event(line)]
        except FileNotFoundError as error:
            self._log_once("lost", f"events are gone from the disk: {error}")
            lines = []
        except OSError as error:
            return Sent(reason=f"disk: {error}")
        sent = self._send_lines(lines)
        if sent.accepted:
            with self._changed:
                self._spool.remove(segment)
                self._release_waiters()
            self._logged -= {each for each in self._logged if each.startswith("http")}
        return sent

    def _send_lines(self, lines: Sequence[bytes]) -> Sent:
        if not lines:
            return Sent(accepted=True)
        sent = self._endpoint.send(lines)
        if sent.accepted:
            self._store_rejected(lines, {each["id"]: each["reason"] for each in sent.rejected})
        if not sent.refused:
            return sent
        if len(lines) == 1:
            self._store_rejected(lines, {json.loads(lines[0])["id"]: sent.reason})
            return Sent(accepted=True)
        halves = (self._send_lines(half) for half in (lines[: len(lines) // 2], lines[len(lines) // 2 :]))
        return next((half for half in halves if not half.accepted), Sent(accepted=True))

    def _store_rejected(self, lines: Sequence[bytes], reasons: dict[str, str]) -> None:
        if not reasons:
            return
        events = [(json.loads(line), line) for line in lines]
        refused = [{"reason": reasons[event["id"]], "event": event} for event, _ in events if event["id"] in reasons]
        kept = f"stored in {self._spool.folder}"
        try:
            self._spool.reject([json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in refused])
        except OSError as error:
            kept = f"lost: {error}"
        self._log_once("rejected", f"{len(refused)} events are rejected, the first because: {next(iter(reasons.values()))} ({kept})")

    def _log_once(self, kind: str, text: str) -> None:
        """Log a kind of error once, until it is over."""
        if kind not in self._logged:
            self._logged.add(kind)
            log.warning("%s", text)


def _is_event(line: bytes) -> bool:
    """Whether a line is a complete event: a power failure can leave anything behind."""
    try:
        return "id" in json.loads(line)
    except (ValueError, TypeError):
        return False
