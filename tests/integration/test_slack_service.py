"""Slack before real processes: each request is taken by one of them, and answered while the background worker is stopped."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from service.config import Settings, sqlite_path
from service.container import build_context
from service.usecases.slack.channels import map_channel
from tests.integration.test_serve import linux, spaced_in, starting, status, workers
from tests.support.servers import DEADLINE_S, wait_for
from tests.support.slack import CHANNEL, SECRET, WORKSPACE, checked, command_form, headers
from tests.unit.providers.misbehaving_server import Server, listening

PROXIED = {"X-Forwarded-Proto": "https", "Host": "outlay.example"}
"""What a proxy on this machine adds."""


def post(settings: Settings, body: bytes, sent: Mapping[str, str]) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", settings.port, timeout=DEADLINE_S)) as connection:
        connection.request("POST", "/slack/commands", body, dict(sent) | PROXIED)
        return connection.getresponse().status


def unlocked(settings: Settings) -> bool:
    """Whether another process may write to the SQLite database."""
    with closing(sqlite3.connect(str(sqlite_path(settings)), timeout=0)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True


def stop_between_writes(settings: Settings) -> set[int]:
    """Stop the background worker's processes; one that stops inside a write would keep the database's lock, and goes on first."""
    found = workers(settings)
    send(found, signal.SIGSTOP)
    while not unlocked(settings):
        send(found, signal.SIGCONT)
        wait_for(lambda: unlocked(settings), "the end of the worker's write")
        send(found, signal.SIGSTOP)
    return found


def send(processes: Iterable[int], number: signal.Signals) -> None:
    for process in processes:
        os.kill(process, number)


@contextmanager
def stopped(settings: Settings) -> Iterator[None]:
    """While the background worker stands still."""
    found = stop_between_writes(settings)
    try:
        yield
    finally:
        send(found, signal.SIGCONT)


@linux
def test_a_command_is_taken_once_by_all_processes_and_needs_no_worker(tmp_path: Path) -> None:
    settings = replace(spaced_in(tmp_path), slack_signing_secret=SECRET, allow_private_webhooks=True, web_workers=2)
    with starting(tmp_path) as start, listening(Server()) as slack:
        start(settings)
        wait_for(lambda: status(settings, "/readyz") == 200 and workers(settings), "the service and its worker")
        context = build_context(settings)
        with closing(context.store):
            map_channel(context, WORKSPACE, CHANNEL, "default", ["read", "write"], None)
        body = urlencode(command_form("llama 3 8b, 1T tokens on 512 h100", slack.serving(b"ok"))).encode()
        sent = headers(time.time(), body)
        with stopped(settings), ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: post(settings, body, sent), range(8)))
            assert sorted(answers) == [200, *[401] * 7]
            wait_for(lambda: slack.seen, "the answer at the response URL")
        message = checked(json.loads(slack.seen[0][3]))
        assert message["blocks"][0]["text"]["text"].startswith("*About $")
        image = next(block for block in message["blocks"] if block["type"] == "image")
        assert image["image_url"].startswith("https://outlay.example/slack/range.png?")
        assert {oct(path.stat().st_mode & 0o077) for path in settings.data_dir.rglob("*")} == {"0o0"}
        assert len(slack.seen) == 1
