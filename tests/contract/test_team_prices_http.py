"""Price books of teams: their prices are theirs alone, on every route that shows a price, and nobody else can tell that they are there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from providers.offer import Fetched
from providers.snapshot import SnapshotProvider
from service import create_app
from service.api.approaches import EXAMPLE as APPROACHES
from service.api.loss_curves import EXAMPLE as CURVE
from service.api.optimal import EXAMPLE as OPTIMAL
from service.api.serving import EXAMPLE as SERVING
from service.catalog import Catalog
from service.config import load_settings
from service.desk import Desk
from service.domain.teams import SCOPES
from service.shelf import Shelf
from service.store.prices import no_step
from service.usecases.jobs import Worker, run_job
from service.usecases.keys import make_key
from service.usecases.refresh import refresh_prices
from service.usecases.scenario_work import KIND, tend
from service.wiring import JOB_KINDS
from tests.contract.doors import is_problem
from tests.contract.test_teams import CALCULATIONS

Body = dict[str, Any]
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
AWS = {"provider": "aws", "region": "us-east-1", "instance_type": "p5.48xlarge", "accelerator": "H100-80GB", "accelerator_count": 8}
LIST_USD = 6.88
OWN_USD = {"vision": 0.1111, "speech": 0.2222}
"""What an accelerator-hour of the same machine costs the teams that have agreed on it: less than anybody's."""
SHARED = [{**AWS, "provider": "everycloud", "pricing": "on_demand", "usd_per_hour": 500, "observed_at": "2026-10-01"}]

SHIPPED = SnapshotProvider().fetch()
FEW = [offer for offer in SHIPPED.offers if offer.provider in ("aws", "azure", "lambda") and offer.accelerator == "NVIDIA-H100-80GB-SXM"]
"""Of the shipped prices those that are asked for here."""

BASE: Body = {"model": {"params": "1B"}, "data": {"tokens": "20B"}, "hardware": {"accelerator": "H100", "count": 8}}
ON_AWS = BASE | {"price": {"provider": "aws"}}
PROGRAM: Body = {"name": "p", "start": "2027-01-04", "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": BASE}]}]}
COMPARE: Body = {
    "workload": {"model": BASE["model"], "data": BASE["data"]},
    "candidates": {"accelerators": ["H100"], "counts": [8], "pricing": ["on_demand"]},
}


def unpriced(example: Body) -> Body:
    """A request that leaves the price to the service."""
    return {name: value for name, value in example.items() if name != "price"}


CALCULATED: Mapping[str, Body] = {
    "/v1/approaches": unpriced(APPROACHES),
    "/v1/compare": COMPARE,
    "/v1/estimate": BASE | {"levers": True},
    "/v1/estimate/batch": {"requests": [BASE, ON_AWS]},
    "/v1/estimate/program": PROGRAM,
    "/v1/estimate/program/difference": {"before": PROGRAM, "after": PROGRAM | {"name": "q"}},
    "/v1/loss-curves/extrapolate": unpriced(CURVE),
    "/v1/optimal": unpriced(OPTIMAL),
    "/v1/reprice": {"request": BASE, "since": SHIPPED.snapshot},
    "/v1/serving": {**SERVING, "hardware": {"accelerators": ["H100"]}},
}
WITHOUT_PRICES = {"/v1/scaling-laws/fit"}
LISTED = (
    "/v1/offers?accelerator=H100&limit=1000",
    "/v1/offers?limit=1",
    "/v1/offers?provider=aws&limit=1000",
    "/v1/offers/history?limit=1",
    "/v1/offers/history?provider=aws&accelerator=H100",
    "/v1/offers/history?provider=everycloud",
    "/v1/providers?limit=1000",
    "/v1/providers/file",
)
REFUSED: Mapping[str, Body | None] = {
    "/v1/offers?provider=visioncloub": None,
    "/v1/offers?region=vision-nort": None,
    "/v1/offers?snapshot=none": None,
    "/v1/estimate": BASE | {"price": {"provider": "visioncloud"}},
    "/v1/compare": COMPARE | {"candidates": {**COMPARE["candidates"], "providers": ["visioncloud"]}},
    "/v1/optimal": unpriced(OPTIMAL) | {"price": {"provider": "visioncloud"}},
}
"""Requests about what only one team knows of: what is wrong with them tells the others nothing."""
KEPT_OUT = ("Date", "X-Request-Id", "RateLimit")


