"""Closed programs leave their events to a file and get them back: no figure changes, and nothing is lost, whatever is killed when."""

from __future__ import annotations

import gzip
import hashlib
import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select, update

from service import create_app
from service.config import load_settings
from service.context import AppContext
from service.domain.audit import AuditFilter
from service.domain.errors import InvalidRequest, NotFound, VersionConflictError
from service.domain.teams import DEFAULT_TEAM, SCOPES, Principal
from service.domain.tracking.archive import ProgramArchived
from service.domain.tracking.events import Event
from service.store import Store
from service.store.tracking.tables import track_hours, track_runs
from service.usecases.archiving import archive as usecase
from service.usecases.archiving.archive import archive_program, unarchive_program
from service.usecases.archiving.archive_file import check_archive
from service.usecases.audit import check_stored, list_entries
from service.usecases.tracking.projection import project_all, rebuild
from tests.contract.tracking.test_stateful import EVENTS
from tests.contract.tracking.tracked_program import AS_OF, BEGUN, made, told

Body = dict[str, Any]
LATE: Body = {"type": "note", "at": "2025-08-03T00:00:00Z", "text": "late"}
ROUNDS = 15
WHO = Principal(DEFAULT_TEAM, None, SCOPES, DEFAULT_TEAM)
CORRECTIONS: list[Body] = [
    {"id": "less", "type": "correction", "at": "2025-09-02T00:30:00Z", "supersedes": "disks", "usd": 1000.5},
    {"id": "never", "type": "correction", "at": "2025-09-03T00:30:00Z", "supersedes": "said"},
]


@pytest.fixture
def client(tracking_app: Flask) -> FlaskClient:
    """A client of the service."""
    return tracking_app.test_client()


@pytest.fixture
def context(tracking_app: Flask) -> AppContext:
    """The service's context."""
    found: AppContext = tracking_app.extensions["context"]
    return found


@pytest.fixture
def program(client: FlaskClient) -> Body:
    """A closed program with two runs, corrections among their events."""
    return closed(client, told(client))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that is not there yet."""
    return tmp_path / "program.jsonl.gz"


def closed(client: FlaskClient, program: Body) -> Body:
    """The program with corrections, closed."""
    main = runs_of(client, program)[0]
    made(client, f"/v1/track/runs/{main}/events", {"events": CORRECTIONS})
    answer = client.patch(f"/v1/track/programs/{program['id']}", json={"state": "closed"}, headers={"If-Match": "*"})
    found: Body = answer.get_json()
    return found


def runs_of(client: FlaskClient, program: Body) -> list[str]:
    """Ids of a program's runs."""
    return [run["id"] for run in client.get(f"/v1/track/programs/{program['id']}/runs").get_json()["items"]]


def figures(client: FlaskClient, program: Body, as_of: str = AS_OF) -> Body:
    """Status and report, without what says that the program is archived."""
    at = f"/v1/track/programs/{program['id']}"
    found: Body = client.get(f"{at}/report?as_of={as_of}").get_json()
    assert found["status"]["spend"]["usd"] > 0
    found["status"]["warnings"] = [warning for warning in found["status"]["warnings"] if not warning.startswith("archived on")]
    return found


def logs(client: FlaskClient, program: Body) -> list[bytes]:
    """The logs of a program's runs."""
    return [client.get(f"/v1/track/runs/{run}/events?limit=1000").data for run in runs_of(client, program)]


def hours(context: AppContext, program: Body) -> list[Mapping[int, str]]:
    """Projected hours of a program's runs, byte by byte."""
    project_all(context)
    return [log.hours for log in context.store.run_logs(context.store.runs(program["id"]))]


