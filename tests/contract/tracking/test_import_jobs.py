"""Imports by workers: large files and those that prefer it answer 202; each is done once, can be cancelled, and has a limit of CPU time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service.api.resources.tracking import imports as resource
from service.cache import MemoryCache
from service.context import AppContext
from service.domain.jobs import Job, ReportProgress
from service.domain.teams import Principal
from service.domain.tracking.records import RunRecord
from service.formats.imports import bounded_reader
from service.job_kinds import JOB_KINDS
from service.usecases.jobs import JobHandedBack, JobStopped, Worker, run_job
from service.usecases.tracking import import_jobs
from service.usecases.tracking import imports as usecase
from service.usecases.tracking.imports import ImportScope

Body = dict[str, Any]
HEADER = "BillingCurrency,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,BilledCost,ChargeCategory,ServiceCategory,ResourceId\n"
PREFER = {"Prefer": "respond-async"}
ME = Worker("this/1")


@pytest.fixture
def context(tracking_app: Flask, monkeypatch: pytest.MonkeyPatch) -> AppContext:
    """The service's context on each database, after the bills' time, with parts of ten events and no imports of earlier tests."""
    made = replace(tracking_app.extensions["context"], clock=lambda: datetime(2027, 5, 1, tzinfo=UTC))
    monkeypatch.setitem(tracking_app.extensions, "context", made)
    monkeypatch.setattr(usecase, "CHUNK", 10)
    for job in made.store.open_jobs(import_jobs.KIND):
        made.store.request_cancel(job.id, made.clock())
    made.store.close_expired(made.clock() + timedelta(days=1))
    made.store.drop_import_files()
    return made


@pytest.fixture
def client(tracking_app: Flask, context: AppContext) -> FlaskClient:
    """A client of the service."""
    del context
    return tracking_app.test_client()


@pytest.fixture
def run(client: FlaskClient, request: pytest.FixtureRequest) -> Body:
    """A run of a program named after the test."""
    program = client.post("/v1/track/programs", json={"name": request.node.name[:100]}).get_json()
    made: Body = client.post(f"/v1/track/programs/{program['id']}/runs", json={"name": "main"}).get_json()
    return made


def bill(rows: int, cost: float = 2.0, machine: str = "i") -> bytes:
    """A bill of so many charges."""
    line = "USD,2026-02-01T00:00:00Z,2026-02-02T00:00:00Z,{cost},1.0,Usage,Compute,{machine}-{n}\n"
    return (HEADER + "".join(line.format(cost=cost, machine=machine, n=n) for n in range(rows))).encode()


def post(client: FlaskClient, run: Body, content: bytes, headers: dict[str, str] | None = None) -> Any:
    """The answer to an import of a run's bill."""
    query = {"kind": "focus", "run": run["id"]}
    return client.post("/v1/track/imports", query_string=query, data=content, content_type="text/csv", headers=headers or {})


def begun(client: FlaskClient, run: Body, content: bytes) -> str:
    """The address of an import that waits for a worker."""
    answer = post(client, run, content, PREFER)
    assert answer.status_code == 202, answer.text
    return str(answer.headers["Location"])


def work(context: AppContext, address: str, wrapped: Callable[[ReportProgress], ReportProgress] = lambda step: step) -> Job:
    """The job after one attempt of this process; `wrapped` stands in the way of its steps."""

    def attempt(given: AppContext, payload: Any, step: ReportProgress) -> Any:
        return JOB_KINDS[import_jobs.KIND](given, payload, wrapped(step))

    job_id = address.rpartition("/")[2]
    run_job(context, job_id, {import_jobs.KIND: attempt}, ME)
    found = context.store.job(job_id)
    assert found is not None
    return found


def stopping_at(events: int, error: type[JobStopped]) -> Callable[[ReportProgress], ReportProgress]:
    """Steps that raise once so many events are stored."""

    def wrapped(step: ReportProgress) -> ReportProgress:
        def checked(done: int, total: int) -> None:
            step(done, total)
            if done >= events:
                raise error

        return checked

    return wrapped