@dataclass(frozen=True)
class Teams:
    """A service with a key for each team, and the folder of its price files."""

    app: Flask
    tokens: Mapping[str, str]
    folder: Path

    @property
    def desk(self) -> Desk:
        """The service's desk."""
        desk: Desk = self.app.extensions["desk"]
        return desk

    def ask(self, team: str | None, path: str, body: Body | None = None, **headers: str) -> Any:
        """The answer to a team; to whoever comes where there are no keys."""
        sent = {**headers, **({"Authorization": f"Bearer {self.tokens[team]}"} if team else {})}
        return self.app.test_client().open(path, method="GET" if body is None else "POST", json=body, headers=sent)

    def good(self, team: str | None, path: str, body: Body | None = None) -> Body:
        """The body of a good answer."""
        answer = self.ask(team, path, body)
        assert answer.status_code in (200, 202), answer.text
        found: Body = answer.get_json()
        return found

    def rate(self, team: str | None, request: Body = ON_AWS) -> float:
        """What an estimate takes as the price of an accelerator-hour."""
        return float(self.good(team, "/v1/estimate", request)["price"]["usd_per_accelerator_hour"])

    def write(self, **books: object) -> None:
        """These are the price files now, and have been read."""
        for old in self.folder.iterdir():
            old.unlink()
        for name, content in books.items():
            (self.folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        told = refresh_prices(self.desk, {"provider": "file", "by_hand": True}, no_step)
        assert "error" not in told, told
        self.desk.catalog.look()


def book(team: str, usd: float) -> Body:
    """A book with a price of what all know, one of what nobody else knows, a discount, and a slip."""
    rows = [
        {**AWS, "pricing": "on_demand", "usd_per_accelerator_hour": usd},
        {**AWS, "provider": f"{team}cloud", "region": f"{team}-north", "pricing": "on_demand", "usd_per_hour": 77},
        {**AWS, "pricing": f"{team} price"},
    ]
    discounts = [{"name": f"{team} discount", "percent": 10, "provider": "azure"}, {"name": f"{team} typo", "percent": 1, "provider": "x"}]
    return {"book": f"{team} agreement", "team": team, "observed_at": "2026-10-01", "prices": rows, "discounts": discounts}


BOOKS = {team: book(team, usd) for team, usd in OWN_USD.items()}


class Few(SnapshotProvider):
    """Some of the prices that ship with the project: thousands would take minutes."""

    def fetch(self) -> Fetched:
        return replace(SHIPPED, offers=tuple(FEW))


def opened(folder: Path, keyed: tuple[str, ...]) -> Teams:
    """A service on an empty SQLite database, whose clock stands, with keys of these teams."""
    files = folder / "prices"
    files.mkdir()
    env = {"OUTLAY_DATA_DIR": str(folder), "OUTLAY_OFFLINE": "1", "OUTLAY_RATE_LIMIT": "1000000/hour", "OUTLAY_PRICE_FILES": str(files)}
    app = create_app(load_settings(env))
    desk: Desk = app.extensions["desk"]
    desk.store.migrate()
    tokens = {team: make_key(desk, team, "k", SCOPES, "1h")[1] for team in keyed}
    providers = replace(desk.providers, load=lambda name: Few() if name == "snapshot" else desk.providers.load(name))
    app.extensions["desk"] = replace(desk, clock=lambda: NOW, providers=providers, catalog=Catalog(Shelf(Few, desk.store)))
    return Teams(app, tokens, files)


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Teams]:
    """Two teams that may have books, and one without."""
    made = opened(tmp_path_factory.mktemp("books"), ("vision", "speech", "plain"))
    yield made
    made.desk.store.close()


@dataclass(frozen=True)
class Seen:
    """What a team is answered everywhere: status, headers and body, by what was asked."""

    answers: Mapping[str, tuple[int, Mapping[str, str], str]]

    def body(self, path: str) -> Body:
        """One of the answers."""
        found: Body = json.loads(self.answers[path][2])
        return found


def everything(teams: Teams, team: str) -> Seen:
    """The answers to all requests that have to do with prices."""
    asked = [*CALCULATED.items(), *((path, None) for path in LISTED)]
    answers = {path: teams.ask(team, path, body) for path, body in asked}
    answers |= {f"refused: {path}": teams.ask(team, path, body) for path, body in REFUSED.items()}
    return Seen({path: plainly(answer) for path, answer in answers.items()})


