"""Providers, price history and ETags over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from flask.testing import FlaskClient

from providers.offer import Fetched, Offer, Provider, ProviderError
from service import create_app
from service.api.http.etags import ETAG
from service.config import Settings
from service.context import AppContext, Providers
from service.domain.jobs import ignore_progress
from service.usecases.prices.refresh import KIND, refresh_prices
from tests.contract.web.visitor import words_of

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
H100 = "NVIDIA-H100-80GB-SXM"


class World:
    """The time and what each source answers."""

    def __init__(self) -> None:
        self.now = NOW
        self.usd: dict[str, str] = {"east": "40"}
        self.trouble = ""


class Nimbus(Provider):
    """A cloud in the test's hands."""

    name = "nimbus"
    fresh_for = HOUR
    credentials = ("NIMBUS_KEY",)

    def __init__(self, world: World) -> None:
        self.world = world

    def fetch(self) -> Fetched:
        if self.world.trouble:
            raise ProviderError(self.world.trouble)
        sold = ("h100x8", H100, 8, "on_demand")
        return Fetched(tuple(Offer("nimbus", r, *sold, Decimal(usd), self.world.now, "api") for r, usd in self.world.usd.items()), "n")


class Shipped(Provider):
    """One price that ships with the project."""

    name = "snapshot"
    fresh_for = timedelta(days=180)
    local = True

    def fetch(self) -> Fetched:
        at = NOW - timedelta(days=9)
        return Fetched((Offer("aws", "us-east-1", "p5", H100, 8, "on_demand", Decimal(55), at, "list"),), "snapshot-1")


@pytest.fixture
def world() -> World:
    """A cloud with one price at noon."""
    return World()


class SentNowhere:
    """A queue without a worker at its end."""

    def send(self, job_id: str) -> None:
        """Nobody looks at it."""

    def ping(self) -> bool:
        return True


@pytest.fixture
def app_context(settings: Settings, world: World) -> Iterator[tuple[FlaskClient, AppContext]]:
    """The application on a migrated database, with that cloud, one without credentials and the shipped prices."""
    settings.data_dir.mkdir()
    app = create_app(replace(settings, offline=False))
    made: AppContext = app.extensions["context"]
    made.store.migrate()
    known = {"nimbus": lambda: Nimbus(world), "snapshot": Shipped}
    providers = Providers(lambda: ("nimbus", "snapshot"), lambda name: known[name](), {"NIMBUS_KEY": "k"})
    context = app.extensions["context"] = replace(made, providers=providers, clock=lambda: world.now, queue=SentNowhere())
    yield app.test_client(), context
    made.store.close()


@pytest.fixture
def client(app_context: tuple[FlaskClient, AppContext]) -> FlaskClient:
    """Its client."""
    return app_context[0]


@pytest.fixture
def context(app_context: tuple[FlaskClient, AppContext]) -> AppContext:
    """Its context."""
    return app_context[1]


def refresh(context: AppContext, **said: bool) -> None:
    """What the worker does."""
    refresh_prices(context, {"provider": "nimbus", **said}, ignore_progress)
    context.catalog.refresh()


def got(client: FlaskClient, address: str) -> dict[str, Any]:
    """The body of a good answer."""
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.get_json()
    return body


