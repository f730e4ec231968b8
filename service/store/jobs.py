"""Jobs: rows with state, owner and lease. Queues only point at them.

A job's state never goes back: `queued` until it is first claimed, `running` from then on (held, or waiting for its next owner), and one
of `succeeded`, `failed`, `cancelled` at the end. A claim returns an attempt number; changes need owner and attempt, so that an owner who
lost the lease cannot change the job.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, delete, func, insert, or_, select, update

from service.domain.jobs import Job, LeaseStatus
from service.store.database import Database, insert_into
from service.store.tables import heartbeats, jobs

MAX_ATTEMPTS = 3
"""Attempts that may fail or lose their worker; a shutdown uses none."""
RESEND_AFTER_S = 30
"""Time until the sweeper resends a message [s]."""
UNSENT_AFTER_S = 2
"""Time until the sweeper sends the message of a new job [s]."""
MAX_ERROR_CHARS = 2000


class JobRows(Database):
    """Statements for jobs and the workers' heartbeats."""

    def create_job(self, kind: str, payload: Mapping[str, Any], now: datetime) -> Job:
        """A new queued job. The caller sends the message after the commit (`Queue.send`)."""
        values = new_job_row(kind, payload, now)
        with self._write() as connection:
            return Job(**connection.execute(insert(jobs).values(values).returning(jobs)).mappings().one())

    def create_unique_job(self, kind: str, payload: Mapping[str, Any], now: datetime, dedup_key: str) -> tuple[Job, bool]:
        """The open job with `dedup_key`, and whether it is new: concurrent calls in any processes create one."""
        values = new_job_row(kind, payload, now) | {"dedup_key": dedup_key}
        with self._write() as connection:
            new = insert_into(connection, jobs).values(values)
            # the update that changes nothing is what makes the database return the row that stood in the way
            upsert = new.on_conflict_do_update(index_elements=["dedup_key"], set_={"dedup_key": dedup_key}).returning(jobs)
            job = Job(**connection.execute(upsert).mappings().one())
        return job, job.id == values["id"]

    def job(self, job_id: str) -> Job | None:
        """The job of that id, or None."""
        return self._find(Job, select(jobs).where(jobs.c.id == job_id))

    def open_jobs(self, kind: str) -> tuple[Job, ...]:
        """Jobs of a kind that have not ended, oldest first."""
        query = select(jobs).where(jobs.c.kind == kind, jobs.c.state.in_(("queued", "running"))).order_by(jobs.c.created_at)
        return tuple(self._list(Job, query))

    def claim_job(self, job_id: str, owner: str, now: datetime, lease_s: float) -> Job | None:
        """Claim the job if it is free and has attempts left; None otherwise. `owner` is unique to the process."""
        lease = {"lease_owner": owner, "lease_expires_at": now + timedelta(seconds=lease_s), "sent_at": None}
        change = update(jobs).where(jobs.c.id == job_id, is_claimable(now))
        with self._write() as connection:
            change = change.values(state="running", attempt=jobs.c.attempt + 1, updated_at=now, **lease).returning(jobs)
            row = connection.execute(change).mappings().first()
        return Job(**row) if row else None

    def extend_lease(self, job: Job, now: datetime, lease_s: float, progress: tuple[int, int] | None = None) -> LeaseStatus:
        """Hold on to a claimed job for another `lease_s` seconds, and note its progress (done, total) if it has any to tell.

        It is a heartbeat of the worker too, as one that is busy with long jobs does not come round to sweeping. An owner is named
        `worker/process`; one without a worker, such as a command, leaves no heartbeat and so does not count as a worker.
        """
        values: dict[str, Any] = {"lease_expires_at": now + timedelta(seconds=lease_s), "updated_at": now}
        if progress is not None:
            values |= {"progress_done": progress[0], "progress_total": progress[1]}
        with self._write() as connection:
            held = connection.execute(update(jobs).where(_held(job)).values(values)).rowcount == 1
            worker, _, _ = str(job.lease_owner).rpartition("/")
            if worker:
                _beat(connection, worker, now)
            cancel = connection.scalar(select(jobs.c.cancel_requested).where(jobs.c.id == job.id))
        return LeaseStatus(held, bool(cancel))

    def finish_job(self, job: Job, result: Mapping[str, Any], now: datetime, progress: tuple[int, int] = (0, 0)) -> bool:
        """Store result and last progress; False, and no change, unless the caller holds the job."""
        progress_values = {"progress_done": progress[0], "progress_total": progress[1]}
        return self._end(job, now, state="succeeded", result=dict(result), error=None, **progress_values)

    def cancel_job(self, job: Job, now: datetime) -> bool:
        """The owner stopped after a cancellation."""
        return self._end(job, now, state="cancelled")

    def fail_attempt(self, job: Job, reason: str, now: datetime) -> bool:
        """The owner's attempt failed: the job ends with the last attempt, else it is free for the next."""
        if job.attempt - job.handed_back >= MAX_ATTEMPTS:
            return self._end(job, now, state="failed", error=reason[:MAX_ERROR_CHARS])
        return self._let_go(job, now, error=reason[:MAX_ERROR_CHARS])

    def fail_job(self, job: Job, reason: str, now: datetime) -> bool:
        """The job cannot succeed: no attempt follows."""
        return self._end(job, now, state="failed", error=reason[:MAX_ERROR_CHARS])

    def release(self, job: Job, now: datetime) -> bool:
        """The owner shuts down in order: another worker continues, and no attempt is used."""
        return self._let_go(job, now, handed_back=jobs.c.handed_back + 1)

    def request_cancel(self, job_id: str, now: datetime) -> Job | None:
        """Cancel a job: at once while it is queued, by its owner while it runs. Returns the job, None if unknown."""
        over = {"state": "cancelled", "cancel_requested": True, "updated_at": now, "dedup_key": None}
        with self._write() as connection:
            connection.execute(update(jobs).where(jobs.c.id == job_id, jobs.c.state == "queued").values(over))
            cancellation = update(jobs).where(jobs.c.id == job_id, jobs.c.state == "running")
            connection.execute(cancellation.values(cancel_requested=True, updated_at=now))
        return self.job(job_id)

    def expire_lease(self, job: Job, now: datetime) -> bool:
        """End the lease of a dead owner at once. Its attempt counts."""
        return self._let_go(job, now)

    def expired_jobs(self, now: datetime) -> tuple[Job, ...]:
        """Running jobs without a valid lease."""
        return tuple(self._list(Job, select(jobs).where(_expired(now)).order_by(jobs.c.created_at)))

    def close_expired(self, now: datetime) -> int:
        """End jobs without lease that were cancelled or have no attempt left; returns their number."""
        reason = func.coalesce(jobs.c.error, f"its worker died or hung in each of {MAX_ATTEMPTS} attempts")
        with self._write() as connection:
            over = {"updated_at": now, "dedup_key": None}
            cancelled = update(jobs).where(_expired(now), jobs.c.cancel_requested).values(state="cancelled", **over)
            failed = update(jobs).where(_expired(now), ~_attempts_left()).values(state="failed", error=reason, **over)
            return connection.execute(cancelled).rowcount + connection.execute(failed).rowcount

    def take_unsent(self, now: datetime) -> tuple[str, ...]:
        """Ids of waiting jobs without a message; they count as sent from now on."""
        due = or_(
            and_(jobs.c.sent_at.is_(None), or_(jobs.c.state == "running", jobs.c.created_at <= now - timedelta(seconds=UNSENT_AFTER_S))),
            jobs.c.sent_at <= now - timedelta(seconds=RESEND_AFTER_S),
        )
        with self._write() as connection:
            ids = tuple(connection.scalars(select(jobs.c.id).where(_free(now), due).order_by(jobs.c.created_at)))
            connection.execute(update(jobs).where(jobs.c.id.in_(ids)).values(sent_at=now))
        return ids

    def unsend(self, job_id: str, now: datetime) -> None:
        """Mark a waiting job as not sent: the sweeper sends it at once."""
        self._change(update(jobs).where(jobs.c.id == job_id, _free(now)).values(sent_at=None))

    def beat(self, worker: str, now: datetime) -> None:
        """Record a heartbeat. Workers silent for a day are removed."""
        with self._write() as connection:
            _beat(connection, worker, now)
            connection.execute(delete(heartbeats).where(heartbeats.c.at < now - timedelta(days=1)))

    def last_beat(self) -> datetime | None:
        """Time of the newest heartbeat of any worker."""
        at: datetime | None = self._scalar(select(func.max(heartbeats.c.at)))
        return at

    def workers_alive(self, since: datetime) -> int:
        """Number of workers with a heartbeat since then."""
        return int(self._scalar(select(func.count()).select_from(heartbeats).where(heartbeats.c.at >= since)))

    def forget_jobs(self, kind: str, before: datetime) -> int:
        """Delete jobs of a kind that ended before then; returns their number."""
        over = and_(jobs.c.kind == kind, jobs.c.state.not_in(("queued", "running")), jobs.c.updated_at < before)
        return self._change(delete(jobs).where(over))

    def _end(self, job: Job, now: datetime, **values: object) -> bool:
        over = {"lease_owner": None, "lease_expires_at": None, "sent_at": None, "updated_at": now, "dedup_key": None}
        return self._change(update(jobs).where(_held(job)).values({**over, **values})) == 1

    def _let_go(self, job: Job, now: datetime, **values: object) -> bool:
        free = {"lease_owner": None, "lease_expires_at": now, "sent_at": None, "updated_at": now}
        return self._change(update(jobs).where(_held(job)).values({**free, **values})) == 1


