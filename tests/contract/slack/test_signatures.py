"""Signed requests: forms as Slack sends them are taken once; whatever else is refused before anything is read."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, quote, quote_plus, urlencode

import pytest
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from service import create_app
from service.cache import MemoryCache, RedisCache
from service.config import Settings
from service.slack.signatures import BUCKET_S, BadSignature, SeenSignatures, verify
from tests.support.servers import find_free_port
from tests.support.slack import SECRET, Slack, command_form, headers, press_payload, signature, texts

HELP = {"text": "help", "team_id": "T0001"}


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def post(client: FlaskClient, body: bytes, sent: Mapping[str, str]) -> TestResponse:
    return client.post("/slack/commands", data=body, headers=dict(sent))


def fresh(name: str) -> bytes:
    """A form that no other test sends."""
    return urlencode(HELP | {"trigger_id": name}).encode()


def test_the_example_of_slacks_documentation() -> None:
    """docs.slack.dev/authentication/verifying-requests-from-slack: secret, time, body and signature as published."""
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
        b"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com"
        b"%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    published = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    assert signature(SECRET, "1531420618", body) == published


@pytest.mark.parametrize("encode", [quote, quote_plus])
def test_a_form_is_taken_in_either_encoding_of_spaces(slack: Slack, encode: object) -> None:
    form = command_form("llama 3 8b, 1T tokens on 512 h100 at $2 + 10%", slack.response_url())
    body = urlencode(form, quote_via=encode).encode()
    assert (b"+3+" in body) != (b"%203%20" in body)
    assert post(slack.client, body, headers(time.time(), body)).status_code == 200


def test_the_same_request_is_taken_once(client: FlaskClient) -> None:
    body, sent = fresh("once"), headers(time.time(), fresh("once"))
    assert "Ask in words" in texts(post(client, body, sent).get_json())
    again = post(client, body, sent)
    assert again.status_code == 401
    assert again.get_json()["detail"] == "This request was sent before."


@pytest.mark.parametrize(("age_s", "status"), [(-301, 401), (-300, 200), (0, 200), (300, 200), (301, 401)])
def test_a_signature_holds_for_five_minutes(app: Flask, monkeypatch: pytest.MonkeyPatch, age_s: int, status: int) -> None:
    now, body = datetime.now(UTC).replace(microsecond=0), fresh(f"age {age_s}")
    monkeypatch.setitem(app.extensions, "context", replace(app.extensions["context"], clock=lambda: now))
    assert post(app.test_client(), body, headers(now.timestamp() - age_s, body)).status_code == status


def test_a_forged_signature_is_refused(client: FlaskClient) -> None:
    body = fresh("forged")
    assert post(client, body, headers(time.time(), body, secret="f" * 32)).status_code == 401


def test_a_body_that_was_encoded_anew_is_refused(client: FlaskClient) -> None:
    body = urlencode(HELP | {"trigger_id": "a b+c"}).encode()
    anew = urlencode(parse_qsl(body.decode()), quote_via=quote).encode()
    assert dict(parse_qsl(anew.decode())) == dict(parse_qsl(body.decode()))
    assert post(client, anew, headers(time.time(), body)).status_code == 401


@pytest.mark.parametrize("missing", ["X-Slack-Signature", "X-Slack-Request-Timestamp"])
def test_an_unsigned_request_is_refused(client: FlaskClient, missing: str) -> None:
    body = fresh(missing)
    sent = {name: value for name, value in headers(time.time(), body).items() if name != missing}
    assert post(client, body, sent).status_code == 401


@pytest.mark.parametrize("path", ["/slack/commands", "/slack/interactions"])
def test_without_the_apps_secret_nothing_is_there(settings: Settings, path: str) -> None:
    response = create_app(settings).test_client().post(path, data=b"", content_type="application/x-www-form-urlencoded")
    assert response.status_code == 404
    assert "OUTLAY_SLACK_SIGNING_SECRET" in response.get_json()["detail"]


@pytest.mark.parametrize("url", ["https://hooks.slack.com.example.com/commands/1", "https://example.com/", "http://hooks.slack.com/a", ""])
def test_answers_go_to_slacks_host_alone(client: FlaskClient, url: str) -> None:
    body = urlencode(command_form("llama 3 8b, 1T tokens on 512 h100", url)).encode()
    response = post(client, body, headers(time.time(), body))
    assert response.status_code == 422
    assert "response_url" in response.get_json()["detail"]


@given(bit=st.integers(0, 8 * 100 - 1), part=st.sampled_from(["body", "signature", "timestamp"]))
def test_a_flipped_bit_is_refused(client: FlaskClient, bit: int, part: str) -> None:
    now = time.time()
    parts = {"body": fresh("flip"), "timestamp": str(int(now)).encode()}
    parts["signature"] = signature(SECRET, parts["timestamp"].decode(), parts["body"]).encode()
    flipped = bytearray(parts[part])
    flipped[bit // 8 % len(flipped)] ^= 1 << bit % 8
    parts[part] = bytes(flipped)
    stamp, signed = (parts[name].decode("latin-1") for name in ("timestamp", "signature"))
    with pytest.raises(BadSignature):
        verify(SECRET, parts["body"], stamp, signed, client.application.extensions["context"].clock(), _Unasked())


class _Unasked(SeenSignatures):
    """What a refused request must not reach."""

    def __init__(self) -> None:
        """No folder."""

    def is_first(self, signature: str, signed_s: int, now_s: float) -> bool:
        raise AssertionError("a refused signature was remembered")


def test_machines_that_share_a_cache_take_a_request_once(tmp_path: Path) -> None:
    shared = MemoryCache()
    one, other = (SeenSignatures(tmp_path / machine, shared) for machine in ("one", "other"))
    assert one.is_first("v0=" + "a" * 64, BUCKET_S, BUCKET_S)
    assert not other.is_first("v0=" + "a" * 64, BUCKET_S, BUCKET_S)


def test_a_cache_that_is_away_refuses_nothing(tmp_path: Path) -> None:
    away = RedisCache(f"redis://127.0.0.1:{find_free_port()}")
    assert SeenSignatures(tmp_path, away).is_first("v0=" + "a" * 64, BUCKET_S, BUCKET_S)


def test_signatures_are_known_to_all_processes_and_forgotten_when_they_hold_no_more(tmp_path: Path) -> None:
    one, other = (SeenSignatures(tmp_path / "seen", None) for _ in range(2))
    name, now_s = "v0=" + "a" * 64, 10 * BUCKET_S
    assert one.is_first(name, now_s, now_s)
    assert not other.is_first(name, now_s, now_s)
    later_s = now_s + 3 * BUCKET_S
    assert one.is_first("v0=" + "b" * 64, later_s, later_s)
    assert [bucket.name for bucket in (tmp_path / "seen").iterdir()] == [str(later_s // BUCKET_S)]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["actions", "team", "id", "action_id", "value"]), inner),
    max_leaves=6,
)


@given(junk=JUNK, place=st.sampled_from(["team", "channel", "user", "actions", "response_url", "type"]))
def test_a_signed_payload_of_any_form_is_no_error_of_the_service(app: Flask, junk: object, place: str) -> None:
    payload = press_payload("why", "{}", "https://hooks.slack.com/actions/1") | {place: junk}
    body = urlencode({"payload": json.dumps(payload), "trigger_id": str(uuid.uuid4())}).encode()
    response = app.test_client().post("/slack/interactions", data=body, headers=headers(time.time(), body))
    assert response.status_code in (200, 400, 422)


@pytest.mark.parametrize("body", [b"payload=%7B", b"payload=[1", b"", b"a=%ff", b"&".join(b"a=%d" % n for n in range(101))])
def test_a_signed_body_that_cannot_be_read_is_refused(client: FlaskClient, body: bytes) -> None:
    response = client.post("/slack/interactions", data=body, headers=headers(time.time(), body))
    assert response.status_code == 400