class TestProviders:
    def test_they_are_listed_by_name_in_pages(self, client: FlaskClient) -> None:
        """One that was never asked says so."""
        page = got(client, "/v1/providers?limit=1")
        assert [(item["name"], item["state"]) for item in page["items"]] == [("nimbus", "never_asked")]
        rest = got(client, f"/v1/providers?cursor={page['next_cursor']}")
        assert [item["name"] for item in rest["items"]] == ["snapshot"]
        assert rest["next_cursor"] is None

    def test_a_good_answer_shows_what_came_and_when_the_next_is_due(self, client: FlaskClient, context: AppContext) -> None:
        """Within the promise, a little early."""
        refresh(context)
        entry = got(client, "/v1/providers/nimbus")
        assert (entry["state"], entry["offers"], entry["last_success_at"]) == ("ok", 1, "2027-01-04T12:00:00Z")
        assert "2027-01-04T12:48" <= entry["next_refresh_at"] <= "2027-01-04T13:00:00Z"
        assert entry["rejected"] == entry["quarantined"] == entry["suspicious"] == {"count": 0, "examples": []}
        assert entry["warnings"] == []

    def test_states_follow_what_happens(self, client: FlaskClient, context: AppContext, world: World) -> None:
        """Stale when the promise has run out, failing with the reason and the breaker, ok when it is back."""
        refresh(context)
        world.now += 2 * HOUR
        assert got(client, "/v1/providers/nimbus")["state"] == "stale"
        world.trouble = "nimbus answered 503"
        refresh(context)
        entry = got(client, "/v1/providers/nimbus")
        assert (entry["state"], entry["last_error"], entry["offers"]) == ("failing", "nimbus answered 503", 1)
        assert entry["breaker_open_until"] == entry["next_refresh_at"] > "2027-01-04T14"
        world.trouble = ""
        refresh(context, by_hand=True)
        assert got(client, "/v1/providers/nimbus")["state"] == "ok"

    def test_the_page_names_what_fails_first(self, client: FlaskClient, context: AppContext, world: World) -> None:
        """Since when it was read, what it answered and when, and what is done about it."""
        refresh(context)
        world.now += 2 * HOUR
        world.trouble = "nimbus answered 503"
        refresh(context)
        page = words_of(client.get("/prices"))
        assert "nimbus fails. nimbus was last read on 4 Jan 2027 12:00 UTC." in page
        assert "1 of 2 sources is fresh . nimbus fails." in page
        assert "nimbus fails" in words_of(client.get("/"))
        sources = page.partition("what is wrong")[2]
        assert sources.index("nimbus") < sources.index("snapshot")
        assert "nimbus answered 503 (4 Jan 2027 14:00 UTC)" in sources
        assert "A failing source keeps its last good prices in use" in page

    def test_the_page_says_whose_prices_were_never_read(self, client: FlaskClient, context: AppContext, world: World) -> None:
        """What then counts in their place."""
        world.trouble = "nimbus answered 503"
        refresh(context)
        assert "nimbus was never read here: its prices are those that ship with the service." in words_of(client.get("/prices"))

    def test_a_price_that_is_not_believed_is_shown_with_the_reason(self, client: FlaskClient, context: AppContext, world: World) -> None:
        """Row, price and why."""
        refresh(context)
        world.usd = {"east": "40000"}
        refresh(context)
        quarantined = got(client, "/v1/providers/nimbus")["quarantined"]
        assert quarantined["count"] == 1
        assert quarantined["examples"][0]["usd_per_hour"] == 40000
        assert "jumped" in quarantined["examples"][0]["reason"]

    def test_without_credentials_it_is_not_configured(self, client: FlaskClient, context: AppContext) -> None:
        """It says what is missing; that is no error and nothing is due."""
        client.application.extensions["context"] = replace(context, providers=replace(context.providers, env={}))
        entry = got(client, "/v1/providers/nimbus")
        assert (entry["state"], entry["missing"], entry["last_error"]) == ("not_configured", "not set: NIMBUS_KEY", None)
        assert entry["next_refresh_at"] is None
        assert entry["credentials"] == ["NIMBUS_KEY"]

    def test_an_unknown_one_is_a_404(self, client: FlaskClient) -> None:
        """To read and to refresh, with the names most like it."""
        for answer in (client.get("/v1/providers/nimbu"), client.post("/v1/providers/nimbu/refresh")):
            assert answer.status_code == 404
            assert answer.get_json()["errors"][0]["near"] == ["nimbus"]


class TestRefresh:
    def test_it_is_accepted_and_there_is_one_job(self, client: FlaskClient, context: AppContext) -> None:
        """However often it is asked for; the answer says where to look."""
        for _ in range(3):
            answer = client.post("/v1/providers/nimbus/refresh")
            assert (answer.status_code, answer.headers["Location"]) == (202, "/v1/providers/nimbus")
            assert answer.get_json()["refresh"] == "queued"
        (job,) = context.store.open_jobs(KIND)
        assert job.payload == {"provider": "nimbus", "by_hand": True}

    def test_jumps_can_be_accepted(self, client: FlaskClient, context: AppContext) -> None:
        """The operator's word goes with the job."""
        assert client.post("/v1/providers/nimbus/refresh", json={"accept_jumps": True}).status_code == 202
        (job,) = context.store.open_jobs(KIND)
        assert job.payload["accept_jumps"] is True

    def test_what_is_wrong_in_the_body_is_said(self, client: FlaskClient, context: AppContext) -> None:
        """And no job made."""
        answer = client.post("/v1/providers/nimbus/refresh", json={"acept_jumps": True})
        assert answer.status_code == 422
        assert answer.get_json()["errors"][0]["pointer"] == "/acept_jumps"
        assert context.store.open_jobs(KIND) == ()

    @pytest.mark.parametrize(("setting", "state"), [({"offline": True}, "offline"), ({"providers": ("aws",)}, "off")])
    def test_one_that_may_not_be_asked_is_refused(
        self, client: FlaskClient, context: AppContext, setting: dict[str, Any], state: str
    ) -> None:
        """With the setting that forbids it."""
        client.application.extensions["context"] = replace(context, settings=replace(context.settings, **setting))
        assert got(client, "/v1/providers/nimbus")["state"] == state
        answer = client.post("/v1/providers/nimbus/refresh")
        assert (answer.status_code, answer.content_type) == (409, "application/problem+json")
        assert "OUTLAY_" in answer.get_json()["detail"]

    def test_one_that_is_not_configured_is_refused_with_what_would_configure_it(self, client: FlaskClient, context: AppContext) -> None:
        """And no job made, which would only find out the same."""
        client.application.extensions["context"] = bare = replace(context, providers=replace(context.providers, env={}))
        for _ in range(2):
            answer = client.post("/v1/providers/nimbus/refresh")
            assert (answer.status_code, answer.get_json()["detail"]) == (409, "nimbus is not configured: set NIMBUS_KEY")
            assert {"provider": "nimbus", "by_hand": True} not in [job.payload for job in context.store.open_jobs(KIND)]
            refresh(bare)
        client.application.extensions["context"] = context
        assert client.post("/v1/providers/nimbus/refresh").status_code == 202


