"""Running a job: claim its row, extend the lease during the work, then settle the row by the outcome."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from service.context import AppContext
from service.domain.errors import StoreUnavailable
from service.domain.jobs import Job, ReportProgress
from service.domain.metrics import JOB_ATTEMPTS, JOB_DURATION
from service.runtime import logs, metrics

log = logging.getLogger(__name__)

LEASE_S = 10.0
"""Time until jobs of a vanished worker are free [s]."""
RENEW_S = 1.0
"""Time between renewals of a lease, which store progress and read cancellations [s]."""

WORKER_TIMEOUT = timedelta(seconds=15)
"""A worker without a heartbeat for this long does not count as alive."""

JobFunction = Callable[[AppContext, Mapping[str, Any], ReportProgress], Mapping[str, Any]]
"""What one kind of job does: context, payload and `step(done, total)` in, result out. It calls `step` often: that is where it is stopped.
It may be run again from the start after any step: it must detect work already done and continue."""


class JobStopped(Exception):
    """Raised by `step` inside a job that must stop. A job does not catch it."""


class JobCancelled(JobStopped):
    """The job was cancelled."""


class JobHandedBack(JobStopped):
    """The worker shuts down, or the job makes room for others; a worker continues it."""


class JobFailed(Exception):
    """Raised by a job that cannot succeed: it ends with this text, and no attempt follows."""


class LeaseLost(JobStopped):
    """The lease expired or another worker has it: results of this attempt are void."""


def never_stops() -> bool:
    """False: this process is not asked to stop."""
    return False


def _no_dead_owners(owner: str) -> bool:
    del owner
    return False


@dataclass(frozen=True, slots=True)
class Worker:
    """The process that runs jobs: its unique name, whether it shuts down, and which other owners are known to be dead."""

    owner: str
    stopping: Callable[[], bool] = never_stops
    is_dead: Callable[[str], bool] = _no_dead_owners


def submit(context: AppContext, kind: str, payload: Mapping[str, Any]) -> Job:
    """A new job: its row first, then the message. It is stored and readable when this returns."""
    job = context.store.create_job(kind, payload, context.clock())
    context.queue.send(job.id)
    return job


def count_processes(context: AppContext) -> int:
    """Number of processes that run jobs, at least one worker's; more jobs than that would only block the queue."""
    alive = context.store.workers_alive(context.clock() - WORKER_TIMEOUT)
    return max(1, alive) * context.settings.worker_concurrency


def run_job(context: AppContext, job_id: str, kinds: Mapping[str, JobFunction], worker: Worker) -> None:
    """Run the job if it is free; otherwise return. A worker that shuts down leaves it to another.

    A killed worker loses the work since the last thing its job stored (a scenario: its unfinished chunks). Its lease expires after
    `LEASE_S`; then another worker claims the job and runs it again.
    """
    with logs.bound(job=job_id):
        _run_job(context, job_id, kinds, worker)


def _run_job(context: AppContext, job_id: str, kinds: Mapping[str, JobFunction], worker: Worker) -> None:
    if worker.stopping():
        context.store.unsend(job_id, context.clock())
        return
    _expire_dead_lease(context, job_id, worker)
    job = context.store.claim_job(job_id, worker.owner, context.clock(), LEASE_S)
    if job is None:
        return
    log.info("job begins", extra={"fields": {"kind": job.kind, "attempt": job.attempt}})
    with JobLease(context, job, worker) as held:
        result = _job_function(kinds, job.kind)(context, job.payload, held.step)
        held.finish(result)


def sweep(context: AppContext, worker: str, send: Callable[[str], bool]) -> int:
    """Close jobs without attempts left, resend jobs without a message, record a heartbeat of `worker`.

    Returns the number of messages sent.
    """
    now = context.clock()
    context.store.beat(worker, now)
    context.store.close_expired(now)
    sent = {job_id: send(job_id) for job_id in context.store.take_unsent(now)}
    for job_id in (name for name, done in sent.items() if not done):
        context.store.unsend(job_id, now)
    return sum(sent.values())


