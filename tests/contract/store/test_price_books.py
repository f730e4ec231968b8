"""What the store promises of providers' states, price books and price history, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import event, text

from providers.offer import Fetched, Offer
from service.domain.errors import StoreUnavailable
from service.domain.price_books import EMPTY_MANIFEST
from service.domain.prices import PriceChange
from service.store import HistoryFilter, ProviderState, StaleWriteError, Store, TeamPriceChanges, TeamPrices
from service.store.prices.history import IDENTITY_COLUMNS
from service.store.tables import price_history, provider_states, team_price_history, team_prices
from tests.support.snapshots import stored_snapshots

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
EVERYTHING = HistoryFilter({})


def keep(store: Store, provider: str, snapshot: str, at: datetime = NOW) -> None:
    """A provider's snapshot of one offer, and the state that names it."""
    sold = Offer(provider, "r", "i", "NVIDIA-H100-80GB-SXM", 8, "on_demand", Decimal(40), at, "list")
    store.save_snapshot(provider, Fetched((sold,), snapshot), at)
    store.save_state(ProviderState(provider, snapshot, 3600, at, at), at)


def change(usd: str | None, at: datetime = NOW, **changes: Any) -> dict[str, Any]:
    """A row of history as a refresh adds it."""
    row = {"asked": "aws", "provider": "aws", "region": "r", "instance_type": "p5", "accelerator": "H100", "accelerator_count": 8}
    row |= {"pricing": "on_demand", "market": "list", "availability": "listed", "observed_at": at, "source": "list"}
    return row | {"usd_per_hour": usd and Decimal(usd)} | changes


def add(store: Store, *rows: dict[str, Any]) -> None:
    """Rows of history, as a refresh adds them."""
    store.save_state(ProviderState("aws"), NOW, rows)


class TestStates:
    def test_the_dataclasses_have_the_columns_of_their_tables(self) -> None:
        """They name the same things."""
        assert {f.name for f in fields(ProviderState)} == set(provider_states.columns.keys())
        assert {f.name for f in fields(PriceChange)} == {*price_history.columns.keys(), "usd_per_hour_before"}
        assert set(IDENTITY_COLUMNS) < set(price_history.columns.keys())
        assert {f.name for f in fields(TeamPrices)} == set(team_prices.columns.keys())
        assert set(team_price_history.columns.keys()) == {*price_history.columns.keys(), "team"}

    def test_a_state_comes_back_as_it_was_kept_last(self, store: Store) -> None:
        """All of it; a provider that was never asked has an empty one."""
        state = ProviderState("aws", None, 3600, NOW, NOW, 2, "down", NOW, NOW + HOUR, "no key", 7, 1, [{"row": "r"}], {"cpu": 3}, 1, [{}])
        state = replace(state, suspicious_count=1, suspicious=[{"row": "s"}], warnings=["look"], configuration="d" * 64)
        store.save_state(ProviderState("aws"), NOW)
        store.save_state(state, NOW)
        assert store.provider_state("aws") == state
        assert store.provider_state("gcp") == ProviderState("gcp")
        assert store.provider_states() == {"aws": state}

    def test_a_state_of_an_older_release_has_nothing_of_what_is_new(self, store: Store) -> None:
        """A release before warnings wrote no such columns."""
        old = "INSERT INTO provider_states (provider, failures, offers, rejected_count, rejected, skipped, quarantined_count, quarantined)"
        with store.engine.begin() as connection:
            connection.execute(text(old + " VALUES ('aws', 0, 0, 0, '[]', '{}', 0, '[]')"))
        state = store.provider_state("aws")
        assert (state.suspicious_count, state.suspicious, state.warnings, state.configuration) == (0, [], [], None)

    def test_a_state_that_was_judged_by_an_older_one_is_not_kept(self, store: Store) -> None:
        """Nor its history; a failure in between changes nothing that it was judged by."""
        keep(store, "aws", "aws-1")
        first = store.provider_state("aws")
        store.save_state(replace(first, failures=1), NOW, since=first)
        keep(store, "aws", "aws-2", NOW + HOUR)
        for late in (first, ProviderState("aws")):
            with pytest.raises(StaleWriteError, match="another answer of aws was kept meanwhile"):
                store.save_state(replace(first, offers=7), NOW + HOUR, [change("40")], since=late)
        assert store.provider_state("aws").snapshot == "aws-2"
        assert store.price_changes(EVERYTHING, 10) == ()
        store.save_state(ProviderState("gcp", failures=1), NOW, since=ProviderState("gcp"))
        assert store.provider_state("gcp").failures == 1

    def test_an_error_without_end_is_cut(self, store: Store) -> None:
        """What a source says may be a whole web page."""
        store.save_state(ProviderState("aws", last_error="\0" + "x" * 10_000, unconfigured="y" * 10_000), NOW)
        assert store.provider_state("aws").last_error == "x" * 2000
        assert store.provider_state("aws").unconfigured == "y" * 500


