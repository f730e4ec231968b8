"""The tracker: calls return in microseconds; two threads write and send."""

from __future__ import annotations

import atexit
import itertools
import os
import time
import uuid
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from outlay_client.encode import PendingEvent
from outlay_client.sender import Queued, Sender, default_folder
from outlay_client.sending import EventEndpoint

MAX_QUEUED = 10_000
"""Most queued events; above it, while a disk hangs, progress is dropped and counted."""
MAX_BUFFERED_BYTES = 64 * 2**20
OTHER_RANKS = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "NODE_RANK", "LOCAL_RANK")
AT_EXIT_S = 5.0


class Tracker:
    """Reports events of a run to the service. Every call returns within microseconds and never raises; threads do the rest.

    Only the process of rank 0 reports (RANK, else the variables of Slurm, Open MPI or Lightning); elsewhere all calls do nothing. With the
    number of `accelerators`, progress carries the accelerator-hours since this launch. A tracker reports a launch (`restart`) itself;
    `launch=False` is for scripts beside the run, which only report evaluations or costs. As a context manager it reports an exception as an
    interruption and then waits a little for unsent events. Raises ValueError for an invalid address or an empty run id, and nothing later.
    """

    def __init__(
        self,
        url: str,
        run_id: str,
        key: str | None = None,
        *,
        buffer_dir: str | Path | None = None,
        accelerators: int | None = None,
        launch: bool = True,
        max_buffered_bytes: int = MAX_BUFFERED_BYTES,
    ) -> None:
        self._endpoint = EventEndpoint(url, run_id, key)
        self._folder = default_folder(run_id) if buffer_dir is None else default_folder(run_id, Path(buffer_dir))
        self._max_bytes = max_buffered_bytes
        self.accelerators = accelerators
        self.active = _is_first()
        self._started = time.monotonic()
        self._pid = -1
        if self.active:
            self._begin()
            atexit.register(self.close)
            if launch:
                self.restart()

    def progress(
        self,
        step: int | None = None,
        *,
        tokens_done: int | None = None,
        loss: float | None = None,
        mfu: float | None = None,
        accelerator_hours: float | None = None,
        cost_usd: float | None = None,
        at: datetime | float | None = None,
    ) -> None:
        """Report progress; `tokens_done` is the position in the plan, `cost_usd` a running total since this launch."""
        hours = self._hours() if accelerator_hours is None else accelerator_hours
        fields = {"step": step, "tokens_done": tokens_done, "loss": loss, "mfu": mfu, "accelerator_hours": hours, "cost_usd": cost_usd}
        self._put("progress", {**fields, "accelerators": self.accelerators}, at)

    def restart(self, text: str | None = None, *, step: int | None = None, at: datetime | float | None = None) -> None:
        """Report a launch, the first or a later one; with `accelerators`, accelerator-hours count from here."""
        self._started = time.monotonic()
        hours = None if self.accelerators is None else 0.0
        self._put("restart", {"text": text, "step": step, "accelerator_hours": hours, "accelerators": self.accelerators}, at)

    def interruption(self, cause: str, *, step: int | None = None, at: datetime | float | None = None) -> None:
        """Report an unplanned stop: hardware, network, software, preemption, maintenance, loss."""
        self._put("interruption", {"cause": cause, "step": step, "accelerator_hours": self._hours()}, at)

    def checkpoint(self, size_bytes: int | str | Path, *, step: int | None = None, at: datetime | float | None = None) -> None:
        """Report a checkpoint of this size; a path is measured in the background, and left out where it does not exist."""
        self._put("checkpoint", {"bytes": size_bytes, "step": step, "accelerator_hours": self._hours()}, at)

    def rollback(
        self, tokens_done: int, *, to_step: int | None = None, cause: str | None = None, at: datetime | float | None = None
    ) -> None:
        """Report that training continues from an earlier checkpoint, at `tokens_done`."""
        self._put("rollback", {"tokens_done": tokens_done, "to_step": to_step, "cause": cause}, at)

    def branch(self, name: str, from_step: int, *, tokens_done: int | None = None, at: datetime | float | None = None) -> None:
        """Report that training continues under a new name from the checkpoint of an earlier step."""
        self._put("branch", {"name": name, "from_step": from_step, "tokens_done": tokens_done}, at)

    def evaluation(
        self,
        metric: str,
        value: float,
        *,
        step: int | None = None,
        standard_error: float | None = None,
        samples: int | None = None,
        at: datetime | float | None = None,
    ) -> None:
        """Report the value of a metric; with its standard error, or the items behind a share of correct ones, drops are found sooner."""
        self._put("evaluation", {"metric": metric, "value": value, "step": step, "standard_error": standard_error, "samples": samples}, at)

    def cost(
        self,
        usd: float,
        line: str,
        *,
        billed_until: datetime | None = None,
        text: str | None = None,
        at: datetime | float | None = None,
    ) -> None:
        """Report a cost beside the running total: storage, network, personnel and the like."""
        self._put("cost", {"usd": usd, "line": line, "billed_until": billed_until, "text": text}, at)

    def utilisation(self, share: float, *, accelerators: int | None = None, at: datetime | float | None = None) -> None:
        """Report the share of the accelerators' time in use, 0 to 1."""
        self._put("utilisation", {"share": share, "accelerators": accelerators}, at)

    def decision(self, gate: str, verdict: str, text: str | None = None, *, at: datetime | float | None = None) -> None:
        """Report the decision on a gate: `continue`, `pivot` or `stop`."""
        self._put("decision", {"gate": gate, "verdict": verdict, "text": text}, at)

    def note(
        self,
        text: str,
        *,
        risk: str | None = None,
        state: str | None = None,
        usd: float | None = None,
        days: float | None = None,
        at: datetime | float | None = None,
    ) -> None:
        """Report a note, or that a `risk` is `open`, `occurred` or `closed`, and what it costs and delays."""
        self._put("note", {"text": text, "risk": risk, "state": state, "usd": usd, "days": days}, at)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all events are acknowledged, at most `timeout` seconds; returns whether they are."""
        return not self.active or self._own_sender().flush(timeout)

    def close(self, timeout: float = AT_EXIT_S) -> None:
        """Send what can be sent within the timeout and stop. The rest stays on disk for the run's next process."""
        if self.active:
            self.active = False
            atexit.unregister(self.close)
            if self._pid == os.getpid():
                self._sender.close(timeout)

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and not (isinstance(error, SystemExit) and not error.code):
            self.interruption(f"{type(error).__name__}: {error}")
        self.close()

    def _hours(self) -> float | None:
        """Accelerator-hours since this launch; None without a number of accelerators."""
        if self.accelerators is None:
            return None
        return (time.monotonic() - self._started) * self.accelerators / 3600

    def _put(self, kind: str, fields: dict[str, Any], at: datetime | float | None) -> None:
        """Queue an event; the queue's `put` does not wait and is safe in signal handlers."""
        if not self.active:
            return
        sender = self._own_sender()
        if kind == "progress" and self._queue.qsize() >= MAX_QUEUED:
            sender.dropped += 1
            return
        self._queue.put(PendingEvent(f"{self._launch}-{next(self._numbers)}", kind, time.time(), at, fields))

    def _own_sender(self) -> Sender:
        """The threads of this process: a fork does not inherit its parent's."""
        if self._pid != os.getpid():
            self._begin()
        return self._sender

    def _begin(self) -> None:
        """Queue, ids and threads of this process. After a fork the parent sends the events in its queue."""
        self._pid = os.getpid()
        self._launch = uuid.uuid4().hex[:16]
        self._numbers = itertools.count(1)
        self._queue: SimpleQueue[Queued] = SimpleQueue()
        self._sender = Sender(self._endpoint, self._folder, self._queue, self._max_bytes)
        self._sender.start()


def _is_first() -> bool:
    """Whether this is the job's first or only process. torchrun's RANK takes precedence: around it Slurm numbers launchers."""
    if "RANK" in os.environ:
        return os.environ["RANK"] == "0"
    return all(os.environ.get(name, "0") == "0" for name in OTHER_RANKS)
