"""Pinned prices of teams: a team repeats an answer against its own; to others their names are as unknown as any."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from service.api.resources.comparison import APPROACHES
from service.api.resources.scaling import LOSS_CURVE as CURVE
from service.api.resources.scaling import OPTIMUM as OPTIMAL
from service.api.resources.serving import EXAMPLE as SERVING
from tests.contract.doors import is_problem
from tests.contract.teams.team_books import (
    BASE,
    BOOKS,
    COMPARE,
    LIST_USD,
    ON_AWS,
    OWN_USD,
    PROGRAM,
    SHARED,
    Body,
    Teams,
    book,
    plainly,
    unpriced,
)


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
