"""Price books of teams: their prices are theirs alone, on every route that shows a price, and nobody else can tell that they are there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from service.api.resources.comparison import APPROACHES
from service.api.resources.procurement import FLEET
from service.api.resources.scaling import LOSS_CURVE as CURVE
from service.api.resources.scaling import OPTIMUM as OPTIMAL
from service.api.resources.serving import EXAMPLE as SERVING
from tests.contract.teams.team_books import BASE, BOOKS, COMPARE, ON_AWS, OWN_USD, PROGRAM, SHARED, SHIPPED, Body, Teams, plainly, unpriced
from tests.contract.teams.test_teams import CALCULATIONS

CALCULATED: Mapping[str, Body] = {
    "/v1/approaches": unpriced(APPROACHES),
    "/v1/ask": {"text": "llama 3 8b 1T tokens on 64 h100", "answer": True},
    "/v1/buy-or-rent": FLEET | {"trials": 100},
    "/v1/compare": COMPARE,
    "/v1/estimate": BASE | {"levers": True},
    "/v1/estimate/batch": {"requests": [BASE, ON_AWS]},
    "/v1/estimate/inverse": BASE | {"find": "repeats", "budget": {"usd": 1e6}},
    "/v1/estimate/program": PROGRAM,
    "/v1/estimate/program/difference": {"before": PROGRAM, "after": PROGRAM | {"name": "q"}},
    "/v1/loss-curves/extrapolate": unpriced(CURVE),
    "/v1/optimal": unpriced(OPTIMAL),
    "/v1/portfolio": {"programs": [PROGRAM, PROGRAM | {"name": "q"}]},
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
        if path not in ("/v1/estimate/program/difference", "/v1/ask"):  # which name none at the top
            assert len({seen.body(path)["price_snapshot"] for seen in (plain, vision, speech)}) == 3

    @pytest.mark.parametrize("path", [*CALCULATED, *(path for path in LISTED if "history" not in path)])
    def test_what_all_see_is_back_when_the_book_is_gone(self, story: Mapping[str, Seen], path: str) -> None:
        """As if it had never been there."""
        assert story["vision without"].answers[path] == story["plain before"].answers[path]

    def test_price_history_is_the_teams_own_too(self, story: Mapping[str, Seen]) -> None:
        """What it was from the book's first reading, and that it is gone, with the price before."""
        rows = story["vision without"].body("/v1/offers/history?provider=aws&accelerator=H100")["items"]
        own = [(row["usd_per_hour"], row["usd_per_hour_before"]) for row in rows if row["fetched_from"] == "file"]
        assert sorted(own, key=str) == [(0.8888, None), (None, 0.8888)]
        rest = [row for row in rows if row["fetched_from"] != "file"]
        assert rest == story["plain with"].body("/v1/offers/history?provider=aws&accelerator=H100")["items"]

    def test_a_teams_price_files_are_counted_for_itself(self, story: Mapping[str, Seen]) -> None:
        """Offers, rows that could not be read, and discounts that match nothing."""
        shared, own = (story[f"{team} with"].body("/v1/providers/file") for team in ("plain", "vision"))
        assert (shared["offers"], shared["rejected"]["count"], shared["warnings"]) == (1, 0, [])
        assert (own["offers"], own["rejected"]["count"]) == (3, 1)
        assert own["rejected"]["examples"][0]["row"] == "vision.json: prices 3"
        assert own["warnings"] == ["discount vision typo matched no offer: provider x"]
        assert own["snapshot"] == shared["snapshot"]
