"""What workers do of scenarios, whatever happens meanwhile: the toy of `tests.support.scenario_toy`, run in this process."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as samples
from hypothesis import strategies as st

from service.api.resources.programs import EXAMPLE
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest, NotFound, StoreUnavailable
from service.domain.quantities import Range
from service.domain.scenarios import ScenarioRecord
from service.domain.teams import Principal
from service.job_kinds import JOB_KINDS
from service.schemas.programs.request import ProgramRequestSchema
from service.store import OpenWork
from service.store.scenarios.scenarios import LOST_WORKER_ERROR, RETENTION
from service.usecases.jobs import LEASE_S, WORKER_TIMEOUT, JobHandedBack, Worker, count_processes, run_job
from service.usecases.scenarios import registry, scenarios, worker
from service.usecases.scenarios.codec import pack_prepared, unpack_prepared
from service.usecases.scenarios.registry import KINDS, PreparedScenario, load_kind
from service.usecases.scenarios.scenarios import TeamQuotaExceeded, cancel_scenario, find_scenario, forget_scenarios
from service.usecases.scenarios.worker import KIND, enqueue_workers, maintain_scenarios
from tests.support.scenario_toy import EVERYBODY, MERGE, MODULE, NAME, UNITS_A_CHUNK, given, start
from tests.unit.usecases.test_jobs import SentNowhere

ME = Worker("this/1")
THEY = Principal("theirs", None, ("read", "write"))


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy is a kind."""
    monkeypatch.setitem(KINDS, NAME, MODULE)  # type: ignore[arg-type]  # a dictionary


@pytest.fixture
def context(settings: Settings) -> Iterator[AppContext]:
    """A context on a migrated database, its messages kept."""
    settings.data_dir.mkdir()
    made = replace(build_context(settings), queue=SentNowhere())
    made.store.migrate()
    yield made
    made.store.close()


def sent(context: AppContext) -> list[str]:
    """The ids of the jobs that were sent."""
    assert isinstance(context.queue, SentNowhere)
    return context.queue.sent


def run_all(context: AppContext, worker: Worker = ME) -> None:
    """Every job that was sent, and those they send, each once."""
    while sent(context):
        run_job(context, sent(context).pop(0), JOB_KINDS, worker)


def now_of(context: AppContext, row: ScenarioRecord) -> ScenarioRecord:
    """The scenario as it stands."""
    return find_scenario(context, EVERYBODY, row.id).row


def result_of(context: AppContext, row: ScenarioRecord) -> Mapping[str, Any]:
    """The result of a scenario that has one."""
    found = find_scenario(context, EVERYBODY, row.id)
    assert (found.row.state, found.result is None) == ("succeeded", False), found.row.error
    return found.result or {}