class TestBooks:
    def test_nothing_kept_is_no_book(
        self, store: Store, open_store: Callable[[str], Store], tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """Nor is a database that was never made, or has no schema yet: neither is an outage."""
        assert store.current_manifest() == EMPTY_MANIFEST
        assert store.book_manifest("x") == EMPTY_MANIFEST
        folder = tmp_path_factory.mktemp("new")
        never_made = open_store(f"sqlite:///{folder}/none/outlay.db")
        assert never_made.current_manifest() == never_made.book_manifest("x") == EMPTY_MANIFEST
        (folder / "outlay.db").touch()
        assert open_store(f"sqlite:///{folder}/outlay.db").current_manifest() == EMPTY_MANIFEST

    def test_an_unmigrated_database_has_no_book_and_no_lessons(self, open_store: Callable[[str], Store], empty_url: str) -> None:
        """Nor lessons, on either database."""
        unmigrated = open_store(empty_url)
        assert unmigrated.current_manifest() == unmigrated.book_manifest("x") == EMPTY_MANIFEST
        assert unmigrated.run_outcomes("a") == ()

    @pytest.mark.own_database
    def test_an_older_schema_is_an_outage(self, store: Store) -> None:
        """Tables that are missing are told apart from prices that are."""
        with store._write() as connection:
            connection.exec_driver_sql("DROP TABLE price_book_parts")
        with pytest.raises(StoreUnavailable, match="prices cannot be read"):
            store.current_manifest()

    def test_a_book_of_one_snapshot_has_its_name(self, store: Store) -> None:
        """For users without live prices no name changes."""
        keep(store, "snapshot", "snapshot-1")
        heads = store.current_manifest()
        assert heads.book == "snapshot-1"
        assert [(part.provider, part.snapshot, part.taken_at, part.fresh_for_s) for part in heads.parts] == [
            ("snapshot", "snapshot-1", NOW, 3600)
        ]

    def test_a_book_is_dated_and_named_after_its_parts(self, store: Store) -> None:
        """A failure makes no new one; the part says of it."""
        keep(store, "snapshot", "snapshot-1")
        keep(store, "aws", "aws-1")
        first = store.current_manifest()
        assert str(first.book).startswith("prices-2027-01-04-")
        store.save_state(replace(store.provider_state("aws"), failures=3, verified_at=NOW - HOUR), NOW + HOUR)
        second = store.current_manifest()
        assert second.book == first.book
        assert [(part.provider, part.failures, part.verified_at) for part in second.parts] == [("aws", 3, NOW - HOUR), ("snapshot", 0, NOW)]

    def test_a_state_that_comes_back_is_the_newest_again(self, store: Store) -> None:
        """Under the name it had, which all that was made with it carries."""
        names = []
        for snapshot in ("aws-1", "aws-2", "aws-1", "aws-1", "aws-3"):
            keep(store, "snapshot", "snapshot-1")
            keep(store, "aws", snapshot)
            names.append(store.current_manifest().book)
        assert names[0] == names[2] == names[3]
        assert len(set(names)) == 3
        assert all(len(store.book_manifest(str(name)).parts) == 2 for name in names)

    def test_a_snapshot_is_a_book_of_its_own(self, store: Store) -> None:
        """It can be asked for by its name, whatever stands beside it now; an incomplete one cannot."""
        keep(store, "snapshot", "snapshot-1")
        keep(store, "aws", "aws-1")
        heads = store.book_manifest("aws-1")
        assert (heads.book, [part.provider for part in heads.parts]) == ("aws-1", ["aws"])

        def stop(done: int, total: int) -> None:
            raise InterruptedError

        with pytest.raises(InterruptedError):
            store.save_snapshot("gcp", Fetched((), "gcp-1"), NOW, stop)
        assert store.book_manifest("gcp-1") == EMPTY_MANIFEST

    def test_refreshes_at_once_miss_nothing_of_each_other(self, store: Store) -> None:
        """The newest book holds what every one of them brought."""
        keep(store, "snapshot", "snapshot-1")
        names = [f"cloud{n}" for n in range(6)]
        threads = [threading.Thread(target=keep, args=(store, name, f"{name}-1")) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [part.provider for part in store.current_manifest().parts] == [*names, "snapshot"]


class TestHistory:
    def test_rows_come_back_exactly_newest_first(self, store: Store) -> None:
        """With the price in the row before of the same thing."""
        add(store, change("40.000000001"), change("42", region="s"))
        add(store, change("41", NOW + HOUR), change(None, NOW + HOUR, region="s"))
        add(store, change("50", NOW + 2 * HOUR, asked="skypilot"), change("43", NOW + 2 * HOUR, region="s"))
        rows = store.price_changes(EVERYTHING, 100)
        assert [(row.asked, row.region, str(row.usd_per_hour), row.usd_per_hour_before) for row in rows] == [
            ("aws", "s", "43", None),
            ("skypilot", "r", "50", None),
            ("aws", "s", "None", Decimal(42)),
            ("aws", "r", "41", Decimal("40.000000001")),
            ("aws", "s", "42", None),
            ("aws", "r", "40.000000001", None),
        ]
        assert rows[0].observed_at == NOW + 2 * HOUR

    def test_pages_follow_one_another_whatever_is_added(self, store: Store) -> None:
        """Newer rows come before the first page, older ones in their place; none of the others moves."""
        add(store, *(change(str(n), NOW + n * HOUR) for n in range(1, 6)))
        first = store.price_changes(EVERYTHING, 2)
        add(store, change("9", NOW + 9 * HOUR))
        rest = store.price_changes(EVERYTHING, 100, (first[-1].observed_at, first[-1].id))
        assert [int(row.usd_per_hour or 0) for row in (*first, *rest)] == [5, 4, 3, 2, 1]

    def test_rows_of_one_moment_are_told_apart(self, store: Store) -> None:
        """A refresh adds many at once; a page may end among them."""
        add(store, *(change(str(n)) for n in range(1, 6)))
        seen: list[PriceChange] = []
        while page := store.price_changes(EVERYTHING, 2, (seen[-1].observed_at, seen[-1].id) if seen else None):
            seen += page
        assert [int(row.usd_per_hour or 0) for row in seen] == [5, 4, 3, 2, 1]

    def test_filters_hold_together(self, store: Store) -> None:
        """Any of several values of a column; both ends of a time."""
        add(store, change("1"), change("2", region="s"), change("3", NOW + HOUR), change("4", accelerator="A100"))

        def found(among: dict[str, tuple[str, ...]], *times: datetime) -> list[int]:
            return [int(row.usd_per_hour or 0) for row in store.price_changes(HistoryFilter(among, *times), 100)]

        assert found({"region": ("r",), "accelerator": ("H100",)}) == [3, 1]
        assert found({"accelerator": ("H100", "A100")}, NOW, NOW) == [4, 2, 1]
        assert found({}, NOW + HOUR) == [3]
        assert found({"pricing": ("on_demand",), "region": ("s",)}) == [2]
        assert found({"pricing": ("spot",), "region": ("s",)}) == []

    @pytest.mark.parametrize("url", ["sqlite"], indirect=True)
    @pytest.mark.parametrize(
        ("filters", "index"),
        [
            (("provider",), "price_history_by_provider (provider=? AND observed_at<?)"),
            (("region",), "price_history_by_region (region=? AND observed_at<?)"),
            (("pricing",), "price_history_by_pricing (pricing=? AND observed_at<?)"),
            (("accelerator",), "price_history_by_accelerator (accelerator=? AND observed_at<?)"),
            (("instance_type",), "price_history_by_thing (instance_type=?)"),
            (("accelerator", "pricing"), "price_history_by_accelerator (accelerator=? AND observed_at<?)"),
            ((), "price_history_by_time (observed_at<?)"),
        ],
    )
    def test_a_later_page_of_any_filter_is_found_by_an_index(self, store: Store, filters: tuple[str, ...], index: str) -> None:
        """In a history of millions of rows a name that is rare, or not there, is found as fast as any."""
        asked: list[tuple[str, Any]] = []
        event.listen(store.engine, "before_cursor_execute", lambda *said: asked.append((said[2], said[3])))
        store.price_changes(HistoryFilter(dict.fromkeys(filters, ("x",))), 10, (NOW, 7))
        statement, values = next(said for said in asked if "price_history" in said[0])
        with store.engine.connect() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
        assert f"SEARCH price_history USING INDEX {index}" in [row[-1] for row in plan]


def own(store: Store, *teams: str, at: datetime = NOW, history: dict[str, list[dict[str, Any]]] | None = None) -> None:
    """These teams, and no others, have a snapshot of their own."""
    for team in teams:
        sold = Offer("aws", "r", "i", "NVIDIA-H100-80GB-SXM", 8, "on_demand", Decimal(30), at, "contract")
        store.save_snapshot("file", Fetched((sold,), f"file-{team}"), at, team=team)
    store.save_state(
        ProviderState("file", None, 3600, at, at),
        at,
        owned=TeamPriceChanges([TeamPrices(team, f"file-{team}", 1) for team in teams], history or {}),
    )


class TestTeamsOwn:
    def test_it_stands_beside_the_book_and_in_none(self, store: Store) -> None:
        """The book keeps its name; each team's prices carry what is known of the files they are from."""
        keep(store, "snapshot", "snapshot-1")
        before = store.current_manifest()
        own(store, "vision", "speech")
        heads = store.current_manifest()
        assert (heads.book, heads.parts) == (before.book, before.parts)
        assert {team: (head.provider, head.snapshot, head.fresh_for_s) for team, head in heads.teams.items()} == {
            "speech": ("file", "file-speech", 3600),
            "vision": ("file", "file-vision", 3600),
        }
        assert store.team_prices()["vision"] == TeamPrices("vision", "file-vision", 1, rejected=[], suspicious=[], warnings=[])
        assert (set(store.team_prices("speech")), store.team_prices("plain")) == ({"speech"}, {})
        assert [snapshot["name"] for snapshot in stored_snapshots(store)] == ["snapshot-1"]

    def test_nobody_else_finds_it_by_its_name(self, store: Store) -> None:
        """Nor does the team find another's; its own past ones it does."""
        own(store, "vision")
        own(store, "speech")
        assert store.book_manifest("file-vision") == EMPTY_MANIFEST
        assert store.team_snapshot_ref("speech", "file-vision") is None
        assert store.team_snapshot_ref("vision", "none") is None
        assert store.team_snapshot_ref("vision", "file-vision").snapshot == "file-vision"  # type: ignore[union-attr]
        assert set(store.current_manifest().teams) == {"speech"}

    def test_it_stays_when_the_files_cannot_be_read(self, store: Store) -> None:
        """A failure says nothing of prices; what is not kept, because another answer was, changes none."""
        own(store, "vision")
        state = store.provider_state("file")
        store.save_state(replace(state, failures=1), NOW, since=state)
        assert store.current_manifest().teams["vision"].failures == 1
        with pytest.raises(StaleWriteError):
            store.save_state(
                state, NOW, since=replace(state, verified_at=NOW - HOUR), owned=TeamPriceChanges((), {"vision": [change("1")]})
            )
        assert set(store.team_prices()) == {"vision"}
        assert store.price_changes(HistoryFilter({}, team="vision"), 10) == ()

    def test_its_history_is_read_by_the_team_alone(self, store: Store) -> None:
        """Beside everybody's, each with the price before of its own; everybody's rows are numbered without a gap."""
        add(store, change("40"))
        own(store, "vision", history={"vision": [change("30", asked="file"), change("9", region="s", asked="file")]})
        own(store, "vision", "speech", history={"vision": [change("31", NOW + HOUR, asked="file")], "speech": [change("7", asked="file")]})
        add(store, change("41", NOW + HOUR))
        everybodys, visions = (store.price_changes(HistoryFilter({}, team=team), 10) for team in (None, "vision"))
        assert [row.id for row in everybodys] == [2, 1]
        assert [(row.asked, str(row.usd_per_hour), row.usd_per_hour_before) for row in visions] == [
            ("aws", "41", Decimal(40)),
            ("file", "31", Decimal(30)),
            ("aws", "40", None),
            ("file", "30", None),
            ("file", "9", None),
        ]
        assert [str(row.usd_per_hour) for row in store.price_changes(HistoryFilter({"region": ("s",)}, team="vision"), 10)] == ["9"]
        assert store.price_changes(HistoryFilter({}, team="plain"), 10) == everybodys

    def test_pages_of_both_follow_one_another(self, store: Store) -> None:
        """Wherever a page ends."""
        rows = [change(str(n), NOW + (n // 3) * HOUR) for n in range(1, 8)]
        add(store, *rows)
        own(store, "vision", history={"vision": [row | {"asked": "file"} for row in rows]})
        wanted = HistoryFilter({}, team="vision")
        whole = store.price_changes(wanted, 100)
        for limit in (1, 2, 3):
            seen: list[PriceChange] = []
            while page := store.price_changes(wanted, limit, (seen[-1].observed_at, seen[-1].id) if seen else None):
                seen += page
            assert tuple(seen) == whole
        assert len(whole) == 14
