"""Kept results and their links in the store, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, insert

from service.domain.results import MOST_LINKS, ResultDetail, ResultFilter, ResultLink, ResultRecord
from service.domain.teams import DEFAULT_TEAM
from service.store import Store
from service.store.results.tables import results
from service.store.tables import teams

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)
ROW = ResultRecord("", DEFAULT_TEAM, 0, "estimate", "A title", NOW, None, "0" * 64, "prices-1", "0.1")
DETAIL = ResultDetail(
    ROW, {"model": {}}, ({"source": "caller"},), b'{"a":1}', b'{"request":{"model":{}},"offers":[{"source":"caller"}]}', "a..b"
)


def keep(store: Store, **more: object) -> ResultDetail:
    """A kept result whose row has these values."""
    return store.create_result(replace(DETAIL, row=replace(ROW, id=str(uuid.uuid4()), **more)))  # type: ignore[arg-type]


def link(store: Store, kept: ResultDetail, digest: str, expires_at: datetime | None = None) -> ResultLink:
    """A link to a result."""
    made = ResultLink(str(uuid.uuid4()), NOW, expires_at)
    assert store.create_link(kept.row.team, kept.row.id, made, digest)
    return made


def titles(store: Store, wanted: ResultFilter, at: datetime = NOW) -> list[str]:
    """The titles that are listed."""
    return [row.title for row in store.results(DEFAULT_TEAM, 0, 100, at, wanted)]


@contextmanager
def statements(store: Store) -> Iterator[list[str]]:
    """The SELECTs executed within the block."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.lstrip().upper().startswith("SELECT"):
            seen.append(statement)

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(store.engine, "before_cursor_execute", note)


