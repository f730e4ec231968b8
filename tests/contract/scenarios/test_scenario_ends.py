"""The message about the end of a scenario, on every kind of database: signed, stored with the end, retried, and shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from standardwebhooks import Webhook

from service.api.resources.scenarios import EXAMPLE
from service.context import AppContext
from service.job_kinds import JOB_KINDS
from service.runtime.webhooks import Undelivered
from service.schemas.scenarios.request import ScenarioEndSchema, ScenarioSchema, SubmittedScenarioSchema
from service.usecases.delivery.deliver import MAX_ATTEMPTS, deliver_due
from service.usecases.jobs import Worker, run_job
from service.usecases.scenarios.worker import KIND, maintain_scenarios
from tests.contract.doors import is_problem

Body = dict[str, Any]
URL = "/v1/scenarios"
HOOK = "https://example.com/hook/s3cr3t"
SECRET = "whsec_" + "A" * 32
SMALL: Body = {"kind": "monte_carlo", "base": EXAMPLE["base"], "trials": 2000, "seed": 7}


class Receiver:
    """A receiver that keeps what it gets, and fails so often before."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.got: list[tuple[str, bytes, Mapping[str, str]]] = []

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> None:
        del private
        self.got.append((url, body, headers))
        if len(self.got) <= self.failures:
            raise Undelivered("example.com: answered 503")


@pytest.fixture
def client(tracking_app: Flask) -> FlaskClient:
    """A client of the service on each database."""
    return tracking_app.test_client()


@pytest.fixture
def context(tracking_app: Flask) -> AppContext:
    """The service's context, in which no message of an earlier test waits to be sent again."""
    found: AppContext = tracking_app.extensions["context"]
    while deliver_due(later(found, 24.0), Receiver()):
        continue
    return found


def asked(client: FlaskClient, notify: Body, **more: Any) -> Body:
    """A scenario whose end is told."""
    answer = client.post(URL, json=SMALL | {"notify": notify}, **more)
    assert answer.status_code == 202, answer.text
    found: Body = answer.get_json()
    return found


def work(context: AppContext) -> None:
    """What a worker would do, until there is nothing left."""
    maintain_scenarios(context)
    while jobs := context.store.open_jobs(KIND):
        for job in jobs:
            run_job(context, job.id, JOB_KINDS, Worker("tests/1"))


def later(context: AppContext, hours: float) -> AppContext:
    """The context so much later."""
    return replace(context, clock=lambda: context.clock() + timedelta(hours=hours))


def test_an_end_is_told_once_and_signed(client: FlaskClient, context: AppContext) -> None:
    made, receiver = asked(client, {"url": HOOK, "secret": SECRET}), Receiver()
    assert not SubmittedScenarioSchema().validate(made)
    assert made["notify"] == {"host": "example.com", "secret": SECRET}
    assert deliver_due(context, receiver) == 0
    work(context)
    assert [deliver_due(context, receiver) for _ in range(2)] == [1, 0]
    (url, body, headers) = receiver.got[0]
    told = Webhook(SECRET).verify(body, dict(headers))
    assert not ScenarioEndSchema().validate(told)
    found = client.get(told["data"]["url"]).get_json()
    assert not ScenarioSchema().validate(found)
    assert (url, told["type"], told["data"]["id"], told["data"]["state"]) == (HOOK, "scenario.ended", made["id"], "succeeded")
    assert told["timestamp"] == found["updated_at"]
    assert (found["notify"]["host"], found["notify"]["state"], found["notify"]["attempts"]) == ("example.com", "sent", 1)


def test_a_cancelled_scenario_is_told_of_too(client: FlaskClient, context: AppContext) -> None:
    made, receiver = asked(client, {"url": HOOK}), Receiver()
    before = client.get(f"{URL}/{made['id']}").get_json()["notify"]
    assert before == {"host": "example.com", "state": None, "attempts": 0, "last_error": None, "sent_at": None}
    client.delete(f"{URL}/{made['id']}")
    client.delete(f"{URL}/{made['id']}")
    assert deliver_due(context, receiver) == 1
    assert Webhook(made["notify"]["secret"]).verify(receiver.got[0][1], dict(receiver.got[0][2]))["data"]["state"] == "cancelled"


def test_a_receiver_that_fails_gets_the_same_message_again_and_is_given_up_at_last(client: FlaskClient, context: AppContext) -> None:
    made, receiver = asked(client, {"url": HOOK}), Receiver(failures=99)
    client.delete(f"{URL}/{made['id']}")
    for attempt in range(MAX_ATTEMPTS + 2):
        deliver_due(later(context, 13.0 * attempt), receiver)
    assert len({(body, headers["webhook-id"]) for _, body, headers in receiver.got}) == 1
    assert len(receiver.got) == MAX_ATTEMPTS
    told = client.get(f"{URL}/{made['id']}").get_json()["notify"]
    assert (told["state"], told["last_error"]) == ("failed", "example.com: answered 503")


def test_addresses_and_secrets_are_shown_nowhere(client: FlaskClient, context: AppContext) -> None:
    made = asked(client, {"url": HOOK, "secret": SECRET})
    client.delete(f"{URL}/{made['id']}")
    deliver_due(context, Receiver(failures=1))
    for address in (URL, f"{URL}/{made['id']}"):
        text = client.get(address).text
        assert "s3cr3t" not in text
        assert SECRET not in text


def test_a_repeated_request_has_the_first_secret_and_one_message(client: FlaskClient, context: AppContext) -> None:
    first, again = (asked(client, {"url": HOOK}, headers={"Idempotency-Key": "once"}) for _ in range(2))
    assert first == again
    client.delete(f"{URL}/{first['id']}")
    assert deliver_due(context, Receiver()) == 1


@pytest.mark.parametrize(
    ("notify", "pointer"),
    [
        ({"url": "http://example.com/hook"}, "/notify/url"),
        ({"url": "https://169.254.169.254/latest"}, "/notify/url"),
        ({"url": "https://localhost/hook"}, "/notify/url"),
        ({"url": HOOK, "secret": "short"}, "/notify/secret"),
        ({"url": HOOK, "slack": "x"}, "/notify/slack"),
        ({}, "/notify/url"),
    ],
)
def test_what_cannot_be_told_is_refused_when_it_is_asked(client: FlaskClient, notify: Body, pointer: str) -> None:
    answer = client.post(URL, json=SMALL | {"notify": notify})
    is_problem(answer, 422)
    assert [error["pointer"] for error in answer.get_json()["errors"]] == [pointer]


def test_without_notify_nobody_is_told(client: FlaskClient, context: AppContext) -> None:
    made = client.post(URL, json=SMALL).get_json()
    client.delete(f"{URL}/{made['id']}")
    assert made["notify"] is None
    assert client.get(f"{URL}/{made['id']}").get_json()["notify"] is None
    assert deliver_due(context, Receiver()) == 0


def test_the_specification_describes_the_message(tracking_app: Flask) -> None:
    specification = tracking_app.test_client().get("/openapi.json").get_json()
    (callback,) = specification["paths"][URL]["post"]["callbacks"].values()
    (path, described), *_ = callback.items()
    assert path == "{$request.body#/notify/url}"
    schema = described["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    members = specification["components"]["schemas"][schema.rpartition("/")[2]]["properties"]
    assert set(members) == {"type", "timestamp", "data"}
    assert json.dumps(described).count('"in": "header"') == 3
