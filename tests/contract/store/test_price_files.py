"""What the store promises of teams' price files, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from providers.offer import Fetched, Offer, OfferTerms
from service.store import PriceFileRecord, Store
from service.store.tables import price_files

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
TERMS = OfferTerms(4380.0, 0.25, date(2027, 3, 1), 64, Decimal("1000000.00"), capacity=True)


def record(team: str = "vision", name: str = "lambda", minutes: int = 0) -> PriceFileRecord:
    """A file to be kept."""
    return PriceFileRecord(
        team=team,
        name=name,
        version=0,
        file_name="quote.csv",
        format="csv",
        sha256="0" * 64,
        kept_at=NOW + timedelta(minutes=minutes),
        kept_by=None,
        state="current",
        content={"offers": minutes},
    )


def combined(records: Sequence[PriceFileRecord]) -> Fetched | None:
    """An offer for each file, named by the files."""
    sold = [
        Offer(file.name, "r", "i", "NVIDIA-H100-80GB-SXM", 8, "reserved", Decimal("16.123456789"), file.kept_at, "quote.csv", terms=TERMS)
        for file in records
    ]
    name = "-".join(f"{file.team}.{file.name}.{file.version}" for file in records)
    return Fetched(tuple(sold), f"quotes-{name}") if sold else None


def kept(store: Store, *records: PriceFileRecord, most: int = 10) -> list[PriceFileRecord | None]:
    """The files, kept one after the other."""
    return [store.keep_price_file(each, most, combined) for each in records]


def test_the_dataclass_has_the_columns_of_its_table() -> None:
    """They name the same things."""
    assert {f.name for f in fields(PriceFileRecord)} == set(price_files.columns.keys())


def test_a_kept_file_is_found_by_its_team_alone(store: Store) -> None:
    """With all that was kept of it."""
    (made,) = kept(store, record())
    assert made is not None
    assert made.version == 1
    assert store.price_files("vision") == store.price_file_versions("vision", "lambda") == [made]
    assert store.price_files("speech") == store.price_file_versions("speech", "lambda") == []


def test_a_new_version_supersedes_the_old_one(store: Store) -> None:
    """Which is still listed, newest first."""
    kept(store, record(), record(minutes=1), record(name="other"))
    assert [(file.name, file.version) for file in store.price_files("vision")] == [("lambda", 2), ("other", 1)]
    versions = store.price_file_versions("vision", "lambda")
    assert [(file.version, file.state) for file in versions] == [(2, "current"), (1, "superseded")]


def test_the_manifest_names_the_snapshot_of_all_current_files_of_a_team(store: Store) -> None:
    """With the offers and their terms as they were; it does not depend on the operator's price files."""
    kept(store, record(), record(name="other", minutes=1), record("speech"))
    quotes = store.current_manifest().quotes
    assert {team: (ref.provider, ref.snapshot, ref.failures) for team, ref in quotes.items()} == {
        "vision": ("file", "quotes-vision.lambda.1-vision.other.1", 0),
        "speech": ("file", "quotes-speech.lambda.1", 0),
    }
    found = store.load_snapshot(quotes["vision"].snapshot)
    assert found is not None
    assert [(offer.provider, offer.terms, offer.usd_per_hour) for offer in found.offers] == [
        (name, TERMS, Decimal("16.123456789")) for name in ("lambda", "other")
    ]
    assert store.team_snapshot_ref("vision", quotes["vision"].snapshot) == quotes["vision"]
    assert store.team_snapshot_ref("speech", quotes["vision"].snapshot) is None
    assert store.book_manifest(quotes["vision"].snapshot).parts == ()


def test_a_deleted_file_leaves_its_record_and_its_snapshot(store: Store) -> None:
    """Its offers are current no more; another team cannot delete it."""
    kept(store, record())
    assert store.delete_price_file("speech", "lambda", NOW, combined) is None
    gone = store.delete_price_file("vision", "lambda", NOW, combined)
    assert gone is not None
    assert gone.state == "deleted"
    assert store.delete_price_file("vision", "lambda", NOW, combined) is None
    assert store.price_files("vision") == []
    assert [file.state for file in store.price_file_versions("vision", "lambda")] == ["deleted"]
    assert store.current_manifest().quotes == {}
    assert store.load_snapshot("quotes-vision.lambda.1") is not None


def test_a_team_has_no_more_files_than_it_may_have(store: Store) -> None:
    """A new version of one that it has is always taken."""
    files = kept(store, record(), record(name="other"), record(minutes=1), record(name="third"), most=2)
    assert [file and file.version for file in files] == [1, 1, 2, None]


def test_concurrent_uploads_become_versions_one_after_the_other(store: Store) -> None:
    """None is lost, and the snapshot is of the last one."""
    threads = [threading.Thread(target=kept, args=(store, record(minutes=minute))) for minute in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = store.price_file_versions("vision", "lambda")
    assert [file.version for file in versions] == [6, 5, 4, 3, 2, 1]
    assert [file.state for file in versions] == ["current", *["superseded"] * 5]
    assert store.current_manifest().quotes["vision"].snapshot == "quotes-vision.lambda.6"
