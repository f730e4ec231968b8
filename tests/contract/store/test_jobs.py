"""What the store promises of jobs and their leases, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.exc import StatementError

from service.domain.jobs import Job
from service.store import Store

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=60)
LEASE_S = 10.0


def claimed(store: Store, owner: str = "worker/1") -> Job:
    """A new job, claimed by `owner`."""
    job = store.claim_job(store.create_job("refresh_prices", {"provider": "snapshot"}, NOW).id, owner, NOW, LEASE_S)
    assert job is not None
    return job


def state(store: Store, job: Job) -> tuple[str, str | None]:
    """A job's state and error as everybody sees them."""
    found = store.job(job.id)
    assert found is not None
    return found.state, found.error


class TestJobs:
    def test_a_new_job_is_queued_and_readable(self, store: Store) -> None:
        """A created job can be read back whole, with its times in UTC."""
        job = store.create_job("refresh_prices", {"provider": "snapshot"}, NOW)
        assert store.job(job.id) == job
        assert (job.state, job.attempt, job.created_at, job.payload) == ("queued", 0, NOW, {"provider": "snapshot"})

    def test_many_who_ask_at_once_get_one_job(self, store: Store) -> None:
        """Of eight requests for what may be under way only once, one makes the job and all get it; another subject has its own."""
        got: list[tuple[Job, bool]] = []
        ask = lambda: got.append(store.create_unique_job("refresh_prices", {}, NOW, "aws"))  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 8
        assert len({job.id for job, _ in got}) == 1
        assert [new for _, new in got].count(True) == 1
        assert store.create_unique_job("refresh_prices", {}, NOW, "gcp")[1]

    @pytest.mark.parametrize("how", ["finished", "failed", "cancelled waiting", "cancelled running", "given up"])
    def test_a_job_that_is_over_makes_room_for_the_next(self, store: Store, how: str) -> None:
        """However the only job about a subject ended, the next request makes a new one; while it waits for its next attempt, none."""
        job, _ = store.create_unique_job("refresh_prices", {}, NOW, "aws")
        if how == "cancelled waiting":
            store.request_cancel(job.id, NOW)
        attempts = {"finished": 1, "failed": 3, "cancelled running": 1, "given up": 3}.get(how, 0)
        for n in range(attempts):
            held = store.claim_job(job.id, f"w/{n}", NOW + n * timedelta(seconds=60), LEASE_S)
            assert held is not None
            assert not store.create_unique_job("refresh_prices", {}, NOW, "aws")[1]
            if how == "finished":
                store.finish_job(held, {}, NOW)
            elif how == "failed":
                store.fail_attempt(held, "no", NOW)
            elif how == "cancelled running":
                store.cancel_job(held, NOW)
        store.close_expired(NOW + timedelta(days=1))
        assert store.create_unique_job("refresh_prices", {}, NOW, "aws")[1]

    def test_an_unknown_job_is_none(self, store: Store) -> None:
        """Reading or cancelling an unknown id finds nothing."""
        assert store.job("nobody") is None
        assert store.request_cancel("nobody", NOW) is None

    def test_only_one_of_many_claims_wins(self, store: Store) -> None:
        """Eight workers that claim a job at once get it once between them."""
        job = store.create_job("refresh_prices", {}, NOW)
        won: list[Job | None] = []
        threads = [threading.Thread(target=lambda n=n: won.append(store.claim_job(job.id, f"w/{n}", NOW, LEASE_S))) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len([w for w in won if w]) == 1
        assert len(won) == 8

    def test_a_held_job_cannot_be_claimed(self, store: Store) -> None:
        """As long as the lease lasts, nobody else gets the job."""
        job = claimed(store)
        assert store.claim_job(job.id, "other/1", NOW + timedelta(seconds=LEASE_S - 1), LEASE_S) is None

    def test_an_extended_lease_lasts_longer(self, store: Store) -> None:
        """Extending moves the end of the lease and keeps the progress."""
        job = claimed(store)
        assert store.extend_lease(job, LATER, LEASE_S, (3, 7)).held
        assert store.expired_jobs(LATER) == ()
        found = store.job(job.id)
        assert found
        assert (found.progress_done, found.progress_total) == (3, 7)

    def test_a_holder_that_lost_its_lease_changes_nothing(self, store: Store) -> None:
        """After another worker took over, the first can neither renew, finish, fail nor release the job."""
        first = claimed(store)
        second = store.claim_job(first.id, "other/1", LATER, LEASE_S)
        assert second
        assert second.attempt == 2
        assert not store.extend_lease(first, LATER, LEASE_S).held
        assert not store.finish_job(first, {"late": True}, LATER)
        assert not store.fail_attempt(first, "late", LATER)
        assert not store.release(first, LATER)
        assert store.finish_job(second, {"offers": 1}, LATER, (5, 5))
        found = store.job(first.id)
        assert found
        assert (found.state, found.result, found.progress_done) == ("succeeded", {"offers": 1}, 5)

    def test_the_same_owner_needs_the_right_attempt(self, store: Store) -> None:
        """A process that claims a job twice cannot finish it with the number of its first attempt."""
        first = claimed(store)
        assert store.claim_job(first.id, "worker/1", LATER, LEASE_S)
        assert not store.finish_job(first, {}, LATER)

    def test_an_expired_lease_is_found(self, store: Store) -> None:
        """A running job whose lease ran out is listed for the sweeper and stays `running`."""
        job = claimed(store)
        assert [j.id for j in store.expired_jobs(LATER)] == [job.id]
        assert state(store, job) == ("running", None)

    def test_a_third_failed_attempt_is_the_last(self, store: Store) -> None:
        """A job fails for good, with the reason, when its third attempt does."""
        job = claimed(store)
        for attempt in (2, 3):
            assert store.fail_attempt(job, "ValueError: bad", NOW)
            assert state(store, job) == ("running", "ValueError: bad")
            again = store.claim_job(job.id, f"worker/{attempt}", NOW, LEASE_S)
            assert again
            job = again
        assert store.fail_attempt(job, "ValueError: bad", NOW)
        assert state(store, job) == ("failed", "ValueError: bad")
        assert store.claim_job(job.id, "worker/4", LATER, LEASE_S) is None

    def test_a_job_that_kills_its_workers_fails(self, store: Store) -> None:
        """Three leases that ran out close the job with a reason; nobody can claim it a fourth time."""
        job = claimed(store)
        moment = NOW
        for n in (2, 3):
            moment += timedelta(seconds=60)
            assert store.close_expired(moment) == 0
            assert store.claim_job(job.id, f"worker/{n}", moment, LEASE_S)
        moment += timedelta(seconds=60)
        assert store.claim_job(job.id, "worker/4", moment, LEASE_S) is None
        assert store.close_expired(moment) == 1
        assert state(store, job) == ("failed", "its worker died or hung in each of 3 attempts")

    def test_handing_back_uses_no_attempt_up(self, store: Store) -> None:
        """However often workers are shut down under a job, it is never failed for that and free at once."""
        job = claimed(store)
        for n in range(5):
            assert store.release(job, NOW)
            assert [j.id for j in store.expired_jobs(NOW)] == [job.id]
            again = store.claim_job(job.id, f"worker/{n}", NOW, LEASE_S)
            assert again
            job = again
        assert job.attempt == 6

    def test_a_queued_job_is_cancelled_at_once(self, store: Store) -> None:
        """Nobody can claim a job that was cancelled while it waited."""
        job = store.create_job("refresh_prices", {}, NOW)
        cancelled = store.request_cancel(job.id, NOW)
        assert cancelled
        assert cancelled.state == "cancelled"
        assert store.claim_job(job.id, "worker/1", NOW, LEASE_S) is None

    def test_a_running_job_is_cancelled_by_its_holder(self, store: Store) -> None:
        """The holder learns of the wish when it renews the lease, and ends the job."""
        job = claimed(store)
        asked = store.request_cancel(job.id, NOW)
        assert asked
        assert asked.state == "running"
        assert store.extend_lease(job, NOW, LEASE_S).cancel
        assert store.cancel_job(job, NOW)
        assert state(store, job) == ("cancelled", None)

    def test_a_cancelled_job_of_a_dead_worker_is_closed(self, store: Store) -> None:
        """A cancellation holds though the worker that should have honoured it is gone."""
        job = claimed(store)
        store.request_cancel(job.id, NOW)
        assert store.claim_job(job.id, "other/1", LATER, LEASE_S) is None
        assert store.close_expired(LATER) == 1
        assert state(store, job) == ("cancelled", None)

    def test_a_finished_job_stays_finished(self, store: Store) -> None:
        """No later wish changes a job that is over."""
        job = claimed(store)
        assert store.finish_job(job, {}, NOW)
        found = store.request_cancel(job.id, NOW)
        assert found
        assert (found.state, found.cancel_requested) == ("succeeded", False)

    def test_a_job_never_sent_is_sent_by_the_sweeper(self, store: Store) -> None:
        """A queued job without a message is due after a moment, once, and again only when the message is long overdue."""
        job = store.create_job("refresh_prices", {}, NOW)
        assert store.take_unsent(NOW) == ()
        moment = NOW + timedelta(seconds=3)
        assert store.take_unsent(moment) == (job.id,)
        assert store.take_unsent(moment + timedelta(seconds=20)) == ()
        assert store.take_unsent(moment + timedelta(seconds=30)) == (job.id,)

    def test_a_released_job_is_sent_at_once(self, store: Store) -> None:
        """What a worker handed back does not wait for anything."""
        job = claimed(store)
        assert store.take_unsent(NOW) == ()
        store.release(job, NOW)
        assert store.take_unsent(NOW) == (job.id,)

    def test_a_message_that_came_to_nothing_is_sent_again(self, store: Store) -> None:
        """A waiting job whose message was turned away is due at the next sweep; one that is held is not."""
        waiting, held = store.create_job("refresh_prices", {}, NOW), claimed(store)
        assert store.take_unsent(LATER - timedelta(seconds=55)) == (waiting.id,)
        for job in (waiting, held):
            store.unsend(job.id, NOW)
        assert store.take_unsent(LATER - timedelta(seconds=54)) == (waiting.id,)

    def test_open_jobs_are_those_not_over(self, store: Store) -> None:
        """Queued and running jobs of the kind are open; finished ones and other kinds are not."""
        store.finish_job(claimed(store), {}, NOW)
        running, queued = claimed(store), store.create_job("refresh_prices", {}, LATER)
        store.create_job("other", {}, NOW)
        assert [j.id for j in store.open_jobs("refresh_prices")] == [running.id, queued.id]

    def test_a_time_without_zone_is_refused(self, store: Store) -> None:
        """A moment that could mean any zone is not stored."""
        with pytest.raises(StatementError, match="time zone"):
            store.create_job("refresh_prices", {}, datetime(2027, 1, 4))  # noqa: DTZ001

    def test_heartbeats_keep_the_newest(self, store: Store) -> None:
        """The last sign of life of any worker is known."""
        assert store.last_beat() is None
        for worker, at in (("a", NOW), ("b", LATER), ("a", NOW)):
            store.beat(worker, at)
        assert store.last_beat() == LATER

    def test_a_busy_worker_is_heard_of(self, store: Store) -> None:
        """Renewing a lease is a sign of life of the worker that holds it."""
        store.extend_lease(claimed(store), LATER, LEASE_S)
        assert store.last_beat() == LATER

    def test_a_command_is_no_worker(self, store: Store) -> None:
        """An owner that names no worker leaves no heartbeat: whoever counts workers would wait for it after it has ended."""
        store.extend_lease(claimed(store, "command line:1"), LATER, LEASE_S)
        assert store.last_beat() is None
