"""The tracker: calls that cost microseconds, and the two threads behind them that write and send."""

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

from outlay_client.encode import Told
from outlay_client.sender import Post, Queued, default_folder
from outlay_client.sending import EventEndpoint

MOST_QUEUED = 10_000
"""Events between a call and the disk, normally a handful; progress beyond, while a disk hangs, is dropped and counted."""
MOST_BUFFERED_BYTES = 64 * 2**20
OTHER_RANKS = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "NODE_RANK", "LOCAL_RANK")
SECONDS_PER_HOUR = 3600
AT_EXIT_S = 5.0


class Tracker:
    """Tells the service what a run does. Every call returns within microseconds and never raises; threads do the rest.

    Only the process of rank 0 tells anything (RANK, else what Slurm, Open MPI or Lightning set); elsewhere all calls do nothing. Given how
    many `accelerators` the run has, progress carries the accelerator-hours since this launch. A tracker tells of a launch (`restart`)
    itself; `launch=False` is for scripts beside the run, which only evaluate or account for costs. Usable as a context manager, which tells
    of an exception as an interruption and then waits a little for what is still to be sent. Raises ValueError for an address that is none
    or an empty run id, and nothing ever after.
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
        most_buffered_bytes: int = MOST_BUFFERED_BYTES,
    ) -> None:
        self._door = EventEndpoint(url, run_id, key)
        self._folder = default_folder(run_id) if buffer_dir is None else default_folder(run_id, Path(buffer_dir))
        self._most_bytes = most_buffered_bytes
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
        """Where the run stands; `tokens_done` is the position in the plan, `cost_usd` a running total since this launch."""
        hours = self._hours() if accelerator_hours is None else accelerator_hours
        fields = {"step": step, "tokens_done": tokens_done, "loss": loss, "mfu": mfu, "accelerator_hours": hours, "cost_usd": cost_usd}
        self._put("progress", {**fields, "accelerators": self.accelerators}, at)

    def restart(self, text: str | None = None, *, step: int | None = None, at: datetime | float | None = None) -> None:
        """The run was launched, for the first time or again; accelerator-hours count from here where `accelerators` was given."""
        self._started = time.monotonic()
        hours = None if self.accelerators is None else 0.0
        self._put("restart", {"text": text, "step": step, "accelerator_hours": hours, "accelerators": self.accelerators}, at)

    def interruption(self, cause: str, *, step: int | None = None, at: datetime | float | None = None) -> None:
        """The run stopped although it was not to: hardware, network, software, preemption, maintenance, loss."""
        self._put("interruption", {"cause": cause, "step": step, "accelerator_hours": self._hours()}, at)

    def checkpoint(self, size_bytes: int | str | Path, *, step: int | None = None, at: datetime | float | None = None) -> None:
        """A checkpoint of this size was written; a path is measured in the background, and left out where nothing lies there."""
        self._put("checkpoint", {"bytes": size_bytes, "step": step, "accelerator_hours": self._hours()}, at)

    def rollback(
        self, tokens_done: int, *, to_step: int | None = None, cause: str | None = None, at: datetime | float | None = None
    ) -> None:
        """Training goes on from an earlier checkpoint, which stands at `tokens_done`."""
        self._put("rollback", {"tokens_done": tokens_done, "to_step": to_step, "cause": cause}, at)

    def branch(self, name: str, from_step: int, *, tokens_done: int | None = None, at: datetime | float | None = None) -> None:
        """Training goes on under a new name from the checkpoint of an earlier step."""
        self._put("branch", {"name": name, "from_step": from_step, "tokens_done": tokens_done}, at)

    def evaluation(self, metric: str, value: float, *, step: int | None = None, at: datetime | float | None = None) -> None:
        """A metric was evaluated."""
        self._put("evaluation", {"metric": metric, "value": value, "step": step}, at)

    def cost(
        self,
        usd: float,
        line: str,
        *,
        billed_until: datetime | None = None,
        text: str | None = None,
        at: datetime | float | None = None,
    ) -> None:
        """Money was spent beside the running total, on storage, network, personnel and the like."""
        self._put("cost", {"usd": usd, "line": line, "billed_until": billed_until, "text": text}, at)

    def utilisation(self, share: float, *, accelerators: int | None = None, at: datetime | float | None = None) -> None:
        """How much of the accelerators' time was in use, from 0 to 1."""
        self._put("utilisation", {"share": share, "accelerators": accelerators}, at)

    def decision(self, gate: str, verdict: str, text: str | None = None, *, at: datetime | float | None = None) -> None:
        """A gate was decided: `continue`, `pivot` or `stop`."""
        self._put("decision", {"gate": gate, "verdict": verdict, "text": text}, at)

    def note(self, text: str, *, at: datetime | float | None = None) -> None:
        """Anything worth remembering."""
        self._put("note", {"text": text}, at)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything told so far is acknowledged, at most so many seconds; whether it is."""
        return not self.active or self._post_here().flush(timeout)

    def close(self, timeout: float = AT_EXIT_S) -> None:
        """Send what can be sent within the timeout and stop. What is left stays on disk for the run's next process to send."""
        if self.active:
            self.active = False
            atexit.unregister(self.close)
            if self._pid == os.getpid():
                self._post.close(timeout)

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and not (isinstance(error, SystemExit) and not error.code):
            self.interruption(f"{type(error).__name__}: {error}")
        self.close()

    def _hours(self) -> float | None:
        """Accelerator-hours since this launch; None where nobody said how many accelerators there are."""
        if self.accelerators is None:
            return None
        return (time.monotonic() - self._started) * self.accelerators / SECONDS_PER_HOUR

    def _put(self, kind: str, fields: dict[str, Any], at: datetime | float | None) -> None:
        """Hand an event to the threads, by a queue whose `put` neither waits nor minds being called from a signal's handler."""
        if not self.active:
            return
        if self._pid != os.getpid():
            self._begin()
        if kind == "progress" and self._queue.qsize() >= MOST_QUEUED:
            self._post.dropped += 1
            return
        self._queue.put(Told(f"{self._launch}-{next(self._numbers)}", kind, time.time(), at, fields))

    def _post_here(self) -> Post:
        """The threads of this process: a fork has none of its parent's."""
        if self._pid != os.getpid():
            self._begin()
        return self._post

    def _begin(self) -> None:
        """A queue, ids and threads of this process's own. After a fork the parent sends what it had in its queue."""
        self._pid = os.getpid()
        self._launch = uuid.uuid4().hex[:16]
        self._numbers = itertools.count(1)
        self._queue: SimpleQueue[Queued] = SimpleQueue()
        self._post = Post(self._door, self._folder, self._queue, self._most_bytes)
        self._post.start()


def _is_first() -> bool:
    """Whether this is the job's first process, or its only one. torchrun's RANK counts alone: around it Slurm numbers launchers."""
    if "RANK" in os.environ:
        return os.environ["RANK"] == "0"
    return all(os.environ.get(name, "0") == "0" for name in OTHER_RANKS)
