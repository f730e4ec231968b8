"""Prices that stay: whatever a cloud, Redis or a clock does, the last good prices are served, marked right, and nothing wrong is kept."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from service.config import Settings, load_settings
from service.context import AppContext
from service.domain.jobs import ignore_progress
from service.job_kinds import JOB_KINDS
from service.prices.catalog import BUILT_IN_PROVIDER, REFRESH_THREAD
from service.usecases import jobs
from service.usecases.jobs import Worker, run_job
from service.usecases.prices.refresh import KIND, refresh_due, refresh_prices
from tests.integration.outages import (
    CLOUD,
    GOOD_USD,
    ROUTE,
    TROUBLES,
    OwnRedis,
    answer,
    asking,
    base_url,
    own_redis,
    refresh,
    service,
    usd_and_stale,
)
from tests.support.servers import DEADLINE_S
from tests.support.snapshots import stored_snapshots
from tests.unit.providers.misbehaving_server import Handler, Server, listening


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the shipped prices, as the first refresh keeps them."""
    made = service(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("shipped") / "data"), "OUTLAY_OFFLINE": "1"}))
    refresh_prices(context_of(made), {"provider": BUILT_IN_PROVIDER}, ignore_progress)
    context_of(made).store.close()
    return context_of(made).settings.data_dir / "outlay.db"


@pytest.fixture
def settings(settings: Settings, shipped: Path) -> Settings:
    """Those of a service with the shipped prices: keeping thousands of them anew takes far longer than a test."""
    settings.data_dir.mkdir()
    shutil.copyfile(shipped, settings.data_dir / "outlay.db")
    return settings


@pytest.fixture
def server() -> Iterator[Server]:
    """The cloud."""
    with listening(Server()) as started:
        yield started


@pytest.fixture
def app(settings: Settings, redis_url: str, server: Server) -> Flask:
    """A service with Redis that has the cloud's good prices."""
    made = service(replace(settings, redis_url=redis_url))
    assert refresh(context_of(made), base_url(server, None))["offers"] == 1
    look(made)
    return made


def context_of(app: Flask) -> AppContext:
    """The service's context."""
    context: AppContext = app.extensions["context"]
    return context


def look(app: Flask) -> None:
    """Have the service see what is kept, as it does within a second or two; what Redis remembers of before is older than that by then."""
    wait_until_forgotten = context_of(app).cache
    wait_until_forgotten.set("prices:heads", b"", 0.001)
    context_of(app).catalog.refresh()


def told(app: Flask) -> dict[str, Any]:
    """What /v1/providers says of the cloud."""
    entry: dict[str, Any] = app.test_client().get(f"/v1/providers/{CLOUD}").get_json()
    return entry


def another(app: Flask) -> Flask:
    """A process that starts now, with nothing in its memory."""
    settings = context_of(app).settings
    return service(settings)


class TestTheCloud:
    @pytest.mark.parametrize("trouble", TROUBLES)
    def test_in_any_trouble_its_last_good_prices_are_served_as_stale(self, app: Flask, server: Server, trouble: str) -> None:
        """In this process and in one that starts now; /v1/providers tells what happened; nothing of the answer is kept."""
        assert usd_and_stale(app) == (GOOD_USD, False)
        result = refresh(context_of(app), base_url(server, trouble))
        assert "error" in result, result
        look(app)
        assert usd_and_stale(app) == usd_and_stale(another(app)) == (GOOD_USD, True)
        entry = told(app)
        assert (entry["state"], entry["offers"]) == ("failing", 1)
        assert any(word in entry["last_error"] for word in TROUBLES[trouble][1].split("|")), entry["last_error"]
        assert entry["breaker_open_until"] is not None
        assert len(stored_snapshots(context_of(app).store, CLOUD)) == 1

    def test_when_it_is_well_again_so_are_its_prices(self, app: Flask, server: Server) -> None:
        """Without a restart."""
        refresh(context_of(app), base_url(server, "error of the server"))
        refresh(context_of(app), base_url(server, None))
        look(app)
        assert usd_and_stale(app) == (GOOD_USD, False)
        assert told(app)["state"] == "ok"

    def test_a_price_a_thousand_times_too_high_is_quarantined(self, app: Flask, server: Server) -> None:
        """The good one is served and grows old; the wrong one is reported and kept nowhere."""
        server.on(lambda handler: handler.answer(answer(3_192_000)), f"/well{ROUTE}")
        assert refresh(context_of(app), f"http://{server.host}/well")["quarantined"] == 1
        look(app)
        assert usd_and_stale(app) == usd_and_stale(another(app)) == (GOOD_USD, False)
        (bad,) = told(app)["quarantined"]["examples"]
        assert bad["usd_per_hour"] == 31920
        found = [context_of(app).store.load_snapshot(row["name"]) for row in stored_snapshots(context_of(app).store, CLOUD)]
        assert {float(offer.usd_per_hour) for kept in found if kept for offer in kept.offers} == {GOOD_USD}

    @pytest.mark.parametrize("price", [0, -5, None, "free", 1e400])
    def test_a_price_that_is_none_is_rejected(self, app: Flask, server: Server, price: object) -> None:
        """Never zero, never served."""
        server.on(lambda handler: handler.answer(answer(price)), f"/well{ROUTE}")
        refresh(context_of(app), f"http://{server.host}/well")
        look(app)
        assert usd_and_stale(app)[0] == GOOD_USD
        assert told(app)["state"] == "failing"