def plainly(answer: Any) -> tuple[int, Mapping[str, str], str]:
    """Status, headers and body without what differs between any two answers."""
    headers = {name: value for name, value in answer.headers.items() if name not in KEPT_OUT}
    return answer.status_code, headers, answer.get_data(as_text=True).replace(answer.headers["X-Request-Id"], "…")


@pytest.fixture(scope="module")
def story(teams: Teams) -> Mapping[str, Seen]:
    """What they see before anybody has a book, while two have one, and after one has gone."""
    teams.write(everybody=SHARED)
    seen = {"plain before": everything(teams, "plain")}
    teams.write(everybody=SHARED, **BOOKS)
    seen |= {f"{team} with": everything(teams, team) for team in ("plain", "vision", "speech")}
    teams.write(everybody=SHARED, speech=BOOKS["speech"])
    return seen | {f"{team} without": everything(teams, team) for team in ("plain", "vision")}


class TestEveryRoute:
    def test_every_calculation_is_asked(self) -> None:
        """A new one must be added here, or have no prices in it."""
        assert {*CALCULATED, *WITHOUT_PRICES} == CALCULATIONS

    @pytest.mark.parametrize("path", [*CALCULATED, *LISTED, *(f"refused: {path}" for path in REFUSED)])
    def test_nobody_else_can_tell_that_there_are_books(self, story: Mapping[str, Seen], path: str) -> None:
        """A team without one gets the same to the last byte, before and after; ETags, cursors, snapshots and counts included."""
        before, during, after = (story[f"plain {when}"].answers[path] for when in ("before", "with", "without"))
        assert before[0] == (422 if "refused" in path else 200), before[2]
        assert before == during == after

    @pytest.mark.parametrize(("team", "other"), [("vision", "speech"), ("speech", "vision")])
    def test_a_team_sees_its_own_and_nothing_of_another(self, story: Mapping[str, Seen], team: str, other: str) -> None:
        """Prices, names of clouds and regions, sources, discounts, slips."""
        text = repr({path: answer for path, answer in story[f"{team} with"].answers.items() if "refused" not in path})
        marks = ("{}cloud", "{}-north", "{} agreement", "{} discount", "{} price", "{} typo", "{}.json")
        assert [mark for mark in marks if mark.format(team) not in text] == []
        assert [mark for mark in (*marks, str(OWN_USD[other])) if mark.format(other) in text] == []

    @pytest.mark.parametrize("path", [*CALCULATED, "/v1/offers?provider=aws&limit=1000"])
    def test_every_calculation_of_a_team_takes_its_prices(self, story: Mapping[str, Seen], path: str) -> None:
        """And says so by a price snapshot of its own."""
        plain, vision, speech = (story[f"{team} with"] for team in ("plain", "vision", "speech"))
        assert vision.answers[path][0] == 200
        assert len({seen.answers[path][2] for seen in (plain, vision, speech)}) == 3
        if path != "/v1/estimate/program/difference":  # which names none
            assert len({seen.body(path)["price_snapshot"] for seen in (plain, vision, speech)}) == 3

    @pytest.mark.parametrize("path", [*CALCULATED, *(path for path in LISTED if "history" not in path)])
    def test_what_all_see_is_back_when_the_book_is_gone(self, story: Mapping[str, Seen], path: str) -> None:
        """As if it had never been there."""
        assert story["vision without"].answers[path] == story["plain before"].answers[path]

    def test_price_history_is_the_teams_own_too(self, story: Mapping[str, Seen]) -> None:
        """What it was from the book's first reading, and that it is gone, with the price before."""
        rows = story["vision without"].body("/v1/offers/history?provider=aws&accelerator=H100")["items"]
        own = [(row["usd_per_hour"], row["usd_per_hour_before"]) for row in rows if row["asked"] == "file"]
        assert sorted(own, key=str) == [(0.8888, None), (None, 0.8888)]
        rest = [row for row in rows if row["asked"] != "file"]
        assert rest == story["plain with"].body("/v1/offers/history?provider=aws&accelerator=H100")["items"]

    def test_a_teams_price_files_are_counted_for_itself(self, story: Mapping[str, Seen]) -> None:
        """Offers, rows that could not be read, and discounts that match nothing."""
        shared, own = (story[f"{team} with"].body("/v1/providers/file") for team in ("plain", "vision"))
        assert (shared["offers"], shared["rejected"]["count"], shared["warnings"]) == (1, 0, [])
        assert (own["offers"], own["rejected"]["count"]) == (3, 1)
        assert own["rejected"]["examples"][0]["row"] == "vision.json: prices 3"
        assert own["warnings"] == ["discount vision typo matched no offer: provider x"]
        assert own["snapshot"] == shared["snapshot"]


