"""A price file that cannot be read beside others that can: it costs nobody the others' prices, and its own stay, marked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from providers.base import Context
from providers.file import PriceFiles
from service.config import Settings
from service.context import AppContext
from service.domain.jobs import ignore_progress
from service.presets.hardware.accelerators import canonical_accelerator
from service.prices.book import PriceBook
from service.store.prices.history import HistoryFilter
from service.usecases.prices.providers import ProviderEntry, list_providers
from service.usecases.prices.refresh import refresh_prices
from tests.unit.usecases.sources import World, context_of

Row = dict[str, Any]
MACHINE: Row = {"provider": "nimbus", "region": "east", "instance_type": "h100x8", "accelerator": "H100-SXM", "accelerator_count": 8}
NORTH = MACHINE | {"region": "north", "pricing": "on_demand", "usd_per_hour": 30, "observed_at": "2026-12-01", "source": "contract"}
SOUTH = NORTH | {"region": "south", "usd_per_hour": 40}
DISCOUNTS = [{"name": "volume", "percent": 10, "provider": "nimbus"}, {"name": "loyalty", "percent": 5, "provider": "nimbus"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two price files: a sheet, and a book with a discount."""
    made = tmp_path / "prices"
    made.mkdir()
    write(made / "north.json", {"prices": [NORTH], "discounts": DISCOUNTS[:1]})
    write(made / "south.json", {"prices": [SOUTH], "discounts": DISCOUNTS[1:]})
    return made


@pytest.fixture
def context(settings: Settings, folder: Path) -> Iterator[AppContext]:
    """A context on a migrated database that has read them, ten minutes later."""
    env, world = {"OUTLAY_PRICE_FILES": str(folder)}, World()
    files = PriceFiles(Context(canonical=canonical_accelerator, env=env, clock=lambda: world.now))
    with context_of(settings, world, files, env) as made:
        read(made)
        world.now += timedelta(minutes=10)
        yield made


def write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content), encoding="utf-8")


def read(context: AppContext) -> dict[str, Any]:
    """What a refresh of the price files says."""
    return refresh_prices(context, {"provider": "file", "by_hand": True}, ignore_progress)


def entry_of(context: AppContext) -> ProviderEntry:
    """Price files as whoever runs the service sees them."""
    return next(entry for entry in list_providers(context, operator=True) if entry.name == "file")


def book_of(context: AppContext) -> PriceBook:
    """The prices as they are now."""
    context.catalog.refresh()
    return context.catalog.current


def stale_by_region(context: AppContext) -> dict[str, bool]:
    """Of the prices that the files state; asked of each, and of all at once."""
    book, now = book_of(context), context.clock()
    rows = dict(zip(book.offers, book.stale_mask(now).tolist(), strict=True))
    assert {offer: book.is_stale(offer, now) for offer in rows} == rows
    return {offer.region: stale for offer, stale in rows.items() if book.source_provider(offer) == "file"}


def test_the_others_are_served_and_its_own_stay_marked_as_stale(context: AppContext, folder: Path) -> None:
    """Even where both name the same source and date."""
    (folder / "north.json").write_text("{", encoding="utf-8")
    write(folder / "south.json", {"prices": [SOUTH | {"usd_per_hour": 44}], "discounts": DISCOUNTS[1:]})
    read(context)
    assert stale_by_region(context) == {"north": True, "south": False}
    prices = {offer.region: offer.usd_per_hour for offer in book_of(context).offers if offer.region != "east"}
    assert prices == {"north": 30, "south": 44}


def test_another_file_of_the_same_name_is_another_file(settings: Settings, tmp_path: Path) -> None:
    """What a readable one leaves out is gone, whatever is wrong with one of its name in another folder."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    write(here / "prices.json", {"prices": [NORTH]})
    write(there / "prices.json", {"prices": [SOUTH, SOUTH | {"region": "west"}], "discounts": DISCOUNTS})
    env, world = {"OUTLAY_PRICE_FILES": os.pathsep.join(map(str, (here, there)))}, World()
    files = PriceFiles(Context(canonical=canonical_accelerator, env=env, clock=lambda: world.now))
    with context_of(settings, world, files, env) as context:
        read(context)
        world.now += timedelta(minutes=10)
        (here / "prices.json").write_text("{", encoding="utf-8")
        write(there / "prices.json", {"prices": [SOUTH]})
        read(context)
        assert stale_by_region(context) == {"north": True, "south": False}


def test_it_is_named_with_what_is_wrong(context: AppContext, folder: Path) -> None:
    """To whoever runs the service, for as long as it is so; the provider has answered all the same."""
    (folder / "north.json").write_text("{", encoding="utf-8")
    (said,) = read(context)["warnings"]
    assert said.startswith(f"the price file {folder}/north.json is no JSON: ")
    entry = entry_of(context)
    assert (entry.state, entry.offers, entry.last_error, entry.last_error_at) == ("ok", 2, said, context.clock())
    assert read(context)["warnings"] == [said]


def test_its_discounts_stay_and_others_can_be_changed(context: AppContext, folder: Path) -> None:
    """What is taken off list prices is what each file stated last: a changed discount is not taken off twice."""
    (folder / "north.json").write_text("{", encoding="utf-8")
    write(folder / "south.json", {"prices": [SOUTH], "discounts": [DISCOUNTS[1] | {"percent": 20}]})
    read(context)
    (listed,) = (offer for offer in book_of(context).offers if offer.region == "east")
    assert listed.usd_per_hour == 55 * Decimal("0.9") * Decimal("0.8")


def test_it_keeps_no_price_of_other_files(context: AppContext, folder: Path) -> None:
    """What they do not state any more is gone."""
    (folder / "north.json").write_text("{", encoding="utf-8")
    (folder / "south.json").unlink()
    write(folder / "west.json", [SOUTH | {"region": "west"}])
    read(context)
    assert stale_by_region(context) == {"north": True, "west": False}


def test_while_nothing_changes_the_prices_keep_their_name_and_history(context: AppContext, folder: Path) -> None:
    """That nobody can read a price is no change of it, and since when is said once."""
    before = context.store.price_changes(HistoryFilter({}), 100, None)
    (folder / "north.json").write_text("{", encoding="utf-8")
    first, again = read(context), read(context)
    assert (again["snapshot"], again["new"]) == (first["snapshot"], False)
    assert context.store.price_changes(HistoryFilter({}), 100, None) == before


def test_a_mended_file_counts_at_once(context: AppContext, folder: Path) -> None:
    """Nothing is left of the trouble."""
    (folder / "north.json").write_text("{", encoding="utf-8")
    read(context)
    write(folder / "north.json", {"prices": [NORTH | {"usd_per_hour": 33}], "discounts": DISCOUNTS[:1]})
    assert "warnings" not in read(context)
    assert (entry_of(context).last_error, stale_by_region(context)) == (None, {"north": False, "south": False})
    assert {offer.usd_per_hour for offer in book_of(context).offers if offer.region == "north"} == {33}