class TestAnEvaluation:
    def test_it_is_made_of_all_its_chunks(self, context: AppContext) -> None:
        """With all units counted, and jobs that are over."""
        row = start(context, chunks=5)
        run_all(context)
        assert result_of(context, row)["trials_done"] == now_of(context, row).units_done == 5 * UNITS_A_CHUNK
        assert context.store.open_jobs(KIND) == ()

    def test_the_seed_decides_the_result(self, context: AppContext) -> None:
        """Exactly, with integers of any length; another seed has another."""
        rows = [start(context, chunks=5, seed=seed) for seed in (7, 7, 8)]
        run_all(context)
        one, same, other = (dict(result_of(context, row)) for row in rows)
        assert one == same
        assert one["sum"] > 2**64
        assert one["digest"] != other["digest"]

    def test_slices_change_nothing(self, context: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
        """A job that makes room after every chunk has a successor until there is nothing left."""
        whole = start(context, chunks=5)
        run_all(context)
        monkeypatch.setattr(worker, "SLICE_S", 1e-9)
        sliced = start(context, chunks=5)
        run_all(context)
        assert result_of(context, sliced) == result_of(context, whole)

    @pytest.mark.parametrize(("enough", "reviewed"), [(1, 2), (2, 2), (3, 4), (5, 6), (7, 8)])
    def test_it_ends_at_the_first_checkpoint_that_is_enough(self, context: AppContext, enough: int, reviewed: int) -> None:
        """Asked at checkpoints alone; where none is enough, all of it is done."""
        row = start(context, chunks=8, checkpoints=[2, 4, 6], enough=enough)
        run_all(context)
        assert result_of(context, row)["trials_done"] == reviewed * UNITS_A_CHUNK

    def test_chunks_beyond_the_checkpoint_are_no_part_of_the_result(self, context: AppContext) -> None:
        """However many were done before somebody asked."""
        ahead, plain = (start(context, chunks=8, checkpoints=[2], enough=2) for _ in range(2))
        single = "held"
        job, _ = context.store.create_unique_job(KIND, {"job_key": single}, context.clock(), single)
        held = context.store.claim_job(job.id, "other/1", context.clock(), 3600.0)
        first = context.store.claim_chunk(single, context.clock())
        assert held is not None
        assert first is not None
        assert (first.scenario, first.number) == (ahead.id, 0)
        run_all(context)
        assert (now_of(context, ahead).state, now_of(context, ahead).units_done) == ("running", 7 * UNITS_A_CHUNK)
        context.store.finish_job(held, {}, context.clock())
        maintain_scenarios(context)
        run_all(context)
        assert result_of(context, ahead) == result_of(context, plain)

    def test_what_has_no_json_is_no_result(self, context: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
        """NaN would be read by nobody."""
        toy = load_kind(NAME)
        broken = replace(toy, finish=lambda *_: {"cost_usd": math.nan})
        monkeypatch.setattr(worker, "load_kind", lambda _: broken)
        row = start(context, chunks=1)
        run_all(context)
        assert (now_of(context, row).state, "JSON compliant" in str(now_of(context, row).error)) == ("failed", True)


class TestTrouble:
    def test_a_chunk_that_fails_three_times_fails_its_scenario(self, context: AppContext) -> None:
        """With its reason; others, of the same jobs, are done."""
        bad, good = start(context, chunks=4, fail=[2]), start(context, chunks=4)
        run_all(context)
        assert (now_of(context, bad).state, now_of(context, bad).error) == ("failed", "ValueError: chunk 2 is rubbish")
        assert result_of(context, good)["trials_done"] == 4 * UNITS_A_CHUNK
        assert {context.store.job(job.id) for job in context.store.open_jobs(KIND)} == set()

    def test_what_cannot_be_is_tried_once(self, context: AppContext, tmp_path: Path) -> None:
        """A problem of the request's is its error at once."""
        row = start(context, chunks=2, refuse=[1], folder=str(tmp_path))
        run_all(context)
        assert (now_of(context, row).state, now_of(context, row).error) == ("failed", "chunk 1 cannot be")
        assert (tmp_path / "made").read_text().split().count("1") == 1

    def test_a_merge_that_fails_fails_its_scenario(self, context: AppContext, tmp_path: Path) -> None:
        """After three attempts."""
        row = start(context, chunks=2, fail=[MERGE], folder=str(tmp_path))
        run_all(context)
        assert now_of(context, row).error == "ValueError: chunk merge is rubbish"
        assert (tmp_path / "made").read_text().split().count(MERGE) == 3

    def test_memory_that_runs_out_is_a_failure_like_others(self, context: AppContext) -> None:
        """The process lives, and goes on with the next."""
        bad, good = start(context, chunks=1, eat=[0]), start(context, chunks=1)
        run_all(context)
        assert (now_of(context, bad).state, "MemoryError" in str(now_of(context, bad).error)) == ("failed", True)
        assert now_of(context, good).state == "succeeded"

    def test_lost_workers_are_counted_by_the_clock(self, context: AppContext) -> None:
        """A scenario whose chunk lost three of them has failed, though nobody came back to say so."""
        row = start(context, chunks=1)
        for attempt in range(3):
            at = context.clock() - timedelta(minutes=10 - attempt)
            job, _ = context.store.create_unique_job(KIND, {"job_key": f"j{attempt}"}, at, f"j{attempt}")
            assert context.store.claim_job(job.id, f"lost/{attempt}", at, LEASE_S)
            assert context.store.claim_chunk(f"j{attempt}", at)
        maintain_scenarios(context)
        assert (now_of(context, row).state, now_of(context, row).error) == ("failed", LOST_WORKER_ERROR)

    def test_a_worker_that_stops_gives_its_chunk_back(self, context: AppContext, tmp_path: Path) -> None:
        """At its next step, without an attempt lost; the next one has the same result."""
        plain, row = start(context, chunks=3), start(context, chunks=3, wait=[1], folder=str(tmp_path))
        run_all(context, Worker("this/1", stopping=(tmp_path / "at-1").exists))
        assert now_of(context, row).state == "running"
        (tmp_path / "go").touch()
        (job,) = context.store.open_jobs(KIND)
        assert (job.handed_back, job.lease_owner) == (1, None)
        run_job(context, job.id, JOB_KINDS, Worker("this/2"))
        assert result_of(context, row) == result_of(context, plain)

    def test_a_database_that_goes_away_ends_the_attempt_alone(self, context: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
        """The job is tried again, and what it had claimed is begun anew."""
        row, keep = start(context, chunks=2), context.store.save_tally
        calls: list[object] = []

        def once_away(*arguments: Any) -> bool:
            calls.append(arguments)
            if len(calls) == 1:
                raise StoreUnavailable("away")
            return keep(*arguments)

        monkeypatch.setattr(context.store, "save_tally", once_away)
        job = sent(context)[0]
        for _ in range(2):
            run_job(context, job, JOB_KINDS, ME)
        assert result_of(context, row)["trials_done"] == 2 * UNITS_A_CHUNK


class TestCancelling:
    def test_what_waits_is_cancelled_at_once(self, context: AppContext, tmp_path: Path) -> None:
        """No chunk of it is made; a second time changes nothing."""
        row = start(context, chunks=3, folder=str(tmp_path))
        first, again = cancel_scenario(context, EVERYBODY, row.id).row, cancel_scenario(context, EVERYBODY, row.id).row
        run_all(context)
        assert (first.state, first) == ("cancelled", again)
        assert not (tmp_path / "made").exists()

    def test_what_runs_is_left_at_a_step(self, context: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its worker goes on with the next scenario."""
        monkeypatch.setattr(worker, "POLL_S", 0.0)
        toy = load_kind(NAME)

        def cancelled_inside(at: AppContext, prepared: PreparedScenario, index: int, step: Any) -> dict[str, Any]:
            if prepared.key == row.id:
                cancel_scenario(at, EVERYBODY, row.id)
                step()
            return toy.run_chunk(at, prepared, index, step)

        monkeypatch.setattr(worker, "load_kind", lambda _: replace(toy, run_chunk=cancelled_inside))
        row = start(context, chunks=3)
        other = start(context, chunks=1)
        run_all(context)
        assert (now_of(context, row).state, now_of(context, row).units_done) == ("cancelled", 0)
        assert result_of(context, other)["trials_done"] == UNITS_A_CHUNK

    def test_a_cancellation_during_the_merge_stays(self, context: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
        """The result that comes after it is thrown away."""
        toy = load_kind(NAME)

        def cancelled_inside(at: AppContext, prepared: PreparedScenario, tallies: Any) -> dict[str, Any]:
            result = toy.finish(at, prepared, tallies)
            cancel_scenario(at, EVERYBODY, prepared.key)
            return result

        monkeypatch.setattr(worker, "load_kind", lambda _: replace(toy, finish=cancelled_inside))
        row = start(context, chunks=2)
        run_all(context)
        found = find_scenario(context, EVERYBODY, row.id)
        assert (found.row.state, found.result) == ("cancelled", None)


class TestWhoMayWhat:
    def test_another_teams_scenario_is_as_unknown_as_none(self, context: AppContext) -> None:
        """To look at, and to cancel."""
        row = start(context, chunks=1)
        for ask in (find_scenario, cancel_scenario):
            with pytest.raises(NotFound, match="there is no scenario of this id"):
                ask(context, THEY, row.id)
        assert now_of(context, row).state == "queued"

    @pytest.mark.parametrize(
        ("most", "told"),
        [
            (OpenWork(1, 10**10), "the team has 1 unfinished scenarios and may have 1"),
            (OpenWork(9, 5000), "the team's unfinished scenarios need 3000 evaluations and this one 3000; a team may have 5000"),
        ],
    )
    def test_a_team_is_told_what_it_may_have(self, context: AppContext, monkeypatch: pytest.MonkeyPatch, most: OpenWork, told: str) -> None:
        """Which limit it has met, and what to do; nothing is made."""
        monkeypatch.setattr(scenarios, "TEAM_QUOTA", most)
        start(context, chunks=3)
        with pytest.raises(TeamQuotaExceeded, match=told) as refused:
            start(context, chunks=3)
        assert (refused.value.status, "cancel one" in refused.value.message) == (429, True)
        assert len(context.store.scenarios("default", 0, 10)) == 1

    def test_more_than_a_team_may_ever_have_is_refused_with_the_limit(self, context: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
        """Waiting would not help."""
        monkeypatch.setattr(scenarios, "TEAM_QUOTA", OpenWork(100, 2000))
        with pytest.raises(InvalidRequest, match="3000 evaluations; at most 2000 are allowed"):
            start(context, chunks=3)

    def test_an_unknown_kind_says_which_there_are(self, context: AppContext) -> None:
        """For those who add one."""
        with pytest.raises(LookupError, match="monte_carlo"):
            scenarios.submit(context, EVERYBODY, replace(given(), kind="tea"), {})

    def test_what_was_over_long_enough_is_forgotten(self, context: AppContext) -> None:
        """With the jobs that worked on it."""
        row = start(context, chunks=1)
        run_all(context)
        before, later = (replace(context, clock=lambda days=days: context.clock() + RETENTION + timedelta(days=days)) for days in (-1, 1))
        assert [forget_scenarios(at) for at in (before, later)] == [0, 1]
        with pytest.raises(NotFound):
            find_scenario(context, EVERYBODY, row.id)
        assert context.store.open_jobs(KIND) == ()


class TestStaff:
    @pytest.fixture
    def context(self, context: AppContext) -> AppContext:
        """At one time, so that nobody grows older in the test."""
        now = context.clock()
        return replace(context, clock=lambda: now)

    def test_there_are_as_many_jobs_as_processes(self, context: AppContext) -> None:
        """Of the workers that were heard of; more would only keep others waiting in the queue."""
        for name, age in (("a", timedelta(0)), ("b", WORKER_TIMEOUT / 2), ("c", 2 * WORKER_TIMEOUT)):
            context.store.beat(name, context.clock() - age)
        assert count_processes(context) == 2 * context.settings.worker_concurrency == 2
        start(context, chunks=5)
        start(context, chunks=5)
        assert len(sent(context)) == 2

    def test_there_are_no_more_than_chunks(self, context: AppContext) -> None:
        """One that finds nothing to do was called in vain."""
        for name in "abcd":
            context.store.beat(name, context.clock())
        start(context, chunks=3)
        assert len(sent(context)) == 3

    def test_jobs_that_were_lost_are_made_again(self, context: AppContext) -> None:
        """By the clock, as long as there is something to do."""
        row = start(context, chunks=2)
        context.store.request_cancel(sent(context).pop(), context.clock())
        assert [enqueue_workers(context), enqueue_workers(context)] == [1, 0]
        run_all(context)
        assert now_of(context, row).state == "succeeded"
        assert enqueue_workers(context) == 0


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.dates()
    | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["$date", "$object", "$range"]), inner),
    max_leaves=20,
)


class TestWhatWorkersAreTold:
    @samples(JSON)
    def test_everything_comes_back_as_it_was(self, value: Any) -> None:
        """Through JSON: dates as dates, decimals as decimals, and objects that only look like one of ours."""
        prepared = PreparedScenario("toy", 1, 1, 1, (1, 2), {"value": value}, "prices-1")
        assert unpack_prepared(json.loads(json.dumps(pack_prepared(prepared))), "id") == replace(prepared, key="id")

    def test_a_programs_request_does(self) -> None:
        """With ranges, times and dates."""
        moment = datetime(2027, 1, 4, 12, 30, tzinfo=UTC)
        request = {
            "base": ProgramRequestSchema().load(EXAMPLE),
            "now": moment,
            "pay": Decimal("0.10"),
            "days": Range(1, 2, 3),
            "day": date(2027, 1, 4),
        }
        prepared = PreparedScenario("toy", 1, 1, 1, (), request, "prices-1")
        assert unpack_prepared(json.loads(json.dumps(pack_prepared(prepared))), "") == prepared

    def test_what_has_no_form_is_refused(self) -> None:
        """Before anything is kept."""
        with pytest.raises(TypeError, match="of type set"):
            pack_prepared(PreparedScenario("toy", 1, 1, 1, (), {"value": {1}}, "prices-1"))


def test_every_kind_is_there() -> None:
    """Each line of the table names a module with its kind."""
    for name in set(KINDS) - {NAME}:
        assert isinstance(load_kind(name), registry.ScenarioKind), name


def test_stopping_is_no_failure() -> None:
    """What stops a worker is none of the exceptions that a chunk may be blamed for."""
    assert not issubclass(JobHandedBack, (InvalidRequest, StoreUnavailable))
