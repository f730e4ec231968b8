"""Messages by a real worker: what happens to a program, and the end of a scenario, arrive at a receiver, signed, once."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from service.api.resources.scenarios import EXAMPLE
from service.config import Settings, to_env
from service.container import build_context
from service.context import AppContext
from service.domain.deliveries import DeliveryTarget
from service.domain.teams import DEFAULT_TEAM, EVERYBODY
from service.domain.tracking.events import Event
from service.queue import JOBS_QUEUE, celery_app
from service.runtime import serve
from service.schemas.scenarios.request import ScenarioRequestSchema, build_request
from service.usecases.scenarios.scenarios import submit
from service.usecases.tracking.alerts import create_rule
from tests.support.servers import DEADLINE_S, wait_for
from tests.unit.providers.misbehaving_server import Server, in_turn, listening
from workers.tasks import JUDGE

ROOT = Path(__file__).parents[2]
SECRET = "whsec_" + "A" * 32


@pytest.fixture(params=["embedded", "redis and postgresql"])
def on(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """The embedded parts, and those of production; receivers may be on this machine."""
    local = replace(settings, allow_private_webhooks=True)
    if request.param == "embedded":
        return local
    return replace(local, redis_url=request.getfixturevalue("redis_url"), database_url=request.getfixturevalue("postgres_url"))


@pytest.fixture
def context(on: Settings) -> Iterator[AppContext]:
    """The test's own context, on a migrated database."""
    on.data_dir.mkdir()
    made = build_context(on)
    made.store.migrate()
    yield made
    made.store.close()


@pytest.fixture
def worker(context: AppContext, tmp_path: Path) -> Iterator[Path]:
    """A worker with its clock; gives its log."""
    env = {**os.environ, **to_env(context.settings), "OUTLAY_LOG_LEVEL": "debug", "PYTHONPATH": str(ROOT)}
    log = tmp_path / "worker.log"
    with log.open("ab") as out:
        command = serve.worker_command(context.settings)
        process = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
    yield log
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(DEADLINE_S)


@pytest.fixture
def server() -> Iterator[Server]:
    """A receiver on this machine."""
    with listening(Server()) as started:
        yield started


def test_what_happens_to_a_program_arrives_once(context: AppContext, worker: Path, server: Server) -> None:
    """The worker judges, sends, is answered 500, and sends the same again; the address stands in no line of its log."""
    url = server.on(in_turn(lambda handler: handler.answer(b"", 500), lambda handler: handler.answer(b"")), "/s3cr3t")
    now = context.clock()
    program = context.store.create_program(DEFAULT_TEAM, {"name": "7B", "state": "open", "budget_usd": 1000.0}, None, now)
    run = context.store.create_run(program, "main", {"name": "main", "tier": None, "state": "open", "planned": {}}, now)
    create_rule(context, program, {"kind": "budget", "shares": [0.5], "targets": [{"webhook": url, "secret": SECRET}]}, None)
    spent = Event("1", "progress", now - timedelta(hours=1), tokens_done=10, cost_micro_usd=600_000_000, accelerator_hours=1.0)
    context.store.append_events(run, [spent], now)
    celery_app(context.settings).send_task(JUDGE, queue=JOBS_QUEUE)
    wait_for(lambda: len(server.seen) == 2, "the message and its repeat")
    assert {Webhook(SECRET).verify(body, headers)["type"] for _, _, headers, body in server.seen} == {"alert.budget"}
    assert len({headers["webhook-id"] for _, _, headers, _ in server.seen}) == 1
    wait_for(lambda: states(context, program.id) == ["sent"], "the delivery to be over")
    assert "s3cr3t" not in worker.read_text()


def test_the_end_of_a_scenario_arrives_once(context: AppContext, worker: Path, server: Server) -> None:
    """The worker evaluates, ends and tells it; the address stands in no line of its log."""
    url = server.on(lambda handler: handler.answer(b""), "/s3cr3t")
    body = {"kind": "monte_carlo", "base": EXAMPLE["base"], "trials": 2000}
    request = build_request(ScenarioRequestSchema().load(body))
    made = submit(context, EVERYBODY, request, body, notify=DeliveryTarget("webhook", url, SECRET))
    wait_for(lambda: server.seen, "the message")
    ((_, _, headers, sent),) = server.seen
    told = Webhook(SECRET).verify(sent, headers)
    assert (told["type"], told["data"]["id"], told["data"]["state"]) == ("scenario.ended", made.id, "succeeded")
    wait_for(lambda: context.store.delivery_of_scenario(made.id).state == "sent", "the delivery to be over")
    assert "s3cr3t" not in worker.read_text()


def states(context: AppContext, program: str) -> list[str]:
    """The states of all deliveries of a program."""
    return [delivery.state for _, _, sent in context.store.alerts(program, 0, 10) for delivery in sent]