def stored(client: FlaskClient, run: Body) -> int:
    """Number of a run's events."""
    return len(client.get(f"/v1/track/runs/{run['id']}/events?limit=1000").get_json()["items"])


def test_an_import_by_a_worker_has_the_result_of_one_at_once(client: FlaskClient, context: AppContext, run: Body) -> None:
    """202 with its address, progress, then the same answer; its file is deleted, and the import after 30 days."""
    content = bill(25, machine="of no other run")
    address = begun(client, run, content)
    waiting = client.get(address).get_json()
    assert (waiting["state"], waiting["result"], waiting["progress"]) == ("queued", None, {"done": 0, "total": 0})
    assert (waiting["kind"], waiting["bytes"], waiting["cpu_limit_s"]) == ("focus", len(content), 120)
    work(context, address)
    done = client.get(address).get_json()
    assert (done["state"], done["error"], done["progress"]) == ("succeeded", None, {"done": 25, "total": 25})
    assert done["cpu_s"] > 0
    assert stored(client, run) == 25
    again = post(client, run, content).get_json()
    assert again == done["result"] | {"accepted": 0, "duplicates": 25}
    assert done["result"]["accepted"] == 25
    assert context.store.drop_import_files() == 1
    assert import_jobs.forget_imports(replace(context, clock=lambda: datetime.now(UTC) + timedelta(days=10_000))) >= 1
    assert client.get(address).status_code == 404