REDIS_TROUBLES = ["killed", "flushed", "paused", "frozen", "slow"]


class TestRedis:
    @pytest.fixture
    def own(self, tmp_path: Path) -> Iterator[OwnRedis]:
        """A Redis that may be hurt."""
        with own_redis(tmp_path) as started:
            yield started

    @pytest.mark.parametrize("trouble", REDIS_TROUBLES)
    def test_whatever_happens_to_it_nothing_a_user_sees_changes(
        self, settings: Settings, server: Server, own: OwnRedis, trouble: str
    ) -> None:
        """Neither in a process that runs nor in one that starts: it saves the asking and knows nothing of its own."""
        app = service(replace(settings, redis_url=own.url))
        refresh(context_of(app), base_url(server, None))
        look(app)
        before = app.test_client().get("/v1/offers?limit=1000").get_json()
        own.hurt(trouble)
        context_of(app).catalog.refresh()
        for each in (app, another(app)):
            assert each.test_client().get("/v1/offers?limit=1000").get_json() == before
            assert usd_and_stale(each) == (GOOD_USD, False)

    def test_prices_move_without_it(self, settings: Settings, server: Server, own: OwnRedis) -> None:
        """A refresh is kept and seen."""
        app = service(replace(settings, redis_url=own.url))
        refresh(context_of(app), base_url(server, None))
        look(app)
        own.hurt("killed")
        server.on(lambda handler: handler.answer(answer(2999)), f"/well{ROUTE}")
        refresh(context_of(app), f"http://{server.host}/well")
        look(app)
        assert usd_and_stale(app) == (29.99, False)


class TestClock:
    def test_stale_marks_follow_a_clock_that_jumps(self, app: Flask, server: Server) -> None:
        """A year forward and back; what was dated in the future is neither fresh for ever nor left for a year."""
        context = context_of(app)
        now = [context.clock()]
        moved = app.extensions["context"] = replace(context, clock=lambda: now[0])

        def at(moment: datetime) -> bool:
            now[0] = moment
            look(app)
            return usd_and_stale(app)[1]

        today, ahead = now[0], now[0] + timedelta(days=365)
        assert [at(today), at(ahead), at(today)] == [False, True, False]
        now[0] = ahead
        refresh(moved, base_url(server, None))
        assert not at(ahead)
        assert at(today)
        assert CLOUD in {job.payload["provider"] for job in refresh_due(asking(moved, ""))}
        refresh(moved, base_url(server, None))
        assert not at(today)