class TestPrices:
    @pytest.fixture(autouse=True)
    def books(self, teams: Teams) -> None:
        """Both teams have theirs."""
        teams.write(everybody=SHARED, **BOOKS)

    def test_a_teams_price_takes_the_place_of_the_list_price(self, teams: Teams) -> None:
        """Of the same thing; the others pay what is listed."""
        assert [teams.rate(team) for team in ("vision", "speech", "plain")] == [0.1111, 0.2222, LIST_USD]
        teams.write(everybody=SHARED, vision=BOOKS["vision"])
        assert [teams.rate(team) for team in ("vision", "speech", "plain")] == [0.1111, LIST_USD, LIST_USD]
        price = teams.good("vision", "/v1/estimate", ON_AWS)["price"]
        assert (price["source"], price["observed_at"], price["stale"]) == ("vision agreement", "2026-10-01T00:00:00Z", False)

    def test_a_teams_discounts_come_off_its_list_prices_alone(self, teams: Teams) -> None:
        """And name what they were taken off."""
        request = BASE | {"price": {"provider": "azure"}}
        listed, own = teams.good("plain", "/v1/estimate", request)["price"], teams.good("vision", "/v1/estimate", request)["price"]
        assert own["usd_per_accelerator_hour"] == pytest.approx(0.9 * listed["usd_per_accelerator_hour"])
        assert own["list_usd_per_accelerator_hour"] == listed["usd_per_accelerator_hour"]
        assert (own["discounts"], listed["discounts"]) == ("vision discount 10 %", None)

    def test_what_a_team_tracks_is_planned_with_its_prices(self, teams: Teams) -> None:
        """A plan is estimated when the program is made."""
        totals = []
        for team in ("vision", "speech", "plain"):
            answer = teams.ask(team, "/v1/track/programs", {"name": "p", "plan": PROGRAM})
            assert answer.status_code == 201, answer.text
            totals.append(answer.get_json()["budget_usd"])
        assert totals == sorted(totals)
        assert len(set(totals)) == 3

    def test_a_scenario_is_evaluated_with_its_teams_prices(self, teams: Teams) -> None:
        """By whichever worker, and whatever the book has become since."""
        asked = {"kind": "sweep", "base": ON_AWS, "axes": {"hardware.count": [8, 16]}}
        made = {team: teams.good(team, "/v1/scenarios", asked)["id"] for team in ("vision", "speech", "plain")}
        expected = {team: teams.good(team, "/v1/estimate", ON_AWS)["cost"]["total_usd"]["p50"] for team in made}
        teams.write(everybody=SHARED)
        work(teams.desk)
        found = {team: teams.good(team, f"/v1/scenarios/{name}") for team, name in made.items()}
        assert {team: scenario["state"] for team, scenario in found.items()} == dict.fromkeys(made, "succeeded")
        assert {team: scenario["result"]["rows"][0]["cost_usd"]["p50"] for team, scenario in found.items()} == expected
        assert len(set(expected.values())) == 3

    def test_pages_of_history_hold_every_row_once(self, teams: Teams) -> None:
        """Those of all and the team's own, however small the pages are."""
        address = "/v1/offers/history?accelerator=H100&since=2026-10-01T00:00:00Z"
        whole = teams.good("vision", f"{address}&limit=1000")["items"]
        seen, cursor = [], ""
        while cursor is not None:
            page = teams.good("vision", f"{address}&limit=2{cursor and f'&cursor={cursor}'}")
            seen, cursor = seen + page["items"], page["next_cursor"]
        assert seen == whole
        assert {row["source"] for row in whole} >= {"vision agreement", "everybody.json"}


def work(desk: Desk) -> None:
    """What a worker would do, until there is nothing left."""
    tend(desk)
    while jobs := desk.store.open_jobs(KIND):
        for job in jobs:
            run_job(desk, job.id, JOB_KINDS, Worker("this/1"))
        tend(desk)