class TestHistory:
    def test_it_is_newest_first_with_the_share_of_each_change(self, client: FlaskClient, context: AppContext, world: World) -> None:
        """New, cheaper, gone."""
        for usd in ({"east": "40"}, {"east": "30"}, {"west": "31"}):
            world.usd = usd
            refresh(context)
            world.now += HOUR
        rows = got(client, "/v1/offers/history?provider=nimbus")["items"]
        assert [(row["region"], row["usd_per_hour"], row["usd_per_hour_before"], row["change"]) for row in rows] == [
            ("east", None, 30.0, None),
            ("west", 31.0, None, None),
            ("east", 30.0, 40.0, -0.25),
            ("east", 40.0, None, None),
        ]
        assert rows[2]["usd_per_accelerator_hour"] == 3.75

    def test_filters_and_times_are_inclusive(self, client: FlaskClient, context: AppContext, world: World) -> None:
        """All that are given must hold."""
        refresh(context)
        everything = got(client, "/v1/offers/history")["items"]
        assert len(everything) == 2
        assert (
            got(client, "/v1/offers/history?accelerator=H100&region=east&instance_type=h100x8&pricing=on_demand")["items"] == everything[:1]
        )
        at = "2027-01-04T12:00:00Z"
        assert got(client, f"/v1/offers/history?since={at}&until={at}")["items"] == everything[:1]
        assert got(client, "/v1/offers/history?pricing=spot")["items"] == []
        assert client.get("/v1/offers/history?accelerator=H10").status_code == 422

    def test_pages_stay_as_they_are_while_rows_are_added(self, client: FlaskClient, context: AppContext, world: World) -> None:
        """None is missed or doubled."""
        for n in range(6):
            world.usd = {"east": str(40 + n)}
            refresh(context)
            world.now += HOUR
        seen, cursor = [], ""
        while cursor is not None:
            page = got(client, f"/v1/offers/history?provider=nimbus&limit=2{cursor and f'&cursor={cursor}'}")
            seen += [row["usd_per_hour"] for row in page["items"]]
            cursor = page["next_cursor"]
            world.usd = {"east": str(float(world.usd["east"]) + 0.5)}
            refresh(context)
            world.now += HOUR
        assert seen == [45, 44, 43, 42, 41, 40]

    @pytest.mark.parametrize("cursor", ["x", "WzFd", "WzEwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAsMV0"])
    def test_a_cursor_of_another_list_is_refused(self, client: FlaskClient, cursor: str) -> None:
        """Also one with a time no calendar has."""
        answer = client.get(f"/v1/offers/history?cursor={cursor}")
        assert answer.status_code == 422
        assert answer.get_json()["errors"][0]["pointer"] == "/cursor"


class TestOffers:
    def test_an_answer_the_client_has_is_not_sent_again(self, client: FlaskClient, context: AppContext, world: World) -> None:
        """304 without a body, until a price moves."""
        refresh(context)
        first = client.get("/v1/offers")
        tag = {"If-None-Match": first.headers["ETag"]}
        again = client.get("/v1/offers", headers=tag)
        assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
        world.usd = {"east": "41"}
        refresh(context)
        changed = client.get("/v1/offers", headers=tag)
        assert changed.status_code == 200
        assert changed.headers["ETag"] != first.headers["ETag"]
        assert "ETag" in ETAG

    def test_a_row_says_since_when_it_is_available(self, client: FlaskClient, context: AppContext) -> None:
        """And null where nobody looked."""
        refresh(context)
        since = {row["provider"]: row["availability_since"] for row in got(client, "/v1/offers")["items"]}
        assert since == {"nimbus": "2027-01-04T12:00:00Z", "aws": None}

    def test_an_estimate_can_be_repeated_against_its_prices(self, client: FlaskClient, context: AppContext, world: World) -> None:
        """The same price, though it has moved."""
        refresh(context)
        request = {"model": {"params": "1B"}, "data": {"tokens": "1B"}, "hardware": {"accelerator": H100, "count": 8}}
        first = client.post("/v1/estimate", json=request).get_json()
        world.usd = {"east": "30"}
        refresh(context)
        assert client.post("/v1/estimate", json=request).get_json()["cost"]["total_usd"] != first["cost"]["total_usd"]
        again = client.post("/v1/estimate", json=request | {"price": {"snapshot": first["price_snapshot"]}}).get_json()
        assert (again["price_snapshot"], again["cost"], again["price"]) == (first["price_snapshot"], first["cost"], first["price"])