def test_a_program_comes_back_as_it_was(client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
    """Status, report and hours are the same while it is archived, and the log, byte by byte, when it is back."""
    before = figures(client, program), hours(context, program)
    log = logs(client, program)
    manifest, mark = archive_program(context, WHO, program["id"], file)
    assert manifest.rows["track_events"] == sum(len(json.loads(each)["items"]) for each in log)
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert (figures(client, program), hours(context, program)) == before
    assert check_archive(file) == (manifest, mark.sha256)
    assert unarchive_program(context, WHO, file) == manifest
    assert (figures(client, program), hours(context, program)) == before
    assert logs(client, program) == log
    assert rebuild(context, context.store.runs(program["id"])) == 0
    shown = client.get(f"/v1/track/programs/{program['id']}").get_json()
    assert (shown["archived_at"], shown["version"]) == (None, program["version"] + 2)


def test_what_is_archived_says_so_and_where_single_events_are(client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
    """The program, its status and its report; the log, new and known events and a part of an hour are refused with what to do."""
    at, run = f"/v1/track/programs/{program['id']}", f"/v1/track/runs/{runs_of(client, program)[0]}"
    hour = "2025-08-15T00:59:59.999999Z"
    at_its_end = figures(client, program, hour)
    _, mark = archive_program(context, WHO, program["id"], file)
    assert client.get(at).get_json()["archived_at"] == mark.at.isoformat().replace("+00:00", "Z")
    warnings = client.get(f"{at}/status").get_json()["warnings"]
    assert [mark.sha256 in warning and "outlay unarchive" in warning for warning in warnings if warning.startswith("archived on")] == [True]
    assert {entry["type"] for entry in client.get(f"{at}/report").get_json()["log"]} >= {"decision", "rollback"}
    answers = [
        client.get(f"{run}/events"),
        client.post(f"{run}/events", json={"events": CORRECTIONS}),
        client.post(f"{run}/events", json={"events": [{"id": "new", "type": "note", "at": "2025-08-02T00:00:00Z", "text": "late"}]}),
        client.get(f"{at}/status?as_of=2025-08-15T00:30:00Z"),
        client.get(f"{at}/report?as_of=2025-08-15T00:00:00Z"),
        client.patch(at, json={"state": "open"}, headers={"If-Match": "*"}),
    ]
    for answer in answers:
        assert (answer.status_code, answer.get_json()["type"]) == (409, "/problems/program-archived"), answer.text
    assert hour in answers[3].get_json()["detail"]
    assert figures(client, program, hour) == at_its_end
    assert client.patch(at, json={"name": "renamed"}, headers={"If-Match": "*"}).status_code == 200


def test_archived_hours_are_not_made_anew(client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
    """Without their events they would be lost: neither by a rebuild nor by a worker that is late."""
    before = hours(context, program)
    first = context.store.runs(program["id"])[0]
    archive_program(context, WHO, program["id"], file)
    with pytest.raises(ProgramArchived):
        rebuild(context, [first])
    with pytest.raises(ProgramArchived):
        context.store.events_of_hour([first], max(before[0]))
    assert context.store.project_hours(first, lambda *_: "lost", 100) == 0
    assert hours(context, program) == before


def test_events_find_their_runs_under_other_keys(client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
    """As in a database to which the rows were brought by other means: the file names runs by their ids."""
    log = logs(client, program)
    archive_program(context, WHO, program["id"], file)
    with context.store.engine.connect().execution_options(outlay_write=True) as connection, connection.begin():
        for run in context.store.runs(program["id"]):
            row = dict(connection.execute(select(track_runs).where(track_runs.c.id == run.id)).mappings().one())
            moved = row | {"key": run.key + 1_000_000, "id": "moved", "number": -1}
            connection.execute(insert(track_runs).values(moved))
            connection.execute(update(track_hours).where(track_hours.c.run == run.key).values(run=moved["key"]))
            connection.execute(delete(track_runs).where(track_runs.c.key == run.key))
            connection.execute(update(track_runs).where(track_runs.c.id == "moved").values(id=run.id, number=run.number))
    unarchive_program(context, WHO, file)
    assert logs(client, program) == log


def test_archived_events_do_not_count_for_the_team(client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
    """Until they are back."""
    before = context.store.team_storage(DEFAULT_TEAM)
    manifest, _ = archive_program(context, WHO, program["id"], file)
    after = context.store.team_storage(DEFAULT_TEAM)
    assert before.rows - after.rows == manifest.rows["track_events"]
    assert before.bytes > after.bytes
    unarchive_program(context, WHO, file)
    assert context.store.team_storage(DEFAULT_TEAM) == before


def test_an_import_leaves_archived_runs_out(client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
    """With the reason of each row; other runs get theirs."""
    other = made(client, "/v1/track/programs", {"name": "other"})
    run = made(client, f"/v1/track/programs/{other['id']}/runs", {"name": "open"})["id"]
    archived = runs_of(client, program)[0]
    archive_program(context, WHO, program["id"], file)
    head = "BillingCurrency,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,BilledCost,ChargeCategory,ServiceCategory,ResourceId,Tags\n"
    row = 'USD,2025-08-01T00:00:00Z,2025-08-02T00:00:00Z,2.0,1.0,Usage,Compute,i-1,"{{""outlay_run"": ""{run}""}}"\n'
    bill = (head + row.format(run=archived) + row.format(run=run)).encode()
    answer = client.post("/v1/track/imports?kind=focus", data=bill, content_type="text/csv")
    found = answer.get_json()
    assert (answer.status_code, found["accepted"], found["unmatched_count"]) == (200, 1, 1), found
    assert "archived" in found["unmatched"][0]["reason"]


def test_the_trail_names_both(client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
    """In the transaction of the change."""
    archive_program(context, WHO, program["id"], file)
    unarchive_program(context, WHO, file)
    newest = list_entries(context, WHO, AuditFilter(object=program["id"]), 0, 2)
    assert [entry.operation for entry in newest] == ["program.unarchive", "program.archive"]
    assert check_stored(context, WHO) > 0


class TestRefusals:
    """What is not archived, and no archive: nothing is changed."""

    def test_an_open_program(self, client: FlaskClient, context: AppContext, file: Path) -> None:
        """With how to close it."""
        with pytest.raises(InvalidRequest, match="close it first"):
            archive_program(context, WHO, told(client)["id"], file)
        assert not file.exists()

    def test_a_program_without_events(self, client: FlaskClient, context: AppContext, file: Path) -> None:
        """There is nothing to gain."""
        program = made(client, "/v1/track/programs", {"name": "empty"})
        client.patch(f"/v1/track/programs/{program['id']}", json={"state": "closed"}, headers={"If-Match": "*"})
        with pytest.raises(InvalidRequest, match="no events"):
            archive_program(context, WHO, program["id"], file)

    @pytest.mark.parametrize(("minutes", "is_past"), [(0, False), (59, False), (69, False), (70, True)])
    def test_before_the_last_hour_is_past(
        self, client: FlaskClient, context: AppContext, program: Body, file: Path, minutes: int, is_past: bool
    ) -> None:
        """On every host: a status of the present would need a part of it."""
        last = datetime.fromtimestamp(3600 * max(max(each) for each in hours(context, program)), UTC)
        then = replace(context, clock=lambda: last + timedelta(minutes=minutes))
        if is_past:
            archive_program(then, WHO, program["id"], file)
            return
        with pytest.raises(InvalidRequest, match=f"archive the program after {last + timedelta(minutes=70):%Y-%m-%dT%H:%M}Z"):
            archive_program(then, WHO, program["id"], file)

    def test_another_teams_program_is_as_unknown(self, client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
        """To archive, and to bring back."""
        other = replace(WHO, team=context.store.team("other", context.clock()).id)
        for unknown in (program["id"], "0"):
            with pytest.raises(NotFound, match="there is no program of this id"):
                archive_program(context, other, unknown, file)
        archive_program(context, WHO, program["id"], file)
        with pytest.raises(NotFound, match="there is no program of this id"):
            unarchive_program(context, other, file)

    def test_a_file_that_is_there(self, client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
        """Of something else, of another program, and of an earlier state of this one."""
        log = logs(client, program)
        file.write_text("mine")
        with pytest.raises(InvalidRequest, match="is damaged or is not an archive"):
            archive_program(context, WHO, program["id"], file)
        assert file.read_text() == "mine"
        other, earlier = closed(client, told(client)), file.with_name("earlier")
        archive_program(context, WHO, other["id"], earlier)
        with pytest.raises(InvalidRequest, match="not the current archive of this program"):
            archive_program(context, WHO, program["id"], earlier)
        assert logs(client, program) == log

    def test_a_program_whose_events_are_there(self, client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
        """Nothing is put beside them."""
        archive_program(context, WHO, program["id"], file)
        unarchive_program(context, WHO, file)
        with pytest.raises(InvalidRequest, match="is not archived: its events are in the database"):
            unarchive_program(context, WHO, file)

    def test_a_file_that_is_not_the_one(self, client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
        """Another event in it, and all its sums made to fit, is noticed by the database's own SHA-256."""
        archive_program(context, WHO, program["id"], file)
        changed = file.with_name("changed")
        lines = gzip.decompress(file.read_bytes()).replace(b"two switches", b"six switches").splitlines(keepends=True)[:-1]
        changed.write_bytes(gzip.compress(b"".join([*lines, sealed(lines)])))
        check_archive(changed)
        with pytest.raises(InvalidRequest, match="is not the archive of this program"):
            unarchive_program(context, WHO, changed)
        with pytest.raises(InvalidRequest, match="is not the archive of this program"):
            archive_program(context, WHO, program["id"], changed)

    def test_a_damaged_file(self, client: FlaskClient, context: AppContext, program: Body, file: Path) -> None:
        """A byte less, a byte changed anywhere, a line less, another format."""
        archive_program(context, WHO, program["id"], file)
        whole, changed = file.read_bytes(), file.with_name("changed")
        lines = gzip.decompress(whole).splitlines(keepends=True)
        rows, other = lines[:-2], [lines[0].replace(b'"format": 1', b'"format": 2'), *lines[1:-1]]
        damaged = [whole[:-1], b"", gzip.compress(b""), gzip.compress(b"".join(lines[:-1])), gzip.compress(b"".join([*rows, sealed(rows)]))]
        damaged += [whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :] for place in range(10, len(whole), len(whole) // 40)]
        for content in [*damaged, gzip.compress(b"".join([*other, sealed(other)]))]:
            changed.write_bytes(content)
            with pytest.raises(InvalidRequest, match=r"damaged|no archive"):
                unarchive_program(context, WHO, changed)

    @pytest.mark.parametrize(
        "line",
        [b"7", b"[]", b'{"table": ["events"]}', b'{"table": "events", "at": {"time": 7}}', b'{"at": {"decimal": "x"}}', b'{"at": {}}'],
    )
    def test_a_line_that_is_no_row(self, client: FlaskClient, context: AppContext, program: Body, file: Path, line: bytes) -> None:
        """Under the right digest."""
        archive_program(context, WHO, program["id"], file)
        lines = [*gzip.decompress(file.read_bytes()).splitlines(keepends=True)[:-1], line + b"\n"]
        changed = file.with_name("changed")
        changed.write_bytes(gzip.compress(b"".join([*lines, sealed(lines)])))
        with pytest.raises(InvalidRequest, match="damaged"):
            unarchive_program(context, WHO, changed)


def sealed(lines: Sequence[bytes]) -> bytes:
    """The last line of these lines."""
    return json.dumps({"sha256": hashlib.sha256(b"".join(lines)).hexdigest()}).encode() + b"\n"


class Killed(BaseException):
    """As SIGKILL: nothing is caught, and nothing is cleaned up."""


ARCHIVE_STEPS = ("program_log", "mark_archived", "after mark_archived", "drop_archived_events", "after drop_archived_events")
UNARCHIVE_STEPS = ("put_archived_events", "after put_archived_events", "end_archive", "after end_archive")


def killed_at(monkeypatch: pytest.MonkeyPatch, step: str, times: int) -> None:
    """End the process before or after the store has done a step so many times."""
    name = step.removeprefix("after ")
    whole, calls = getattr(Store, name), iter(range(1000))

    def cut(*args: Any, **more: Any) -> Any:
        is_last = next(calls) == times
        if is_last and name == step:
            raise Killed
        done = whole(*args, **more)
        if is_last:
            raise Killed
        return done

    monkeypatch.setattr(Store, name, cut)


@pytest.mark.parametrize("step", [*ARCHIVE_STEPS, "check_archive"])
def test_an_archive_that_is_killed_loses_nothing_and_goes_on(
    client: FlaskClient, context: AppContext, program: Body, file: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """At every step: the log is whole until the file is, the figures stay, and the same command ends it."""
    monkeypatch.setattr(usecase, "EVENTS_AT_ONCE", 10)
    log, before = logs(client, program), hours(context, program)
    with monkeypatch.context() as patched:
        if step == "check_archive":
            patched.setattr(usecase, "check_archive", lambda _: (_ for _ in ()).throw(Killed))
        else:
            killed_at(patched, step, 2 if "drop" in step else 0)
        with pytest.raises(Killed):
            archive_program(context, WHO, program["id"], file)
    is_archived = client.get(f"/v1/track/programs/{program['id']}").get_json()["archived_at"] is not None
    assert is_archived == (step in ARCHIVE_STEPS[2:])
    assert (logs(client, program) == log) != is_archived
    assert hours(context, program) == before
    archive_program(context, WHO, program["id"], file)
    unarchive_program(context, WHO, file)
    assert (logs(client, program), hours(context, program)) == (log, before)


@pytest.mark.parametrize("step", UNARCHIVE_STEPS)
def test_a_return_that_is_killed_goes_on(
    client: FlaskClient, context: AppContext, program: Body, file: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The program is archived until all of it is back; an archive in place of it ends what was put back."""
    monkeypatch.setattr(usecase, "EVENTS_AT_ONCE", 10)
    log = logs(client, program)
    archive_program(context, WHO, program["id"], file)
    with monkeypatch.context() as patched:
        killed_at(patched, step, 2 if "put" in step else 0)
        with pytest.raises(Killed):
            unarchive_program(context, WHO, file)
    if step == "after end_archive":
        assert logs(client, program) == log
        return
    assert client.get(f"/v1/track/runs/{runs_of(client, program)[0]}/events").status_code == 409
    archive_program(context, WHO, program["id"], file)
    unarchive_program(context, WHO, file)
    assert logs(client, program) == log


def test_an_event_after_the_file_was_written_stops_the_archive(
    client: FlaskClient, context: AppContext, program: Body, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing leaves: the file would not have it. With another file it is archived."""
    run, marked = runs_of(client, program)[1], Store.mark_archived

    def late(store: Store, *args: Any) -> None:
        made(client, f"/v1/track/runs/{run}/events", {"events": [LATE | {"id": "late"}]})
        marked(store, *args)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "mark_archived", late)
        with pytest.raises(InvalidRequest, match="new events arrived"):
            archive_program(context, WHO, program["id"], file)
    assert b'"late"' in b"".join(logs(client, program))
    archive_program(context, WHO, program["id"], file.with_name("second"))


def test_of_an_event_and_an_archive_at_once_one_is_refused(context: AppContext) -> None:
    """Either the event is acknowledged and the program is not archived, or the other way round."""
    store, won = context.store, []
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            found = store.create_program(DEFAULT_TEAM, {"name": "p", "state": "closed"}, None, BEGUN)
            run = store.create_run(found, "r", {"name": "r", "state": "closed"}, BEGUN)
            begin = threading.Barrier(2)
            tries: list[Callable[[], object]] = [
                partial(store.append_events, run, [Event(f"e{number}", "note", BEGUN, text="x")], BEGUN),
                partial(store.mark_archived, found, {run.id: 0}, found.body, BEGUN, None),
            ]
            appended, marked = pool.map(partial(is_done, begin), tries)
            assert appended != marked
            assert [bool(store.runs(found.id)[0].archived_at), store.runs(found.id)[0].position] == [marked, int(appended)]
            won.append(marked)
    assert len(won) == ROUNDS


def is_done(begin: threading.Barrier, attempt: Callable[[], object]) -> bool:
    """Whether an attempt succeeds that begins with another one."""
    begin.wait()
    try:
        attempt()
    except (ProgramArchived, VersionConflictError):
        return False
    return True


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    """A service for programs made up."""
    app = create_app(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("made up") / "data"), "OUTLAY_OFFLINE": "1"}))
    with closing(app.extensions["context"].store) as store:
        store.migrate()
        yield app


@given(events=EVENTS, corrected=st.lists(st.integers(0, 12), max_size=5), step=st.integers(1, 7))
def test_whatever_its_events_a_program_comes_back_as_it_was(
    ours: Flask, events: Sequence[Body], corrected: Sequence[int], step: int
) -> None:
    """Every type, corrections, retractions and corrections of corrections: hours byte by byte, and the log."""
    client, context = ours.test_client(), ours.extensions["context"]
    program = made(client, "/v1/track/programs", {"name": "made up"})
    run = made(client, f"/v1/track/programs/{program['id']}/runs", {"name": "main"})["id"]
    sent = [{**event, "id": f"e{place}"} for place, event in enumerate(events)]
    sent += [
        {"id": f"e{len(events) + place}", "type": "correction", "at": "2025-09-01T00:00:00Z", "supersedes": f"e{target}"}
        for place, target in enumerate(corrected)
    ]
    made_of = client.post(f"/v1/track/runs/{run}/events", json={"events": sent})
    assert made_of.status_code == 200, made_of.text
    client.patch(f"/v1/track/programs/{program['id']}", json={"state": "closed"}, headers={"If-Match": "*"})
    log, before = logs(client, program), hours(context, program)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(usecase, "EVENTS_AT_ONCE", step)
        archive_program(context, WHO, program["id"], Path(folder) / "file")
        assert hours(context, program) == before
        unarchive_program(context, WHO, Path(folder) / "file")
    assert (logs(client, program), hours(context, program)) == (log, before)
    assert rebuild(context, context.store.runs(program["id"])) == 0