def _expire_dead_lease(context: AppContext, job_id: str, worker: Worker) -> None:
    """Free a job whose owner is known to be dead: its message returns long before its lease expires."""
    job = context.store.job(job_id)
    if job is not None and job.state == "running" and job.lease_owner is not None and worker.is_dead(job.lease_owner):
        context.store.expire_lease(job, context.clock())


def _job_function(kinds: Mapping[str, JobFunction], name: str) -> JobFunction:
    if name not in kinds:
        raise LookupError(f"no job of kind {name!r} is known here; known: {', '.join(sorted(kinds))}")
    return kinds[name]


class JobLease:
    """Lease of a claimed job: a thread renews it during the work, and leaving the block settles the row.

    An exception does not leave the block: it ends the attempt, and its text becomes the job's error. An exit of the process (SystemExit)
    does leave it, after the job was released.
    """

    def __init__(self, context: AppContext, job: Job, worker: Worker) -> None:
        self._context = context
        self._job = job
        self._worker = worker
        self._progress = (job.progress_done, job.progress_total)
        self._cancel = self._lost = False
        self._began_s = time.monotonic()
        self._done = threading.Event()
        # the thread's lines belong to the job too
        self._keeper = threading.Thread(target=copy_context().run, args=(self._keep,), name="lease-keeper", daemon=True)

    def __enter__(self) -> Self:
        self._keeper.start()
        return self

    def step(self, done: int, total: int) -> None:
        """Store the progress; raise JobStopped where the job must stop."""
        self._progress = (done, total)
        if self._lost:
            raise LeaseLost
        if self._cancel:
            raise JobCancelled
        if self._worker.stopping():
            raise JobHandedBack

    def finish(self, result: Mapping[str, Any]) -> None:
        """Store the result, if the lease still holds. Raises LeaseLost."""
        if not self._context.store.finish_job(self._job, result, self._context.clock(), self._progress):
            raise LeaseLost

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        self._done.set()
        self._keeper.join()
        outcome = "succeeded" if error is None else self._settle(error)
        duration_s = time.monotonic() - self._began_s
        metrics.count(JOB_ATTEMPTS, self._job.kind, outcome)
        metrics.observe(JOB_DURATION, duration_s, self._job.kind)
        log.info("job ends", extra={"fields": {"kind": self._job.kind, "outcome": outcome, "duration_ms": round(duration_s * 1e3, 3)}})
        return error is None or isinstance(error, Exception)

    def _settle(self, error: BaseException) -> str:
        """Settle the row of a job that did not succeed; returns the outcome as metrics name it."""
        store, job, now = self._context.store, self._job, self._context.clock()
        if isinstance(error, LeaseLost):
            log.warning("job %s: the lease went to another worker, attempt %s is void", job.id, job.attempt)
            return "lease_lost"
        if isinstance(error, JobCancelled):
            store.cancel_job(job, now)
            return "cancelled"
        if isinstance(error, JobHandedBack) or not isinstance(error, Exception):
            store.release(job, now)
            return "released"
        if isinstance(error, JobFailed):
            log.warning("job %s (%s) failed: %s", job.id, job.kind, error)
            store.fail_job(job, str(error), now)
            return "failed"
        log.error("job %s (%s): attempt %s failed", job.id, job.kind, job.attempt, exc_info=error)
        store.fail_attempt(job, f"{type(error).__name__}: {error}", now)
        return "failed"

    def _keep(self) -> None:
        """Renew until the work is done. An unavailable database is waited for as long as the lease lasts."""
        sure_until = time.monotonic() + LEASE_S
        while not self._done.wait(RENEW_S):
            asked = time.monotonic()
            try:
                status = self._context.store.extend_lease(self._job, self._context.clock(), LEASE_S, self._progress)
            except StoreUnavailable as error:
                log.warning("job %s: lease not renewed: %s", self._job.id, error)
                self._lost = asked > sure_until
                continue
            sure_until = asked + LEASE_S
            self._cancel, self._lost = status.cancel, not status.held
            if self._lost:
                return
