"""The store's promises, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from providers.offer import Discount, Fetched, Offer
from providers.snapshot import SnapshotProvider
from service.domain.errors import StoreNotReady, StoreUnavailable
from service.domain.jobs import Job
from service.store import Store
from service.store.migration import alembic_config, upgrade
from service.store.prices.snapshots import CHUNK_ROWS
from service.store.tables import HEAD, jobs, metadata
from tests.support.snapshots import stored_snapshots

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=60)


def offer(n: int = 0, usd: str = "98.32") -> Offer:
    """An offer that differs from its siblings by its instance type."""
    named = f"p5.{n}xlarge"
    return Offer("aws", "us-east-1", named, "NVIDIA-H100-80GB-SXM", 8, "on_demand", Decimal(usd), NOW, "price list", extras={"zone": "a"})


def kept(store: Store, name: str) -> tuple[Offer, ...]:
    """The offers kept under a name."""
    found = store.load_snapshot(name)
    assert found is not None
    return found.offers


class TestSchema:
    def test_migrations_make_the_tables_the_code_uses(self, store: Store) -> None:
        """Every table and column of the code exists after the migrations, and no other."""
        seen = inspect(store.engine)
        assert {*seen.get_table_names()} == {"alembic_version", *metadata.tables}
        for table in metadata.tables.values():
            assert {c["name"] for c in seen.get_columns(table.name)} == set(table.columns.keys())

    def test_head_is_the_newest_migration(self) -> None:
        """The revision the server asks for is the newest file's."""
        assert ScriptDirectory.from_config(alembic_config()).get_current_head() == HEAD

    def test_a_job_has_the_columns_of_its_table(self) -> None:
        """The dataclass and the table name the same things."""
        assert {f.name for f in fields(Job)} == set(jobs.columns.keys())

    def test_an_unmigrated_database_is_not_ready(self, open_store: Callable[[str], Store], empty_url: str) -> None:
        """A database without schema is told apart from one that is away."""
        with pytest.raises(StoreNotReady, match="no schema"):
            open_store(empty_url).check_head()

    def test_a_migrated_database_is_ready(self, store: Store) -> None:
        """After the migrations the head check passes, and migrating again changes nothing."""
        store.migrate()
        store.check_head()

    def test_concurrent_migrations_wait_for_each_other(self, open_store: Callable[[str], Store], empty_url: str) -> None:
        """Four processes' worth of migrations at once all succeed."""
        failures: list[Exception] = []
        stores = [open_store(empty_url) for _ in range(4)]

        def migrate() -> None:
            try:
                upgrade(stores.pop().engine)
            except Exception as error:  # noqa: BLE001  # a thread's failure must reach the test
                failures.append(error)

        threads = [threading.Thread(target=migrate) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        open_store(empty_url).check_head()


class TestSnapshots:
    def test_offers_come_back_exactly(self, store: Store) -> None:
        """Every field of every offer survives, decimals to the last digit and times in UTC."""
        offers = (offer(1, "0.000000001"), offer(2, "98.320"), offer(3, "123456789.123456789"))
        assert store.save_snapshot("aws", Fetched(offers, "aws-2027-01-04"), NOW) == 3
        assert kept(store, "aws-2027-01-04") == offers
        assert [str(o.usd_per_hour) for o in offers] == [str(o.usd_per_hour) for o in kept(store, "aws-2027-01-04")]

    def test_what_only_some_offers_have_comes_back_too(self, store: Store) -> None:
        """Since when an offer is available, and the discounts of a price book, exactly and in their order."""
        since = replace(offer(1), available_since=LATER)
        discounts = (Discount("volume", Decimal("0.0325"), provider="aws"), Discount("loyalty", Decimal("0.1")))
        store.save_snapshot("file", Fetched((since,), "f", discounts=discounts), NOW)
        assert store.load_snapshot("f") == Fetched((since,), "f", discounts=discounts)

    def test_the_shipped_prices_fit(self, store: Store) -> None:
        """Every offer of the packaged snapshot is kept exactly, whatever the length of its texts."""
        shipped = SnapshotProvider().fetch()
        store.save_snapshot("snapshot", shipped, NOW)
        assert sorted(map(repr, kept(store, shipped.snapshot))) == sorted(map(repr, shipped.offers))

    def test_saving_again_changes_nothing(self, store: Store) -> None:
        """The same snapshot saved twice is there once, whatever the order of its offers."""
        offers = tuple(offer(n) for n in range(5))
        store.save_snapshot("aws", Fetched(offers, "s"), NOW)
        assert store.save_snapshot("aws", Fetched(offers[::-1], "s"), LATER) == 0
        assert kept(store, "s") == offers
        assert [snapshot["taken_at"] for snapshot in stored_snapshots(store)] == [NOW]

    def test_an_interrupted_save_is_invisible_and_goes_on(self, store: Store) -> None:
        """A save stopped between chunks shows nothing to readers, and its repetition writes only what is missing."""
        fetched = Fetched(tuple(offer(n) for n in range(CHUNK_ROWS + 7)), "s")

        def stop_at_second_chunk(done: int, total: int) -> None:
            assert total == CHUNK_ROWS + 7
            if done:
                raise InterruptedError

        with pytest.raises(InterruptedError):
            store.save_snapshot("aws", fetched, NOW, stop_at_second_chunk)
        assert store.load_snapshot("s") is None
        assert stored_snapshots(store, "aws") == []
        assert store.save_snapshot("aws", fetched, LATER) == 7
        assert len(kept(store, "s")) == CHUNK_ROWS + 7

    def test_a_snapshot_is_of_its_provider(self, store: Store) -> None:
        """Snapshots are stored by provider; an unknown one is None."""
        store.save_snapshot("aws", Fetched((offer(1),), "old"), NOW)
        store.save_snapshot("aws", Fetched((offer(1),), "new"), LATER)
        store.save_snapshot("gcp", Fetched((), "other"), LATER)
        assert [snapshot["name"] for snapshot in stored_snapshots(store, "aws")] == ["new", "old"]
        assert store.load_snapshot("unknown") is None
        assert kept(store, "other") == ()


class TestTrouble:
    def test_ping_answers(self, store: Store) -> None:
        """A database that is there says so, as often as it is asked."""
        assert [store.ping(timeout_s=5) for _ in range(3)] == [True, True, True]

    def test_no_database_is_a_quick_no(self, open_store: Callable[[str], Store], free_port: int, tmp_path: Path) -> None:
        """A database that is not there is reported as unavailable, and ping does not raise."""
        for url in (f"postgresql://nobody@127.0.0.1:{free_port}/none", f"sqlite:///{tmp_path}/no/such/folder/outlay.db"):
            away = open_store(url)
            assert not away.ping(timeout_s=5)
            with pytest.raises(StoreUnavailable):
                away.job("any")
            with pytest.raises(StoreUnavailable):
                away.check_head()

    def test_a_hung_database_does_not_hang_ping(self, store: Store) -> None:
        """Ping gives up on a question that is not answered, and while that one hangs it asks no other."""
        release = threading.Event()
        store._ping._ask = release.wait
        assert not store.ping(timeout_s=0.01)
        assert not store.ping(timeout_s=0.01)
        release.set()


class TestSqlite:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """Where the database lies."""
        return tmp_path / "outlay.db"

    def test_commits_are_synchronised(self, open_store: Callable[[str], Store], path: Path) -> None:
        """Every connection runs in WAL mode with full synchronisation."""
        with open_store(f"sqlite:///{path}").engine.connect() as connection:
            assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
            assert connection.scalar(text("PRAGMA synchronous")) == 2

    def test_a_locked_database_is_unavailable(
        self, open_store: Callable[[str], Store], path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A writer that waits too long for another is told so, and readers go on meanwhile."""
        monkeypatch.setattr("service.store.database.BUSY_TIMEOUT_S", 0.05)
        store = open_store(f"sqlite:///{path}")
        store.migrate()
        job = store.create_job("refresh_prices", {}, NOW)
        with sqlite3.connect(path, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="locked"):
                store.create_job("refresh_prices", {}, NOW)
            assert store.job(job.id) == job
            assert store.ping(timeout_s=5)
            other.execute("ROLLBACK")
        other.close()

    def test_everybody_gets_a_turn(self, open_store: Callable[[str], Store], path: Path) -> None:
        """Also beside a writer that never stops."""
        store, other = (open_store(f"sqlite:///{path}") for _ in range(2))
        store.migrate()
        enough = threading.Event()

        def write_on() -> None:
            while not enough.is_set():
                other.beat("busy", NOW)

        with ThreadPoolExecutor() as pool:
            writing = pool.submit(write_on)
            try:
                made = {store.create_job("refresh_prices", {}, NOW).id for _ in range(10)}
            finally:
                enough.set()
            writing.result()
        assert len(made) == 10

    def test_a_turn_that_does_not_come_is_told_and_leaves_the_connection_as_it_was(
        self, open_store: Callable[[str], Store], path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The database is away for whoever waits too long; waiting for another thing than a turn is left to SQLite."""
        monkeypatch.setattr("service.store.database.BUSY_TIMEOUT_S", 0.1)
        store, other = (open_store(f"sqlite:///{path}") for _ in range(2))
        store.migrate()
        writing = other.engine.connect().execution_options(outlay_write=True)
        with writing as held, held.begin(), pytest.raises(StoreUnavailable, match="locked"):
            store.beat("late", NOW)
        with store.engine.connect() as connection:
            assert connection.scalar(text("PRAGMA busy_timeout")) == 100
        store.beat("late", NOW)