class TestSnapshots:
    @pytest.fixture
    def snapshot(self, teams: Teams) -> str:
        """The name of the state of the prices that holds vision's; its prices have moved since."""
        teams.write(everybody=SHARED, **BOOKS)
        name: str = teams.good("vision", "/v1/estimate", ON_AWS)["price_snapshot"]
        teams.write(everybody=SHARED, vision=book("vision", 0.3333))
        return name

    def test_an_estimate_can_be_repeated_against_its_teams_prices(self, teams: Teams, snapshot: str) -> None:
        """The same price, though it has moved; and told apart from what has moved since."""
        pinned = ON_AWS | {"price": {"provider": "aws", "snapshot": snapshot}}
        again = teams.good("vision", "/v1/estimate", pinned)
        assert (again["price"]["usd_per_accelerator_hour"], again["price_snapshot"]) == (0.1111, snapshot)
        assert teams.rate("vision") == 0.3333
        moved = teams.good("vision", "/v1/reprice", {"request": ON_AWS, "since": snapshot})
        told = [(state["price"]["usd_per_accelerator_hour"], state["price_snapshot"]) for state in (moved["before"], moved["now"])]
        assert told == [(0.1111, snapshot), (0.3333, moved["price_snapshot"])]
        assert teams.good("vision", f"/v1/offers?snapshot={snapshot}&provider=visioncloud")["price_snapshot"] == snapshot

    @pytest.mark.parametrize("team", ["speech", "plain"])
    def test_another_team_gets_what_it_gets_for_an_unknown_one(self, teams: Teams, snapshot: str, team: str) -> None:
        """The same answer but for the name, everywhere; also for what a team has alone, without the prices of all."""
        own = snapshot.rpartition("~")[2]
        for name in (snapshot, own):
            for path, body in pinned(name).items():
                known, unknown = (
                    plainly(teams.ask(team, path.replace(name, each), with_name(body, name, each))) for each in (name, "none")
                )
                assert known[0] == 422
                assert known[2].replace(name, "none") == unknown[2], path

    def test_what_it_has_alone_is_no_state_of_the_prices(self, teams: Teams, snapshot: str) -> None:
        """Not even to the team itself: the name of a snapshot says which list prices stand beside."""
        is_problem(teams.ask("vision", f"/v1/offers?snapshot={snapshot.rpartition('~')[2]}"), 422)

    def test_without_its_own_part_a_name_says_what_all_had(self, teams: Teams, snapshot: str) -> None:
        """A team may ask for list prices."""
        listed = ON_AWS | {"price": {"provider": "aws", "snapshot": snapshot.rpartition("~")[0]}}
        assert {teams.rate(team, listed) for team in ("vision", "plain")} == {LIST_USD}

    def test_the_same_book_of_two_teams_has_two_names(self, teams: Teams) -> None:
        """A name that others have too would tell that their prices are the same."""
        same = {
            team: {"team": team, "source": "s", "observed_at": "2026-10-01", "prices": BOOKS["vision"]["prices"][:1]} for team in OWN_USD
        }
        teams.write(**same)
        assert [teams.rate(team) for team in ("vision", "speech")] == [0.1111, 0.1111]
        assert len({teams.good(team, "/v1/estimate", BASE)["price_snapshot"] for team in (*OWN_USD, "plain")}) == 3


def pinned(snapshot: str) -> Mapping[str, Body | None]:
    """Every way to ask for a state of the prices."""
    price = {"price": {"snapshot": snapshot}}
    return {
        f"/v1/offers?snapshot={snapshot}": None,
        "/v1/approaches": unpriced(APPROACHES) | price,
        "/v1/compare": COMPARE | {"snapshot": snapshot},
        "/v1/estimate": BASE | price,
        "/v1/loss-curves/extrapolate": unpriced(CURVE) | price,
        "/v1/optimal": unpriced(OPTIMAL) | price,
        "/v1/reprice": {"request": BASE, "since": snapshot},
        "/v1/serving": {**SERVING, **price},
        "/v1/estimate/program": PROGRAM | {"defaults": price},
        "/v1/scenarios": {"kind": "sweep", "base": BASE | price, "axes": {"hardware.count": [8]}},
    }


def with_name(body: Body | None, name: str, other: str) -> Body | None:
    """The request with another snapshot's name in it."""
    found: Body | None = json.loads(json.dumps(body).replace(name, other))
    return found


