"""Price files of the operator's: their word counts, and what is said of it follows what they name now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from providers.offer import Discount, ProviderError, Rejected
from service.config import Settings
from service.context import AppContext
from service.domain.jobs import ignore_progress
from service.usecases.keys import make_key
from service.usecases.prices.providers import ProviderEntry, find_provider, list_providers, teams_without_key
from service.usecases.prices.refresh import refresh_due, refresh_prices
from tests.unit.usecases.sources import HOUR, Sheet, World, context_of, offer


@pytest.fixture
def world() -> World:
    """Files with one offer at noon."""
    return World()


@pytest.fixture
def sheets(settings: Settings, world: World) -> Iterator[AppContext]:
    """A context on a migrated database that knows the shipped prices and price files."""
    with context_of(settings, world, Sheet(world), {"OUTLAY_PRICE_FILES": "a.csv"}) as made:
        yield made


def reading(context: AppContext, paths: str) -> AppContext:
    """The context after a restart with other price files."""
    return replace(context, providers=replace(context.providers, env={"OUTLAY_PRICE_FILES": paths}))


def read(context: AppContext) -> dict[str, Any]:
    """What a refresh of the price files says."""
    return refresh_prices(context, {"provider": "file"}, ignore_progress)


def by_operator(context: AppContext) -> ProviderEntry:
    """Price files as whoever runs the service sees them."""
    return next(entry for entry in list_providers(context, operator=True) if entry.name == "file")


def test_a_team_whose_keys_are_no_good_any_more_is_like_one_without(sheets: AppContext, world: World) -> None:
    """Nobody can have its prices, which only the operator can mend."""
    made = {team: make_key(sheets, team, "k", ("read",), "1h")[0] for team in ("vision", "speech")}
    assert teams_without_key(sheets, ["vision", "speech"]) == []
    sheets.store.revoke_key(made["vision"].id, world.now)
    assert len(teams_without_key(sheets, ["vision", "speech"])) == 1
    world.now += 2 * HOUR
    assert [team for team in made if any(team in said for said in teams_without_key(sheets, made))] == ["vision", "speech"]


class TestPriceFiles:
    @pytest.mark.parametrize("usd", ["0.5", "4000"])
    def test_a_price_far_from_the_market_is_served_and_doubted(self, sheets: AppContext, world: World, usd: str) -> None:
        """It is its owner's word; the doubt stays as long as the price does."""
        world.brings(offer(usd, provider="aws"))
        for _ in range(2):
            told = read(sheets)
            assert (told["offers"], told["quarantined"], told["suspicious"]) == (1, 0, 1)
            assert "median of all known" in find_provider(sheets, "file").suspicious.examples[0]["reason"]
        book = sheets.catalog.book(sheets.store.current_manifest().book)
        assert [row.usd_per_hour for row in book.offers if row.provider == "aws"] == [Decimal(usd)]

    def test_a_tenfold_move_is_served_and_doubted(self, sheets: AppContext, world: World) -> None:
        """Contracts may end; only the owner knows."""
        for usd in ("40", "400"):
            world.brings(offer(usd, provider="aws"))
            told = read(sheets)
        assert (told["quarantined"], told["suspicious"]) == (0, 1)
        assert "jumped from 5.0000 to 50.0000" in find_provider(sheets, "file").suspicious.examples[0]["reason"]
        assert sheets.store.load_snapshot(told["snapshot"]).offers[0].usd_per_hour == 400  # type: ignore[union-attr]

    def test_prices_that_look_right_are_not_doubted(self, sheets: AppContext, world: World) -> None:
        """Nor is anything warned of."""
        world.brings(offer("40", provider="aws"))
        assert (read(sheets)["suspicious"], find_provider(sheets, "file").warnings) == (0, [])

    def test_a_discount_that_is_taken_off_nothing_is_told(self, sheets: AppContext, world: World) -> None:
        """A slip in a name would quietly cost what was agreed on; prices that a file states itself are final and count for nothing."""
        good = Discount("good", Decimal("0.1"), provider="Nimbus")
        typo = Discount("typo", Decimal("0.1"), provider="awss", region="us-east-1")
        world.brings(offer("40", provider="awss", region="us-east-1"), discounts=(good, typo))
        said = ["discount typo matched no offer: provider awss, region us-east-1"]
        assert read(sheets)["warnings"] == said
        assert find_provider(sheets, "file").warnings == said
        world.brings(discounts=(good,))
        assert "warnings" not in read(sheets)

    def test_other_files_are_due_at_once_and_what_was_said_of_the_old_is_gone(self, sheets: AppContext, world: World) -> None:
        """The prices stay until the new ones are read."""
        world.brings(offer("30", provider="aws"), rejected=(Rejected("a.csv: line 2", "no price"),))
        read(sheets)
        assert "file" not in {job.payload["provider"] for job in refresh_due(sheets)}
        other = reading(sheets, "b.csv")
        entry = find_provider(other, "file")
        assert (entry.state, entry.next_refresh_at, entry.rejected.count, entry.offers) == ("never_asked", world.now, 0, 1)
        assert "file" in {job.payload["provider"] for job in refresh_due(other)}
        world.brings(offer("30", provider="aws"))
        read(other)
        assert find_provider(other, "file").state == "ok"

    def test_other_files_do_not_wait_for_the_old_ones_pause(self, sheets: AppContext, world: World) -> None:
        """Their failures are counted anew."""
        world.answer = ProviderError("a.csv cannot be read")
        assert "error" in read(sheets)
        assert "left alone" in read(sheets)["skipped"]
        other = reading(sheets, "b.csv")
        assert by_operator(other).last_error is None
        world.answer = ProviderError("b.csv cannot be read")
        assert read(other)["error"] == "b.csv cannot be read"
        assert (by_operator(other).last_error, sheets.store.provider_state("file").failures) == ("b.csv cannot be read", 1)

    def test_files_that_were_set_or_unset_since_are_so_at_once(self, sheets: AppContext, world: World) -> None:
        """Whatever the last attempt found: what is missing is missing now."""
        bare = replace(sheets, providers=replace(sheets.providers, env={}))
        read(bare)
        assert find_provider(bare, "file").missing == "not set: OUTLAY_PRICE_FILES"
        assert (find_provider(sheets, "file").state, find_provider(sheets, "file").next_refresh_at) == ("never_asked", world.now)
        assert "file" in {job.payload["provider"] for job in refresh_due(sheets)}
        world.answer = ProviderError("a.csv cannot be read")
        read(sheets)
        entry = find_provider(bare, "file")
        assert (entry.state, entry.last_error, entry.next_refresh_at) == ("not_configured", None, None)

    def test_files_that_are_not_named_any_more_leave_the_prices(self, sheets: AppContext, world: World) -> None:
        """Prices that stand above all others must be possible to take back."""
        world.brings(offer("30", provider="aws"), discounts=(Discount("volume", Decimal("0.1")),))
        refresh_prices(sheets, {"provider": "file"}, ignore_progress)
        with_sheet = sheets.store.current_manifest().book
        bare = replace(sheets, providers=replace(sheets.providers, env={}))
        refresh_prices(bare, {"provider": "file"}, ignore_progress)
        assert [part.provider for part in bare.store.current_manifest().parts] == ["snapshot"]
        assert sorted(float(row.usd_per_hour) for row in bare.catalog.book(with_sheet).offers) == [30.0, 49.5]

    def test_other_discounts_alone_are_news(self, sheets: AppContext, world: World) -> None:
        """The prices in the sheet need not have changed for the book to do so."""
        names = []
        for share in ("0.1", "0.2"):
            world.brings(discounts=(Discount("volume", Decimal(share)),))
            names.append(refresh_prices(sheets, {"provider": "file"}, ignore_progress)["snapshot"])
        assert names[0] != names[1]
