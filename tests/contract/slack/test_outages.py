"""Slack waits three seconds for an acknowledgement: it comes while database and Redis hang and no worker runs."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from sqlalchemy import make_url

from service import cache, create_app
from service.config import Settings
from service.slack import signatures
from service.store import hang_guard, watched_connection
from service.usecases.slack.channels import map_channel
from tests.contract.store.test_hung_database import FreezingProxy, proxy
from tests.support.servers import wait_for
from tests.support.slack import CHANNEL, SECRET, WORKSPACE, command_form, headers, installed, texts

__all__ = ["proxy"]


def test_a_command_is_acknowledged_while_everything_hangs(
    settings: Settings, proxy: FreezingProxy, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "TIMEOUT_S", 0.25)
    monkeypatch.setattr(signatures, "CACHE_WAIT_S", 0.15)
    url = make_url(postgres_url).set(host="127.0.0.1", port=proxy.port, query={}).render_as_string(hide_password=False)
    with socket.create_server(("127.0.0.1", 0)) as redis:
        hung = replace(
            settings,
            database_url=url,
            redis_url=f"redis://127.0.0.1:{redis.getsockname()[1]}",
            slack_signing_secret=SECRET,
            allow_private_webhooks=True,
        )
        app = create_app(hung)
        context = app.extensions["context"]
        with closing(context.store), installed(app) as slack:
            context.store.migrate()
            map_channel(context, WORKSPACE, CHANNEL, "default", ["read"], None)
            monkeypatch.setattr(watched_connection, "PATIENCE_S", 0.1)
            monkeypatch.setattr(hang_guard, "PING_S", 0.3)
            proxy.freeze()
            body = urlencode(command_form("llama 3 8b, 1T tokens on 512 h100", slack.response_url())).encode()
            response = slack.client.post("/slack/commands", data=body, headers=headers(time.time(), body))
            assert (response.status_code, response.data) == (200, b"")
            wait_for(lambda: slack.received, "word of the outage")
            assert "database cannot be reached" in texts(slack.received[0])
