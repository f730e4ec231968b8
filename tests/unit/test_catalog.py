"""Price books: ordered, indexed, named, and the older ones by their name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from providers.offer import Fetched, Offer, Provider
from service.catalog import Catalog, offer_key, price_book
from service.domain.errors import UnknownName

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def offer(**changes: Any) -> Offer:
    row: dict[str, Any] = {
        "provider": "aws",
        "region": "us-east-1",
        "instance_type": "p5.48xlarge",
        "accelerator": "NVIDIA-H100-80GB-SXM",
        "accelerator_count": 8,
        "pricing": "on_demand",
        "usd_per_hour": Decimal("55.04"),
        "observed_at": NOW,
        "source": "price list",
    }
    return Offer(**row | changes)


class Shipped(Provider):
    """A provider of one offer that counts how often it is asked."""

    name = "snapshot"
    fresh_for = timedelta(days=180)
    fetches = 0

    def fetch(self) -> Fetched:
        self.fetches += 1
        return Fetched((offer(),), "prices-2")


class Kept:
    """Recorded snapshots by name."""

    def __init__(self, **snapshots: tuple[Offer, ...]) -> None:
        self.snapshots = snapshots
        self.asked: list[str] = []

    def load_snapshot(self, name: str) -> tuple[Offer, ...] | None:
        self.asked.append(name)
        return self.snapshots.get(name)


def test_a_book_is_ordered_and_indexed_by_accelerator() -> None:
    """Listings come by accelerator, provider, region, instance type; the index holds the same offers."""
    rows = [offer(provider="gcp"), offer(accelerator="AMD-MI300X"), offer(region="eu-west-1"), offer()]
    book = price_book("b", rows, timedelta(days=1))
    assert [offer_key(row)[:3] for row in book.offers] == [
        ("AMD-MI300X", "aws", "us-east-1"),
        ("NVIDIA-H100-80GB-SXM", "aws", "eu-west-1"),
        ("NVIDIA-H100-80GB-SXM", "aws", "us-east-1"),
        ("NVIDIA-H100-80GB-SXM", "gcp", "us-east-1"),
    ]
    assert sum(map(len, book.by_accelerator.values())) == 4
    assert book.by_accelerator["AMD-MI300X"] == book.offers[:1]


def test_an_offer_is_stale_once_its_providers_promise_has_run_out() -> None:
    """On the last day of the promise it is still fresh."""
    book = price_book("b", [offer()], timedelta(days=180))
    assert not book.stale(offer(), NOW + timedelta(days=180))
    assert book.stale(offer(), NOW + timedelta(days=180, seconds=1))


def test_the_current_prices_are_read_once() -> None:
    """Also when they are asked for by their name, for which the store is not needed."""
    provider, store = Shipped(), Kept()
    catalog = Catalog(lambda: provider, store)
    assert catalog.book() is catalog.current is catalog.book("prices-2")
    assert catalog.current.name == "prices-2"
    assert (provider.fetches, store.asked) == (1, [])


def test_an_older_book_comes_from_the_store_with_the_same_promise() -> None:
    """So an estimate can be repeated against the prices it was made with."""
    old = offer(usd_per_hour=Decimal(98))
    book = Catalog(Shipped, Kept(older=(old,))).book("older")
    assert (book.name, book.offers, book.fresh_for) == ("older", (old,), timedelta(days=180))


def test_an_unknown_book_is_an_error_that_names_the_current_one() -> None:
    """The pointer is that of an estimate request; a name without end is cut."""
    with pytest.raises(UnknownName, match="no price snapshot is called 'x'; the current one is prices-2") as caught:
        Catalog(Shipped, Kept()).book("x")
    assert (caught.value.pointer, caught.value.near) == ("/price/snapshot", ("prices-2",))
    with pytest.raises(UnknownName) as caught:
        Catalog(Shipped, Kept()).book("x" * 10_000)
    assert len(caught.value.message) < 200
