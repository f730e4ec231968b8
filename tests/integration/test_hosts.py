"""Several web and worker hosts on one PostgreSQL and Redis: networks part, Redis is replaced, a clock is wrong; nothing is lost.

A host is a group of processes with a data directory and network paths of its own.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from redis import Redis

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.store.secret_keys import new_key
from service.usecases.scenarios.registry import KINDS
from service.usecases.scenarios.scenarios import find_scenario
from tests.integration.event_storm import assert_exactly_once, make_runs, storm, web
from tests.integration.outages import own_redis
from tests.integration.scenario_workers import workers_on
from tests.support.freezing_proxy import FreezingProxy
from tests.support.scenario_toy import EVERYBODY, MODULE, NAME, start
from tests.support.servers import find_free_port, wait_for

PARTED_S = 6.0
"""How long a host is cut off [s]: longer than a request waits for the database, shorter than its connections live."""
BEYOND_LEASE_S = 14.0
WRONG_BY_S = 90
WRONG_CLOCK = """
import copyreg, datetime, os, time

shift_s, right, Right = float(os.environ.get("WRONG_BY_S", "0")), time.time, datetime.datetime

class Known(type):
    def __instancecheck__(cls, value):
        return isinstance(value, Right)

class Wrong(Right, metaclass=Known):
    def __new__(cls, *args, **named):
        return Right(*args, **named)

    @classmethod
    def now(cls, tz=None):
        return Right.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls):
        return cls.now(datetime.timezone.utc).replace(tzinfo=None)

if shift_s:
    time.time = lambda: right() + shift_s
    datetime.datetime = Wrong
    copyreg.pickle(Right, lambda value: (Wrong, value.__reduce__()[1]))
"""
"""Python reads it at its start: the wall clock of such a process is wrong, its monotonic clock is not."""

pytestmark = [pytest.mark.soak, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc to look for processes")]


@dataclass(frozen=True)
class Host:
    """Settings of a host, and its paths to database and Redis."""

    settings: Settings
    database: FreezingProxy
    redis: FreezingProxy


@contextmanager
def hosts_on(base: Settings, count: int) -> Iterator[list[Host]]:
    """Hosts of one service, each with paths of its own."""
    key = new_key()
    with ExitStack() as stack:
        made = []
        for number in range(count):
            database = stack.enter_context(closing(FreezingProxy.before(base.database_url)))
            redis = stack.enter_context(closing(FreezingProxy(redis_at(str(base.redis_url)))))
            folder = base.data_dir / f"host-{number}"
            folder.mkdir(parents=True)
            settings = replace(
                base,
                data_dir=folder,
                port=find_free_port(),
                database_url=database.url(base.database_url),
                redis_url=f"redis://127.0.0.1:{redis.port}/0",
                secrets_key=(key,),
                web_workers=1,
                log_level="error",
            )
            made.append(Host(settings, database, redis))
        yield made


def redis_at(url: str) -> tuple[int, object]:
    """The address of a Redis."""
    return socket.AF_INET, ("127.0.0.1", int(url.rpartition(":")[2].partition("/")[0]))


@pytest.fixture
def context(settings: Settings, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppContext]:
    """The test's own context, which reaches both servers directly and knows the toy."""
    monkeypatch.setitem(KINDS, NAME, MODULE)  # type: ignore[arg-type]  # a dictionary
    (tmp_path / "redis").mkdir()
    settings.data_dir.mkdir()
    with own_redis(tmp_path / "redis") as redis:
        made = build_context(replace(settings, database_url=postgres_url, redis_url=redis.url))
        with closing(made.store):
            yield made


