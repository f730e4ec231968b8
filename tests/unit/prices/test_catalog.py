"""The current price book and the recorded ones, on a real database: what is served, how old it is said to be, and what happens without."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from providers.offer import Fetched, Offer, Provider
from service.cache import MemoryCache
from service.domain.errors import StoreUnavailable, UnknownName
from service.domain.price_books import BookManifest, SnapshotRef
from service.domain.prices import offer_key
from service.prices import catalog as catalogs
from service.prices.book import PriceBook
from service.prices.catalog import IDLE_AFTER_S, REFRESH_INTERVAL_S, REFRESH_THREAD, PriceCatalog, make_price_book
from service.prices.freshness import FreshnessPolicy
from service.prices.snapshots import MANIFEST_KEY, SnapshotRepository
from service.store import ProviderState, Store, TeamPriceChanges, TeamPrices
from tests.support.servers import DEADLINE_S, wait_for

NOW = datetime(2026, 11, 21, tzinfo=UTC)
HOUR = timedelta(hours=1)


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
    """A provider of one offer."""

    name = "snapshot"
    fresh_for = timedelta(days=180)

    def fetch(self) -> Fetched:
        return Fetched((offer(observed_at=NOW - timedelta(days=30), source="shipped list"),), "snapshot-1")


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The process's own clock, in the test's hands."""
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A migrated store."""
    made = Store(f"sqlite:///{tmp_path}/outlay.db")
    made.migrate()
    yield made
    made.close()


@pytest.fixture
def catalog(store: Store, clock: Clock) -> PriceCatalog:
    """A catalogue over it, without a cache."""
    return PriceCatalog(SnapshotRepository(Shipped, store), clock)


def keep(
    store: Store, provider: str, name: str, *offers: Offer, at: datetime = NOW, failures: int = 0, fresh_for: timedelta = HOUR
) -> None:
    """A provider's new snapshot, as a refresh keeps it."""
    store.save_snapshot(provider, Fetched(offers, name), at)
    store.save_state(ProviderState(provider, name, round(fresh_for.total_seconds()), at, at, failures), at)


def keep_shipped(store: Store) -> None:
    """The shipped prices, as the first refresh keeps them."""
    keep(store, "snapshot", "snapshot-1", *Shipped().fetch().offers, fresh_for=Shipped.fresh_for)


def looked(catalog: PriceCatalog, clock: Clock) -> PriceCatalog:
    """The catalogue after its next look."""
    clock.now += IDLE_AFTER_S + REFRESH_INTERVAL_S
    assert catalog.current
    for thread in threading.enumerate():
        if thread.name == REFRESH_THREAD:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()
    return catalog


class TestBook:
    def test_it_is_ordered_and_indexed_by_accelerator(self) -> None:
        """Listings come by accelerator, provider, region, instance type; the index holds the same offers."""
        rows = [offer(provider="gcp"), offer(accelerator="AMD-MI300X"), offer(region="eu-west-1"), offer()]
        book = make_price_book("b", rows, timedelta(days=1))
        assert [offer_key(row)[:3] for row in book.offers] == [
            ("AMD-MI300X", "aws", "us-east-1"),
            ("NVIDIA-H100-80GB-SXM", "aws", "eu-west-1"),
            ("NVIDIA-H100-80GB-SXM", "aws", "us-east-1"),
            ("NVIDIA-H100-80GB-SXM", "gcp", "us-east-1"),
        ]
        assert sum(map(len, book.by_accelerator.values())) == 4
        assert book.by_accelerator["AMD-MI300X"] == book.offers[:1]

    def test_an_offer_is_stale_once_its_providers_promise_has_run_out(self) -> None:
        """On the last day of the promise it is still fresh."""
        book = make_price_book("b", [offer()], timedelta(days=180))
        assert not book.is_stale(offer(), NOW + timedelta(days=180))
        assert book.is_stale(offer(), NOW + timedelta(days=180, seconds=1))

    @pytest.mark.parametrize("days", [0, 2, 40, 400])
    def test_rows_are_stale_as_their_offers_are(self, days: int) -> None:
        """Whichever provider and source they are of and whenever they were read, in the future included."""
        read = [NOW + timedelta(days=ago) for ago in (-30, -30, -1, 1)]
        rows = [offer(provider=name, region=f"r{at}", observed_at=each) for name in ("aws", "gcp") for at, each in enumerate(read)]
        policies = {
            ("aws", rows[0].source): FreshnessPolicy("aws", timedelta(days=3)),
            ("gcp", rows[0].source): FreshnessPolicy("gcp", HOUR, reached=False),
        }
        book = replace(make_price_book("b", rows, timedelta(days=60)), policies=policies)
        now = NOW + timedelta(days=days)
        assert book.stale_mask(now).tolist() == [book.is_stale(row, now) for row in book.offers]


