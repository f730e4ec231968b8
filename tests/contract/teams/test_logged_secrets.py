"""No secret stands in a log line at any level: of settings, of the environment, of requests; each line says on whose behalf it is."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from service import create_app
from service.config import SETTING_SPECS, Settings, load_settings, secrets_of
from service.runtime import logs
from service.usecases.keys import make_key
from tests.support.servers import wait_for

SECRET = st.text("abcdefghijkmnpqrstuvwxyzABCDEFGH0123456789", min_size=32, max_size=32)
HIDING_PLACES = {
    "OUTLAY_DATABASE_URL": "postgresql://outlay:{}@127.0.0.1:1/outlay",
    "OUTLAY_REDIS_URL": "redis://:{}@127.0.0.1:1/0",
    "OUTLAY_PROVIDER_URLS": "vast=https://user:{}@127.0.0.1:1/offers",
    "OUTLAY_SLACK_SIGNING_SECRET": "{}",
    "OUTLAY_OIDC_CLIENT_SECRET": "{}",
    "OUTLAY_METRICS_KEY": "{}",
    "OUTLAY_SECRETS_KEY": f"{'B' * 43}=,{{}}{'A' * 11}=",
    "LAMBDA_API_KEY": "{}",
    "AWS_SECRET_ACCESS_KEY": "{}",
}
"""Variables that may hold a secret, with where in their value."""


class Lines(logging.Handler):
    """Every line that a process would write."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logs.JsonFormatter())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def written() -> Iterator[Lines]:
    """What is logged from now on, at the level debug."""
    root, handler = logging.getLogger(), Lines()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)
    logs._secrets.clear()


@pytest.fixture
def app(settings: Settings) -> Iterator[Flask]:
    """The service on an empty database."""
    made = create_app(settings)
    with closing(made.extensions["context"].store) as store:
        store.migrate()
        yield made


def test_every_setting_that_is_secret_has_its_place_here() -> None:
    """A new one is tried too."""
    assert {spec.env for spec in SETTING_SPECS if spec.secret} <= set(HIDING_PLACES)


@pytest.mark.parametrize("variable", HIDING_PLACES)
@given(secret=SECRET)
def test_secrets_of_settings_and_environment_are_hidden(variable: str, secret: str) -> None:
    """Whatever is logged of a setting: itself, its text, an error that quotes it."""
    env = {variable: HIDING_PLACES[variable].format(secret)}
    settings = load_settings({name: value for name, value in env.items() if name.startswith("OUTLAY_")})
    logs.hide(secrets_of(settings, env))
    formatter = logs.JsonFormatter()
    messages = (settings, env, repr(settings), RuntimeError(f"cannot reach {env[variable]}"))
    lines = [formatter.format(logging.LogRecord("x", logging.ERROR, "f", 1, "%s", (message,), None)) for message in messages]
    logs._secrets.clear()
    assert not [line for line in lines if secret in line]


def test_a_redis_with_a_wrong_address_is_logged_without_its_password(settings: Settings, written: Lines, free_port: int) -> None:
    """Its client's own error is in the log."""
    app = create_app(replace(settings, redis_url=f"redis://:a-password-of-redis@127.0.0.1:{free_port}/0"))
    assert app.extensions["context"].cache.get("anything") is None
    assert any("cache out of reach" in line for line in written.lines)
    assert "a-password-of-redis" not in "".join(written.lines)


def test_secrets_of_requests_are_not_logged(app: Flask, written: Lines) -> None:
    """Keys, known and not; secrets and addresses of webhooks; tokens of links; bodies; whatever the answer."""
    client = app.test_client()
    token = make_key(app.extensions["context"], "a team", "writer", ["read", "write"], "never")[1]
    wait_for(lambda: client.get("/v1/accelerators").status_code == 401, "the first key to be known")
    bearer = {"Authorization": f"Bearer {token}"}
    program = client.post("/v1/track/programs", json={"name": "secret program name"}, headers=bearer).get_json()["id"]
    webhook = {"webhook": "https://hooks.example/the-secret-path?the=secret-query", "secret": "whsec_" + "c2VjcmV0" * 4}
    rule: dict[str, Any] = {"kind": "stalled", "hours": 1, "targets": [webhook]}
    slack = {"slack": "https://hooks.slack.com/services/T000/B000/the-slack-secret"}
    rules = f"/v1/track/programs/{program}/alert-rules"
    for target in (webhook, slack, webhook | {"secret": "whsec_wrong"}):
        client.post(rules, json=rule | {"targets": [target]}, headers=bearer)
    assert client.get(rules, headers=bearer).get_json()["items"]
    client.get("/v1/accelerators", headers={"Authorization": "Bearer outlay_0000000000000000_" + "wrong-token" * 4})
    client.get("/v1/accelerators", headers={"Authorization": "Basic dXNlcjpwYXNzd29yZA=="})
    client.get(f"/r/{program}?token=the-token-of-a-link")
    client.post("/slack/commands", data="token=the-slack-token&text=x", headers={"X-Slack-Signature": "v0=the-signature"})
    client.get("/metrics", headers={"Authorization": "Bearer the-wrong-metrics-key"})
    client.post("/v1/estimate", data='{"broken": "secret-body', headers=bearer | {"Content-Type": "application/json"})
    text = "".join(written.lines)
    secrets = [
        "secret program name",
        "the-secret-path",
        "secret-query",
        "c2VjcmV0",
        "the-slack-secret",
        "wrong-token",
        "dXNlcjpwYXNzd29yZA",
    ]
    secrets += ["dXNlcjpwYXNzd29yZA", "the-token-of-a-link", "the-slack-token", "the-signature", "the-wrong-metrics-key", "secret-body"]
    secrets.append(token.rpartition("_")[2])
    assert not [secret for secret in secrets if secret in text]


def test_a_request_is_logged_with_its_key_team_address_and_object(app: Flask, written: Lines) -> None:
    """Ids, no names; the next request on the thread begins anew."""
    client = app.test_client()
    key, token = make_key(app.extensions["context"], "a team", "writer", ["read", "write"], "never")
    wait_for(lambda: client.get("/v1/accelerators").status_code == 401, "the first key to be known")
    written.lines.clear()
    client.get("/v1/track/programs/an-id/status", headers={"Authorization": f"Bearer {token}", "X-Request-Id": "mine"})
    client.get("/healthz", headers={"X-Request-Id": "next"})
    asked, probed = [line for line in map(json.loads, written.lines) if line["logger"] == "service.requests"]
    wanted = {"request_id": "mine", "key": key.id, "team": key.team, "address": "127.0.0.1", "program_id": "an-id", "status": 404}
    assert wanted.items() <= asked.items()
    assert asked["route"] == "/v1/track/programs/<program_id>/status"
    assert not {"key", "team", "program_id"} & set(probed)