class TestTrouble:
    def test_why_files_cannot_be_read_is_the_operators_business(self, teams: Teams) -> None:
        """The error may quote a team's book; the last good prices stay in use, its own too."""
        teams.write(everybody=SHARED, **BOOKS)
        (teams.folder / "vision.json").write_text('{"team": "vision", "secret": 17}', encoding="utf-8")
        told = refresh_prices(teams.desk, {"provider": "file", "by_hand": True}, no_step)
        assert "unknown field 'secret'" in told["error"]
        teams.desk.catalog.look()
        for team in ("vision", "plain"):
            answer = teams.ask(team, "/v1/providers/file")
            assert answer.get_json()["last_error"] == "its files cannot all be read; `outlay prices show` says why"
            assert "secret" not in answer.text
        assert teams.rate("vision") == 0.1111
        assert teams.good("vision", "/v1/estimate", ON_AWS)["price"]["stale"]

    def test_a_book_of_which_no_row_is_understood_changes_nothing(self, teams: Teams) -> None:
        """A slip in every row would quietly be a return to list prices."""
        teams.write(everybody=SHARED, **BOOKS)
        broken = {**BOOKS["vision"], "prices": [{"provder": "aws"}], "discounts": []}
        teams.write(everybody=SHARED, vision=broken)
        assert teams.rate("vision") == 0.1111
        assert teams.good("vision", "/v1/providers/file")["rejected"]["examples"][0]["reason"].startswith("unknown field 'provder'")

    def test_nor_does_one_of_which_no_row_can_be_kept(self, teams: Teams) -> None:
        """Understood, but too long for the database."""
        teams.write(everybody=SHARED, **BOOKS)
        teams.write(everybody=SHARED, vision={**BOOKS["vision"], "source": "x" * 600, "discounts": []})
        assert teams.rate("vision") == 0.1111
        reasons = {row["reason"] for row in teams.good("vision", "/v1/providers/file")["rejected"]["examples"]}
        assert "source is no text that can be kept" in reasons

    def test_prices_of_teams_alone_are_no_news_to_others(self, teams: Teams, tmp_path: Path) -> None:
        """Where no file is everybody's, the state of the prices keeps its name."""
        fresh = opened(tmp_path, ("vision", "plain"))
        refresh_prices(fresh.desk, {"provider": "snapshot"}, no_step)
        fresh.desk.catalog.look()
        before = plainly(fresh.ask("plain", "/v1/offers"))
        fresh.write(vision=BOOKS["vision"])
        assert plainly(fresh.ask("plain", "/v1/offers")) == before
        assert (fresh.rate("vision"), fresh.rate("plain")) == (0.1111, LIST_USD)
        fresh.desk.store.close()

    def test_files_that_are_not_named_any_more_leave_no_price(self, teams: Teams) -> None:
        """Neither everybody's nor a team's."""
        teams.write(everybody=SHARED, **BOOKS)
        bare = replace(teams.desk, providers=replace(teams.desk.providers, env={}))
        refresh_prices(bare, {"provider": "file"}, no_step)
        teams.desk.catalog.look()
        assert [teams.rate(team) for team in ("vision", "speech", "plain")] == [LIST_USD] * 3
        assert teams.good("vision", "/v1/offers/history?provider=visioncloud")["items"][0]["usd_per_hour"] is None


class TestWithoutKeys:
    def test_everybody_has_the_book_of_the_default_team_and_no_other(self, tmp_path: Path) -> None:
        """One that names another waits for that team's key."""
        alone = opened(tmp_path, ())
        alone.write(vision=BOOKS["vision"])
        assert alone.rate(None) == LIST_USD
        assert "vision" not in alone.ask(None, "/v1/offers?accelerator=H100&limit=1000").text
        assert alone.good(None, "/v1/providers/file")["offers"] == 0
        alone.write(vision=BOOKS["vision"], default=book("default", 0.4444))
        assert alone.rate(None) == 0.4444
        token = make_key(alone.desk, "vision", "first", SCOPES, "1h")[1]
        alone.desk.store.close()
        later = create_app(alone.desk.settings)
        answer = later.test_client().post("/v1/estimate", json=ON_AWS, headers={"Authorization": f"Bearer {token}"})
        assert answer.get_json()["price"]["usd_per_accelerator_hour"] == OWN_USD["vision"]
        later.extensions["desk"].store.close()