class TestShippedPrices:
    def test_they_are_current_where_nothing_was_kept(self, catalog: PriceCatalog) -> None:
        """Under their own name, by which they can be asked for too, and no staler than they are."""
        assert catalog.book() is catalog.current is catalog.book("snapshot-1")
        assert not catalog.current.is_stale(catalog.current.offers[0], NOW)

    def test_a_database_that_was_never_made_is_no_outage(self, tmp_path: Path, clock: Clock) -> None:
        """The command line works without a service having run; nothing is created by looking."""
        catalog = PriceCatalog(SnapshotRepository(Shipped, Store(f"sqlite:///{tmp_path}/none/outlay.db")), clock)
        assert catalog.current.name == "snapshot-1"
        assert not catalog.current.disconnected
        assert not (tmp_path / "none").exists()

    def test_keeping_them_changes_no_name(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """For users without live prices everything stays as it was."""
        keep_shipped(store)
        assert looked(catalog, clock).current.name == "snapshot-1"


class TestLivePrices:
    def test_a_new_snapshot_makes_a_new_book(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """Its name says from when it is; the live price replaces the shipped one and its age is judged by its own provider's promise."""
        assert catalog.current.name == "snapshot-1"
        keep_shipped(store)
        keep(store, "aws", "aws-1", offer(usd_per_hour=Decimal(40)))
        book = looked(catalog, clock).current
        assert book.name.startswith("prices-2026-11-21-")
        assert [row.usd_per_hour for row in book.offers] == [Decimal(40)]
        assert not book.is_stale(book.offers[0], NOW + HOUR)
        assert book.is_stale(book.offers[0], NOW + 2 * HOUR)

    def test_prices_seen_again_are_as_new_as_that(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """What the answer brought carries the time of the last confirmation; what was kept from before stays as old as it is."""
        keep_shipped(store)
        old = offer(region="eu-west-1", observed_at=NOW - 3 * HOUR)
        keep(store, "aws", "aws-1", offer(), old)
        store.save_state(ProviderState("aws", "aws-1", 3600, NOW + 2 * HOUR, NOW), NOW)
        book = looked(catalog, clock).current
        assert {row.region: row.observed_at for row in book.offers} == {"us-east-1": NOW + 2 * HOUR, "eu-west-1": NOW - 3 * HOUR}
        recorded = PriceCatalog(SnapshotRepository(Shipped, store)).book("aws-1")
        assert {row.region: row.observed_at for row in recorded.offers} == {"us-east-1": NOW, "eu-west-1": NOW - 3 * HOUR}

    def test_prices_of_a_provider_that_cannot_be_reached_are_stale(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """However new they are; those of the others are not, though both are asked at one mirror; the name stays, as the prices do."""
        keep_shipped(store)
        keep(store, "aws", "aws-1", offer(source="mirror"))
        keep(store, "gcp", "gcp-1", offer(provider="gcp", source="mirror"))
        before = looked(catalog, clock).current.name
        store.save_state(ProviderState("aws", "aws-1", 3600, NOW, NOW, failures=1), NOW)
        book = looked(catalog, clock).current
        assert book.name == before
        assert {row.provider: book.is_stale(row, NOW) for row in book.offers} == {"aws": True, "gcp": False}

    def test_a_state_that_comes_back_has_its_old_name(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """The name stands for the prices, not for the time."""
        keep_shipped(store)
        names = []
        for snapshot, usd in (("aws-1", 40), ("aws-2", 41), ("aws-1", 40)):
            keep(store, "aws", snapshot, offer(usd_per_hour=Decimal(usd)))
            names.append(looked(catalog, clock).current.name)
        assert names[0] == names[2] != names[1]
        assert catalog.current.offers[0].usd_per_hour == 40

    def test_every_book_can_be_asked_for_by_its_name(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """So an estimate can be repeated after the prices have moved, in any process; so can a single snapshot."""
        keep_shipped(store)
        keep(store, "aws", "aws-1", offer(usd_per_hour=Decimal(40)))
        first = looked(catalog, clock).current
        keep(store, "aws", "aws-2", offer(usd_per_hour=Decimal(41)))
        assert looked(catalog, clock).current.name != first.name
        again = PriceCatalog(SnapshotRepository(Shipped, store)).book(first.name)
        assert (again.name, again.offers, again.newest) == (first.name, first.offers, first.newest)
        assert [row.usd_per_hour for row in catalog.book("aws-2").offers] == [Decimal(41)]

    def test_an_unknown_book_is_an_error_that_names_the_current_one(self, catalog: PriceCatalog) -> None:
        """The pointer is that of an estimate request; a name without end is cut."""
        with pytest.raises(UnknownName, match="no price snapshot is called 'x'; the current one is snapshot-1") as caught:
            catalog.book("x")
        assert (caught.value.pointer, caught.value.near) == ("/price/snapshot", ("snapshot-1",))
        with pytest.raises(UnknownName) as caught:
            catalog.book("x" * 10_000)
        assert len(caught.value.message) < 200


def keep_own(
    store: Store,
    team: str,
    name: str,
    *offers: Offer,
    failures: int = 0,
    fresh_for: timedelta = HOUR,
    besides: tuple[TeamPrices, ...] = (),
) -> None:
    """What one team, and no other but those `besides`, has of its own from now on."""
    store.save_snapshot("file", Fetched(offers, name), NOW, team=team)
    state = ProviderState("file", None, round(fresh_for.total_seconds()), NOW, NOW, failures)
    store.save_state(state, NOW, owned=TeamPriceChanges([TeamPrices(team, name), *besides], {}))


class TestATeamsOwn:
    def test_it_is_seen_by_the_team_in_everybodys_book(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """Under a name of its own, as old and as trustworthy as its file is; the others see the book itself."""
        keep_shipped(store)
        keep(store, "gcp", "gcp-1", offer(provider="gcp"))
        keep_own(store, "vision", "file-1", offer(usd_per_hour=Decimal(30), source="contract", observed_at=NOW - HOUR))
        everybodys = looked(catalog, clock).current
        own = catalog.book(team="vision")
        assert [(row.provider, row.usd_per_hour) for row in own.offers] == [("aws", 30), ("gcp", Decimal("55.04"))]
        assert (own.name, own.source_provider(own.offers[0])) == (f"{everybodys.name}~file-1", "file")
        assert (own.is_stale(own.offers[0], NOW), own.is_stale(own.offers[0], NOW + HOUR)) == (False, True)
        assert catalog.book(team="speech") is catalog.book() is everybodys
        assert {row.provider: row.usd_per_hour for row in everybodys.offers}["aws"] != 30

    def test_it_is_made_once_for_each_state_and_by_the_refresh(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """A request after the first waits for no sums over all prices."""
        keep_shipped(store)
        keep_own(store, "vision", "file-1", offer(usd_per_hour=Decimal(30), source="contract"))
        first = looked(catalog, clock).book(team="vision")
        assert catalog.book(team="vision") is first is catalog.book(first.name, "vision")
        keep_own(store, "vision", "file-2", offer(usd_per_hour=Decimal(31), source="contract"))
        looked(catalog, clock)
        catalog._snapshots.with_team_prices = None  # type: ignore[assignment,method-assign]
        second = catalog.book(team="vision")
        assert (second.name, second.offers[0].usd_per_hour) == ("snapshot-1~file-2", 31)

    def test_another_team_may_ask_while_a_refresh_makes_them(
        self, catalog: PriceCatalog, store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """For its first time: requests do not wait for the look, nor may they break it."""
        keep_shipped(store)
        keep_own(store, "vision", "file-1", offer(usd_per_hour=Decimal(30)))
        keep_own(store, "speech", "file-2", offer(usd_per_hour=Decimal(31)), besides=(TeamPrices("vision", "file-1"),))
        looked(catalog, clock).book(team="vision")
        keep(store, "gcp", "gcp-1", offer(provider="gcp"))
        with_team_prices = SnapshotRepository.with_team_prices
        meanwhile = [lambda: catalog.book(team="speech")]

        def interrupted(shelf: SnapshotRepository, book: PriceBook, head: SnapshotRef, **how: Any) -> PriceBook:
            if meanwhile:
                meanwhile.pop()()
            return with_team_prices(shelf, book, head, **how)

        monkeypatch.setattr(SnapshotRepository, "with_team_prices", interrupted)
        catalog.refresh()
        assert [catalog.book(team=team).offers[0].usd_per_hour for team in ("vision", "speech")] == [30, 31]
        assert catalog.book(team="speech").name.endswith("~file-2")

    def test_list_prices_of_the_same_source_keep_their_own_promise(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """A file may name the source that a list price has, and was read at the same time."""
        keep_shipped(store)
        keep(store, "aws", "aws-1", offer(), offer(region="eu-west-1"))
        own = offer(usd_per_hour=Decimal(30), extras={"team": "vision"})
        keep_own(store, "vision", "file-1", own, fresh_for=365 * 24 * HOUR)
        book, later = looked(catalog, clock).book(team="vision"), NOW + 2 * HOUR
        assert [(row.region, book.source_provider(row), book.is_stale(row, later)) for row in book.offers] == [
            ("eu-west-1", "aws", True),
            ("us-east-1", "file", False),
        ]
        assert book.stale_mask(later).tolist() == [True, False]

    def test_a_past_state_is_found_by_its_name_for_that_team(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """In any process; to everybody else, and without a team, it is unknown."""
        keep_shipped(store)
        keep_own(store, "vision", "file-1", offer(usd_per_hour=Decimal(30), source="contract"))
        first = looked(catalog, clock).book(team="vision")
        keep_own(store, "speech", "file-2", offer(usd_per_hour=Decimal(31), source="contract"))
        other = looked(PriceCatalog(SnapshotRepository(Shipped, store), clock), clock)
        again = other.book(first.name, "vision")
        assert (again.name, again.offers, again.newest) == (first.name, first.offers, first.newest)
        for team in ("speech", "plain", None):
            with pytest.raises(UnknownName):
                other.book(first.name, team)
            with pytest.raises(UnknownName):
                other.book("file-1", team)
        assert other.book(team="vision") is other.current

    def test_a_name_that_was_unknown_may_be_known_later(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """That it was not there is not remembered."""
        keep_shipped(store)
        with pytest.raises(UnknownName):
            catalog.book("snapshot-1~file-1", "vision")
        keep_own(store, "vision", "file-1", offer(usd_per_hour=Decimal(30)))
        assert catalog.book("snapshot-1~file-1", "vision").offers[0].usd_per_hour == 30


class TestLooking:
    @pytest.fixture
    def release(self) -> Iterator[threading.Event]:
        """Lets a look that hangs go on, at the latest when the test is over."""
        made = threading.Event()
        yield made
        made.set()

    def test_a_busy_process_looks_once_a_second_and_serves_meanwhile(self, store: Store, clock: Clock, release: threading.Event) -> None:
        """A look that hangs holds nobody up, and there is no second beside it."""
        looks: list[float] = []

        class Slow(SnapshotRepository):
            def current_manifest(self) -> BookManifest:
                looks.append(clock.now)
                if len(looks) > 1:
                    release.wait()
                return super().current_manifest()

        catalog = PriceCatalog(Slow(Shipped, store), clock)
        for _ in range(50):
            assert catalog.current.name == "snapshot-1"
        assert len(looks) == 1
        clock.now += REFRESH_INTERVAL_S
        assert catalog.current.name == "snapshot-1"
        wait_for(lambda: len(looks) == 2, "the second look")
        for _ in range(50):
            clock.now += 1
            assert catalog.current.name == "snapshot-1"
        assert len(looks) == 2
        release.set()
        looked(catalog, clock)

    def test_a_store_that_hangs_from_the_start_is_waited_for_once(
        self, store: Store, clock: Clock, release: threading.Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The requests after that get the shipped prices at once, as stale; when the store answers, the current ones."""
        waits: list[float] = []

        class Hung(SnapshotRepository):
            def current_manifest(self) -> BookManifest:
                release.wait()
                return super().current_manifest()

        catalog = PriceCatalog(Hung(Shipped, store), clock)
        refresh_in_background = catalog._refresh_in_background
        monkeypatch.setattr(catalog, "_refresh_in_background", lambda wait_s: (waits.append(wait_s), refresh_in_background(wait_s / 1000)))
        for _ in range(3):
            assert catalog.current is catalog.current
            assert catalog.current.disconnected
            clock.now += catalogs.FIRST_MAX_WAIT_S
        assert waits == [catalogs.FIRST_MAX_WAIT_S] * 3 + [0.0] * 6
        release.set()
        assert not looked(catalog, clock).current.disconnected

    def test_the_observer_is_called_with_the_manifest_of_a_refresh(self, catalog: PriceCatalog, store: Store, clock: Clock) -> None:
        """That is how prices which have run out are noticed."""
        told: list[BookManifest] = []
        catalog.watch = told.append
        keep_shipped(store)
        looked(catalog, clock)
        assert [head.provider for head in told[-1].parts] == ["snapshot"]


class Away(Store):
    """A store that can be pulled from under its users."""

    away = False

    def current_manifest(self) -> BookManifest:
        if self.away:
            raise StoreUnavailable("pulled")
        return super().current_manifest()


class TestWithoutTheDatabase:
    def test_what_is_in_memory_is_served_and_counts_as_stale(self, tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
        """Until it is back; one warning says so."""
        store = Away(f"sqlite:///{tmp_path}/outlay.db")
        store.migrate()
        keep_shipped(store)
        keep(store, "aws", "aws-1", offer(usd_per_hour=Decimal(40)))
        catalog = PriceCatalog(SnapshotRepository(Shipped, store), clock)
        keep_own(store, "vision", "file-1", offer(usd_per_hour=Decimal(30), source="contract"))
        name = looked(catalog, clock).current.name
        store.away = True
        for _ in range(3):
            book = looked(catalog, clock).current
        assert (book.name, book.is_stale(book.offers[0], NOW)) == (name, True)
        own = catalog.book(team="vision")
        assert (own.offers[0].usd_per_hour, own.is_stale(own.offers[0], NOW)) == (30, True)
        assert len([r for r in caplog.records if "prices cannot be read" in r.message]) == 1
        store.away = False
        book = looked(catalog, clock).current
        assert (book.name, book.is_stale(book.offers[0], NOW)) == (name, False)

    def test_a_process_that_starts_then_has_the_shipped_prices_as_stale(self, tmp_path: Path, clock: Clock) -> None:
        """Better an old price that says so than none."""
        store = Away(f"sqlite:///{tmp_path}/outlay.db")
        store.away = True
        book = PriceCatalog(SnapshotRepository(Shipped, store), clock).current
        assert (book.name, book.is_stale(book.offers[0], NOW)) == ("snapshot-1", True)

    def test_an_older_schema_is_like_no_database(self, store: Store, clock: Clock) -> None:
        """A process that is newer than the database does not fail on tables that are not there."""
        with store._write() as connection:
            connection.exec_driver_sql("DROP TABLE price_book_parts")
        assert PriceCatalog(SnapshotRepository(Shipped, store), clock).current.disconnected


class TestCache:
    @pytest.fixture
    def cache(self) -> MemoryCache:
        """A cache that never forgets by itself."""
        return MemoryCache(lambda: 0.0)

    def test_another_process_gets_its_prices_from_the_cache(self, store: Store, cache: MemoryCache) -> None:
        """Without a word to the store, and exactly those; a team its own too."""
        keep_shipped(store)
        keep(store, "aws", "aws-1", offer(usd_per_hour=Decimal("40.10"), extras={"zone": "a"}, available_since=NOW))
        keep_own(store, "vision", "file-1", offer(usd_per_hour=Decimal(30), source="contract"))
        first = PriceCatalog(SnapshotRepository(Shipped, store, cache))

        class Nothing(Store):
            def current_manifest(self) -> BookManifest:
                raise AssertionError("asked the store")

            def load_snapshot(self, name: str) -> Fetched | None:
                raise AssertionError("asked the store")

        second = PriceCatalog(SnapshotRepository(Shipped, Nothing(str(store.engine.url)), cache))
        for team in (None, "vision"):
            here, there = first.book(team=team), second.book(team=team)
            assert (there.name, there.offers) == (here.name, here.offers)
        assert second.book(team="vision").offers[0].usd_per_hour == 30

    @pytest.mark.parametrize(
        "wrong", [b"", b"nonsense", b"null", b'{"book": 1}', b'{"book": "b", "parts": [{}]}', b'{"book": "b", "parts": [], "teams": 1}']
    )
    def test_what_is_wrong_in_the_cache_is_not_used(self, store: Store, cache: MemoryCache, wrong: bytes) -> None:
        """Neither as the name of the book nor as its offers."""
        keep_shipped(store)
        keep(store, "aws", "aws-1", offer(usd_per_hour=Decimal(40)))
        PriceCatalog(SnapshotRepository(Shipped, store, cache)).refresh()
        for key in list(cache._entries):
            cache.set(key, wrong, 60)
        assert MANIFEST_KEY in cache._entries
        assert len(cache._entries) == 2
        assert [row.usd_per_hour for row in PriceCatalog(SnapshotRepository(Shipped, store, cache)).current.offers] == [Decimal(40)]