class TestKeeping:
    def test_it_is_read_as_it_was_kept(self, store: Store) -> None:
        """Byte for byte; another team finds nothing."""
        first, second = keep(store), keep(store)
        assert store.result(DEFAULT_TEAM, second.row.id, NOW) == second
        assert [first.row.number, second.row.number] == [1, 2]
        assert (second.answer_json, second.record_json, second.signature) == (DETAIL.answer_json, DETAIL.record_json, DETAIL.signature)
        assert store.result("theirs", second.row.id, NOW) is None
        assert not store.has_result("theirs", second.row.id, NOW)

    def test_numbers_count_within_a_team(self, store: Store) -> None:
        """So that they disclose nothing of others."""
        with store.engine.begin() as connection:
            connection.execute(insert(teams).values(id="theirs", name="theirs", created_at=NOW))
        keep(store)
        assert keep(store, team="theirs").row.number == 1
        assert [row.team for row in store.results("theirs", 0, 10, NOW)] == ["theirs"]

    def test_results_kept_at_once_have_numbers_of_their_own(self, store: Store) -> None:
        """Without gaps, so that a page misses none."""
        barrier = threading.Barrier(6)

        def keep_some() -> None:
            barrier.wait()
            for _ in range(3):
                keep(store)

        threads = [threading.Thread(target=keep_some) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [row.number for row in store.results(DEFAULT_TEAM, 0, 100, NOW)] == list(range(18, 0, -1))

    def test_an_expired_result_is_nowhere(self, store: Store) -> None:
        """Before and after it is deleted, and its link opens nothing."""
        kept = keep(store, expires_at=NOW + DAY)
        link(store, kept, "1" * 64)
        later = NOW + DAY
        for _ in range(2):
            assert store.result(DEFAULT_TEAM, kept.row.id, later) is None
            assert store.linked_result(kept.row.id, "1" * 64, later) is None
            assert not store.has_result(DEFAULT_TEAM, kept.row.id, later)
            assert store.results(DEFAULT_TEAM, 0, 10, later) == []
            store.delete_expired_results(later)
        assert store.delete_expired_results(later) == 0

    def test_one_without_expiry_stays(self, store: Store) -> None:
        """However late it is."""
        kept = keep(store)
        assert store.delete_expired_results(NOW + 10_000 * DAY) == 0
        assert store.result(DEFAULT_TEAM, kept.row.id, NOW + 10_000 * DAY) is not None

    def test_only_its_team_deletes_it(self, store: Store) -> None:
        """With its links."""
        kept = keep(store)
        link(store, kept, "1" * 64)
        assert not store.delete_result("theirs", kept.row.id, NOW)
        assert store.delete_result(DEFAULT_TEAM, kept.row.id, NOW)
        assert store.linked_result(kept.row.id, "1" * 64, NOW) is None
        assert not store.delete_result(DEFAULT_TEAM, kept.row.id, NOW)


class TestListing:
    def test_a_page_is_one_query_that_reads_no_answer(self, store: Store) -> None:
        """Whatever the number of results: their sizes do not count."""
        for at in range(5):
            keep(store, title=f"result {at}")
        with statements(store) as seen:
            assert len(store.results(DEFAULT_TEAM, 0, 1000, NOW, ResultFilter("estimate", "RESULT", NOW + DAY))) == 0
            assert len(store.results(DEFAULT_TEAM, 0, 1000, NOW)) == 5
        assert len(seen) == 2
        columns = {column.name for column in results.columns}
        listed = {field.name for field in fields(ResultRecord)}
        assert columns - listed == {"title_folded", "signature", "record", "answer"}
        for statement in seen:
            selected = statement.partition("FROM")[0]
            assert not [name for name in ("answer", "record", "signature") if f"results.{name}" in selected]

    @pytest.mark.parametrize("wanted", [ResultFilter(), ResultFilter(kind="estimate")])
    def test_a_page_is_found_by_an_index(self, store: Store, wanted: ResultFilter) -> None:
        """SQLite says how; PostgreSQL decides by the size of the table."""
        if store.engine.dialect.name != "sqlite":
            pytest.skip("PostgreSQL plans by statistics")
        with statements(store) as seen:
            store.results(DEFAULT_TEAM, 0, 1000, NOW, wanted)
        query = seen[0].replace("?", "1")
        with store.engine.connect() as connection:
            plan = [str(row[-1]) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}")]
        assert "INDEX" in plan[0], plan
        assert not [step for step in plan if "SCAN" in step or "TEMP B-TREE" in step]

    def test_pages_hold_everything_once_while_others_keep(self, store: Store) -> None:
        """The newest first; what comes later is before the first page."""
        for at in range(7):
            keep(store, title=str(at))
        seen: list[str] = []
        before = 0
        while rows := store.results(DEFAULT_TEAM, before, 2, NOW):
            seen += [row.title for row in rows]
            before = rows[-1].number
            keep(store, title="meanwhile")
        assert seen == ["6", "5", "4", "3", "2", "1", "0"]

    def test_titles_are_searched_in_any_case_and_letter_by_letter(self, store: Store) -> None:
        """A percent sign is a percent sign; letters beyond ASCII have cases too."""
        for title in ("Ärger um 100% H100", "Budget 2027", "100 H100"):
            keep(store, title=title)
        assert titles(store, ResultFilter(title="ÄRGER")) == ["Ärger um 100% H100"]
        assert titles(store, ResultFilter(title="100%")) == ["Ärger um 100% H100"]
        assert titles(store, ResultFilter(title="_")) == []
        assert titles(store, ResultFilter(title="h100")) == ["100 H100", "Ärger um 100% H100"]

    def test_kind_and_expiry_are_filters(self, store: Store) -> None:
        """What never expires is in no list of what expires soon."""
        keep(store, title="never", kind="compare")
        keep(store, title="soon", expires_at=NOW + DAY)
        keep(store, title="late", expires_at=NOW + 9 * DAY)
        assert titles(store, ResultFilter(kind="compare")) == ["never"]
        assert titles(store, ResultFilter(expires_before=NOW + 2 * DAY)) == ["soon"]


class TestLinks:
    def test_a_link_opens_its_result_alone(self, store: Store) -> None:
        """And only with the digest of its token."""
        kept, other = keep(store), keep(store)
        link(store, kept, "1" * 64)
        assert store.linked_result(kept.row.id, "1" * 64, NOW) == kept
        assert store.linked_result(other.row.id, "1" * 64, NOW) is None
        assert store.linked_result(kept.row.id, "2" * 64, NOW) is None

    def test_an_expired_or_revoked_link_opens_nothing(self, store: Store) -> None:
        """Nor is it listed."""
        kept = keep(store)
        expiring, lasting = link(store, kept, "1" * 64, NOW + DAY), link(store, kept, "2" * 64)
        assert store.links(kept.row.id, NOW) == sorted((expiring, lasting), key=lambda made: made.id)
        assert store.linked_result(kept.row.id, "1" * 64, NOW + DAY) is None
        assert store.links(kept.row.id, NOW + DAY) == [lasting]
        assert store.delete_link(DEFAULT_TEAM, kept.row.id, lasting.id, NOW)
        assert not store.delete_link(DEFAULT_TEAM, kept.row.id, lasting.id, NOW)
        assert store.linked_result(kept.row.id, "2" * 64, NOW) is None

    def test_a_result_has_so_many_links(self, store: Store) -> None:
        """And another team makes none."""
        kept = keep(store)
        for at in range(MOST_LINKS):
            link(store, kept, f"{at:064}")
        more = ResultLink(str(uuid.uuid4()), NOW, None)
        assert not store.create_link(DEFAULT_TEAM, kept.row.id, more, "f" * 64)
        assert not store.create_link("theirs", keep(store).row.id, more, "f" * 64)