@pytest.mark.parametrize("follower", ["promoted", "empty"])
def test_hosts_that_are_cut_off_lose_and_double_nothing(context: AppContext, tmp_path: Path, follower: str) -> None:
    """Two web and two worker hosts: cut off from PostgreSQL, from Redis, and Redis replaced by a replica or an empty one."""
    runs = make_runs(context)
    with ExitStack() as stack:
        one, two, three, four = stack.enter_context(hosts_on(context.settings, 4))
        workers = stack.enter_context(workers_on(context, tmp_path))
        for host in (three, four):
            workers.start(settings=host.settings)
        plain = workers.digest(start(context, chunks=4))
        for host in (one, two):
            (host.settings.data_dir / "log").mkdir()
            stack.enter_context(web(host.settings, host.settings.data_dir / "log"))
        with storm(one.settings.port, runs) as by_one, storm(two.settings.port, runs) as by_two:
            queued = [start(context, chunks=4) for _ in range(5)]
            for path in (one.database, two.redis, three.redis):
                cut_off(path, PARTED_S)
            cut_off(three.database, BEYOND_LEASE_S)
            queued += [start(context, chunks=4) for _ in range(5)]
            replaced = time.monotonic()
            stack.enter_context(another_redis(context, [one, two, three, four], tmp_path, promoted=follower == "promoted"))
            assert {workers.digest(row) for row in queued} == {plain}
            figure(f"redis_{follower}_to_results", time.monotonic() - replaced, "s")
        told = [each.result() for each in (*by_one, *by_two)]
        assert all(each.acknowledged for each in told)
        figure("events_acknowledged_by_hosts", sum(len(each.acknowledged) for each in told), "events, none lost or doubled")
        for row in queued:
            found = find_scenario(context, EVERYBODY, row.id)
            assert (found.row.units_done, found.row.units) == (4000, 4000)
    assert_exactly_once(context, runs, told)


@pytest.mark.parametrize("wrong_by_s", [WRONG_BY_S, -WRONG_BY_S])
def test_a_host_with_a_wrong_clock_keeps_to_leases(context: AppContext, tmp_path: Path, wrong_by_s: int) -> None:
    """It takes no chunk that another holds, nor do others take one that it holds."""
    (tmp_path / "sitecustomize.py").write_text(WRONG_CLOCK)
    wrong = {"WRONG_BY_S": str(wrong_by_s)}
    with workers_on(context, tmp_path) as workers:
        for number, holder in enumerate(({}, wrong)):
            folder = tmp_path / f"turn-{number}"
            folder.mkdir()
            first = workers.start(**holder)
            held = start(context, chunks=3, wait=[1], folder=str(folder))
            wait_for((folder / "at-1").exists, "the chunk to be held")
            second = workers.start(**({} if holder else wrong))
            expected = workers.digest(start(context, chunks=3))
            time.sleep(BEYOND_LEASE_S)
            (folder / "go").touch()
            assert workers.digest(held) == expected
            assert sorted((folder / "made").read_text().split()) == ["0", "1", "2", "merge"]
            for worker in (first, second):
                workers.kill(worker)


def cut_off(path: FreezingProxy, seconds: float) -> None:
    """Nothing passes for so long; what was sent arrives then."""
    path.freeze()
    time.sleep(seconds)
    path.thaw()


@contextmanager
def another_redis(context: AppContext, hosts: list[Host], folder: Path, *, promoted: bool) -> Iterator[None]:
    """The Redis is gone, and another is in its place for all hosts: its replica, or one that has nothing."""
    place = folder / "another"
    place.mkdir()
    with own_redis(place) as other, Redis.from_url(other.url) as after, Redis.from_url(str(context.settings.redis_url)) as before:
        if promoted:
            after.replicaof("127.0.0.1", redis_at(str(context.settings.redis_url))[1][1])  # type: ignore[index]
            wait_for(lambda: after.info("replication")["master_link_status"] == "up", "the replica to follow")
            after.replicaof("NO", "ONE")
        for host in hosts:
            host.redis.lead_to(redis_at(other.url))
        before.shutdown(nosave=True)
        yield


def figure(name: str, value: float, unit: str) -> None:
    """One measured figure as a line of JSON, for those who run `make soak`."""
    print(json.dumps({"name": name, "value": round(value, 2), "unit": unit}))  # noqa: T201 - what the soak is run for