def count_open_jobs(now: datetime) -> Select[str, int, datetime | None]:
    """Query of the open jobs' number by state, `lost` where the lease has run out, with the time since which the oldest waits."""
    state: ColumnElement[str] = case((_expired(now), "lost"), else_=jobs.c.state)
    since: ColumnElement[datetime | None] = case((_expired(now), jobs.c.lease_expires_at), (jobs.c.state == "queued", jobs.c.created_at))
    query = select(state.label("state"), func.count(), func.min(since)).where(jobs.c.state.in_(("queued", "running")))
    return query.group_by(state)


def new_job_row(kind: str, payload: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Values of a new job, with an id of its own."""
    values = {"id": str(uuid.uuid4()), "kind": kind, "payload": dict(payload), "state": "queued", "attempt": 0, "handed_back": 0}
    return values | {"cancel_requested": False, "progress_done": 0, "progress_total": 0, "created_at": now, "updated_at": now}


def is_claimable(now: datetime) -> ColumnElement[bool]:
    """Condition of jobs that a worker may claim."""
    return and_(_free(now), _attempts_left(), ~jobs.c.cancel_requested)


def is_held(now: datetime) -> ColumnElement[bool]:
    """Condition of jobs that a worker has."""
    return and_(jobs.c.state == "running", jobs.c.lease_expires_at > now)


def _beat(connection: Connection, worker: str, now: datetime) -> None:
    row = insert_into(connection, heartbeats).values(worker=worker, at=now)
    connection.execute(row.on_conflict_do_update(index_elements=["worker"], set_={"at": now}))


def _held(job: Job) -> ColumnElement[bool]:
    return and_(jobs.c.id == job.id, jobs.c.state == "running", jobs.c.lease_owner == job.lease_owner, jobs.c.attempt == job.attempt)


def _expired(now: datetime) -> ColumnElement[bool]:
    return and_(jobs.c.state == "running", jobs.c.lease_expires_at <= now)


def _free(now: datetime) -> ColumnElement[bool]:
    return or_(jobs.c.state == "queued", _expired(now))


def _attempts_left() -> ColumnElement[bool]:
    return jobs.c.attempt - jobs.c.handed_back < MAX_ATTEMPTS
