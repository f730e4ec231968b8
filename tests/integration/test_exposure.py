"""Without keys the service is for its own machine alone, however it is started."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from service.config import Settings, to_env
from service.container import build_context
from service.context import AppContext
from service.runtime import bind_guard, serve
from service.usecases.keys import make_key
from tests.support.patience import PATIENT_GUNICORN
from tests.support.servers import DEADLINE_S, listens, wait_for

ROOT = Path(__file__).parents[2]
PUBLIC = "0.0.0.0"


@pytest.fixture
def context(settings: Settings, free_port: int) -> Iterator[AppContext]:
    """A context on a migrated database, to be served with one process."""
    settings.data_dir.mkdir()
    made = build_context(replace(settings, port=free_port, web_workers=1))
    made.store.migrate()
    yield made
    made.store.close()


def make_a_key(context: AppContext) -> None:
    """The first one."""
    make_key(context, "vision", "ci", ["read"], "1h")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machines_own_addresses_are_its_alone(host: str) -> None:
    """By number and by name."""
    assert bind_guard.is_loopback(host)


@pytest.mark.parametrize("host", [PUBLIC, "::", "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"])
def test_others_are_not(host: str) -> None:
    """An address that stands for all of the machine's is public too."""
    assert not bind_guard.is_loopback(host)


def test_a_public_address_needs_a_key(context: AppContext) -> None:
    """The first key opens it; loopback is served without, and told so."""
    assert not bind_guard.check(context.store, ["127.0.0.1"])
    with pytest.raises(bind_guard.ExposedWithoutKeys, match=r"0\.0\.0\.0 can be reached from other machines.*`outlay keys create"):
        bind_guard.check(context.store, ["127.0.0.1", PUBLIC])
    make_a_key(context)
    assert bind_guard.check(context.store, [PUBLIC])


def test_serve_refuses_a_public_address_without_keys(context: AppContext) -> None:
    """Before anything is started, with what to do; a new machine's database is made on the way."""
    with pytest.raises(serve.ServeError, match="`outlay keys create"):
        serve.serve(replace(context.settings, host=PUBLIC))


def test_serve_says_that_there_are_no_keys(context: AppContext, capfd: pytest.CaptureFixture[str]) -> None:
    """On loopback it goes on; with keys there is nothing to say."""
    serve._prepare(context.settings)
    assert "There are no API keys" in capfd.readouterr().err
    make_a_key(context)
    serve._prepare(replace(context.settings, host=PUBLIC))
    assert "API keys" not in capfd.readouterr().err


@pytest.mark.parametrize("told_by", ["the setting", "an option"])
def test_gunicorn_by_itself_refuses_too(context: AppContext, told_by: str) -> None:
    """Whoever starts it without `outlay serve` gets the same answer, wherever the address comes from."""
    host, option = (PUBLIC, []) if told_by == "the setting" else ("127.0.0.1", [f"--bind={PUBLIC}:{context.settings.port}"])
    command = [sys.executable, "-m", "gunicorn", "-c", "python:service.runtime.gunicorn_conf", *option, "service:create_app()"]
    env = {**os.environ, **to_env(replace(context.settings, host=host)), "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=env, cwd=context.settings.data_dir, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert ended.returncode == 1
    assert "Outlay does not start: 0.0.0.0 can be reached from other machines" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_large_body_without_a_key_gets_its_answer(context: AppContext, tmp_path: Path) -> None:
    """16 MB that nobody will look at: the client sees the 401 and not a broken connection, which stays good for the next request."""
    make_a_key(context)
    command = [sys.executable, *PATIENT_GUNICORN]
    env = {**os.environ, **to_env(context.settings), "PYTHONPATH": str(ROOT)}
    with tmp_path.joinpath("log").open("wb") as log:
        server = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=log, stderr=log)
    try:
        wait_for(lambda: listens(context.settings.port), "gunicorn to listen")
        with closing(http.client.HTTPConnection("127.0.0.1", context.settings.port, timeout=DEADLINE_S)) as connection:
            for _ in range(2):
                connection.request("POST", "/v1/estimate/batch", body=bytes(16_000_000), headers={"Content-Type": "application/json"})
                answer = connection.getresponse()
                assert (answer.status, b"API key" in answer.read()) == (401, True)
    finally:
        server.terminate()
        server.wait(DEADLINE_S)
