"""What a team's price book does to its prices, and what becomes of them where the book cannot be read, or names nobody."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from service import create_app
from service.context import AppContext
from service.domain.jobs import ignore_progress
from service.domain.teams import SCOPES
from service.job_kinds import JOB_KINDS
from service.usecases.jobs import Worker, run_job
from service.usecases.keys import make_key
from service.usecases.prices.refresh import refresh_prices
from service.usecases.scenarios.worker import KIND, maintain_scenarios
from tests.contract.teams.team_books import BASE, BOOKS, LIST_USD, ON_AWS, OWN_USD, PROGRAM, SHARED, Body, Teams, book, opened, plainly


class TestPrices:
    @pytest.fixture(autouse=True)
    def books(self, teams: Teams) -> None:
        """Both teams have theirs."""
        teams.write(everybody=SHARED, **BOOKS)

    def test_a_teams_price_takes_the_place_of_the_list_price(self, teams: Teams) -> None:
        """Of the same thing; the others pay what is listed."""
        assert [teams.rate(team) for team in ("vision", "speech", "plain")] == [0.1111, 0.2727, LIST_USD]
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
        work(teams.context)
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


def work(context: AppContext) -> None:
    """What a worker would do, until there is nothing left."""
    maintain_scenarios(context)
    while jobs := context.store.open_jobs(KIND):
        for job in jobs:
            run_job(context, job.id, JOB_KINDS, Worker("this/1"))
        maintain_scenarios(context)


def broken(teams: Teams, name: str) -> Body:
    """What a refresh says after a slip in the price file of that name."""
    (teams.folder / f"{name}.json").write_text('{"secret": 17}', encoding="utf-8")
    told = refresh_prices(teams.context, {"provider": "file", "by_hand": True}, ignore_progress)
    teams.context.catalog.refresh()
    return told


class TestTrouble:
    def test_why_a_file_cannot_be_read_is_the_operators_business(self, teams: Teams) -> None:
        """The error may quote a team's book: that there is one is all that HTTP says."""
        teams.write(everybody=SHARED, **BOOKS)
        assert "unknown field 'secret'" in broken(teams, "vision")["warnings"][0]
        for team in ("vision", "plain"):
            answer = teams.ask(team, "/v1/providers/file")
            assert answer.get_json()["last_error"] == "its files cannot all be read; `outlay prices show` says why"
            assert "secret" not in answer.text

    def test_a_book_that_cannot_be_read_keeps_its_last_good_prices_and_costs_nobody_else(self, teams: Teams) -> None:
        """Its team's prices are stale, its discounts stay; everybody's and the other team's are as good as ever, and can be taken back."""
        on_azure = BASE | {"price": {"provider": "azure"}}
        teams.write(everybody=SHARED, **BOOKS)
        before = {team: teams.good(team, "/v1/estimate", on_azure)["price"] for team in ("vision", "plain")}
        broken(teams, "vision")
        prices = {team: teams.good(team, "/v1/estimate", ON_AWS)["price"] for team in ("vision", "speech")}
        told = {team: (price["usd_per_accelerator_hour"], price["stale"]) for team, price in prices.items()}
        assert told == {"vision": (0.1111, True), "speech": (0.2727, False)}
        assert {team: teams.good(team, "/v1/estimate", on_azure)["price"] for team in before} == before
        (teams.folder / "speech.json").unlink()
        (teams.folder / "everybody.json").write_text(json.dumps([{**SHARED[0], "usd_per_hour": 600}]), encoding="utf-8")
        broken(teams, "vision")
        assert [teams.rate(team) for team in ("vision", "speech")] == [0.1111, LIST_USD]
        assert teams.rate("plain", BASE | {"price": {"provider": "everycloud"}}) == 75

    def test_what_is_everybodys_in_a_file_that_cannot_be_read_is_stale_for_everybody(self, teams: Teams) -> None:
        """While a team's own prices are good."""
        teams.write(everybody=SHARED, vision=BOOKS["vision"])
        broken(teams, "everybody")
        of_all = {offer["provider"]: offer["stale"] for offer in teams.good("vision", "/v1/offers?provider=everycloud")["items"]}
        assert (of_all, teams.good("vision", "/v1/estimate", ON_AWS)["price"]["stale"]) == ({"everycloud": True}, False)

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
        refresh_prices(fresh.context, {"provider": "snapshot"}, ignore_progress)
        fresh.context.catalog.refresh()
        before = plainly(fresh.ask("plain", "/v1/offers"))
        fresh.write(vision=BOOKS["vision"])
        assert plainly(fresh.ask("plain", "/v1/offers")) == before
        assert (fresh.rate("vision"), fresh.rate("plain")) == (0.1111, LIST_USD)
        fresh.context.store.close()

    def test_files_that_are_not_named_any_more_leave_no_price(self, teams: Teams) -> None:
        """Neither everybody's nor a team's."""
        teams.write(everybody=SHARED, **BOOKS)
        bare = replace(teams.context, providers=replace(teams.context.providers, env={}))
        refresh_prices(bare, {"provider": "file"}, ignore_progress)
        teams.context.catalog.refresh()
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
        token = make_key(alone.context, "vision", "first", SCOPES, "never")[1]
        alone.context.store.close()
        later = create_app(alone.context.settings)
        answer = later.test_client().post("/v1/estimate", json=ON_AWS, headers={"Authorization": f"Bearer {token}"})
        assert answer.get_json()["price"]["usd_per_accelerator_hour"] == OWN_USD["vision"]
        later.extensions["context"].store.close()
