"""Scenarios and their chunks in the store, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import threading
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from service.domain.jobs import Job
from service.domain.scenarios import ScenarioRecord
from service.domain.teams import DEFAULT_TEAM
from service.store import ChunkClaim, NewScenario, OpenWork, Store, TeamQuotaReached
from service.store.scenarios.scenarios import LOST_WORKER_ERROR, RETENTION, REVIEW
from service.store.scenarios.statements import CHUNK_ATTEMPTS
from service.store.scenarios.tables import scenario_chunks, scenarios
from service.store.tables import teams

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
LEASE_S = 10.0
LATER = NOW + timedelta(seconds=60)
ROOM = OpenWork(100, 10**10)
NEW = NewScenario(DEFAULT_TEAM, "toy", 4000, 4, 4, "prices-1", "0.1", {"kind": "toy"}, {"chunks": 4})


def make(store: Store, *, team: str = DEFAULT_TEAM, chunks: int = 4, review_at: int | None = None, at: datetime = NOW) -> ScenarioRecord:
    """A scenario of so many chunks of 1,000 units."""
    new = replace(NEW, team=team, chunks=chunks, units=1000 * chunks, review_at=review_at or chunks)
    return store.create_scenario(new, ROOM, at)


def working(store: Store, name: str, at: datetime = NOW) -> str:
    """The `single` of a job that is being worked on."""
    job, _ = store.create_unique_job("scenario_work", {"job_key": name}, at, name)
    assert store.claim_job(job.id, f"w/{name}", at, LEASE_S)
    return name


def claimed(store: Store, job_key: str, at: datetime = NOW) -> ChunkClaim:
    """A claim that is granted."""
    found = store.claim_chunk(job_key, at)
    assert found is not None
    return found


def now_of(store: Store, row: ScenarioRecord) -> ScenarioRecord:
    """The scenario as it stands."""
    found = store.scenario(row.team, row.id)
    assert found is not None
    return found.row


def do_all(store: Store, job_key: str) -> list[int]:
    """Every chunk that can be had, done; the numbers in the order in which they came."""
    numbers = []
    while (claim := store.claim_chunk(job_key, NOW)) is not None:
        numbers.append(claim.number)
        if claim.number == REVIEW:
            return numbers
        assert store.save_tally(claim, json.dumps({"n": claim.number}), 1000, NOW)
    return numbers


def other_team(store: Store, name: str) -> str:
    """A team that may have scenarios."""
    with store.engine.begin() as connection:
        connection.execute(insert(teams).values(id=name, name=name, created_at=NOW))
    return name


class TestMaking:
    def test_a_row_has_the_columns_of_its_table(self) -> None:
        """All but the three that are large, and the target with its secret."""
        assert {f.name for f in fields(ScenarioRecord)} == set(scenarios.columns.keys()) - {"request", "prepared", "result", "notify"}

    def test_it_can_be_read_at_once(self, store: Store) -> None:
        """Queued, nothing done, numbered within its team; another team's is not there."""
        first, second = make(store), make(store)
        found = store.scenario(DEFAULT_TEAM, second.id)
        assert found is not None
        assert (found.row, found.request, found.result) == (second, {"kind": "toy"}, None)
        assert (second.state, second.units_done, [first.number, second.number]) == ("queued", 0, [1, 2])
        assert store.scenario("theirs", second.id) is None
        assert store.find_prepared(second.id) == ({"chunks": 4}, DEFAULT_TEAM)

    def test_lists_are_cut_by_number(self, store: Store) -> None:
        """The newest first, of one team."""
        made = [make(store).id for _ in range(3)]
        assert [row.id for row in store.scenarios(DEFAULT_TEAM, 0, 2)] == [made[2], made[1]]
        assert [row.id for row in store.scenarios(DEFAULT_TEAM, 2, 2)] == [made[0]]
        assert store.scenarios(DEFAULT_TEAM, 0, 2, "running") == []
        assert store.scenarios("theirs", 0, 10) == []

    @pytest.mark.parametrize("most", [OpenWork(1, 10**10), OpenWork(100, 7999)])
    def test_a_team_has_no_more_under_way_than_it_may(self, store: Store, most: OpenWork) -> None:
        """Scenarios or units; what is over counts no more."""
        first = store.create_scenario(NEW, most, NOW)
        with pytest.raises(TeamQuotaReached) as full:
            store.create_scenario(NEW, most, NOW)
        assert full.value.open_work == OpenWork(1, 4000)
        store.cancel_scenario(first.id, NOW)
        store.create_scenario(NEW, most, NOW)


