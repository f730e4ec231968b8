"""Scenarios over HTTP, on every kind of database: asked for, looked at, watched, cancelled; and what is refused at once."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from providers.offer import Fetched
from providers.snapshot import SnapshotProvider
from service.api.http.blueprint import POLL_AFTER_S
from service.api.resources import scenarios as resource
from service.api.resources.scenarios import EXAMPLE, MOST_STREAMS
from service.job_kinds import JOB_KINDS
from service.prices.catalog import PriceCatalog
from service.prices.snapshots import SnapshotRepository
from service.schemas.paging import page_schema
from service.schemas.scenarios.request import ScenarioEntrySchema, ScenarioSchema, SubmittedScenarioSchema
from service.store import OpenWork
from service.usecases.jobs import Worker, run_job
from service.usecases.scenarios import scenarios as usecase
from service.usecases.scenarios.worker import KIND, maintain_scenarios
from tests.contract.doors import is_problem

Body = dict[str, Any]
URL = "/v1/scenarios"
BASE: Body = EXAMPLE["base"]
SMALL: Body = {"kind": "monte_carlo", "base": BASE, "trials": 2000, "seed": 7}


class WithoutAws(SnapshotProvider):
    """Other prices than those that ship with the project."""

    def fetch(self) -> Fetched:
        shipped = super().fetch()
        return replace(shipped, offers=tuple(offer for offer in shipped.offers if offer.provider == "azure"))


@pytest.fixture
def client(tracking_app: Flask) -> FlaskClient:
    """A client of the service on each database."""
    return tracking_app.test_client()


def made(client: FlaskClient, body: Body = SMALL) -> Body:
    """A scenario that is taken."""
    answer = client.post(URL, json=body)
    assert answer.status_code == 202, answer.text
    found: Body = answer.get_json()
    return found


def work(app: Flask) -> None:
    """What a worker would do, until there is nothing left."""
    context = app.extensions["context"]
    maintain_scenarios(context)
    while jobs := context.store.open_jobs(KIND):
        for job in jobs:
            run_job(context, job.id, JOB_KINDS, Worker("this/1"))
        maintain_scenarios(context)


def refused(client: FlaskClient, body: Body) -> tuple[str, str]:
    """Pointer and message of a request that is refused."""
    errors = is_problem(client.post(URL, json=body), 422)["errors"]
    return errors[0]["pointer"], errors[0]["message"]


def events(answer: Any) -> list[tuple[str, Body]]:
    """The events of a stream, each with its data."""
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in answer.text.strip().split("\n\n")]
    return [(block["event"], json.loads(block["data"])) for block in blocks if "event" in block]


class TestAsking:
    def test_it_is_found_where_its_location_says(self, client: FlaskClient) -> None:
        """At once, queued, with what was asked and the prices it is evaluated with."""
        answer = client.post(URL, json=SMALL)
        found = client.get(answer.headers["Location"]).get_json()
        assert (answer.status_code, SubmittedScenarioSchema().validate(answer.get_json()), ScenarioSchema().validate(found)) == (
            202,
            {},
            {},
        )
        assert (found["state"], found["progress"], found["result"]) == ("queued", {"done": 0, "total": 2000}, None)
        assert (found["request"], found["price_snapshot"][:9]) == (SMALL, "snapshot-")

    def test_its_result_is_there_when_it_is_over(self, tracking_app: Flask, client: FlaskClient) -> None:
        """The same for the same seed."""
        first, second = made(client), made(client)
        work(tracking_app)
        one, other = (client.get(f"{URL}/{each['id']}").get_json() for each in (first, second))
        assert (one["state"], one["progress"], ScenarioSchema().validate(one)) == ("succeeded", {"done": 2000, "total": 2000}, {})
        assert one["result"] == other["result"]
        assert one["result"]["trials_done"] == 2000

    def test_the_same_request_twice_makes_one(self, client: FlaskClient) -> None:
        """Under one Idempotency-Key."""
        headers = {"Idempotency-Key": "scenario-1"}
        first, second = (client.post(URL, json=SMALL | {"seed": 11}, headers=headers) for _ in range(2))
        assert (first.get_json(), first.headers["Location"]) == (second.get_json(), second.headers["Location"])
        assert first.headers["Retry-After"] == second.headers["Retry-After"] == str(POLL_AFTER_S)
        is_problem(client.post(URL, json=SMALL | {"seed": 12}, headers=headers), 422)

    def test_what_was_accepted_is_repeated_whatever_became_of_its_prices(
        self, tracking_app: Flask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is prepared for it again: here the offer it was priced by is gone."""
        asked, headers = SMALL | {"base": {**BASE, "price": {"provider": "aws"}}}, {"Idempotency-Key": "scenario-aws"}
        first = tracking_app.test_client().post(URL, json=asked, headers=headers)
        assert first.status_code == 202, first.text
        context = tracking_app.extensions["context"]
        later = replace(context, catalog=PriceCatalog(SnapshotRepository(WithoutAws, context.store)))
        monkeypatch.setitem(tracking_app.extensions, "context", later)
        client = tracking_app.test_client()
        assert refused(client, asked)[0] == "/base/price"
        assert client.post(URL, json=asked, headers=headers).get_json() == first.get_json()

    def test_lists_are_paged_while_more_are_made(self, client: FlaskClient) -> None:
        """Every scenario once, the newest first, none with its result; what is made meanwhile shifts nothing."""
        mine = [made(client)["id"] for _ in range(5)]
        found, cursor = [], ""
        while cursor is not None:
            page = client.get(f"{URL}?limit=2" + (f"&cursor={cursor}" if cursor else "")).get_json()
            assert page_schema(ScenarioEntrySchema)().validate(page) == {}
            found += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
            made(client) if len(found) == 2 else None
        assert found[: len(mine)] == mine[::-1]
        assert len(found) == len(set(found))

    def test_lists_can_be_of_one_state(self, tracking_app: Flask, client: FlaskClient) -> None:
        """And of no state that there is not."""
        ended, going = made(client)["id"], made(client)["id"]
        client.delete(f"{URL}/{ended}")
        listed = {state: client.get(f"{URL}?state={state}&limit=1000").get_json()["items"] for state in ("queued", "cancelled")}
        assert {item["state"] for item in listed["queued"]} == {"queued"}
        assert {item["state"] for item in listed["cancelled"]} == {"cancelled"}
        assert (listed["queued"][0]["id"], listed["cancelled"][0]["id"]) == (going, ended)
        assert is_problem(client.get(f"{URL}?state=done"), 422)["errors"][0]["pointer"] == "/state"

    def test_a_billion_trials_are_taken(self, client: FlaskClient) -> None:
        """And cancelled again."""
        body = made(client, SMALL | {"trials": 1e9, "early_stop": False})
        assert body["progress"]["total"] == 10**9
        client.delete(f"{URL}/{body['id']}")


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "pointer", "told"),
        [
            ({"trials": 1e12, "early_stop": False}, "/trials", "1 and 1e+10"),
            ({"trials": 0}, "/trials", "between 1"),
            ({"seed": -1}, "/seed", "cannot be negative"),
            ({"distributions": {"price.usd_per_accelerator_hour": {"normal": {"mean": 2, "sd": -1}}}}, "sd", "above 0"),
            ({"distributions": {"hardware.cuont": {"uniform": [8, 16]}}}, "hardware.cuont", "unknown field"),
            ({"distributions": {f"x.{n}": {"uniform": [1, 2]} for n in range(101)}}, "/distributions", "at most 100"),
            ({"axes": {"hardware.count": [8]}}, "/axes", "not taken by a scenario of kind monte_carlo"),
            ({"base": BASE | {"modle": {}}}, "/base/modle", "unknown field"),
            ({"base": []}, "/base", "must be an object"),
            ({"base": BASE | {"hardware": {"accelerator": "A1000-80GB", "count": 8}}}, "/base/hardware/accelerator", "A100"),
            ({"base": BASE | {"model": {"preset": "llama-2-7c"}}}, "/base/model/preset", "llama-2-7b"),
            ({"base": BASE | {"price": {"provider": "nobody"}}}, "/base/price", "nobody"),
            ({"base": BASE | {"model": {"params": "100T"}, "hardware": {"accelerator": "H100", "count": 8}}}, "/base", "no layout fits"),
            ({"kind": "montecarlo"}, "/kind", "did you mean 'monte_carlo'"),
            ({"trails": 5}, "/trails", "did you mean 'trials'"),
        ],
    )
    def test_what_cannot_be_is_told_where(self, client: FlaskClient, change: Body, pointer: str, told: str) -> None:
        """At once, with the limit; nothing is made."""
        before = len(client.get(f"{URL}?limit=1000").get_json()["items"])
        where, message = refused(client, SMALL | change)
        assert pointer in where + message
        assert told in message
        assert len(client.get(f"{URL}?limit=1000").get_json()["items"]) == before

    def test_a_sweep_of_a_billion_cells_is_refused_before_any_is_made(self, client: FlaskClient) -> None:
        """With how many there would be, and how many there may."""
        axes = {path: [1] * 1000 for path in ("hardware.count", "data.tokens", "training.seq_len")}
        pointer, message = refused(client, {"kind": "sweep", "base": BASE, "axes": axes})
        assert (pointer, message[:13], "20,000" in message) == ("/axes", "1,000,000,000", True)

    def test_a_huge_graph_is_refused_by_the_programs_own_limits(self, client: FlaskClient) -> None:
        """More runs in a tier than a program may have."""
        run = {
            "name": "x",
            "estimate": {"model": {"params": "1B"}, "data": {"tokens": "1B"}, "hardware": {"accelerator": "H100", "count": 8}},
        }
        tiers = [{"tier": "production", "runs": [run | {"name": f"r{n}"} for n in range(5000)]}]
        pointer, message = refused(client, {"kind": "monte_carlo", "base": {"name": "huge", "tiers": tiers}})
        assert pointer.startswith("/base/tiers/0/runs")
        assert "5,000" in message

    def test_a_team_has_a_limit(self, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
        """429, with the limit and what to do."""
        monkeypatch.setattr(usecase, "TEAM_QUOTA", OpenWork(0, 10**10))
        detail = is_problem(client.post(URL, json=SMALL), 429)["detail"]
        assert ("may have 0" in detail, "cancel one" in detail) == (True, True)


class TestCancelling:
    def test_it_is_cancelled_at_once(self, tracking_app: Flask, client: FlaskClient) -> None:
        """202 with the scenario; it stays so, whatever workers do and however often it is asked."""
        url = f"{URL}/{made(client)['id']}"
        answers = [client.delete(url) for _ in range(2)]
        work(tracking_app)
        assert [answer.status_code for answer in answers] == [202, 202]
        assert [answer.get_json()["state"] for answer in (*answers, client.get(url))] == ["cancelled"] * 3

    def test_one_that_is_over_stays_as_it_is(self, tracking_app: Flask, client: FlaskClient) -> None:
        """With its result."""
        url = f"{URL}/{made(client)['id']}"
        work(tracking_app)
        before = client.get(url).get_json()
        assert client.delete(url).get_json() == before
        assert before["state"] == "succeeded"

    def test_what_nobody_has_is_not_found(self, client: FlaskClient) -> None:
        """By any method."""
        for method in ("GET", "DELETE"):
            is_problem(client.open(f"{URL}/nobodys", method=method), 404)
        is_problem(client.get(f"{URL}/nobodys/progress"), 404)


class TestWatching:
    def test_the_end_is_told_and_the_stream_is_over(self, client: FlaskClient) -> None:
        """As server-sent events, which no cache keeps."""
        found = made(client)
        client.delete(f"{URL}/{found['id']}")
        answer = client.get(f"{URL}/{found['id']}/progress")
        assert (answer.status_code, answer.mimetype, answer.headers["Cache-Control"]) == (200, "text/event-stream", "no-store")
        assert answer.text.startswith("retry: 1000\n\n")
        ((event, data),) = events(answer)
        assert (event, data["state"], data["id"]) == ("end", "cancelled", found["id"])

    def test_progress_is_told_as_it_is_made(self, tracking_app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
        """Once for each change, then the end."""
        monkeypatch.setattr(resource, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: work(tracking_app)))
        found = made(client)
        told = events(client.get(f"{URL}/{found['id']}/progress"))
        assert [(event, data["state"]) for event, data in told] == [("progress", "queued"), ("end", "succeeded")]
        assert [data["progress"]["done"] for _, data in told] == [0, 2000]

    def test_a_stream_ends_after_its_time(self, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
        """And says nothing of an end."""
        monkeypatch.setattr(resource, "STREAM_S", 0.0)
        found = made(client)
        assert events(client.get(f"{URL}/{found['id']}/progress")) == []
        client.delete(f"{URL}/{found['id']}")

    def test_a_process_keeps_few_streams(self, client: FlaskClient) -> None:
        """503 with Retry-After beyond; one that is closed makes room."""
        url = f"{URL}/{made(client)['id']}/progress"
        streams = [client.get(url, buffered=False) for _ in range(MOST_STREAMS)]
        refusal = client.get(url)
        assert (is_problem(refusal, 503)["status"], refusal.headers["Retry-After"]) == (503, "5")
        for stream in streams:
            stream.close()
        client.delete(url.removesuffix("/progress"))
        assert client.get(url).status_code == 200