class TestManyAtOnce:
    @pytest.mark.parametrize("how", ["by hand", "by using stale prices"])
    def test_two_hundred_requests_cause_one_upstream_fetch(
        self, settings: Settings, server: Server, how: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Over four processes' worth of services on one database, with workers that take what comes while it comes."""
        monkeypatch.setattr(jobs, "LEASE_S", DEADLINE_S)  # of two hundred threads the one that renews a lease may have its turn late
        apps = [service(replace(settings, database_url=postgres_url)) for _ in range(4)]
        url, over = base_url(server, None), threading.Event()
        if how == "by using stale prices":
            refresh(replace(context_of(apps[0]), clock=lambda: datetime(2026, 1, 1, tzinfo=context_of(apps[0]).clock().tzinfo)), url)
            server.asked.clear()
        for app in apps:  # as in an installation: the service and its workers have the same environment
            app.extensions["context"] = asking(context_of(app), url)
        workers = [threading.Thread(target=work, args=(context_of(app), n, over)) for n, app in enumerate(apps)]
        server.on(lambda handler: _when(over, handler), f"/well{ROUTE}")
        statuses: list[int] = []
        requests = [threading.Thread(target=request, args=(apps[n % 4], how, statuses)) for n in range(200)]
        for thread in (*workers, *requests):
            thread.start()
        for thread in requests:
            thread.join()
        over.set()
        for thread in workers:
            thread.join()
        assert len(statuses) == 200
        assert set(statuses) <= {200, 202}
        for thread in threading.enumerate():
            if thread.name == REFRESH_THREAD:
                thread.join()
        finish(asking(context_of(apps[0]), url))
        assert server.asked[f"/well{ROUTE}"] == 1
        assert told(apps[0])["state"] == "ok"


def _when(over: threading.Event, handler: Handler) -> None:
    """The answer, no sooner than all have asked."""
    over.wait(DEADLINE_S)
    handler.answer(answer(3192))


def request(app: Flask, how: str, statuses: list[int]) -> None:
    """One of two hundred."""
    client = app.test_client()
    response = client.post(f"/v1/providers/{CLOUD}/refresh") if how == "by hand" else client.get("/v1/offers?limit=1")
    statuses.append(response.status_code)


def work(context: AppContext, number: int, over: threading.Event) -> None:
    """A worker that looks for jobs until all have asked."""
    while not over.wait(0.02):
        run_all(context, number)


def finish(context: AppContext) -> None:
    """Run what is left."""
    while context.store.open_jobs(KIND):
        run_all(context, 99)


def run_all(context: AppContext, number: int) -> None:
    for job in context.store.open_jobs(KIND):
        run_job(context, job.id, JOB_KINDS, Worker(f"w/{number}"))


@pytest.mark.soak
@pytest.mark.parametrize("trouble", ["hung", "refused", "gzip bomb", "web page"])
def test_an_estimate_takes_no_longer_while_a_cloud_is_asked_in_vain(app: Flask, server: Server, trouble: str) -> None:
    """p99 below 300 ms during and after."""
    asker = threading.Thread(target=refresh, args=(context_of(app), base_url(server, trouble)))
    asker.start()
    took = timed(app, 100)
    asker.join()
    figure(f"estimate_p99_cloud_{trouble}", took)
    assert took < 0.3


@pytest.mark.soak
@pytest.mark.parametrize("trouble", REDIS_TROUBLES)
def test_an_estimate_takes_no_longer_without_redis(settings: Settings, server: Server, trouble: str, tmp_path: Path) -> None:
    """p99 below 300 ms, the first after it happened included, and looks at the prices going on."""
    with own_redis(tmp_path) as own:
        app = service(replace(settings, redis_url=own.url))
        refresh(context_of(app), base_url(server, None))
        look(app)
        timed(app, 5)
        own.hurt(trouble)
        took = timed(app, 100)
    figure(f"estimate_p99_redis_{trouble}", took)
    assert took < 0.3


def timed(app: Flask, count: int) -> float:
    """The slowest of so many estimates [s], each of which may begin a look at the prices."""
    slowest = 0.0
    for _ in range(count):
        context_of(app).catalog._next_refresh = 0.0
        begun = time.perf_counter()
        usd_and_stale(app)
        slowest = max(slowest, time.perf_counter() - begun)
    return slowest


def figure(name: str, seconds: float) -> None:
    """One measured figure as a line of JSON, for those who run `make soak`."""
    print(json.dumps({"name": name.replace(" ", "_"), "value": round(seconds, 4), "unit": "s"}))  # noqa: T201 - what the soak is run for
