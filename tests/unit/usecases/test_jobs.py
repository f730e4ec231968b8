"""How a claimed job ends, whatever happens inside it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.jobs import Job, ReportProgress
from service.usecases import jobs
from service.usecases.jobs import LEASE_S, JobFunction, Worker, run_job, submit, sweep
from tests.support.servers import wait_for

ME = Worker("this/1")


class SentNowhere:
    """A queue that remembers what it was given."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, job_id: str) -> None:
        self.sent.append(job_id)

    def ping(self) -> bool:
        return True


@pytest.fixture
def context(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppContext]:
    """A context on a migrated database, leases renewed quickly, messages kept."""
    monkeypatch.setattr(jobs, "RENEW_S", 0.01)
    settings.data_dir.mkdir()
    made = replace(build_context(settings), queue=SentNowhere())
    made.store.migrate()
    yield made
    made.store.close()


def run(context: AppContext, kind: JobFunction, worker: Worker = ME) -> Job:
    """A job of that kind, after it was run once."""
    job = submit(context, "test", {})
    run_job(context, job.id, {"test": kind}, worker)
    found = context.store.job(job.id)
    assert found is not None
    return found


def until_stopped(context: AppContext, payload: Mapping[str, Any], step: ReportProgress) -> Mapping[str, Any]:
    """A job that goes on until it is told not to."""
    del context, payload
    for n in range(6000):
        step(n, 6000)
        time.sleep(0.01)
    return {}


def test_a_result_is_kept_with_the_last_progress(context: AppContext) -> None:
    """A job that returns has succeeded, with what it returned."""

    def work(_context: AppContext, _payload: Mapping[str, Any], step: ReportProgress) -> Mapping[str, Any]:
        step(7, 7)
        return {"answer": 42}

    done = run(context, work)
    assert (done.state, done.result, done.progress_done, done.progress_total) == ("succeeded", {"answer": 42}, 7, 7)


def test_an_exception_ends_the_attempt_with_its_text(context: AppContext) -> None:
    """What a job raises becomes its error; the job waits for its next attempt and nothing is raised."""

    def work(_context: AppContext, _payload: Mapping[str, Any], _step: ReportProgress) -> Mapping[str, Any]:
        raise ValueError("no such thing")

    failed = run(context, work)
    assert (failed.state, failed.error, failed.lease_owner) == ("running", "ValueError: no such thing", None)


def test_an_ending_process_gives_its_job_back(context: AppContext) -> None:
    """SystemExit inside a job releases the row and goes on its way; no attempt is used up."""

    def work(_context: AppContext, _payload: Mapping[str, Any], _step: ReportProgress) -> Mapping[str, Any]:
        raise SystemExit(0)

    with pytest.raises(SystemExit):
        run(context, work)
    (job,) = context.store.open_jobs("test")
    assert (job.lease_owner, job.handed_back, job.error) == (None, 1, None)


def test_a_lost_lease_stops_the_job_and_changes_nothing(context: AppContext) -> None:
    """When another worker has taken over, the first stops at its next step and leaves the row to it."""

    def work(context: AppContext, payload: Mapping[str, Any], step: ReportProgress) -> Mapping[str, Any]:
        (job,) = context.store.open_jobs("test")
        late = context.clock() + timedelta(hours=1)
        assert context.store.claim_job(job.id, "other/1", late, 3600)
        return until_stopped(context, payload, step)

    taken = run(context, work)
    assert (taken.state, taken.lease_owner, taken.attempt) == ("running", "other/1", 2)


def test_a_cancelled_job_stops_at_its_next_step(context: AppContext) -> None:
    """The wish for its end reaches a running job through its lease."""

    def work(context: AppContext, payload: Mapping[str, Any], step: ReportProgress) -> Mapping[str, Any]:
        (job,) = context.store.open_jobs("test")
        context.store.request_cancel(job.id, context.clock())
        return until_stopped(context, payload, step)

    assert run(context, work).state == "cancelled"


def test_a_long_job_keeps_its_lease(context: AppContext) -> None:
    """A job that makes no step is held all the same, and its worker heard of, as long as its process lives."""
    now = [context.clock()]

    def ends_at() -> datetime:
        (held,) = context.store.open_jobs("test")
        assert held.lease_expires_at is not None
        return held.lease_expires_at

    def work(_context: AppContext, _payload: Mapping[str, Any], _step: ReportProgress) -> Mapping[str, Any]:
        first = ends_at()
        while now[0] <= first:
            before, now[0] = ends_at(), now[0] + timedelta(seconds=LEASE_S / 2)
            wait_for(lambda before=before: ends_at() > before, "the lease to be renewed")
        assert context.store.expired_jobs(now[0]) == ()
        return {}

    assert run(replace(context, clock=lambda: now[0]), work).state == "succeeded"
    assert context.store.last_beat() is not None


def test_a_stopping_worker_leaves_jobs_to_the_next(context: AppContext) -> None:
    """A worker on its way out claims nothing, and the sweeper need not wait to send the job again."""
    left = run(context, until_stopped, Worker("this/1", stopping=lambda: True))
    assert (left.state, left.attempt, left.sent_at) == ("queued", 0, None)


def test_the_job_of_a_dead_process_is_taken_over(context: AppContext) -> None:
    """A worker that knows the holder to be dead does not wait for the lease to run out."""
    job = submit(context, "test", {})
    assert context.store.claim_job(job.id, "this/0", context.clock(), 3600)
    run_job(context, job.id, {"test": lambda *_: {}}, Worker("this/1", is_dead=lambda owner: owner == "this/0"))
    found = context.store.job(job.id)
    assert found is not None
    assert (found.state, found.attempt) == ("succeeded", 2)


def test_an_unknown_job_is_no_error(context: AppContext) -> None:
    """A message about a job that is not there is dropped."""
    run_job(context, "nobody", {}, ME)


def test_a_sweep_that_cannot_send_tries_again(context: AppContext) -> None:
    """A job whose message could not be sent is due at the very next sweep."""
    job = context.store.create_job("test", {}, context.clock() - timedelta(seconds=60))
    assert sweep(context, "this", lambda _id: False) == 0
    sent: list[str] = []
    assert sweep(context, "this", lambda job_id: sent.append(job_id) is None) == 1
    assert sent == [job.id]
