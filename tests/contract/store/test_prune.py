"""Pruning of prices: nothing that is named goes, each day keeps its last, and every book that stays can be loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from providers.offer import Fetched, Offer
from service import create_app
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.store import ProviderState, PrunedPrices
from service.usecases.prices.prune import prune_prices

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)
RUN = {"model": {"preset": "llama-2-7b"}, "data": {"tokens": "2T"}, "hardware": {"accelerator": "H100", "count": 64}}


@pytest.fixture
def context(settings: Settings, url: str) -> Iterator[AppContext]:
    """A migrated installation on each kind of database, at one moment."""
    made = build_context(replace(settings, database_url=url))
    with closing(made.store) as store:
        store.migrate()
        yield replace(made, clock=lambda: NOW)


def refresh(context: AppContext, at: datetime, provider: str = "aws") -> str:
    """Another price of a provider; the name of the book that it makes."""
    usd = Decimal(40) + Decimal(str((NOW - at).total_seconds())) / 10**6
    sold = Offer(provider, "r", "i", "NVIDIA-H100-80GB-SXM", 8, "on_demand", usd, at, "list")
    snapshot = f"{provider}-{at:%Y-%m-%d-%H}"
    context.store.save_snapshot(provider, Fetched((sold,), snapshot), at)
    context.store.save_state(ProviderState(provider, snapshot, 3600, at, at), at)
    book = context.store.current_manifest().book
    assert book is not None
    return book


def left(context: AppContext, names: list[str]) -> list[bool]:
    """Which of the books or snapshots can be loaded with all their offers."""
    found = [context.store.book_manifest(name) for name in names]
    return [bool(book.parts) and all(context.store.load_snapshot(part.snapshot) is not None for part in book.parts) for book in found]


def test_of_old_days_the_last_snapshot_stays_and_of_the_last_month_all(context: AppContext) -> None:
    """A second run finds nothing to do."""
    old = [refresh(context, NOW - 40 * DAY + timedelta(hours=hour)) for hour in (0, 3, 6)]
    young = [refresh(context, NOW - 2 * DAY + timedelta(hours=hour)) for hour in (0, 3, 6)]
    assert prune_prices(context) == PrunedPrices(2, 2, 2)
    assert left(context, [*old, *young]) == [False, False, True, True, True, True]
    assert prune_prices(context) == PrunedPrices(0, 0, 0)


def test_what_is_present_stays_however_old(context: AppContext) -> None:
    """A source that has not answered for a month, beside one that moved since."""
    refresh(context, NOW - 40 * DAY, "aws")
    names = [refresh(context, NOW - 40 * DAY + timedelta(hours=hour), "gcp") for hour in (1, 2, 3)]
    assert prune_prices(context).snapshots == 2
    assert left(context, names) == [False, False, True]


def test_what_a_kept_result_and_a_tracked_program_name_stays(context: AppContext) -> None:
    """They are answered again with the same prices."""
    names = []
    app = create_app(context.settings)
    for hour in range(6):
        names.append(refresh(context, NOW - 40 * DAY + timedelta(hours=hour)))
        if hour == 1:
            pinned = RUN | {"price": {"snapshot": names[1]}}
            answer = app.test_client().post("/v1/results", json={"kind": "estimate", "request": pinned})
            assert answer.status_code == 201, answer.get_data(as_text=True)
        if hour == 3:
            body = {"name": "p", "state": "open", "price_snapshot": f"{names[3]}~quotes-1@2027-01-01"}
            context.store.create_program("default", body, None, NOW)
    app.extensions["context"].store.close()
    prune_prices(context)
    assert left(context, names) == [False, True, False, True, False, True]


def test_a_snapshot_that_becomes_present_meanwhile_stays(context: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked at again, under the lock of the books, before it goes."""
    names = [refresh(context, NOW - 40 * DAY + timedelta(hours=hour)) for hour in (0, 1)]
    delete = context.store._delete_snapshot

    def late(name: str) -> int | None:
        context.store.save_state(ProviderState("aws", name, 3600, NOW, NOW), NOW)
        return delete(name)

    monkeypatch.setattr(context.store, "_delete_snapshot", late)
    assert prune_prices(context).snapshots == 0
    assert left(context, names)[1]
    assert context.store.load_snapshot("aws-2026-11-25-12") is not None
