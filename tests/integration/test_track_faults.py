"""Tracking when a disk is full, a database takes no changes, or Redis hangs: events are taken whole or not at all, and never lied about."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import make_url, text

from service import create_app
from service.config import Settings
from service.domain.tracking.records import RunRecord
from service.store.database import Database
from service.usecases.keys import make_key
from tests.integration.event_storm import log_of, make_runs
from tests.integration.outages import own_redis

SMALL = "8m"
BATCH = 200
LINES = "x" * 500
"""What makes an event large: a few dozen batches fill a small disk."""
Answer = tuple[int, str | None, dict[str, Any]]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes; a named skip where this user may not mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    with mounted(place):
        yield place


@contextmanager
def mounted(place: Path) -> Iterator[None]:
    """A file system in memory at that place."""
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(place)], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the program mount")
    if done.returncode:
        pytest.skip(f"needs to mount a small file system: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def remount(place: Path, option: str) -> None:
    """Change a mounted file system."""
    subprocess.run(["mount", "-o", f"remount,{option}", str(place)], check=True)


@contextmanager
def served(settings: Settings) -> Iterator[Flask]:
    """The service on a migrated database."""
    settings.data_dir.mkdir(exist_ok=True)
    app = create_app(settings)
    with closing(app.extensions["context"].store) as store:
        store.migrate()
        yield app


def batch(number: int) -> list[dict[str, Any]]:
    """A large batch of events."""
    at = "2026-02-01T00:00:00Z"
    return [{"id": f"note-{number}-{index}", "type": "note", "at": at, "text": LINES} for index in range(BATCH)]


def post(client: FlaskClient, run: RunRecord, number: int) -> Answer:
    """Status, Retry-After and body of the answer to a batch."""
    answer = client.post(f"/v1/track/runs/{run.id}/events", json={"events": batch(number)})
    return answer.status_code, answer.headers.get("Retry-After"), answer.get_json()


def is_refused(answer: Answer, told: str) -> None:
    """A 503 that says when to come again and what is the matter, without a path or a statement."""
    status, retry_after, body = answer
    assert (status, body["status"], body["type"]) == (503, 503, "/problems/unavailable")
    assert retry_after is not None
    assert int(retry_after) > 0
    assert told in body["detail"]
    assert "/" not in body["detail"]


def kept(app: Flask, run: RunRecord) -> list[str]:
    """Ids of the run's log, in order."""
    return [event.id for _, event in log_of(app.extensions["context"], run)]


def ids(numbers: list[int]) -> list[str]:
    """Ids of whole batches."""
    return [event["id"] for number in numbers for event in batch(number)]


def test_a_full_disk_refuses_batches_whole_and_takes_them_when_there_is_space_again(small_disk: Path, settings: Settings) -> None:
    """503 with Retry-After, nothing half-written, what was acknowledged is still read; no restart needed."""
    full = replace(settings, data_dir=small_disk, database_url=f"sqlite:///{small_disk}/outlay.db")
    with served(full) as app:
        client, (run,) = app.test_client(), make_runs(app.extensions["context"], 1)
        answers = [post(client, run, number) for number in range(50)]
        taken = [number for number, answer in enumerate(answers) if answer[0] == 200]
        assert 0 < len(taken) < 50
        for number in set(range(50)) - set(taken):
            is_refused(answers[number], "no space left")
        assert kept(app, run) == ids(taken)
        assert client.get(f"/v1/track/programs/{run.program}/status").status_code == 200
        remount(small_disk, "size=64m")
        again = [post(client, run, number)[2] for number in range(50)]
        assert [(body["accepted"], body["duplicates"]) for body in again] == [
            (0, BATCH) if number in taken else (BATCH, 0) for number in range(50)
        ]
        assert sorted(kept(app, run)) == sorted(ids(list(range(50))))


def test_a_file_system_gone_read_only_refuses_batches_until_it_can_be_written(small_disk: Path, settings: Settings) -> None:
    """As kernels do after a fault of the disk, while the database's write-ahead log lies beside it; what is there is still read."""
    database_url = f"sqlite:///{small_disk}/outlay.db"
    with served(replace(settings, data_dir=small_disk, database_url=database_url)) as app:
        client, (run,) = app.test_client(), make_runs(app.extensions["context"], 1)

        def turn(state: str) -> None:
            beside = {path: path.read_bytes() for path in small_disk.glob("outlay.db-*")}
            app.extensions["context"].store.close()  # a file system with files open for writing is not turned by hand
            if state == "ro":
                for path, content in beside.items():
                    path.write_bytes(content)
            remount(small_disk, state)

        goes_read_only_and_back(app, client, run, turn)


@pytest.mark.own_database
def test_a_read_only_postgresql_refuses_batches_until_it_can_be_written(settings: Settings, postgres_url: str) -> None:
    """As a standby does, or a server whose operator says so."""
    url = make_url(postgres_url)
    elsewhere = url.set(database="postgres").render_as_string(hide_password=False)
    with served(replace(settings, database_url=postgres_url)) as app, closing(Database(elsewhere)) as admin:
        client, (run,) = app.test_client(), make_runs(app.extensions["context"], 1)

        def turn(state: str) -> None:
            with admin.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                value = {"ro": "on", "rw": "off"}[state]
                connection.execute(text(f'ALTER DATABASE "{url.database}" SET default_transaction_read_only = {value}'))
            app.extensions["context"].store.close()  # a session keeps what it began with

        goes_read_only_and_back(app, client, run, turn)


def goes_read_only_and_back(app: Flask, client: FlaskClient, run: RunRecord, turn: Callable[[str], object]) -> None:
    """Taken, refused whole while it is `ro`, taken again; reading never stops."""
    assert post(client, run, 0)[0] == 200
    turn("ro")
    is_refused(post(client, run, 1), "takes no changes")
    assert kept(app, run) == ids([0])
    turn("rw")
    assert post(client, run, 1)[2]["accepted"] == BATCH
    assert kept(app, run) == ids([0, 1])


@pytest.mark.parametrize("how", ["paused", "killed"])
def test_events_are_taken_while_redis_is_away(tmp_path: Path, settings: Settings, how: str) -> None:
    """What was answered with 200 is in the database, also of a key whose requests Redis counts."""
    with own_redis(tmp_path) as redis, served(replace(settings, redis_url=redis.url)) as app:
        client, run = with_key(app)
        redis.hurt(how)
        assert post(client, run, 0)[0] == 200
        assert kept(app, run) == ids([0])


@pytest.mark.soak
def test_a_paused_redis_costs_little(tmp_path: Path, settings: Settings) -> None:
    """The first answer may wait for Redis once, those after it do not."""
    with own_redis(tmp_path) as redis, served(replace(settings, redis_url=redis.url)) as app:
        client, run = with_key(app)
        post(client, run, 0)
        redis.hurt("paused")
        first, *later = [timed(lambda number=number: post(client, run, number)) for number in range(1, 30)]
    for name, seconds in (("first_event_batch_redis_paused", first), ("event_batch_redis_paused_p50", statistics.median(later))):
        print(json.dumps({"name": name, "value": round(seconds * 1000, 1), "unit": "ms"}))  # noqa: T201 - what the soak is run for
    assert first < 0.5
    assert statistics.median(later) < 0.1


def with_key(app: Flask) -> tuple[FlaskClient, RunRecord]:
    """A client that brings an API key, and a run of its team."""
    context = app.extensions["context"]
    (run,) = make_runs(context, 1)
    client = app.test_client()
    token = make_key(context, run.team, "sender", ["write"], "1h")[1]
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    return client, run


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