def test_only_large_files_are_left_to_workers_unasked(client: FlaskClient, run: Body, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small one has its result at once."""
    monkeypatch.setattr(resource, "ASYNC_BYTES", len(bill(3)))
    assert post(client, run, bill(3)).status_code == 200
    large = post(client, run, bill(4))
    assert (large.status_code, "Preference-Applied" in large.headers) == (202, False)
    assert post(client, run, bill(3), PREFER).headers["Preference-Applied"] == "respond-async"


def test_the_same_file_under_way_is_one_import(client: FlaskClient, context: AppContext, run: Body) -> None:
    """A client whose connection broke sends it again; after the end it is another import, whose events are duplicates."""
    address = begun(client, run, bill(12))
    assert begun(client, run, bill(12)) == address
    assert begun(client, run, bill(12, 3.0)) != address
    work(context, address)
    assert begun(client, run, bill(12)) != address


def test_a_team_has_so_many_imports_under_way(client: FlaskClient, run: Body, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next is refused with what to do."""
    monkeypatch.setattr(import_jobs, "MOST_OPEN", 0)
    answer = post(client, run, bill(1), PREFER)
    assert (answer.status_code, "cancel one" in answer.get_json()["detail"]) == (429, True)


def test_an_import_that_waits_is_cancelled_at_once(client: FlaskClient, context: AppContext, run: Body) -> None:
    """With its file; a worker that comes later does nothing, and a second cancellation neither."""
    address = begun(client, run, bill(7))
    assert client.delete(address).get_json()["state"] == "cancelled"
    assert context.store.import_content(address.rpartition("/")[2]) is None
    assert work(context, address).state == "cancelled"
    assert client.delete(address).status_code == 202
    assert stored(client, run) == 0


def test_reading_stops_where_the_step_says_so(context: AppContext) -> None:
    """The reading process is ended, whatever it does: a cancellation does not wait for it."""

    def cancelled() -> None:
        raise JobHandedBack

    with pytest.raises(JobHandedBack):
        bounded_reader.read_bounded("focus", bill(50_000), "effective", 60, context.settings.data_dir, cancelled)


def test_an_attempt_that_is_cut_off_is_continued(client: FlaskClient, context: AppContext, run: Body) -> None:
    """From the part after the last that was counted: the result is that of one attempt."""
    address = begun(client, run, bill(35))
    job = work(context, address, stopping_at(20, JobHandedBack))
    assert (job.state, job.handed_back, stored(client, run)) == ("running", 1, 20)
    result = work(context, address).result
    assert result is not None
    assert (result["accepted"], result["duplicates"], stored(client, run)) == (35, 0, 35)


def test_a_part_that_was_stored_and_not_counted_counts_once(
    client: FlaskClient, context: AppContext, run: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a worker is killed between the two: its events are duplicates."""
    address = begun(client, run, bill(35))
    with monkeypatch.context() as patched:
        patched.setattr(type(context.store), "save_parts", lambda *_: (_ for _ in ()).throw(OSError("killed here")))
        assert work(context, address).error == "OSError: killed here"
    result = work(context, address).result
    assert result is not None
    assert (result["accepted"], result["duplicates"], stored(client, run)) == (25, 10, 35)


def test_runs_that_change_meanwhile_begin_the_parts_anew(client: FlaskClient, context: AppContext, run: Body) -> None:
    """A run that rows name is made between two attempts: all its rows are stored."""
    rows = (f"i-{n},second\n" if n % 2 else f"i-{n},main\n" for n in range(40))
    line = "USD,2026-02-01T00:00:00Z,2026-02-02T00:00:00Z,2.0,1.0,Usage,Compute,"
    lines = (line + row.replace(",", ',"{""outlay_run"": ""').replace("\n", '""}"\n') for row in rows)
    content = (HEADER.replace("ResourceId", "ResourceId,Tags") + "".join(lines)).encode()
    query = {"kind": "focus", "program": run["program"]}
    answer = client.post("/v1/track/imports", query_string=query, data=content, content_type="text/csv", headers=PREFER)
    work(context, answer.headers["Location"], stopping_at(10, JobHandedBack))
    second = client.post(f"/v1/track/programs/{run['program']}/runs", json={"name": "second"}).get_json()
    result = work(context, answer.headers["Location"]).result
    assert result is not None
    assert (result["accepted"] + result["duplicates"], result["unmatched_count"]) == (40, 0)
    assert (stored(client, run), stored(client, second)) == (20, 20)


def test_cpu_time_ends_an_import_and_says_how_to_go_on(
    client: FlaskClient, context: AppContext, run: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As failed, at once and not three times: what is stored stays, and the same file goes on from there."""
    limited = replace(context, settings=replace(context.settings, import_cpu_seconds=60))
    store_part = import_jobs.store_part

    def costly(*given: Any) -> usecase.ImportCounts:
        monkeypatch.setattr(import_jobs.time, "thread_time", lambda: 1e6)
        return store_part(*given)

    monkeypatch.setattr(import_jobs, "store_part", costly)
    job = work(limited, begun(client, run, bill(35)))
    assert (job.state, job.attempt) == ("failed", 1)
    assert "60 s of CPU time (OUTLAY_IMPORT_CPU_SECONDS); send it in parts" in str(job.error)
    assert "10 of 35 events are stored" in str(job.error)
    assert stored(client, run) == 10
    monkeypatch.undo()


def test_a_file_that_takes_too_long_to_read_fails(
    client: FlaskClient, context: AppContext, run: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel ends the reading process at the limit."""
    monkeypatch.setattr(bounded_reader, "MODULE", "tests.contract.tracking.endless_reader")
    limited = replace(context, settings=replace(context.settings, import_cpu_seconds=1))
    job = work(limited, begun(client, run, bill(5)))
    assert (job.state, "reading the file takes more than its 1 s of CPU time" in str(job.error)) == ("failed", True)
    assert "Nothing is stored" in str(job.error)


@pytest.mark.parametrize(("content", "reason"), [(b"nonsense", "column"), (HEADER.encode() + b"\xff\xfe", "UTF-8")])
def test_a_file_that_cannot_be_read_fails_with_its_reason(
    client: FlaskClient, context: AppContext, run: Body, content: bytes, reason: str
) -> None:
    """In the words of an import at once."""
    job = work(context, begun(client, run, content))
    assert (job.state, job.attempt) == ("failed", 1)
    assert job.error == post(client, run, content).get_json()["detail"]
    assert reason in str(job.error)
    assert client.get(f"/v1/track/imports/{job.id}").get_json()["error"] == job.error


def test_a_waiting_file_counts_in_the_storage_budget(client: FlaskClient, context: AppContext, run: Body) -> None:
    """Until its import has ended."""
    before = context.store.team_storage("default").bytes
    address = begun(client, run, bill(30))
    assert context.store.team_storage("default").bytes - before == len(bill(30))
    client.delete(address)
    assert context.store.team_storage("default").bytes == before


def test_storage_that_is_used_up_ends_an_import(client: FlaskClient, context: AppContext, run: Body) -> None:
    """As failed, with what to do."""
    assert post(client, run, bill(1)).status_code == 200
    address = begun(client, run, bill(5))
    full = replace(context, cache=MemoryCache(), settings=replace(context.settings, team_stored_bytes=1))
    job = work(full, address)
    assert (job.state, "OUTLAY_TEAM_STORED_BYTES" in str(job.error)) == ("failed", True)


def waiting_import(context: AppContext, team: str, rows: int, run: RunRecord | None = None) -> str:
    """The id of a team's import that waits for a worker."""
    who = Principal(team, None, ())
    return import_jobs.submit_import(context, who, "focus", bill(rows), ImportScope(run=run), "effective").id


def later(context: AppContext, seconds: float) -> AppContext:
    """The context so many seconds later."""
    return replace(context, clock=lambda: context.clock() + timedelta(seconds=seconds))


def test_teams_take_turns_at_imports(context: AppContext) -> None:
    """The message of one team's next import runs the other team's, which has waited for a shorter time; then the first goes on."""
    many = [waiting_import(later(context, rows), "many", rows) for rows in (1, 2, 3)]
    few = waiting_import(later(context, 4), "few", 3)
    now = later(context, 5)
    order = []
    for named in (*many, many[2]):
        turn = import_jobs.import_in_turn(now, named)
        assert turn is not None
        assert work(now, f"/{turn}").state == "succeeded"
        order.append(turn)
        now = later(now, 1)
    assert order == [many[0], few, many[1], many[2]]


def test_an_import_that_was_passed_over_is_sent_again(context: AppContext) -> None:
    """Its message is used up; the sweeper makes another."""
    named, other = (waiting_import(later(context, rows), "passed over", rows) for rows in (1, 2))
    context.store.take_unsent(later(context, 5).clock())
    assert import_jobs.import_in_turn(context, other) == named
    assert context.store.job(other).sent_at is None
    assert context.store.job(named).sent_at is not None


def test_imports_leave_a_process_to_other_jobs(context: AppContext) -> None:
    """Of three processes two import; where there is one it imports."""
    three = replace(context, settings=replace(context.settings, worker_concurrency=3))
    one = replace(context, settings=replace(context.settings, worker_concurrency=1))
    first, second, third = (waiting_import(later(context, n), team, 3) for n, team in enumerate("abc"))
    assert import_jobs.import_in_turn(one, first) == first
    assert context.store.claim_job(first, "this/1", context.clock(), 10) is not None
    assert import_jobs.import_in_turn(one, second) is None
    assert import_jobs.import_in_turn(three, second) == second
    assert context.store.claim_job(second, "this/2", context.clock(), 10) is not None
    assert import_jobs.import_in_turn(three, third) is None
    assert import_jobs.import_in_turn(three, first) == first  # held: whoever is sent it finds that out


def test_a_large_import_makes_room_for_another_team(
    client: FlaskClient, context: AppContext, run: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for one of its own team, nor for one that a free process takes at once; reading the file again costs it nothing."""
    monkeypatch.setattr(import_jobs, "STORING_S", -1.0)
    address = begun(client, run, bill(35))
    waiting_import(context, "default", 4)
    other = waiting_import(context, "another", 3)
    while_fresh = work(context, address, stopping_at(10, JobHandedBack))
    assert while_fresh.handed_back == 1
    made_room = work(later(context, 5), address)
    assert (made_room.state, made_room.handed_back, stored(client, run)) == ("running", 2, 20)
    cpu_s = client.get(address).get_json()["cpu_s"]
    context.store.request_cancel(other, context.clock())
    done = work(later(context, 6), address)
    assert done.result is not None
    assert (done.state, done.result["accepted"], stored(client, run)) == ("succeeded", 35, 35)
    assert client.get(address).get_json()["cpu_s"] >= cpu_s