class TestClaims:
    def test_chunks_come_in_order_and_then_the_review(self, store: Store) -> None:
        """Each once; the scenario runs from its first claim, and counts what is done."""
        row, job_key = make(store), working(store, "a")
        assert do_all(store, job_key) == [0, 1, 2, 3, REVIEW]
        assert (now_of(store, row).state, now_of(store, row).units_done) == ("running", 4000)
        assert store.claim_chunk(working(store, "b"), NOW) is None
        assert [json.loads(tally)["n"] for tally in store.tallies(row.id, range(1, 3))] == [1, 2]

    def test_many_at_once_get_different_chunks(self, store: Store) -> None:
        """However many workers ask."""
        make(store, chunks=12)
        names = [working(store, f"w{n}") for n in range(6)]
        got: list[ChunkClaim | None] = []
        threads = [threading.Thread(target=lambda name=name: got.extend(store.claim_chunk(name, NOW) for _ in range(2))) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(claim.number for claim in got if claim) == list(range(12))

    def test_a_chunk_is_held_as_long_as_its_job(self, store: Store) -> None:
        """When the job's lease is over, the next worker has it; the tally of either counts, once."""
        row = make(store, chunks=1)
        lost = claimed(store, working(store, "lost"))
        assert store.claim_chunk(working(store, "early"), NOW) is None
        again = claimed(store, working(store, "next", LATER), LATER)
        assert (lost.number, again.number) == (0, 0)
        assert store.save_tally(lost, "{}", 1000, LATER)
        assert not store.save_tally(again, "{}", 1000, LATER)
        assert now_of(store, row).units_done == 1000

    def test_a_job_that_begins_again_frees_what_it_had(self, store: Store) -> None:
        """Its earlier attempt died with the chunk."""
        make(store, chunks=1)
        job_key = working(store, "a")
        claimed(store, job_key)
        assert store.claim_chunk(job_key, NOW) is None
        store.release_chunks(job_key)
        assert claimed(store, job_key).number == 0

    def test_the_team_with_the_least_under_way_comes_first(self, store: Store) -> None:
        """A big scenario of one team does not keep another's waiting; within a team the oldest is first."""
        big, theirs = make(store, chunks=100), other_team(store, "theirs")
        small, younger = make(store, team=theirs, at=LATER), make(store, at=LATER)
        order = [claimed(store, working(store, f"w{n}", LATER), LATER).scenario for n in range(4)]
        assert order == [big.id, small.id, big.id, small.id]
        assert younger.id not in order

    def test_what_is_handed_back_has_cost_no_attempt(self, store: Store) -> None:
        """However often workers shut down."""
        row, job_key = make(store, chunks=1), working(store, "a")
        for _ in range(2 * CHUNK_ATTEMPTS):
            store.return_chunk(claimed(store, job_key))
        assert now_of(store, row).state == "running"
        assert claimed(store, job_key).number == 0

    def test_claimable_chunks_are_counted_up_to_what_is_asked(self, store: Store) -> None:
        """Those never begun, and those that lost their worker."""
        make(store, chunks=3)
        assert [store.count_claimable_chunks(NOW, most) for most in (2, 9)] == [2, 3]
        claimed(store, working(store, "a"))
        assert [store.count_claimable_chunks(at, 9) for at in (NOW, LATER)] == [2, 3]


class TestReviews:
    def test_a_review_waits_for_the_whole_prefix(self, store: Store) -> None:
        """Later chunks do not call it."""
        row, job_key = make(store, review_at=2), working(store, "a")
        claims = [claimed(store, job_key) for _ in range(3)]
        for claim in (claims[0], claims[2]):
            store.save_tally(claim, "{}", 1000, NOW)
        assert claimed(store, job_key).number == 3
        store.save_tally(claims[1], "{}", 1000, NOW)
        assert claimed(store, job_key) == ChunkClaim(row.id, REVIEW, 2, job_key)

    def test_after_a_review_that_wants_more_comes_the_next(self, store: Store) -> None:
        """At once where its chunks are done already; the first review's second worker changes nothing."""
        row, job_key = make(store, review_at=2), working(store, "a")
        claims = [claimed(store, job_key) for _ in range(4)]
        for claim in claims:
            store.save_tally(claim, "{}", 1000, NOW)
        review = claimed(store, job_key)
        assert store.postpone_review(review, 4)
        assert not store.postpone_review(review, 3)
        assert claimed(store, job_key) == ChunkClaim(row.id, REVIEW, 4, job_key)

    def test_the_first_result_stays(self, store: Store) -> None:
        """And nothing changes it: no second result, no cancellation, no failure."""
        row, job_key = make(store), working(store, "a")
        do_all(store, job_key)
        review = ChunkClaim(row.id, REVIEW, 4, job_key)
        assert store.complete_scenario(review, {"sum": 10**40}, NOW)
        assert not store.complete_scenario(review, {"sum": 2}, LATER)
        assert not store.cancel_scenario(row.id, LATER)
        store.fail_chunk(review, "late", LATER, is_final=True)
        found = store.scenario(DEFAULT_TEAM, row.id)
        assert found is not None
        assert (found.row.state, found.result, found.row.expires_at) == ("succeeded", {"sum": 10**40}, NOW + RETENTION)


class TestEnds:
    def test_a_cancelled_scenario_takes_nothing_more(self, store: Store) -> None:
        """No chunk is given out, no tally kept, no result; it stays cancelled."""
        row, job_key = make(store), working(store, "a")
        claim = claimed(store, job_key)
        assert store.cancel_scenario(row.id, NOW)
        assert not store.is_scenario_open(row.id)
        assert store.claim_chunk(job_key, NOW) is None
        assert not store.save_tally(claim, "{}", 1000, NOW)
        assert not store.postpone_review(claim, 2)
        assert not store.complete_scenario(claim, {}, NOW)
        assert (now_of(store, row).state, now_of(store, row).units_done) == ("cancelled", 0)

    def test_the_last_failed_attempt_fails_the_scenario(self, store: Store) -> None:
        """With its reason."""
        row, job_key = make(store), working(store, "a")
        for attempt in range(CHUNK_ATTEMPTS):
            assert now_of(store, row).state != "failed"
            store.fail_chunk(claimed(store, job_key), f"attempt {attempt}\0", NOW)
        assert (now_of(store, row).state, now_of(store, row).error) == ("failed", "attempt 2")

    def test_a_failure_for_good_needs_one_attempt(self, store: Store) -> None:
        """No other would better it."""
        row = make(store)
        store.fail_chunk(claimed(store, working(store, "a")), "cannot be", NOW, is_final=True)
        assert (now_of(store, row).state, now_of(store, row).error) == ("failed", "cannot be")

    def test_a_chunk_that_loses_every_worker_ends_its_scenario(self, store: Store) -> None:
        """When the last of them is gone, not before; the others go on."""
        row, at = make(store, chunks=1), NOW
        for attempt in range(CHUNK_ATTEMPTS):
            assert claimed(store, working(store, f"w{attempt}", at), at).number == 0
            assert store.close_exhausted(at) == 0
            at += timedelta(seconds=60)
        other = make(store)
        assert store.close_exhausted(at) == 1
        assert (now_of(store, row).state, now_of(store, row).error) == ("failed", LOST_WORKER_ERROR)
        assert now_of(store, other).state == "queued"

    def test_chunks_of_what_is_over_are_forgotten(self, store: Store) -> None:
        """Those of what is not over stay."""
        over, job_key = make(store, chunks=3), working(store, "a")
        do_all(store, job_key)
        store.complete_scenario(ChunkClaim(over.id, REVIEW, 3, job_key), {}, NOW)
        going = make(store)
        claimed(store, job_key)
        assert store.forget_chunks() == 4
        assert store.forget_chunks() == 0
        with store.engine.connect() as connection:
            assert {row.scenario for row in connection.execute(scenario_chunks.select())} == {going.id}

    def test_a_scenario_is_forgotten_when_its_time_is_up(self, store: Store) -> None:
        """With what is left of its chunks; open ones stay, however old."""
        ended, going = make(store), make(store)
        claimed(store, working(store, "a"))
        store.cancel_scenario(ended.id, NOW)
        assert store.forget_scenarios(NOW + RETENTION - timedelta(seconds=1)) == 0
        assert store.forget_scenarios(NOW + RETENTION) == 1
        assert [row.id for row in store.scenarios(DEFAULT_TEAM, 0, 10)] == [going.id]


class TestJobs:
    def test_old_jobs_of_a_kind_are_forgotten(self, store: Store) -> None:
        """Those that are over, and no others."""
        over, going = (store.create_job("scenario_work", {}, NOW) for _ in range(2))
        other: Job = store.create_job("refresh_prices", {}, NOW)
        for job in (over, other):
            store.request_cancel(job.id, NOW)
        assert store.forget_jobs("scenario_work", NOW) == 0
        assert store.forget_jobs("scenario_work", LATER) == 1
        assert [store.job(job.id) is not None for job in (over, going, other)] == [False, True, True]

    def test_workers_count_that_were_heard_of(self, store: Store) -> None:
        """Since the moment that is asked about."""
        for worker, at in (("a", NOW), ("b", LATER), ("b", NOW + timedelta(seconds=61))):
            store.beat(worker, at)
        assert [store.workers_alive(since) for since in (NOW, LATER, LATER + timedelta(seconds=2))] == [2, 1, 0]
